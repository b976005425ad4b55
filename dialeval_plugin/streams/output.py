"""What a stream is written to: JSON lines, or Parquet with what belongs to all rows in its metadata; and shards made one."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import operator
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import atomic_path, parse_json, read_json, to_json, write_lines
from dialeval_plugin.core.journal import not_written, sole_process
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora.scored_input import Shard
from dialeval_plugin.reports.scored_output import SHA256, meta_file, stored_meta, write_meta

PLACE = "place"
"""Field of a shard's row: its place among all items of the source."""
_WHY = ("unscored", "detail")
_PARQUET = ".parquet"
_ROWS_AT_ONCE = 16_384

_PLACED = f'{{"{PLACE}": '
"""How the line of a shard's row begins, before its place and a comma."""


Row = Mapping[str, Any]
T = TypeVar("T")


def join_blocks(blocks: Sequence[Path], output: Path, meta: Mapping[str, Any]) -> None:
    """Make one file of the blocks of a run, which are JSON lines, as `write_rows` would of their rows."""
    if output.name.endswith(_PARQUET):
        write_rows(output, itertools.chain.from_iterable(map(read_rows, blocks)), meta)
        return
    with _written(output, meta) as temporary, temporary.open("wb") as file:
        for block in blocks:
            with block.open("rb") as lines:
                shutil.copyfileobj(lines, file)


def write_rows(output: Path, rows: Iterator[Row], meta: Mapping[str, Any]) -> None:
    """Write rows, whole or not at all, and what belongs to all of them beside them, and in the metadata of Parquet."""
    with _written(output, meta) as temporary:
        if output.name.endswith(_PARQUET):
            _write_parquet(temporary, rows, meta)
        else:
            write_lines(temporary, (to_json(row) + "\n" for row in rows))


@contextlib.contextmanager
def _written(output: Path, meta: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a temporary path whose content becomes that of `output`, with `meta` beside it."""
    with finished_parts_kept(output), atomic_path(output) as temporary:
        yield temporary
        write_meta(output, {**meta, SHA256: file_hash(temporary)})


@contextlib.contextmanager
def finished_parts_kept(path: Path) -> Iterator[None]:
    """Say of a file that cannot be written what becomes of the run."""
    try:
        yield
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise not_written(path, error.__cause__) from error.__cause__
        raise


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file that this module wrote."""
    if path.name.endswith(_PARQUET):
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    yield {
                        name: value for name, value in row.items() if name not in {"unscored", "detail"} or value is not None
                    }
        return
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield parse_json(line, f"{path}:{number}")


def _write_parquet(path: Path, rows: Iterator[Row], meta: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    kinds = {} if meta["shard"] is None else {PLACE: pyarrow.int64()}
    kinds |= {"id": pyarrow.string(), **dict.fromkeys(meta["columns"], pyarrow.float64())}
    kinds |= dict.fromkeys(_WHY, pyarrow.string())
    schema = pyarrow.schema(list(kinds.items()), metadata={"dialeval": to_json(meta)})
    # A file of Python's says in its own words that the disk is full.
    with path.open("wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while taken := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(list(map(dict, taken)), schema=schema))


def merge(shards: Sequence[Path], output: Path) -> Mapping[str, Any]:
    """Make one file of the scores of all shards, in the order of their source, and return what belongs to all rows.

    A file that holds them already stays as it is.

    Raises:
        InputError: the shards are not of one run: they differ in scorer, options or source, one is missing, given twice or was
            changed, or a row is missing or there twice. Or the output is another file.
    """
    metas = [_shard_meta(path) for path in shards]
    try:
        _check_one_run(shards, metas)
        meta, n_source = _merged(metas), metas[0]["n_source"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{meta_file(shards[0])}, or that of another shard: is damaged ({error!r}). {_AGAIN}") from error
    with sole_process(output):
        if stored_meta(output, meta, DELETE_IT) is not None:
            return meta
        if any(path.name.endswith(_PARQUET) for path in [output, *shards]):
            write_rows(output, _in_order(map(_placed_rows, shards), n_source), meta)
        else:
            # Lines stay as they are: to read and to write each row's JSON takes six times as long.
            with _written(output, meta) as temporary:
                write_lines(temporary, _in_order(map(_placed_lines, shards), n_source))
    return meta


def _shard_meta(path: Path) -> dict[str, Any]:
    beside = meta_file(path)
    if not path.is_file() or not beside.is_file():
        raise InputError(f"{path if not path.is_file() else beside}: there is no such file. Score this shard to its end.")
    meta = read_json(beside)
    if not isinstance(meta, dict) or not meta.get("shard"):
        raise InputError(f"{path}: is no shard. Give what `dialeval score --shard` wrote.")
    if meta.get(SHA256) != file_hash(path):
        raise InputError(f"{path}: is not the file that was written when it was scored. {_AGAIN}")
    return meta


def _check_one_run(paths: Sequence[Path], metas: Sequence[Mapping[str, Any]]) -> None:
    for path, meta in zip(paths, metas, strict=True):
        for name, what in _ONE_RUN.items():
            if meta.get(name) != metas[0].get(name):
                found, expected = (one.get(name) or "none" for one in (meta, metas[0]))
                raise InputError(f"{path}: {what} than {paths[0]} ({found}, there {expected}). Score it again.")
    parts = [Shard.parse(meta["shard"]) for meta in metas]
    whole = [Shard(number, parts[0].of) for number in range(1, parts[0].of + 1)]
    if missing := [str(shard) for shard in whole if shard not in parts]:
        raise InputError(f"shards: {', '.join(missing)} missing. Score them, and give the files of all.")
    if doubled := [str(shard) for shard, n in Counter(parts).items() if n > 1 or shard not in whole]:
        raise InputError(f"shards: {', '.join(doubled)} twice, or of another number of shards. Give each once.")


def _placed_rows(path: Path) -> Iterator[tuple[int, Row]]:
    return ((row[PLACE], {name: value for name, value in row.items() if name != PLACE}) for row in read_rows(path))


def _placed_lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            start, _, rest = line.partition(", ")
            yield int(start.removeprefix(_PLACED)), "{" + rest


def _in_order(shards: Iterable[Iterator[tuple[int, T]]], n_source: int) -> Iterator[T]:
    """The rows of all shards by their places, of which none is missing and none there twice."""
    expected = 0
    for place, row in heapq.merge(*shards, key=operator.itemgetter(0)):
        if place != expected:
            raise InputError(
                f"shards: row {min(place, expected)} is {'there twice' if place < expected else 'missing'}. {_AGAIN}"
            )
        expected += 1
        yield row
    if expected != n_source:
        raise InputError(f"shards: have {expected} rows, and their source {n_source}. {_AGAIN}")


_AGAIN = "Were files changed? Score the shards again."
_ONE_RUN = {
    "signature": "was scored otherwise",
    "source": "is of another source",
    "percentiles": "has percentiles of another table",
}
"""What all shards have in common, and what one is that has not."""
DELETE_IT = "delete it"


def _merged(metas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What belongs to the rows of all shards together."""
    n_scored = sum(meta["n_scored"] for meta in metas)
    total = math.fsum(meta["mean"] * meta["n_scored"] for meta in metas if meta["mean"] is not None)
    unscored: Counter[str] = sum((Counter(meta["unscored"]) for meta in metas), Counter())
    return {
        **{name: value for name, value in metas[0].items() if name != SHA256},
        "shard": None,
        "mean": total / n_scored if n_scored else None,
        "n_total": sum(meta["n_total"] for meta in metas),
        "n_scored": n_scored,
        "unscored": dict(sorted(unscored.items())),
    }
