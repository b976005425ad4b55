"""Files of scores (JSON lines, CSV or Parquet, by their names), their metadata files, and merging of shards."""

from __future__ import annotations

import contextlib
import csv
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
from dialeval_plugin.core.files import (
    TableLines,
    atomic_path,
    is_stream,
    parse_json,
    read_json,
    to_json,
    write_lines,
    write_text,
)
from dialeval_plugin.core.locks import not_written, sole_process
from dialeval_plugin.core.resources import optional
from dialeval_plugin.core.scores import IN_SCOPE, JUDGED_BY, OUT_OF_SCOPE, SHA256, WHY_UNSCORED, meta_file
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora.scored_input import Shard

PLACE = "place"
"""Field of a shard's row: its position among all items of the source."""
ABOUT = ("id", "conversation", "message", "role", "source")
"""Fields of a row that identify the scored item."""
TEXT = ("preceding", "text")
"""Fields of a row with the conversation's text."""
_JSON_LINES, _CSV, _PARQUET = SUFFIXES = (".jsonl", ".csv", ".parquet")
_ROWS_AT_ONCE = 16_384

_PLACED = f'{{"{PLACE}": '
"""Beginning of the line of a shard's row, before its position and a comma."""


Row = Mapping[str, Any]
T = TypeVar("T")


def check_suffix(output: Path, shard: Shard | None = None) -> None:
    """Check the name of a file for scores; a stream, such as a pipe, gets JSON lines whatever its name.

    Raises:
        InputError: the name does not show the kind of file, is too long, or is that of a CSV file of a shard.
        MissingPrerequisite: no installed package writes Parquet.
    """
    if is_stream(output):
        return
    try:
        meta_file(output).stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise not_written(meta_file(output), error) from error
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(f"{output}: what kind of file is it to be? End its name in {', '.join(SUFFIXES[:-1])} or {_PARQUET}.")
    if _kind(output) == _PARQUET:
        optional("pyarrow.parquet", f"{output}: Parquet")
    if shard is not None and _kind(output) == _CSV:
        raise InputError(f"{output}: a shard is JSON lines or Parquet. Let `dialeval merge` write the CSV file.")


def _kind(output: Path) -> str:
    return output.suffix.lower()


def part_suffix(output: Path) -> str:
    """Return the suffix of a file's shards."""
    return _PARQUET if _kind(output) == _PARQUET else _JSON_LINES


def stored_meta(output: Path, about: Mapping[str, Any], remedy: str = "add --overwrite to replace it") -> dict[str, Any] | None:
    """Return the metadata of a file of scores; None if nothing is at `output`, or if it is a stream.

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


def join_blocks(blocks: Sequence[Path], output: Path, meta: Mapping[str, Any]) -> None:
    """Join the blocks of a run, which are JSON lines, into one file, with the result of `write_rows` for their rows."""
    if _kind(output) in {_CSV, _PARQUET} and not is_stream(output):
        write_rows(output, itertools.chain.from_iterable(map(read_rows, blocks)), meta)
        return
    with _written(output, meta) as temporary, temporary.open("wb") as file:
        for block in blocks:
            with block.open("rb") as lines:
                shutil.copyfileobj(lines, file)


def write_rows(output: Path, rows: Iterator[Row], meta: Mapping[str, Any]) -> None:
    """Write rows, whole or not at all, and their metadata next to them, and in Parquet also inside the file.

    A CSV has texts as they are, so that they are read back unchanged. A spreadsheet takes those that begin with =, +, - or @
    for formulas (OWASP): import the columns of strangers' conversations as text.
    """
    with _written(output, meta) as temporary:
        if _kind(output) == _PARQUET:
            _write_parquet(temporary, rows, meta)
        elif _kind(output) == _CSV:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(TableLines(file), _fields(meta), restval="")
                writer.writeheader()
                writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        else:
            write_lines(temporary, (to_json(row) + "\n" for row in rows))


def _fields(meta: Mapping[str, Any]) -> list[str]:
    place = [] if meta["shard"] is None else [PLACE]
    why = (OUT_OF_SCOPE, *WHY_UNSCORED) if IN_SCOPE in meta["columns"] else WHY_UNSCORED
    judged = [JUDGED_BY] if "judges" in meta else []
    return [*place, *ABOUT, *meta["keep"], *(TEXT if meta["with_text"] else ()), *meta["columns"], *judged, *why]


def _cell(value: Any) -> Any:
    """Return a value as text if it is no number: lists, objects, true and false as JSON."""
    return value if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)) else to_json(value)


@contextlib.contextmanager
def _written(output: Path, meta: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a temporary path whose content becomes that of `output`, with `meta` in the file next to it.

    The metadata is written first, so that a kill leaves no scores without it.
    """
    with finished_parts_kept(output), atomic_path(output) as temporary:
        yield temporary
        if not is_stream(output):
            write_text(meta_file(output), to_json({**meta, SHA256: file_hash(temporary)}, indent=2) + "\n")


