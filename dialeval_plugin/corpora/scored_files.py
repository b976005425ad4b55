"""Reads whatever file a user scores: our JSON lines, or one of the published layouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json_lines, read_text

from .readers import dailydialog_pp, dstc10, usr
from .rows import label_field, read_array

_FIELDS = frozenset({"id", "context", "response", "references", "facts"})


def read_items(path: Path) -> list[Item]:
    """Read the examples of a file; the layout is told from its first character and first line.

    A JSON array whose rows have `responses` is a USR file, any other a DSTC10 set; JSON lines with `positive_responses` are
    DailyDialog++; other JSON lines are ours:
    `{"context": ["turn", ...], "response": "...", "id"?, "references"?: [...], "facts"?: [...]}`.

    Raises:
        InputError: the file is malformed; the message names the line.
    """
    start = read_text(path).lstrip()[:1]
    if start not in {"[", "{"} and start:
        raise InputError(
            f"{path}: holds neither JSON lines nor a JSON array. Give one object a line, "
            """{"context": ["turn", ...], "response": "..."}; make them of a CSV's rows first."""
        )
    if start == "[":
        return list(usr.read_examples(path) if "responses" in read_array(path)[0].value else dstc10.read(path))
    lines = read_json_lines(path)
    if "positive_responses" in lines[0].value:
        return [example for item in dailydialog_pp.read(path) for example in item.examples()]
    examples = [_example(line, number) for number, line in enumerate(lines)]
    first: dict[str, str] = {}
    for line, example in zip(lines, examples, strict=True):
        other = first.setdefault(example.id, line.where)
        if other != line.where:
            raise InputError(f"{line.where}: the id {example.id!r} is also that of {other}. Give every example its own.")
    return list(examples)


def _example(line: Line, number: int) -> Example:
    value: Mapping[str, Any] = line.value
    if "messages" in value:
        raise InputError(
            f"{line.where}: holds chat messages. Give the content of the last one as 'response', a string, "
            "and that of those before it as 'context', a list of strings."
        )
    if unknown := sorted(set(value) - _FIELDS):
        raise InputError(f"{line.where}: there is no field {unknown[0]!r}. Known are {', '.join(sorted(_FIELDS))}.")
    for name in ("context", "response"):
        if name not in value:
            raise InputError(f"{line.where}: has no {name!r}. Give a list of turns as context and a string as response.")
    id = label_field(line, "id")
    try:
        return Example.from_texts(
            value["context"],
            value["response"],
            id=str(number) if id is None else id,
            references=value.get("references", ()),
            facts=value.get("facts", ()),
        )
    except InputError as error:
        raise InputError(f"{line.where}: {error}") from None
