"""Scoring of a source, block by block; each block is kept until the end, so that a killed run resumes where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import is_stream, read_json_lines, write_json_lines
from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scorer import (
    BLOCK,
    Scorer,
    block_size,
    refuse_parts,
    run_signature,
    score_block,
    score_key,
    scores_of,
    warn_incomplete,
)
from dialeval_plugin.core.scores import (
    IN_SCOPE,
    OUT_OF_SCOPE,
    SCHEMA_VERSION,
    WHY_UNSCORED,
    Reason,
    Row,
    RowMaker,
    Scores,
    Unscored,
)
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.scored_input import Shard, Source
from dialeval_plugin.reports.printed_scores import RunningSummary
from dialeval_plugin.terminal import Progress, say

from .output import ABOUT, PLACE, TEXT, check_suffix, finished_parts_kept, join_blocks, stored_meta

_TEXT_IN_BLOCK = 1 << 26
"""Characters of items that are scored together; a block has at least one item."""
MOST_AT_ONCE = 500_000
"""Maximum number of items for a scorer that needs all of them at once."""


class _Block(NamedTuple):
    """Items that are scored together, their positions in the source, and a digest of both."""

    number: int
    places: list[int]
    items: list[Item]
    digest: str


@dataclass(frozen=True)
class ScoreRun:
    """A source, its scorer, and the output for the rows.

    Attributes:
        scorer: the scorer; one that needs all items at once gets at most `MOST_AT_ONCE`.
        output: JSON lines, CSV or Parquet, by its name; None keeps nothing, and a stream gets all rows at the end.
        shard: the part that is scored.
        with_text: whether rows contain the conversation's text.
        overwrite: replace any file at `output`.
        max_unscored: share of rows without a score above which the file is marked as incomplete.

    Raises:
        InputError: the scorer cannot score a part, or the name of the output or of a kept field is not allowed.
    """

    scorer: Scorer
    source: Source
    output: Path | None = None
    shard: Shard | None = None
    with_text: bool = False
    overwrite: bool = False
    max_unscored: float = 1.0

    def __post_init__(self) -> None:
        if self.shard is not None:
            refuse_parts(self.scorer)
        self.source.level = self.scorer.input_level(self.source.level)
        if self.output is not None:
            check_suffix(self.output, self.shard)
        own = {PLACE, *ABOUT, *TEXT, *self.scorer.columns, PERCENTILE, IN_SCOPE, OUT_OF_SCOPE, *WHY_UNSCORED}
        if taken := [name for name in self.source.options.keep if name in own]:
            raise InputError(
                f"--keep {taken[0]}: a row has a field of this name anyway. Rename it in the input, or leave it out."
            )

    def score(
        self,
        n_worst: int = 0,
        *,
        progress: bool = False,
        total: int | None = None,
        collectors: Sequence[Callable[[Scores], None]] = (),
    ) -> RunningSummary:
        """Score in constant memory, and return a summary of the scores, with the worst `n_worst` rows.

        A bar shows the progress, out of `total` items if that is known; `collectors` get the final scores block by block. Until
        the end each block is kept in the folder `<output>.blocks`. A repeated call reads the existing blocks and scores the
        others, and rows whose API request failed; the resulting file has the same bytes.

        Raises:
            InputError: a row is malformed, there are too many for the scorer, another process writes the output, it cannot be
                written, or it holds something else and `overwrite` is not given.
        """
        if not self.overwrite:
            self.stored()
        scorer, blocks = self.scorer, self._blocks()
        # A source that cannot be read leaves no files behind.
        first = list(itertools.islice(blocks, None if scorer.needs_whole_run else 1))
        summary = RunningSummary(scorer, n_worst)
        with self._folder() as folder:
            store = None if folder is None else _BlockFolder(folder, self, progress=progress)
            with Progress(disable=not progress, total=total, unit="example", desc=scorer.name) as bar:
                for scores in self._scored(itertools.chain(first, blocks), store, bar.update):
                    for add in (summary.add, *collectors):
                        add(scores)
            if store is not None and self.output is not None:
                join_blocks(store.parts, self.output, self.meta(summary))
                shutil.rmtree(store.folder, ignore_errors=not store.parts)
        warn_incomplete(scorer, summary.n_total, summary.unscored_by_reason, summary.cut)
        return summary

    def rehearse(self) -> None:
        """Score the items and discard the rows; a model that counts requests then knows those of a real run."""
        for block in self._blocks():
            score_block(self.scorer, block.items)

    def items(self) -> Iterator[Item]:
        """Yield the items to score."""
        return (placed.item for placed in self.source.items(self.scorer.level, self.shard))

    def _blocks(self) -> Iterator[_Block]:
        """Yield the items in blocks; raise InputError if there are too many for a scorer that needs all at once."""
        own, size = self.source.items(self.scorer.level, self.shard), block_size(self.scorer, BLOCK)
        for number in itertools.count():
            places, items, digest, n_characters = [], [], hashlib.sha256(), 0
            for place, item in itertools.islice(own, size):
                text = repr((place, item.id, score_key(item)))
                digest.update(text.encode())
                places.append(place)
                items.append(item)
                if (n_characters := n_characters + len(text)) >= _TEXT_IN_BLOCK:
                    break
            if not items:
                return
            if self.scorer.needs_whole_run and places[-1] >= MOST_AT_ONCE:
                raise InputError(
                    f"{self.scorer.name}: with these options it looks at all examples at once, and here are more than "
                    f"{MOST_AT_ONCE:,}. Part the input, or choose other options."
                )
            yield _Block(number, places, items, digest.hexdigest())

    def stored(self, remedy: str = "add --overwrite to replace it") -> Mapping[str, Any] | None:
        """Return the output's metadata if it has the scores of this very run; None if there is no output.

        Raises:
            InputError: it holds something else.
        """
        if self.output is None or stored_meta(self.output, self._about(), remedy) is None:
            return None
        for _ in self.items():
            pass
        return stored_meta(self.output, {**self._about(), **_of_source(self.source)}, remedy)

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path | None]:
        """Yield the folder of the finished blocks, locked against other processes; None if no row is kept."""
        if self.output is None:
            yield None
        elif is_stream(self.output):
            with TemporaryDirectory() as folder:
                yield Path(folder) / "blocks"
        else:
            with sole_process(self.output):
                if not self.overwrite:  # another process may have finished since
                    stored_meta(self.output, self._about())
                yield self.output.with_name(self.output.name + ".blocks")

    def _scored(
        self, blocks: Iterable[_Block], store: _BlockFolder | None, advance: Callable[[int], object]
    ) -> Iterator[Scores]:
        """Yield the final scores block by block, or all at once if the scorer needs all items; store their rows."""
        scorer = self.scorer
        items: list[Item] = []
        rows: list[Row] = []
        for block in blocks:
            of_block = self._rows(block, store, advance)
            scores = scores_of(scorer, block.items, of_block)
            if store is not None:
                store.keep(scores, block)
            if scorer.needs_whole_run:
                items += block.items
                rows += of_block
            else:
                yield scores
        if items:
            scores = scores_of(scorer, items, scorer.normalise_rows(rows))
            if store is not None:
                store.keep(scores)
            yield scores

    def _rows(self, block: _Block, store: _BlockFolder | None, advance: Callable[[int], object]) -> list[Row]:
        """Return the rows of a block before normalisation: the stored ones, except for failures of an API, or new ones."""
        rows = store.rows(block) if store is not None else None
        if rows is None:
            return score_block(self.scorer, block.items, advance)
        failed = [place for place, row in enumerate(rows) if isinstance(row, Unscored) and row.reason is Reason.API_ERROR]
        again = score_block(self.scorer, [block.items[place] for place in failed]) if failed else []
        for place, row in zip(failed, again, strict=True):
            rows[place] = row
        advance(len(rows))
        return rows

    def _about(self) -> dict[str, Any]:
        """Return the metadata common to all rows of a run, whatever its source holds."""
        percentiles, scope = self.scorer.percentiles, self.scorer.scope
        return {
            "schema_version": SCHEMA_VERSION,
            "signature": str(run_signature(self.scorer)),
            "percentiles": None if percentiles is None else percentiles.digest,
            "scope": None if scope is None else scope.digest,
            "shard": None if self.shard is None else str(self.shard),
            "keep": list(self.source.options.keep),
            "with_text": self.with_text,
            "columns": [*self.scorer.columns, *([PERCENTILE] if percentiles else []), *([IN_SCOPE] if scope else [])],
        }

    def meta(self, summary: RunningSummary) -> dict[str, Any]:
        """Return the metadata of the run whose scores `summary` has."""
        n_unscored = summary.n_total - summary.n_scored
        return {
            **self._about(),
            **_of_source(self.source),
            "left_out": dict(self.source.reading.left_out),
            "main": self.scorer.columns[0],
            "mean": summary.mean(),
            **({"judges": summary.judges} if self.scorer.judges else {}),
            **self.scorer.described,
            "level": self.scorer.level,
            "orientation": self.scorer.orientation,
            "n_total": summary.n_total,
            "n_scored": summary.n_scored,
            "unscored": summary.unscored_by_reason,
            OUT_OF_SCOPE: dict(sorted(summary.out_of_scope.items())),
            "complete": n_unscored <= self.max_unscored * summary.n_total,
        }


def run_identity(scorer: Scorer) -> str:
    """Return the identity of a scorer's scores: its signature, its table of percentiles, and its scope."""
    tables = {"percentiles": scorer.percentiles, "scope": scorer.scope}
    return "|".join([str(run_signature(scorer)), *(f"{name}:{table.digest}" for name, table in tables.items() if table)])


