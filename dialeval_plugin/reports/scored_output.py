"""The files that `dialeval score` writes: the rows, what belongs to all of them, and the journal of an unfinished run."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import is_stream, read_json, to_json, write_json_lines, write_text
from dialeval_plugin.core.percentiles import PercentileTable
from dialeval_plugin.core.scores import SCHEMA_VERSION, Scores


def journal_of(output: Path) -> Path:
    """Return where the journal of the scores `output` lies."""
    return output.with_name(output.name + ".journal")


def _meta_file(output: Path) -> Path:
    return output.with_name(output.name + ".meta.json")


def refuse_other_scores(output: Path, run: str) -> None:
    """Refuse to replace a file that does not hold this run's scores, as the file beside it says; an unfinished one may be."""
    if is_stream(output) or not output.is_file() or journal_of(output).exists():
        return
    meta = _meta_file(output)
    found = read_json(meta) if meta.is_file() else None
    if not isinstance(found, dict) or found.get("run") != run:
        raise InputError(
            f"{output}: holds something else than the scores of this scorer, with these options, of this input. "
            "Choose another name, or add --overwrite to replace it."
        )


def write_scores(scores: Scores, output: Path, *, run: str, complete: bool, percentiles: PercentileTable | None = None) -> None:
    """Write the rows to `output` and, where that is a file, what belongs to all of them to `<output>.meta.json`.

    `percentiles` is the table that their percentiles are from, which the signature does not name.
    """
    write_json_lines(output, scores.rows())
    if not is_stream(output):
        meta = {
            "run": run,
            "schema_version": SCHEMA_VERSION,
            "main": scores.main,
            "mean": scores.mean(),
            "level": scores.level,
            "orientation": scores.orientation,
            "n_total": scores.n_total,
            "n_scored": scores.n_scored,
            "unscored": scores.unscored_by_reason,
            "complete": complete,
            "signature": str(scores.signature),
            **({} if percentiles is None else {"percentiles": percentiles.digest}),
        }
        write_text(_meta_file(output), to_json(meta, indent=2) + "\n")
    journal_of(output).unlink(missing_ok=True)
