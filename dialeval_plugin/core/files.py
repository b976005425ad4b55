"""Reading and writing of files: errors name path and line, and a write replaces a file whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import glob
import gzip
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .errors import InputError, ModelLoadError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


T = TypeVar("T")

MAX_FILE_BYTES = 10**9
"""Maximum size in bytes of a file that is read, decompressed: several times the size of a million responses."""
MAX_JSON_DEPTH = 100
"""Maximum depth of lists and objects in JSON; the interpreter itself would follow about a thousand levels."""

_BLOCK = 1 << 20
_MAX_NAME = 50
_N_RANDOM = 16
"""Random characters in the name of an unfinished file, which distinguish it from all others."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Line(NamedTuple):
    """A JSON object and its location, as `path:number`."""

    where: str
    value: dict[str, Any]


def check_name(name: T) -> T:
    """Return the name of a file; an empty one, which would be the working folder, is an `InputError`."""
    if name == "":
        raise InputError("the name of a file is empty. Name a file or a folder (is a variable of the shell not set?).")
    return name


def read_text(path: Path, first: int | None = None) -> str:
    """Return the text of a file, or of its `first` bytes, without a byte order mark; a file named .gz is decompressed."""
    try:
        with path.open("rb") as file:
            unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file
            raw = read_bounded(unpacked, str(path)) if first is None else bytearray(unpacked.read(first))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: is not a complete gzip file ({error}). Copy it again.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check that you may read it.") from error
    except ValueError:
        raise _no_name(path) from None
    try:
        # The first bytes may end inside a character.
        return codecs.getincrementaldecoder(encoding_of(raw))().decode(raw, final=first is None)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: byte {error.start} is not UTF-8. Convert the file to UTF-8.") from None


def encoding_of(head: bytes | bytearray) -> str:
    """Return the encoding of a text by its first bytes: UTF-16 if they are its mark (Excel writes it), else UTF-8."""
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def read_bounded(file: IO[bytes], where: str) -> bytearray:
    """Return the bytes of an open file; raise an error, without reading on, if it is larger than `MAX_FILE_BYTES`."""
    raw = bytearray()
    while block := file.read(_BLOCK):
        raw += block
        if len(raw) > MAX_FILE_BYTES:
            raise InputError(f"{where}: holds more than {MAX_FILE_BYTES // 10**6} MB, the limit of a file. Split it.")
    return raw


def _no_name(path: Path) -> InputError:
    """Return the error for a path with a zero byte or half of a surrogate pair."""
    return InputError(f"{str(path)!r}: cannot be the name of a file. Choose another.")


