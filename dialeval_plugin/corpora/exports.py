"""Exports of labelling tools, read as our own rows, one per person and response; see `rated_items`.

- A batch of Amazon Mechanical Turk: `Input.id` (or `HITId`) is the id, `WorkerId` the rater, `Answer.NAME` a quality; for radio
  buttons, `Answer.NAME.VALUE` that is true. `Answer.taskAnswers` is read too. Rejected rows are left out.
- Label Studio, as JSON, JSON-MIN or CSV: the id is that of the data, or the task's; cancelled annotations are left out.
- Argilla, as records or as a table of `datasets`: discarded answers and drafts are left out.
- Scores of Langfuse: those given by people (source ANNOTATION), for an observation or a trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json, to_json

from .rows import file_rows, objects_field

logger = logging.getLogger(__name__)

_NOT_READ = {".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow", ".pkl", ".zip", ".xml", ".yaml", ".yml"}


def check_suffix(path: Path) -> None:
    """Raise an error for a file whose name ends neither like JSON nor like a table of text."""
    if path.suffix.lower() in _NOT_READ:
        raise InputError(f"{path}: a file of this kind is not read here. Save it as CSV (UTF-8), or as JSON lines.")


def user_rows(path: Path) -> list[Line]:
    """Return the rows of a user's table or JSON file; for a labelling tool's export, one row per person."""
    return person_rows(file_rows(path), str(path))


def person_rows(rows: list[Line], source: str, *, is_logged: bool = True) -> list[Line]:
    """Return the rows unchanged or, if they are a labelling tool's export, one row per person.

    With `is_logged`, the number of answers that do not count is logged.
    """
    if rows[0].value.keys() == {"data", "meta"}:  # pages of Langfuse's API
        rows = [row for page in rows for row in objects_field(page, "data")] or rows
    if (tool := export_of(rows[0].value)) is None:
        check_layout(Path(source), rows[0].value)
        return rows
    try:
        answers = [(row.where, value) for row in rows for value in tool.read(row)]
    except (AttributeError, TypeError, KeyError, ValueError):
        raise InputError(f"{source}: {tool.damaged}.") from None
    counted = [Line(where, value) for where, value in answers if value is not None]
    if is_logged and (n := len(answers) - len(counted)):
        logger.warning("%s: %d of %d %s, and are left out", source, n, len(answers), tool.left_out)
    if not counted:
        raise InputError(f"{source}: has no answers that count. Export the approved ones.")
    return _joined(counted)


def _joined(rows: Sequence[Line]) -> list[Line]:
    """Join a person's rows about one response that answer different questions: Langfuse has a row a score."""
    joined: list[Line] = []
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        value = dict(row.value)
        id, rater = value.get("id"), value.get("rater")
        whole = value if id is None or rater is None else first.setdefault((str(id), str(rater)), value)
        if value.keys() <= whole.keys() or any(whole[name] != value[name] for name in value.keys() & whole.keys()):
            joined.append(Line(row.where, value))
        else:
            whole.update(value)
    return joined


def check_layout(path: Path, value: object) -> None:
    """Raise an error if the first row is not one response: an export of Label Studio or Argilla, or an object of columns."""
    if not isinstance(value, dict) or not value:
        return
    if (tool := export_of(value)) is not None and tool.name in {"Label Studio", "Argilla"}:
        raise InputError(
            f"{path}: is an export of {tool.name}. Write a row a person, with the columns id, rater, and one for each quality."
        )
    if all(isinstance(cell, dict) for cell in value.values()) or {"data", "index"} <= value.keys():
        raise InputError(f"{path}: is one object, as pandas' to_json writes. Write the rows, by to_json(orient='records').")


class Export(NamedTuple):
    """Reader of a labelling tool's rows."""

    name: str
    read: Callable[[Line], Iterator[dict[str, Any] | None]]
    """Yields each person's answers; None for those that do not count."""
    left_out: str
    damaged: str


def export_of(value: object) -> Export | None:
    """Return the labelling tool that wrote a row; None if there is none."""
    if not isinstance(value, dict):
        return None
    names = value.keys()
    is_nested = any(isinstance(cell, (list, dict)) or str(cell).startswith(("[{", '{"choices"')) for cell in value.values())
    if {"HITId", "WorkerId"} <= names:
        return _MTURK
    if {"data", "annotations"} <= names or ("annotation_id" in names and is_nested):
        return _LABEL_STUDIO
    if {"fields", "responses"} <= names or any(name.endswith(".responses") for name in names):
        return _ARGILLA
    return _LANGFUSE if {"traceId", "name", "source"} <= names and not names.isdisjoint({"value", "stringValue"}) else None