@contextlib.contextmanager
def finished_parts_kept(path: Path) -> Iterator[None]:
    """Add to the error of a file that cannot be written what happens to the run."""
    try:
        yield
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise not_written(path, error.__cause__) from error.__cause__
        raise


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of JSON lines or Parquet that this module wrote."""
    if _kind(path) == _PARQUET:
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as parquet:
            columns = parse_json(parquet.schema_arrow.metadata[b"dialeval"].decode(), str(path))["columns"]
            for batch in parquet.iter_batches(_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    yield {name: value for name, value in row.items() if name in columns or value is not None}
        return
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield parse_json(line, f"{path}:{number}")


def _write_parquet(path: Path, rows: Iterator[Row], meta: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    turn = pyarrow.struct([("role", pyarrow.string()), ("text", pyarrow.string())])
    known = {PLACE: pyarrow.int64(), "message": pyarrow.int64(), "preceding": pyarrow.list_(turn)}
    known |= dict.fromkeys(meta["columns"], pyarrow.float64())
    kinds = {name: known.get(name, pyarrow.string()) for name in _fields(meta)}
    schema = pyarrow.schema(list(kinds.items()), metadata={"dialeval": to_json(meta)})

    def table_row(row: Row) -> dict[str, Any]:
        # A kept field may hold any type, and different types in different rows.
        kept = {name: row[name] for name in meta["keep"] if name in row}
        return {**row, **{name: value if isinstance(value, str) else to_json(value) for name, value in kept.items()}}

    # Python's own file objects report a full disk in other words.
    with path.open("wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while taken := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(list(map(table_row, taken)), schema=schema))


def merge(
    shards: Sequence[Path], output: Path, max_unscored: float | None = None, *, overwrite: bool = False
) -> Mapping[str, Any]:
    """Merge the scores of all shards into one file, in the order of their source, and return the metadata of all rows.

    An output that already holds them stays unchanged; `overwrite` replaces another file. It is complete if at most the share
    `max_unscored` of its rows has no score; without one, if all shards are.

    Raises:
        InputError: the shards are not of one run: they differ in scorer, options or source; a shard is missing, given twice or
            was changed; or a row is missing or repeated. Or the output is another file.
    """
    check_suffix(output)
    metas = [_shard_meta(path) for path in shards]
    try:
        _check_one_run(shards, metas)
        meta, n_source = _merged(metas), metas[0]["n_source"]
        if max_unscored is not None:
            meta["complete"] = meta["n_total"] - meta["n_scored"] <= max_unscored * meta["n_total"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{meta_file(shards[0])}, or that of another shard: is damaged ({error!r}). {_AGAIN}") from error
    with sole_process(output):
        if not overwrite and stored_meta(output, meta, DELETE_IT) is not None:
            return meta
        if any(_kind(path) != _JSON_LINES for path in [output, *shards]):
            write_rows(output, _in_order(map(_placed_rows, shards), n_source), meta)
        else:
            # Lines are copied unchanged: parsing and writing each row's JSON takes six times as long.
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
    """Yield the rows of all shards by position; each position must occur exactly once."""
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
    "scope": "has other limits of what its model knows",
    "keep": "has other fields of its source",
    "with_text": "has texts, or none, other",
}
"""Fields that all shards have in common, and the message for a shard that differs."""
DELETE_IT = "delete it"


def _pooled(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the number of scored rows, and their mean (None without any), from the counts of shards or of one judge."""
    n, means = sum(part["n_scored"] for part in parts), [part for part in parts if part["mean"] is not None]
    total = math.fsum(part["mean"] * part["n_scored"] for part in means)
    return {"n_scored": n, "mean": total / n if means and n else None}


def _merged(metas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    unscored, beyond = (sum((Counter(meta.get(name, {})) for meta in metas), Counter()) for name in ("unscored", OUT_OF_SCOPE))
    judged = [meta.get("judges", {}) for meta in metas]
    judges = {name: _pooled([of[name] for of in judged if name in of]) for name in dict.fromkeys(itertools.chain(*judged))}
    left_out: Counter[str] = Counter()
    for meta in metas:  # each shard read the whole source
        left_out |= Counter(meta["left_out"])
    return {
        **{name: value for name, value in metas[0].items() if name != SHA256},
        "shard": None,
        **_pooled(metas),
        **({"judges": judges} if "judges" in metas[0] else {}),
        "n_total": sum(meta["n_total"] for meta in metas),
        "unscored": dict(sorted(unscored.items())),
        OUT_OF_SCOPE: dict(sorted(beyond.items())),
        "left_out": dict(left_out),
        "complete": all(meta["complete"] for meta in metas),
    }