def parse_json(text: str, where: str, *, constants: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return the value of a JSON text.

    These raise an InputError: more than `MAX_JSON_DEPTH` levels, a number beyond the range of a float, a key twice in one
    object, half of a surrogate pair, and NaN and infinities without a value in `constants`. Errors begin with `where`: the path
    of the file, or `path:line` of the record.

    Example:
        >>> parse_json('{"value": NaN}', "results.json", constants={"NaN": None})
        {'value': None}
    """
    try:
        value = (_decoder(constants) if constants else _STRICT).decode(text)
        _check_json(value, text)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if "\n" in text.strip() else ""
        raise InputError(f"{where}{line}: {_syntax(error)}") from None
    except (_Refused, RecursionError) as error:
        raise InputError(f"{where}: {_refusal(error)}") from None
    return value


def parse_json_prefix(text: str, start: int, where: str, *, is_log: bool = False) -> tuple[Any, int]:
    """Return the JSON value that begins at `start` in the text of the file `where`, and the position of its end.

    In a log, NaN and infinity are null, and half of a surrogate pair is accepted.
    """
    try:
        value, end = (_LENIENT if is_log else _STRICT).raw_decode(text, start)
        _check_json(value, text[start:end], allow_halves=is_log)
    except json.JSONDecodeError as error:
        raise InputError(f"{_line(where, text, error.pos)}: {_syntax(error)}") from None
    except (_Refused, RecursionError) as error:
        raise InputError(f"{_line(where, text, start)}: {_refusal(error)}") from None
    return value, end


def _line(where: str, text: str, position: int) -> str:
    """Return `where` with the line of a position, unless it is that of a record, which already has one."""
    is_record = "\n" not in text.strip() and where.rpartition(":")[2].isdecimal()
    return where if is_record else f"{where}:{text.count(chr(10), 0, position) + 1}"


class _Refused(Exception):
    """A well-formed JSON text that is not accepted; its message is the end of the error's."""


def _syntax(error: json.JSONDecodeError) -> str:
    if error.doc.startswith("'", error.pos) or re.match(r"(?:None|True|False)\b", error.doc[error.pos :]):
        return f"not valid JSON ({error.msg}), but as Python prints it. Write it by json.dumps."
    return f"not valid JSON ({error.msg}). Was the file cut off?"


def _refusal(error: _Refused | RecursionError) -> str:
    if isinstance(error, _Refused):
        return str(error)
    return f"is nested too deeply, more than {MAX_JSON_DEPTH} levels. No file of this kind is; copy it again."


def _decoder(constants: Mapping[str, Any]) -> json.JSONDecoder:
    def constant(name: str) -> Any:
        if name not in constants:
            raise _Refused(f"holds {name}, which is not JSON. Leave out what has no value, or write null.")
        return constants[name]

    return json.JSONDecoder(parse_constant=constant, parse_float=_number, parse_int=_integer, object_pairs_hook=_object)


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _Refused(f"has a number that cannot be read ({digits[:20]} is beyond the range of a float). Write it shorter.")
    return value


def _integer(digits: str) -> int:
    # int() refuses thousands of digits; a float holds 309, and every number here becomes a float sooner or later.
    _number(digits)
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        doubled = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise _Refused(f"has the key {doubled!r} twice in one object. Keep one of them.")
    return value


_STRICT = _decoder({})
_LENIENT = _decoder(dict.fromkeys(("NaN", "Infinity", "-Infinity")))


def _check_json(value: Any, text: str, *, allow_halves: bool = False) -> None:
    """Raise an error for values that the decoder accepts and this module does not, if the text can contain any."""
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        raise RecursionError
    if not allow_halves and _SURROGATE.search(text):
        try:
            to_json(value).encode()
        except UnicodeEncodeError as error:
            text = error.object[: error.end].rpartition('"')[2][-60:]
            raise _Refused(
                f"holds {text!r}, half of a surrogate pair, which is not Unicode. Write the character whole."
            ) from None


def _depth(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(_depth, children), default=0)


def read_json(path: Path) -> Any:
    """Return the value of a JSON file."""
    return parse_json(read_text(path), str(path))


def read_json_lines(path: Path) -> list[Line]:
    """Return the objects of a JSON-lines file, at least one; blank lines are skipped."""
    lines = []
    # Only "\n" ends a record: str.splitlines would also break at U+2028 inside a text.
    for number, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        value = parse_json(text, f"{path}:{number}")
        if not isinstance(value, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {value!r:.80}.")
        lines.append(Line(f"{path}:{number}", value))
    if not lines:
        raise InputError(f"{path}: is empty, expected one JSON object a line.")
    return lines


def checked(value: Any, shape: type[T], where: str, *, advice: str) -> T:
    """Return a JSON value as an object of type `shape`; text, number and boolean are not converted into each other.

    Args:
        value: result of `parse_json`.
        shape: a type that pydantic knows; a TypedDict must be one of `typing_extensions`.
        where: beginning of the error, which names the first wrong field.
        advice: end of the error.

    Example:
        >>> checked({"a": 1}, dict[str, float], "x.json", advice="Copy it again.")
        {'a': 1.0}
        >>> checked({"a": "1"}, dict[str, float], "x.json", advice="Copy it again.")
        Traceback (most recent call last):
        ...
        dialeval_plugin.core.errors.InputError: x.json: a: input should be a valid number. Copy it again.
    """
    from pydantic import ValidationError

    try:
        # Strict validation accepts lists as tuples and objects as dataclasses only in JSON.
        return cast("T", _adapter(cast("Any", shape)).validate_json(to_json(value), strict=True))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        problem = first["msg"][:1].lower() + first["msg"][1:]
        raise InputError(f"{where}: {field + ': ' if field else ''}{problem}. {advice}") from None


def checked_model_file(path: Path, shape: type[T]) -> T:
    """Return the contents of a JSON file of a model folder, checked as `checked` does."""
    if not path.is_file():
        raise ModelLoadError(f"{path}: there is no such file. Copy the folder again.")
    try:
        return checked(read_json(path), shape, str(path), advice="Copy the folder again.")
    except InputError as error:
        message = str(error)
        # An error of the shape's own checks does not name the file.
        raise ModelLoadError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Serialise `value`; raise an error for NaN and infinity, which are not JSON."""
    encoder = _ENCODER if indent is None else json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent)
    return encoder.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose content replaces `path` when the block ends; if the block fails, `path` is unchanged.

    The new file keeps mode and, if permitted, owner of the old one; the target of a symbolic link is replaced. A stream
    (`is_stream`) is written directly. Temporary files that a killed process left for the same file are removed.
    """
    try:
        earlier = _status(path)
        if earlier is not None and stat.S_ISDIR(earlier.st_mode):
            raise InputError(f"{path}: is a folder, expected the name of a file to write.")
        through = is_stream(path)
        place = Path(tempfile.gettempdir()) / "stream" if through else path
        temporary, mode, descriptor = _new_file(place, None if through else earlier)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    try:
        yield temporary
        if through:
            with temporary.open("rb") as content, _stream(path) as stream:
                shutil.copyfileobj(content, stream)
            return
        os.fsync(descriptor)
        if earlier is not None:
            _hand_on_owner(earlier, temporary)
        temporary.chmod(mode)
        target = path.resolve()
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). The previous file, if any, is unchanged.") from error
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


def remove_half_written(folder: Path, name: str = ".*.") -> None:
    """Remove the temporary files of killed processes from a folder; those of running processes stay."""
    for path in folder.glob(f"{name}{'?' * _N_RANDOM}.part"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def is_stream(path: Path) -> bool:
    """Whether `path` is written directly and not replaced: a device, a pipe, or this process's own output."""
    status = _status(path)
    return status is not None and (not stat.S_ISREG(status.st_mode) or _own_output(status) is not None)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the file at `path`, following links; None if there is none."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise _no_name(path) from None


def _own_output(status: os.stat_result) -> int | None:
    """Return the descriptor of this process's standard output or error if that is the file."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    return None


def _stream(path: Path) -> IO[bytes]:
    own = _own_output(path.stat())
    if own is None:
        return path.open("wb")
    for printed in filter(None, (sys.stdout, sys.stderr)):
        printed.flush()
    # Opening the file again would overwrite it from its beginning.
    return os.fdopen(os.dup(own), "wb")


def _new_file(path: Path, earlier: os.stat_result | None) -> tuple[Path, int, int]:
    """Make an empty, private file next to the target of `path`; return it, its final mode, and its locked descriptor.

    The lock keeps it from `remove_half_written`.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    # Only a part of a long name: with the addition it would exceed the limit on names.
    name = f".{target.name[:_MAX_NAME]}.{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:_N_RANDOM]}."
    remove_half_written(target.parent, glob.escape(name))
    while True:
        temporary = target.with_name(f"{name}{secrets.token_hex(_N_RANDOM // 2)}.part")
        # The system applies the mask; reading it would change it for all threads for a moment.
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666 if earlier is None else 0o600)
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():  # otherwise another process removed it before it was locked
            return temporary, stat.S_IMODE((os.fstat(descriptor) if earlier is None else earlier).st_mode), descriptor
        os.close(descriptor)


def _hand_on_owner(earlier: os.stat_result, path: Path) -> None:
    for user, group in ((-1, earlier.st_gid), (earlier.st_uid, -1)):
        # Only root can give files to other users, and to groups that it is not in.
        with contextlib.suppress(OSError):
            os.chown(path, user, group)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path` by `text`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_together(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Replace files of a folder, in this order; none is replaced before all are written. Return their paths."""
    with contextlib.ExitStack() as stack:
        # A stack ends its blocks from the last to the first.
        for name, text in reversed([*texts.items()]):
            stack.enter_context(atomic_path(folder / name)).write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file at `path` by one JSON object per line, whole or not at all."""
    with atomic_path(path) as temporary:
        write_lines(temporary, (to_json(row) + "\n" for row in rows))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with its line break, unchanged."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


@dataclass(frozen=True)
class TableLines:
    """The text file of a `csv.writer`; lines end in a line feed.

    Before Python 3.13 only a writer with its own line end, the default, quotes a carriage return in a cell.
    """

    file: IO[str]

    def write(self, line: str) -> int:
        """Write a line of the table."""
        return self.file.write(line.removesuffix("\r\n") + "\n")


def check_output(output: Path, input: str | Path, what: str) -> None:
    """Raise an error for an output file for `what` that is a folder or the input itself."""
    if output.is_dir():
        raise InputError(f"{output}: is a folder, expected the name of a file to write.")
    source = Path(str(input).removeprefix("file://").removeprefix("local://"))
    if not (output.exists() and source.exists()):
        return
    # Scores in the folder of their logs are replaced, and have a file that describes them.
    is_log = source.is_dir() and output.resolve().is_relative_to(source.resolve())
    if output.samefile(source) or (is_log and not output.with_name(f"{output.name}.meta.json").exists()):
        raise InputError(f"{output}: is the input. Choose another name for {what}.")


@cache
def _adapter(shape: type[Any]) -> TypeAdapter[Any]:
    """Return the cached validator of a shape; making it takes a hundred times as long as using it."""
    from pydantic import TypeAdapter

    return TypeAdapter(shape)