def _of_label_studio(row: Line) -> Iterator[dict[str, Any] | None]:
    if "annotations" not in row.value:  # its table, or JSON-MIN
        yield {name: _answer(cell, f"{row.where}: {name}") for name, cell in row.value.items()}
        return
    for one in row.value["annotations"]:
        if one.get("was_cancelled"):
            yield None
            continue
        who = one.get("completed_by")
        who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
        answers: dict[str, Any] = {}
        for part in one["result"]:
            name = part["from_name"]
            if name in answers and not {"choices", "rating", "number"}.isdisjoint(part["value"]):
                raise InputError(
                    f"{row.where}: {name}: one annotation has several answers, each about a part of the text. Make a task of "
                    "each part."
                )
            answers[name] = _answer(part["value"], f"{row.where}: {name}")
        yield {"id": row.value.get("id"), **row.value["data"], **answers, "rater": who}


def _answer(cell: Any, where: str) -> Any:
    """Return the choice in a cell of Label Studio or Argilla; other values unchanged, or as text."""
    value = parse_json(cell, where) if isinstance(cell, str) and cell.startswith(("[{", '{"choices"')) else cell
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        (value,) = value
    if isinstance(value, dict):
        value = next((value[name] for name in ("choices", "rating", "number") if name in value), value)
    if isinstance(value, list) and all(isinstance(one, (str, int)) for one in value):
        return _chosen({str(one): True for one in value}, where)
    return to_json(value) if isinstance(value, (dict, list)) else value


def _of_argilla(row: Line) -> Iterator[dict[str, Any] | None]:
    value = row.value
    plain = {name: cell for name, cell in value.items() if "." not in name and not isinstance(cell, (dict, list))}
    about = {**plain, **(value.get("metadata") or {}), **(value.get("fields") or {})}
    about["id"] = value.get("external_id") or value.get("id")
    people: dict[Any, dict[str, Any]] = {}
    for who, status, quality, answer in _argilla_answers(value):
        if status not in {None, "submitted"}:
            yield None
        else:
            people.setdefault(who, {})[quality] = _answer(answer, f"{row.where}: {quality}")
    for person, answers in people.items():
        yield {**about, **answers, "rater": person}


def _argilla_answers(value: dict[str, Any]) -> Iterator[tuple[Any, Any, str, Any]]:
    """Yield rater, status, quality and answer of each answer."""
    given = value.get("responses")
    if isinstance(given, list):
        for place, one in enumerate(given, start=1):
            for quality, answer in (one.get("values") or {}).items():
                yield one.get("user_id") or f"rater {place}", one.get("status"), quality, answer["value"]
    elif isinstance(given, dict):
        for quality, answers in given.items():
            for place, one in enumerate(answers, start=1):
                yield one.get("user_id") or f"rater {place}", one.get("status"), quality, one["value"]
    else:
        for name in (name for name in value if name.endswith(".responses")):
            said: Sequence[Any] = value[name] or ()
            people = value.get(f"{name}.users") or [f"rater {place}" for place in range(1, len(said) + 1)]
            states = value.get(f"{name}.status") or [None] * len(said)
            for who, status, answer in zip(people, states, said, strict=True):
                yield who, status, name.removesuffix(".responses"), answer


def _of_langfuse(row: Line) -> Iterator[dict[str, Any] | None]:
    value = row.value
    if value["source"] != "ANNOTATION":
        yield None
        return
    about = {"id": value.get("observationId") or value["traceId"], "cluster": value.get("sessionId") or value["traceId"]}
    said = value.get("stringValue") or value.get("value")
    yield {**about, value["name"]: said, "rater": value.get("authorUserId") or "annotator"}


def _of_mturk(row: Line) -> Iterator[dict[str, Any] | None]:
    if row.value.get("AssignmentStatus") == "Rejected":
        yield None
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
    """Return the name of the chosen button, None if none was chosen; other values unchanged."""
    if not isinstance(value, dict):
        return value
    chosen = [name for name, is_chosen in value.items() if str(is_chosen).lower() == "true"]
    if len(chosen) > 1:
        raise InputError(f"{where}: several answers are chosen: {', '.join(chosen)}. Leave the cells empty, or mend the row.")
    return chosen[0] if chosen else None


_ANNOTATIONS = "annotations were cancelled or not handed in"
_MTURK = Export(
    *("Mechanical Turk", _of_mturk, "assignments were rejected"),
    "Answer.taskAnswers is not as Mechanical Turk writes it. Download the batch again",
)
_LABEL_STUDIO = Export("Label Studio", _of_label_studio, _ANNOTATIONS, "is not as Label Studio writes it. Export it again")
_ARGILLA = Export("Argilla", _of_argilla, _ANNOTATIONS, "is not as Argilla writes it. Export it again")
_LANGFUSE = Export("Langfuse", _of_langfuse, "scores are no person's", "is not as Langfuse writes it. Export it again")
