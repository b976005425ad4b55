"""The batches of Amazon Mechanical Turk, as rows of ours: a row a rating of one person, see `rated_items`.

`Input.id` (or `HITId`) is the id, `WorkerId` the rater, `Answer.NAME` a quality; of radio buttons that `Answer.NAME.VALUE`
which is true. `Answer.taskAnswers` is read too. Rejected rows are left out. What other tools nest is refused with the way out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json

from .rows import file_rows

logger = logging.getLogger(__name__)

_NOT_READ = {".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow", ".pkl", ".zip", ".xml", ".yaml", ".yml"}


def check_suffix(path: Path) -> None:
    """Refuse a file that its name says is neither JSON nor a table of text."""
    if path.suffix.lower() in _NOT_READ:
        raise InputError(f"{path}: a file of this kind is not read here. Save it as CSV (UTF-8), or as JSON lines.")


def user_rows(path: Path) -> list[Line]:
    """Return the rows of a user's table or JSON file; those of a batch of Mechanical Turk as rows of ours."""
    rows = file_rows(path)
    check_layout(path, rows[0].value)
    if not {"HITId", "WorkerId"} <= rows[0].value.keys():
        return rows
    try:
        found = [Line(row.where, value) for row in rows for value in _of_mturk(row)]
    except (AttributeError, TypeError):
        raise InputError(f"{path}: Answer.taskAnswers is not as Mechanical Turk writes it. Download the batch again.") from None
    if len(found) < len(rows):
        logger.warning("%s: %d of %d assignments were rejected, and are left out", path, len(rows) - len(found), len(rows))
    if not found:
        raise InputError(f"{path}: has no answers that count. Export the approved ones.")
    return found


def check_layout(path: Path, value: object) -> None:
    """Refuse by its first row what holds ratings or scores in a layout that is not read: of pandas, Label Studio or Argilla."""
    if not isinstance(value, dict) or not value:
        return
    names, cells = value.keys(), value.values()
    is_nested = any(isinstance(cell, list) or str(cell).startswith("[{") for cell in cells)
    if {"data", "annotations"} <= names or ("annotation_id" in names and is_nested):
        tool = "Label Studio"
    elif {"fields", "responses"} <= names or any(name.endswith(".responses") for name in names):
        tool = "Argilla"
    elif all(isinstance(cell, dict) for cell in cells) or {"data", "index"} <= names:
        raise InputError(f"{path}: is one object, as pandas' to_json writes. Write the rows, by to_json(orient='records').")
    else:
        return
    raise InputError(
        f"{path}: is an export of {tool}. Write a row a person, with the columns id, rater, and one for each quality."
    )


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
