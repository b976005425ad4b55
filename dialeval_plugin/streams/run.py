"""Scoring a stream into a file: block by block, each written whole, so that a run that was killed goes on where it stopped."""

from __future__ import annotations

import hashlib
import itertools
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json_lines, write_json_lines
from dialeval_plugin.core.journal import sole_process
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scorer import (
    BLOCK,
    Scorer,
    content,
    n_cut,
    refuse_streams,
    run_signature,
    score_block,
    warn_of_losses,
)
from dialeval_plugin.core.scores import Reason, Scores, Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.reports.scored_output import meta_of, percentiles_of, stored_meta
from dialeval_plugin.terminal.progress import Progress, say

from .output import PLACE, finished_parts_kept, join_blocks
from .summary import RunningSummary

logger = logging.getLogger(__name__)

_TEXT_IN_BLOCK = 1 << 26
"""Characters of items that are scored together, at least one item."""


class _Block(NamedTuple):
    """Items that are scored together, and where they stand among all of the source."""

    number: int
    places: list[int]
    items: list[Item]
    digest: str
    """Of the places and the items."""

    def file_name(self, identity: str) -> str:
        """A name that no block of other items, or of another scorer, has."""
        return f"{self.number:08d}-{text_hash(identity, self.digest)}.jsonl"


def score_file(
    scorer: Scorer,
    source: Source,
    output: Path,
    *,
    shard: Shard | None = None,
    overwrite: bool = False,
    n_worst: int = 0,
    progress: bool = False,
) -> RunningSummary:
    """Score a source, or a shard of it, into a file of JSON lines or Parquet, in constant memory.

    Until the end each block of `BLOCK` items lies in the folder `<output>.blocks`. Called again, it reads the blocks that are
    there and scores the others; the file then has the same bytes. Beside it comes `<output>.meta.json`.

    Raises:
        InputError: a row is malformed, the scorer needs all rows at once, another process writes the output, it cannot be
            written, or it holds something else and `overwrite` is not given.
    """
    refuse_streams(scorer)
    folder, identity = output.with_name(output.name + ".blocks"), run_identity(scorer)
    summary = RunningSummary(scorer, n_worst)
    blocks = _blocks(source, scorer, shard)
    first = list(itertools.islice(blocks, 1))  # a source that cannot be read leaves nothing behind
    with sole_process(output):
        if not overwrite:
            stored_run(scorer, source, output, shard)
        parts: list[Path] = []
        if progress and (n_finished := len(list(folder.glob("*.jsonl")))):
            say(f"{folder}: going on from {n_finished} finished blocks")
        with Progress(disable=not progress, unit="example", desc=scorer.name) as bar:
            for block in itertools.chain(first, blocks):
                path = folder / block.file_name(identity)
                _refuse_other_blocks(path, overwrite=overwrite)
                scores = _read_block(path, scorer, block) if path.is_file() else _write_block(path, scorer, block, shard)
                summary.add(scores, block.items, n_cut(scorer, scores, block.items))
                parts.append(path)
                bar.update(len(block.items))
        columns = [*scorer.columns, *([] if scorer.percentiles is None else [PERCENTILE])]
        meta = {**_about(scorer, shard), **_of_source(source), "columns": columns, **meta_of(summary, scorer.percentiles)}
        join_blocks(parts, output, {**meta, "complete": True})
        shutil.rmtree(folder, ignore_errors=not parts)
    warn_of_losses(scorer, summary.n_total, summary.unscored_by_reason, summary.cut)
    return summary


def stored_run(
    scorer: Scorer, source: Source, output: Path, shard: Shard | None = None, remedy: str = "add --overwrite to replace it"
) -> Mapping[str, Any] | None:
    """Return what belongs to all rows of `output` where it holds the scores of this very run; None where nothing is there.

    Raises:
        InputError: it holds something else.
    """
    about = _about(scorer, shard)
    if stored_meta(output, about, remedy) is not None:
        again = Source(source.name, source.options, source.given)
        for _ in again.items(scorer.level, shard):
            pass
        about |= _of_source(again)
    return stored_meta(output, about, remedy)


def run_identity(scorer: Scorer) -> str:
    """Return what tells scores of one scorer from those of another: its signature, and its table of percentiles."""
    signature = str(run_signature(scorer))
    return signature if scorer.percentiles is None else f"{signature}|percentiles:{scorer.percentiles.digest}"


def _about(scorer: Scorer, shard: Shard | None) -> dict[str, Any]:
    """What the scores of one run have in common, whatever its source."""
    return {
        "signature": str(run_signature(scorer)),
        "shard": None if shard is None else str(shard),
        **percentiles_of(scorer.percentiles),
    }


def _of_source(source: Source) -> dict[str, Any]:
    return {"source": source.digest, "n_source": source.n_items}


def _blocks(source: Source, scorer: Scorer, shard: Shard | None) -> Iterator[_Block]:
    own = (placed for placed in source.items(scorer.level, shard) if placed is not None)
    for number in itertools.count():
        places, items, digest, size = [], [], hashlib.sha256(), 0
        for place, item in itertools.islice(own, BLOCK):
            text = repr((place, item.id, content(item)))
            digest.update(text.encode())
            places.append(place)
            items.append(item)
            if (size := size + len(text)) >= _TEXT_IN_BLOCK:
                break
        if not items:
            return
        yield _Block(number, places, items, digest.hexdigest())


def _write_block(path: Path, scorer: Scorer, block: _Block, shard: Shard | None) -> Scores:
    scores = score_block(scorer, block.items)
    rows: Iterator[Mapping[str, Any]] = scores.rows()
    if shard is not None:
        rows = ({PLACE: place, **row} for place, row in zip(block.places, scores.rows(), strict=True))
    with finished_parts_kept(path):
        write_json_lines(path, rows)
    return scores


def _read_block(path: Path, scorer: Scorer, block: _Block) -> Scores:
    try:
        rows = [line.value for line in read_json_lines(path)]
        names = [name for name in rows[0] if name not in {"id", PLACE, "unscored", "detail"}]
        found = [
            Unscored(Reason(row["unscored"]), row["detail"]) if "unscored" in row else {name: row[name] for name in names}
            for row in rows
        ]
        ids = [item.id for item in block.items]
        if ids != [row["id"] for row in rows]:
            raise ValueError("its rows are others")
        return Scores.from_rows(found, ids, names, run_signature(scorer), scorer.level, scorer.orientation)
    except (InputError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path}: is damaged ({error}). Delete the file; its rows are then scored again.") from error


def _refuse_other_blocks(path: Path, *, overwrite: bool) -> None:
    number = path.name.partition("-")[0]
    for other in path.parent.glob(f"{number}-*.jsonl"):
        if other == path:
            continue
        if not overwrite:
            raise InputError(
                f"{other}: this unfinished run has other inputs or settings than the present one. "
                "Add --overwrite to start again, or repeat the first command to finish it."
            )
        other.unlink()
