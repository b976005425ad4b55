"""The pipeline that every scorer shares: checks, de-duplication, windows of bounded memory, journal, resume, progress."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from .dialogue import Dialogue, Example, Item
from .errors import InputError
from .files import to_json
from .scoring import Reason, Row, Scorer, Scores, Unscored, finite_or_unscored
from .signature import Signature
from .version import __version__

logger = logging.getLogger(__name__)


def run(scorer: Scorer, items: Sequence[Item], *, progress: bool = False, journal: Path | None = None) -> Scores:
    """Score `items` in windows of `scorer.window`; with a `journal`, a run that was killed goes on where it stopped.

    The journal holds whole windows only, and a resumed run has the windows of an uninterrupted one, so both end with the
    same bytes.

    Raises:
        InputError: an item is not of the scorer's level, or the journal belongs to another run.
    """
    _check_level(scorer, items)
    log = _Journal(journal, _run_id(scorer, items)) if journal is not None else None
    rows: list[Row] = log.read() if log is not None else []
    bar = tqdm(total=len(items), initial=len(rows), disable=None if progress else True, unit="example", desc=scorer.name)
    with bar:
        for start in range(len(rows), len(items), scorer.window):
            fresh = _score_distinct(scorer, items[start : start + scorer.window])
            if log is not None:
                log.append(fresh)
            rows.extend(fresh)
            bar.update(len(fresh))
    scores = Scores.from_rows(
        scorer.finish(rows),
        [item.id for item in items],
        scorer.columns,
        Signature({**scorer.signature_fields(), "level": scorer.level, "version": __version__}),
        scorer.level,
        scorer.orientation,
    )
    if scores.n_unscored:
        logger.warning(
            "%s: %d of %d examples have no score: %s", scorer.name, scores.n_unscored, scores.n_total, scores.unscored_by_reason
        )
    return scores


def _check_level(scorer: Scorer, items: Sequence[Item]) -> None:
    expected = Example if scorer.level == "turn" else Dialogue
    for index, item in enumerate(items):
        if not isinstance(item, expected):
            raise InputError(
                f"{scorer.name}: item {index} is of type {type(item).__name__}, but this scorer works at {scorer.level} level. "
                f"Pass {expected.__name__} objects."
            )


def _content(item: Item) -> tuple[Any, ...]:
    """What a score may depend on: everything but the id, the system and the ratings."""
    if isinstance(item, Dialogue):
        return (item.turns,)
    return (item.context, item.response, item.references, item.facts)


def _score_distinct(scorer: Scorer, items: Sequence[Item]) -> list[Row]:
    """Score each distinct item of a window once."""
    positions: dict[tuple[Any, ...], int] = {}
    distinct: list[Item] = []
    for item in items:
        if (content := _content(item)) not in positions:
            positions[content] = len(distinct)
            distinct.append(item)
    rows = scorer.score_batch(distinct)
    if len(rows) != len(distinct):
        raise RuntimeError(f"{scorer.name}.score_batch returned {len(rows)} rows for {len(distinct)} items")
    return [finite_or_unscored(rows[positions[_content(item)]]) for item in items]


def _run_id(scorer: Scorer, items: Sequence[Item]) -> str:
    digest = hashlib.sha256()
    digest.update(repr(sorted(scorer.signature_fields().items(), key=lambda field: field[0])).encode())
    digest.update(f"{__version__} {scorer.window}".encode())
    for item in items:
        digest.update(repr((item.id, _content(item))).encode())
    return digest.hexdigest()


class _Journal:
    """A file of finished windows: a header line with the run's identity, then one line a window."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id

    def read(self) -> list[Row]:
        """Return the rows of all whole windows and cut off a window that a kill left half written."""
        header = (to_json({"run": self.run_id}) + "\n").encode()
        with _clear_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            raw = self.path.read_bytes() if self.path.exists() else b""
            # Nothing, or as much of the header as a kill or a full disk let through.
            if header.startswith(raw):
                self.path.write_bytes(header)
                return []
        if not raw.startswith(header):
            raise InputError(
                f"{self.path}: this unfinished run has other inputs or settings than the present one. "
                "Delete the file to start again, or repeat the first command to finish it."
            )
        *windows, half_written = raw[len(header) :].split(b"\n")
        rows: list[Row] = []
        for number, line in enumerate(windows, start=2):
            try:
                rows.extend(_row_from_json(row) for row in json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path}:{number}: is damaged ({error}). Delete the file to start again.") from error
        with _clear_errors(self.path), self.path.open("rb+") as file:
            file.truncate(len(raw) - len(half_written))
        if rows:
            logger.info("%s: %d examples were scored before; going on with the next", self.path, len(rows))
        return rows

    def append(self, rows: Sequence[Row]) -> None:
        with _clear_errors(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_json([_row_to_json(row) for row in rows]) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read or written (a full disk, a folder without permission)."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}). Finished parts are kept; repeat the command when there is room."
        ) from error


def _row_to_json(row: Row) -> dict[str, Any]:
    if isinstance(row, Unscored):
        return {"reason": row.reason.value, "detail": row.detail}
    return {"columns": dict(row)}


def _row_from_json(data: dict[str, Any]) -> Row:
    if "columns" in data:
        return dict(data["columns"])
    return Unscored(Reason(data["reason"]), data["detail"])
