"""The files that `dialeval score` writes: the rows, what belongs to all of them, and the journal of an unfinished run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import atomic_path, is_stream, read_json, to_json, write_lines, write_text
from dialeval_plugin.core.percentiles import PercentileTable
from dialeval_plugin.core.scores import SCHEMA_VERSION, Scores
from dialeval_plugin.core.signature import file_hash

SHA256 = "sha256"
"""Field of what belongs to all rows of a file: the hash of the file."""


def journal_of(output: Path) -> Path:
    """Return where the journal of the scores `output` lies."""
    return output.with_name(output.name + ".journal")


def meta_file(output: Path) -> Path:
    """Return where what belongs to all rows of the scores `output` lies."""
    return output.with_name(output.name + ".meta.json")


def stored_meta(output: Path, about: Mapping[str, Any], remedy: str = "add --overwrite to replace it") -> dict[str, Any] | None:
    """Return what belongs to all rows of a file of scores; None where nothing is at `output`, or where it is written to.

    Raises:
        InputError: it is another file than the one that was written with these values of `about`.
    """
    if is_stream(output) or not output.exists():
        return None
    beside = meta_file(output)
    found = read_json(beside) if beside.is_file() else None
    if (
        not isinstance(found, dict)
        or any(found.get(name) != value for name, value in about.items())
        or found.get(SHA256) != file_hash(output)
    ):
        raise InputError(
            f"{output}: holds something else than the scores of this scorer, with these options, of this input. "
            f"Choose another name, or {remedy}."
        )
    return found


Counted: TypeAlias = Any
"""`Scores`, or what is kept of those of a stream, which has the same totals: `streams.summary.RunningSummary`."""


def write_scores(scores: Scores, output: Path, *, run: str, complete: bool, percentiles: PercentileTable | None = None) -> None:
    """Write the rows to `output` and, where that is a file, what belongs to all of them to `<output>.meta.json`.

    `percentiles` is the table that their percentiles are from, which the signature does not name.
    """
    with atomic_path(output) as temporary:
        write_lines(temporary, (to_json(row) + "\n" for row in scores.rows()))
        if not is_stream(output):
            digest = file_hash(temporary)
            write_meta(output, {"run": run, **meta_of(scores, percentiles), "complete": complete, SHA256: digest})
    journal_of(output).unlink(missing_ok=True)


def meta_of(scores: Counted, percentiles: PercentileTable | None) -> dict[str, Any]:
    """Return what belongs to all rows."""
    return {
        "schema_version": SCHEMA_VERSION,
        "main": scores.main,
        "mean": scores.mean(),
        "level": scores.level,
        "orientation": scores.orientation,
        "n_total": scores.n_total,
        "n_scored": scores.n_scored,
        "unscored": scores.unscored_by_reason,
        "signature": str(scores.signature),
        **percentiles_of(percentiles),
    }


def percentiles_of(table: PercentileTable | None) -> dict[str, str | None]:
    """Return the field that names a table of percentiles."""
    return {"percentiles": None if table is None else table.digest}


def write_meta(output: Path, meta: Mapping[str, Any]) -> None:
    """Write what belongs to all rows beside them, before they have their name: a kill then leaves none without it."""
    write_text(meta_file(output), to_json(meta, indent=2) + "\n")