def _of_source(source: Source) -> dict[str, Any]:
    return {"source": source.digest, "n_source": source.n_items}


class _BlockFolder:
    """The finished blocks of a run, each a JSON-lines file whose name is specific to its items and scorer.

    Everything stored for a row except its scores is rebuilt from its item, so a run may resume with more, or fewer, fields.
    """

    def __init__(self, folder: Path, run: ScoreRun, *, progress: bool) -> None:
        self.folder, self._run = folder, run
        self.parts: list[Path] = []
        self._identity = run_identity(run.scorer)
        self._maker = RowMaker(with_text=run.with_text)
        self._stored: list[dict[str, Any]] = []
        self._files: dict[str, list[Path]] = {}
        for path in folder.glob("*-*.jsonl"):
            self._files.setdefault(path.name.partition("-")[0], []).append(path)
        if progress and self._files:
            say(f"{folder}: resuming from {(n := len(self._files))} finished block{'s' if n > 1 else ''}")

    def rows(self, block: _Block) -> list[Row] | None:
        """Return the rows of a finished block; None if it is not finished.

        Raises:
            InputError: the folder has this block from another run, which `overwrite` removes, or its file is damaged.
        """
        self._stored, path = [], self._path(block)
        for other in self._files.get(path.name.partition("-")[0], ()):
            if other == path:
                continue
            if not self._run.overwrite:
                raise InputError(
                    f"{other}: this unfinished run has other inputs or settings than the present one. "
                    "Add --overwrite to start again, or repeat the first command to finish it."
                )
            other.unlink()
        if not path.is_file():
            return None
        try:
            self._stored = [line.value for line in read_json_lines(path)]
            if [item.id for item in block.items] != [row["id"] for row in self._stored]:
                raise ValueError("its rows are others")
            rows = list(map(self._row, self._stored))
            scores_of(self._run.scorer, block.items, rows)
        except (InputError, ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path}: is damaged ({error}). Delete the file; its rows are then scored again.") from error
        return rows

    def keep(self, scores: Scores, block: _Block | None = None) -> None:
        """Write the rows of the block that was read, or scored, last; without one, the final rows of all blocks."""
        if block is None:
            self.parts, self._stored, self._maker = [], [], RowMaker(with_text=self._run.with_text)
        rows = list(self._maker.rows(scores))
        if self._run.shard is not None and block is not None:
            rows = [{PLACE: place, **row} for place, row in zip(block.places, rows, strict=True)]
        self.parts.append(path := self.folder / "whole.jsonl" if block is None else self._path(block))
        if rows != self._stored:
            with finished_parts_kept(path):
                write_json_lines(path, rows)

    def _row(self, stored: Mapping[str, Any]) -> Row:
        if WHY_UNSCORED[0] in stored:
            return Unscored(Reason(stored[WHY_UNSCORED[0]]), stored[WHY_UNSCORED[1]])
        return {name: stored[name] for name in self._run.scorer.columns}

    def _path(self, block: _Block) -> Path:
        return self.folder / f"{block.number:08d}-{text_hash(self._identity, block.digest)}.jsonl"
