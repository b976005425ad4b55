"""Reading and writing files without half results: errors name path and line, a write replaces the file whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from .errors import InputError


class Line(NamedTuple):
    """A JSON object and where it stands, as `path:number`."""

    where: str
    value: dict[str, Any]


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text, unpacked where the name ends in .gz; a byte order mark is dropped.

    Raises:
        InputError: the file is missing, a folder, damaged, or not UTF-8.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file.")
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    if path.suffix == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: is not a complete gzip file ({error}). Copy it again.") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: byte {error.start} is not UTF-8. Convert the file to UTF-8.") from None


def parse_json(text: str, where: str, *, constants: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return the value of a JSON text: the one way in which this package reads JSON that it did not write a moment ago.

    Args:
        text: one JSON value.
        where: it stands, as the path of its file, or `path:line` of its record; begins the message of an error.
        constants: values of NaN, Infinity and -Infinity, which are not JSON; those that are not named are refused.

    Raises:
        InputError: the text is not JSON, is nested more deeply than the interpreter can follow, or has a number beyond the
            range of a float; the message names the place.

    Example:
        >>> parse_json('{"value": NaN}', "results.json", constants={"NaN": None})
        {'value': None}
    """

    def constant(name: str) -> Any:
        if name not in constants:
            raise InputError(f"{where}: holds {name}, which is not JSON. Leave out what has no value, or write null.")
        return constants[name]

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise ValueError(f"{digits[:20]} is beyond the range of a float")
        return value

    def integer(digits: str) -> int:
        # int() refuses thousands of digits; a float holds 309, and every number here is one sooner or later.
        number(digits)
        return int(digits)

    try:
        return json.loads(text, parse_constant=constant, parse_float=number, parse_int=integer)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if "\n" in text.strip() else ""
        raise InputError(f"{where}{line}: not valid JSON ({error.msg}). Was the file cut off?") from None
    except RecursionError:
        raise InputError(f"{where}: is nested too deeply. No file of this kind is; copy it again.") from None
    except ValueError as error:
        raise InputError(f"{where}: has a number that cannot be read ({error}). Write it shorter.") from None


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        InputError: as `read_text` and `parse_json`.
    """
    return parse_json(read_text(path), str(path))


def read_json_lines(path: Path) -> list[Line]:
    """Return the objects of a JSON-lines file; blank lines are skipped.

    Raises:
        InputError: as `read_text`, or a line is not a JSON object, or there is none at all.
    """
    lines = []
    # Only "\n" ends a record: str.splitlines would also break at U+2028 inside a text.
    for number, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        value = parse_json(text, f"{path}:{number}")
        if not isinstance(value, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(value).__name__}.")
        lines.append(Line(f"{path}:{number}", value))
    if not lines:
        raise InputError(f"{path}: is empty, expected one JSON object a line.")
    return lines


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Serialise `value`; NaN and infinity are refused, since they are not JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends, and is removed when it fails.

    Raises:
        InputError: the folder cannot be written, or `path` is a folder; whatever was at `path` stays.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes the file private; a result file has the mode that open() would have given it.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). The previous file, if any, is unchanged.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path` by `text`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file at `path` by one JSON object a line, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(to_json(row) + "\n")
