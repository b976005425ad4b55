"""What tools for raters export, as rows of ours: a row a rating of one person, see `rated_items`.

- Amazon Mechanical Turk, the CSV of a batch: `Input.id` (or `HITId`) is the id, `WorkerId` the rater, `Answer.NAME` a quality;
  of radio buttons that `Answer.NAME.VALUE` which is true. `Answer.taskAnswers` is read too. Rejected rows are left out.
- Label Studio, JSON, JSON-MIN and CSV: `Rating`, `Number` and `Choices` are qualities.
- Argilla, records as `to_json`, `to_list` or `to_datasets` give them; answers that were submitted count.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json

from .registry import file_rows

logger = logging.getLogger(__name__)

_NOT_READ = {".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow", ".pkl", ".zip", ".xml", ".yaml", ".yml"}


def check_suffix(path: Path) -> None:
    """Refuse a file that its name says is neither JSON nor a table of text."""
    if path.suffix.lower() in _NOT_READ:
        raise InputError(f"{path}: a file of this kind is not read here. Save it as CSV (UTF-8), or as JSON lines.")


def user_rows(path: Path) -> list[Line]:
    """Return the rows of a user's table or JSON file; those of an export as rows of ours."""
    rows = file_rows(path)
    of_tool = _tool(rows[0].value)
    if of_tool is None:
        refuse_columns(path, rows[0].value)
        return rows
    found, n_rejected = list[Line](), 0
    for row in rows:
        try:
            given = [Line(row.where, value) for value in of_tool(row)]
        except (AttributeError, KeyError, TypeError):
            raise InputError(f"{row.where}: is not as the rating tool exports it. Export it again.") from None
        n_rejected += not given
        found += given
    if n_rejected:
        logger.warning("%s: %d of %d assignments were rejected, and are left out", path, n_rejected, len(rows))
    if not found:
        raise InputError(f"{path}: has no answers that count. Export the approved ones.")
    return found


def is_export(value: object) -> bool:
    """Whether the first row of a file is of a tool's export."""
    return isinstance(value, dict) and _tool(value) is not None


def refuse_columns(path: Path, value: Mapping[str, Any]) -> None:
    """Refuse the object that pandas' `to_json` writes by default, a column or a row at each key."""
    if (value and all(isinstance(cells, dict) for cells in value.values())) or {"data", "index"} <= value.keys():
        raise InputError(f"{path}: is one object, as pandas' to_json writes. Write the rows, by to_json(orient='records').")


def _tool(head: Mapping[str, Any]) -> Any:
    names = head.keys()
    if {"HITId", "WorkerId"} <= names:
        return _of_mturk
    if {"data", "annotations"} <= names:
        return _of_label_studio
    if "annotation_id" in names:
        return _of_label_studio_table
    is_argilla = {"fields", "responses"} <= names or any(name.endswith(".responses") for name in names)
    return _of_argilla if is_argilla else None


def _of_mturk(row: Line) -> Iterator[dict[str, Any]]:
    if row.value.get("AssignmentStatus") == "Rejected":
        return
    answers: dict[str, Any] = {}
    for name, value in row.value.items():
        quality, _, option = name.removeprefix("Answer.").rpartition(".")
        if name == "Answer.taskAnswers":
            for part in parse_json(value, f"{row.where}: {name}"):
                answers |= dict(part.items())
        elif name.startswith("Answer.") and quality and str(value).lower() in {"true", "false", ""}:
            answers.setdefault(quality, {})[option] = value
        elif name.startswith("Answer."):
            answers[name.removeprefix("Answer.")] = value
    given = {name.removeprefix("Input."): value for name, value in row.value.items() if name.startswith("Input.")}
    chosen = {name: _chosen(value, f"{row.where}: {name}") for name, value in answers.items()}
    yield {"id": row.value["HITId"], **given, **chosen, "rater": row.value["WorkerId"]}


def _chosen(value: Any, where: str) -> Any:
    """The name of the button that was chosen, None where none was; anything else as it is."""
    if not isinstance(value, dict):
        return value
    chosen = [name for name, is_chosen in value.items() if str(is_chosen).lower() == "true"]
    if len(chosen) > 1:
        raise InputError(f"{where}: several answers are chosen: {', '.join(chosen)}. Leave the cells empty, or mend the row.")
    return chosen[0] if chosen else None


def _of_label_studio(row: Line) -> Iterator[dict[str, Any]]:
    task = {"id": row.value.get("id"), **row.value["data"]}
    done = [one for one in row.value["annotations"] if not one.get("was_cancelled")]
    for one in done:
        person = one.get("completed_by")
        answers = {part["from_name"]: _answer(part.get("value")) for part in one.get("result", ()) if "from_name" in part}
        yield {**task, **answers, "rater": person.get("id") if isinstance(person, dict) else person}
    if not done:
        yield task


def _of_label_studio_table(row: Line) -> Iterator[dict[str, Any]]:
    yield {name: _answer(value) for name, value in row.value.items()}


def _answer(value: Any) -> Any:
    """The number or the single choice in what Label Studio writes of an answer; anything else as it is."""
    found = value
    if isinstance(found, str) and found.startswith(("[{", "{")):
        with contextlib.suppress(InputError):
            found = parse_json(found, "")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, dict):
        found = next((found[name] for name in ("rating", "number", "choices") if name in found), value)
    return found[0] if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str) else found


def _of_argilla(row: Line) -> Iterator[dict[str, Any]]:
    texts = {**(row.value.get("fields") or {}), **(row.value.get("metadata") or {})}
    record = {"id": row.value.get("external_id") or row.value.get("id"), **texts}
    people: dict[Any, dict[str, Any]] = {}
    for place, quality, one in _argilla_answers(row.value):
        if one.get("status") in {None, "submitted"}:
            people.setdefault(one.get("user_id") or place, {})[quality] = one.get("value")
    for person, answers in people.items() or [(None, {})]:
        yield {**record, **answers, "rater": str(person)}


def _argilla_answers(record: Mapping[str, Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """The answers in a record of Argilla 1 (by person), Argilla 2 (by question), or one that was flattened."""
    given = record.get("responses")
    for place, one in enumerate(given if isinstance(given, list) else []):
        for quality, answer in (one.get("values") or {}).items():
            yield place, quality, {**one, **answer}
    for quality, answers in given.items() if isinstance(given, dict) else []:
        for place, answer in enumerate(answers):
            yield place, quality, answer
    for name in record:
        if name.endswith(".responses"):
            columns = [record.get(f"{name}{end}") or [] for end in ("", ".users", ".status")]
            for place, (value, user, status) in enumerate(itertools.zip_longest(*columns)):
                yield place, name.removesuffix(".responses"), {"value": value, "user_id": user, "status": status}
