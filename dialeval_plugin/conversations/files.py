"""Files of rows, opened once and read row by row: JSON, tables, Parquet and Arrow, compressed or not, local or behind a URL."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import importlib.util
import io
import itertools
import lzma
import re
import statistics
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from dialeval_plugin.core.dialogue import is_blank
from dialeval_plugin.core.errors import DialevalError, InputError, MissingPrerequisite
from dialeval_plugin.core.files import MAX_FILE_BYTES, Line, encoding_of, parse_json_prefix
from dialeval_plugin.core.resources import optional

from .layouts import text_layouts
from .layouts.layout import Layout

LARGEST_ROW = 100_000_000
"""Maximum length of a row in characters."""
_ROWS_UNPACKED = 64
"""Rows of Parquet that are decoded together, whatever their size."""
_ARROW_FILES = ("state.json", "dataset_dict.json")
"""Marker files in a folder saved by `datasets`: for one data set, or for several."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_ARCHIVES = (".zip", ".eval")
SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow")
"""Suffixes of conversation files; a compressed file adds its own."""
_HEAD = 50
"""Lines of a text by which its layout is recognised."""
_DIVIDER = re.compile(
    r"(?:\A|\n)\s*(?:[=*_~#]{3,}|-{5,}|\W*((?i:conversation|chat|dialogue|dialog|session|thread|call)\W*\d+)\W*)\s*\Z"
)
"""A rule such as `=====`, or a heading such as `### Conversation 2`, in the last line of a text."""
_MAX_BLANK = 1000
"""A rule counts as so many blank lines."""
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")


NAME_EACH = "so that another conversation may begin there. Name the conversation of every message in a column 'conversation'"
"""Advice for a table of messages in which another conversation may begin."""


class Rows(NamedTuple):
    """The rows of a file or an object, read one by one on request.

    Once all are read, `begins` has where another conversation may begin, why, and how to say so.
    """

    lines: Iterator[Line]
    is_table: bool = False
    begins: Sequence[str] = ()


def has_known_suffix(name: str, layout: str | None = None) -> bool:
    """Whether a file's name allows conversations, in the given layout if the user names one."""
    if layout in text_layouts():
        return _bare(name).suffix in (".txt", ".md")
    return _bare(name).suffix in SUFFIXES or name.lower().endswith(_ARCHIVES)


def _bare(name: str) -> PurePosixPath:
    path = PurePosixPath(name.lower())
    return path.with_suffix("") if path.suffix in _PACKED else path


def members_of(path: Path) -> list[str]:
    """Return the names of several files in a ZIP file, which is read as a folder of them is; [] for any other file."""
    if path.suffix.lower() != ".zip" or not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        names = sorted(one for one in archive.namelist() if not one.endswith("/") and not one.startswith("__MACOSX"))
    return names if len(names) > 1 and "header.json" not in names else []


def is_data_set(path: Path) -> bool:
    """Whether a folder was saved by `datasets`."""
    return any((path / name).is_file() for name in _ARROW_FILES)


def files_of(name: str) -> tuple[Any, str]:
    """Return the fsspec file system of a source, and its path there; `::` in a local file's name has no special meaning."""
    import fsspec

    return (fsspec.filesystem("file"), name) if Path(name).exists() else fsspec.core.url_to_fs(name)


def open_rows(path: str, *, called: str | None = None, is_log: bool = True, layout: str | None = None) -> Rows:
    """Open a file, a URL, or a folder saved by `datasets`.

    A file that is not JSON has rows if its first line fits a text layout, or if `layout` names one. Errors and rows call it
    `called`, by default `path`; `is_log` reads JSON as leniently as logs need, see `parse_json_prefix`.

    Raises:
        InputError: there is no such file, or, when its rows are read, one is malformed; the message names it.
    """
    name, suffix = called or path, _bare(called or path).suffix
    is_arrow = Path(path).is_dir() or path.lower().endswith(".arrow")
    begins: list[str] = []

    def lines() -> Iterator[Line]:
        with reading(name):
            if is_arrow:
                yield from _arrow_rows(Path(path))
            elif suffix == ".parquet":
                yield from _parquet_rows(path)
            elif suffix == ".xlsx":
                yield from _without_blank(_workbook_rows(path, keeps_blank=is_log), begins)
            else:
                yield from _text_rows(path, name, layout, begins, is_log=is_log)

    return Rows(lines(), is_arrow or suffix in {".parquet", ".xlsx", *_DELIMITERS}, begins)


def _without_blank(lines: Iterable[Line], begins: list[str]) -> Iterator[Line]:
    """Yield a table's rows but for blank ones; `begins` gets the first after one, unless each row has one before it."""
    n_rows, parted, is_after_blank = 0, list[str](), False
    for line in lines:
        if line.value:
            parted += [line.where] * (is_after_blank and n_rows > 0)
            n_rows += 1
            yield line
        is_after_blank = not line.value
    if 0 < len(parted) < n_rows - 1:  # some programs write a blank line after each row
        begins.append(f"{parted[0]}: comes after a blank row, {NAME_EACH}")


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Add the name of the source to errors of reading."""
    try:
        yield
    except DialevalError:
        raise
    except ImportError as error:
        raise MissingPrerequisite(f"{name}: is opened by a package that is not installed ({error}). Install it.") from error
    except FileNotFoundError:
        if "://" in name:  # fsspec's error for a server that cannot be reached, too
            raise InputError(f"{name}: cannot be found or reached. Check the address, the network and its proxy.") from None
        raise InputError(f"{name}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{name}: is a folder, expected a file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InputError(f"{name}: is not a complete packed file ({error}). Copy it again.") from error
    except UnicodeDecodeError as error:
        if b"\0" in error.object:
            raise _no_text(name) from None
        raise InputError(
            f"{name}: byte {error.start} is not UTF-8. Convert the file to UTF-8, for example by "
            f"iconv --from-code=WINDOWS-1252 --to-code=UTF-8."
        ) from None
    except NotImplementedError as error:
        raise InputError(
            f"{name}: is packed by a method that Python does not know. Unpack it and pack it anew; "
            "a log of inspect_ai becomes JSON by `inspect log convert --to json --output-dir FOLDER FILE`."
        ) from error
    except Exception as error:
        # Each library raises different errors for a URL or a damaged file.
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{name}: cannot be read ({first}). Check that it is there and complete.") from error


def _no_text(name: str) -> InputError:
    return InputError(f"{name}: is no text. Unpack it, or save it as JSON lines, CSV (UTF-8) or Parquet.")


def _unknown_text(name: str) -> InputError:
    return InputError(
        f"{name}: begins with neither an object nor an array of JSON. Give one object a line, "
        """{"messages": [...]} or {"context": ["turn", ...], "response": "..."}, a table that is called .csv or .tsv, """
        "or a text whose messages begin with 'User:' and 'Assistant:', or with names (--layout names)."
    )


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    system, path = files_of(name)
    with system.open(path, "rb") as file:
        yield file


def _text_rows(path: str, name: str, layout: str | None, begins: list[str], *, is_log: bool) -> Iterator[Line]:
    with _opened(path) as file:
        buffered: Any = file if hasattr(file, "peek") else io.BufferedReader(cast("io.RawIOBase", file))
        head = buffered.peek(8)[:8]
        if head.startswith(_ZIP):
            yield from _zipped(name, file, layout, begins)
            return
        if head.startswith(b"PAR1"):
            raise InputError(f"{name}: is Parquet. Call it .parquet.")
        unpack = next((unpack for start, unpack in _UNPACKED.items() if head.startswith(start)), lambda file: file)
        yield from _rows_of_text(unpack(buffered), name, layout, begins, is_log=is_log, encoding=encoding_of(head))


_ZIP = b"PK\x03\x04"
_UNPACKED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda file: optional("pyarrow", "a file packed by zstd").CompressedInputStream(file, "zstd"),
}
"""First bytes of a compressed file, and how it is decompressed."""


def _zipped(name: str, file: IO[bytes], layout: str | None, begins: list[str]) -> Iterator[Line]:
    with zipfile.ZipFile(file) as archive:
        members = [one for one in archive.namelist() if has_known_suffix(one, layout) and not one.startswith("__MACOSX")]
        if "header.json" in members:  # inspect_ai's, with summaries next to its samples
            members = [one for one in members if one.startswith("samples/")] or members
        elif len(members) != 1:
            holds = "several files" if members else "no file"
            raise InputError(f"{name}: holds {holds} of conversations ({', '.join(SUFFIXES)}). Unpack it and name one.")
        for member in members:
            with archive.open(member) as inner:
                yield from _rows_of_text(inner, f"{name}/{member}", layout, begins)


_JSON_START = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\]]|$))")
"""Start of an object or an array of objects; a text may also begin with a time in square brackets."""


def _rows_of_text(
    of_bytes: IO[bytes], name: str, layout: str | None, begins: list[str], *, is_log: bool = True, encoding: str = "utf-8-sig"
) -> Iterator[Line]:
    delimiter = _DELIMITERS.get(_bare(name).suffix)
    # Closed also where only the first rows are read.
    with io.TextIOWrapper(of_bytes, encoding=encoding, newline="\n" if delimiter is None else "") as file:
        if delimiter is not None:
            yield from _without_blank(table_rows(file, name, delimiter, keeps_blank=is_log), begins)
        else:
            yield from _rows_of_lines_or_json(file, name, layout, begins, is_log=is_log)


def _rows_of_lines_or_json(
    file: io.TextIOWrapper, name: str, layout: str | None, begins: list[str], *, is_log: bool
) -> Iterator[Line]:
    n_before, first = 0, ""
    while (line := file.readline(LARGEST_ROW)) and not (first := line).strip():
        n_before += 1
    if not first.strip():
        raise InputError(f"{name}: is empty, expected one JSON object a line.")
    head = [first] if _JSON_START.match(first) else [first, *itertools.islice(file, _HEAD)]
    layout_of_text = text_layouts().get(layout) if layout is not None else _layout_of_text(head)
    if layout_of_text is not None:
        layout_of_text.ask(name, layout)
        yield from _rows_of_lines(layout_of_text, itertools.chain(head, file), name, n_before, begins)
        return
    if not _JSON_START.match(first):
        raise _no_text(name) if "\0" in first else _unknown_text(name)
    if _is_whole(first, name):
        read = [first]
        while (line := file.readline(LARGEST_ROW)) and not line.strip():
            read.append(line)
        if line or first.lstrip().startswith("{"):
            yield from _json_lines([*read, line], file, name, n_before, is_log=is_log)
        else:
            yield from value_rows(first, name, n_before, is_log=is_log)
        return
    text = "\n" * n_before + first + file.read(MAX_FILE_BYTES)
    if file.read(1):
        raise InputError(f"{name}: holds more than {MAX_FILE_BYTES // 10**6} MB, the limit of a file. Split it.")
    yield from value_rows(text, name, is_log=is_log)


def _layout_of_text(head: Sequence[str]) -> Layout | None:
    """Return the layout of a text: that of its first line or, after a heading, one by which several people speak."""
    for layout in text_layouts().values():
        if layout.rows is not None and layout.told_by == "line" and next(layout.rows(head[:1]), None) is not None:
            return layout
    for layout in text_layouts().values():
        rows = [] if layout.rows is None else [row for _, row in layout.rows(head)]
        spoken = [row for row in rows if not is_blank(str(row.get("text", row.get("content"))))]
        speakers = [one for row in spoken if (one := row.get("speaker") or row.get("role")) not in (None, "heading")]
        if len(set(speakers)) > 1 and (layout.told_by != "speaker again" or len(set(speakers)) < len(speakers)):
            return layout
    return None


def _rows_of_lines(layout: Layout, lines: Iterable[str], name: str, n_before: int, begins: list[str]) -> Iterator[Line]:
    parted: list[int] = []
    lines = [*lines] if layout.may_have_chats else lines
    rows = layout.rows(lines) if layout.rows is not None else iter(())
    n_rows = 0
    for number, value in _by_chat(rows, lines, parted) if isinstance(lines, list) else rows:
        n_rows += 1
        yield Line(f"{name}:{number + n_before}", dict(value))
    if not n_rows:
        raise InputError(
            f"{name}: has no line as the layout {layout.name!r} ({layout.about}) has them. Name another by --layout."
        )
    begins += [
        f"{name}:{number + n_before}: comes after a rule or more blank lines than others, so that another conversation may "
        "begin there. Write a line such as '### Conversation 2' above each"
        for number in parted
    ]


def _by_chat(rows: Iterable[tuple[int, Any]], lines: Sequence[str], parted: list[int]) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a text that may have several chats, with that of the heading above, such as `### Conversation 2`.

    `parted` gets the first row of the text's first speaker that is below a rule, or below more blank lines than most.
    """
    chat, opener = "", None
    spaces: list[int] = []
    first: dict[int, int] = {}
    for number, row in rows:
        above = number - 1
        while above and not lines[above - 1].strip():
            above -= 1
        field = "text" if "text" in row else "content"
        text, speaker = _DIVIDER.sub("", row[field]), row.get("speaker", row.get("role"))
        divider = _DIVIDER.search(lines[above - 1].strip()) if above else None
        if divider is not None and divider[1]:
            chat = divider[1]
        elif opener is not None:
            spaces.append(number - 1 - above if divider is None else _MAX_BLANK)
            if speaker == opener:
                first.setdefault(spaces[-1], number)
        if text or speaker != "heading":
            opener = opener or (None if speaker == "heading" else speaker)
            yield number, {**row, field: text, **({"conversation": chat} if chat else {})}
    usual = statistics.median_low(spaces) if spaces else 0
    parted += sorted(number for n, number in first.items() if n > usual)[:1]


def _is_whole(line: str, name: str) -> bool:
    """Whether a line consists of one or several complete JSON values."""
    try:
        parse_json_prefix(line, len(line) - len(line.lstrip()), name, is_log=True)
    except InputError:
        # A line that ends an object begun earlier is malformed and is not read further.
        return line.lstrip().startswith("{") and line.rstrip() not in ("{",) and line.rstrip()[-1:] == "}"
    return True


def _json_lines(first: Iterable[str], file: io.TextIOWrapper, name: str, n_before: int, *, is_log: bool) -> Iterator[Line]:
    # Only "\n" ends a record: other line ends may be inside a text.
    for number, text in enumerate(itertools.chain(first, iter(partial(file.readline, LARGEST_ROW), "")), start=n_before + 1):
        where, position = f"{name}:{number}", _skip(text, 0)
        if len(text) >= LARGEST_ROW:
            raise InputError(f"{where}: holds more than {LARGEST_ROW // 10**6} MB, the limit of a row. Split it.")
        while position < len(text):  # one value, or several joined ones
            value, position = parse_json_prefix(text, position, where, is_log=is_log)
            yield row_of(value, where)
            position = _skip(text, position)


def row_of(value: Any, where: str) -> Line:
    """Return a row from an object, or from a conversation that is a list of messages."""
    if isinstance(value, Mapping):
        return Line(where, dict(value))
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(
            f"{where}: expected a conversation, got {value!r:.80} ({type(value).__name__}). "
            "Give a list of messages, or an object that has one under 'messages'."
        )
    return Line(where, {"messages": list(value)})


def _skip(text: str, position: int) -> int:
    match = _WHITE_SPACE.match(text, position)
    return match.end() if match else position


def value_rows(text: str, name: str, n_before: int = 0, *, is_log: bool = True) -> Iterator[Line]:
    """Yield the elements of an array, each with the line on which it starts; or the consecutive objects of a text."""
    position = _skip(text, 0)
    is_array = text[position : position + 1] == "["
    counted, line, n_rows = 0, 1 + n_before, 0

    def fail(place: int, problem: str) -> InputError:
        return InputError(f"{name}:{text.count(chr(10), 0, place) + 1 + n_before}: {problem}")

    if is_array:
        position = _skip(text, position + 1)
    while position < len(text) and text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, position = parse_json_prefix(text, position, name, is_log=is_log)
        where = f"{name}:{line}" if is_array or n_rows else name
        yield row_of(value, where)
        n_rows += 1
        position = _skip(text, position)
        if not is_array:
            continue
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
            if text[position : position + 1] == "]":
                raise fail(position, "not valid JSON (a comma before the closing bracket). Was the file edited by hand?")
        elif text[position : position + 1] != "]":
            raise fail(position, "not valid JSON (expected ',' or ']' after a row). Was the file cut off?")
    if is_array:
        if position >= len(text):
            raise fail(position, "not valid JSON (the array does not end). Was the file cut off?")
        if (end := _skip(text, position + 1)) != len(text):
            raise fail(end, "not valid JSON (text after the closing bracket). Were two files joined?")
    elif position < len(text):
        raise fail(position, "not valid JSON (a bracket that closes nothing). Was the file edited by hand?")
    if not n_rows:
        raise InputError(f"{name}: is an empty array, expected one object a row.")


def table_rows(file: Iterable[str], name: str, delimiter: str, *, keeps_blank: bool = False) -> Iterator[Line]:
    """Yield the rows of a table as objects of column name to text; with `keeps_blank` also blank rows, which are empty.

    If the header lacks the delimiter but has semicolons, tabs, commas or bars, that is the delimiter.
    """
    # The csv module's default limit, 131,072 characters, is less than the length of some conversations.
    csv.field_size_limit(MAX_FILE_BYTES)
    lines = iter(file)
    first, skipped = next((line for line in lines if line.strip()), ""), 0
    if first.startswith("sep="):  # a line that Excel adds
        delimiter, first, skipped = first[4:5], next(lines, ""), 1
    delimiter = delimiter_of(first, delimiter)
    names: list[str] = []
    n_rows = 0

    def checked() -> Iterator[str]:
        for line in itertools.chain([first], lines):
            if "\0" in line:
                raise _no_text(name)
            yield line

    reader = csv.reader(checked(), delimiter=delimiter, strict=True)
    start = 1 + skipped
    try:
        for cells in reader:
            where, start = f"{name}:{start}", reader.line_num + 1 + skipped
            if not any(cell.strip() for cell in cells):
                if keeps_blank and n_rows:
                    yield Line(where, {})
                continue
            if not names and len(cells) > 1 and sum(bool(cell.strip()) for cell in cells) == 1:
                continue  # a title above the header
            if not names:
                names = [cell.strip() for cell in cells]
                if doubled := sorted({name for name in names if name and names.count(name) > 1}):
                    raise InputError(f"{where}: the column {doubled[0]!r} occurs twice. Rename one.")
            elif len(cells) != len(names):
                raise InputError(f"{where}: has {len(cells)} cells, but the header names {len(names)} columns. Mend the row.")
            elif names.count("") > 1 and any(cell.strip() for name, cell in zip(names, cells, strict=True) if not name):
                raise InputError(f"{where}: has a cell in a column without a name. Begin with the names of the columns.")
            else:
                n_rows += 1
                yield Line(where, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num + skipped}: is not CSV ({error}). Was the file cut off?") from None
    if not n_rows:
        raise InputError(f"{name}: has no rows below a header. Give one row a response.")


def delimiter_of(header: str, usual: str) -> str:
    """Return the delimiter of a table's header: the usual one, a semicolon, a tab, a comma, or a bar."""
    bare = re.sub(r'"[^"]*"', "", header)
    return next((one for one in (usual, *";\t,|") if one in bare), usual)


def _parquet_rows(name: str) -> Iterator[Line]:
    arrow = optional("pyarrow.parquet", f"{name}: Parquet")
    with _opened(name) as file:
        parquet = arrow.ParquetFile(file)
        # Data bases write numbers, and ids, as decimals.
        kinds = {one.name: one.type for one in parquet.schema_arrow if str(one.type).startswith("decimal")}
        rows = (row for batch in parquet.iter_batches(_ROWS_UNPACKED) for row in batch.to_pylist())
        yield from _numbered(name, (_without_decimals(row, kinds) for row in rows) if kinds else rows)


def _without_decimals(row: dict[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: kind for name, kind in kinds.items() if row[name] is not None}
    numbers = {name: float(row[name]) if kind.scale > 0 else int(row[name]) for name, kind in known.items()}
    return {**row, **numbers}


def _workbook_rows(name: str, *, keeps_blank: bool) -> Iterator[Line]:
    pandas = optional("pandas", f"{name}: a workbook")
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingPrerequisite(
            f"{name}: a workbook is read by the package openpyxl, which is not installed. "
            "Install it by `pip install openpyxl`, or save the sheet as CSV (UTF-8)."
        )
    with _opened(name) as file:
        # Else "None" and "NA", which somebody may have said, would be empty cells.
        sheets = pandas.read_excel(file, sheet_name=None, dtype=object, na_filter=False)
    filled = {sheet: frame for sheet, frame in sheets.items() if len(frame)}
    if len(filled) != 1:
        raise InputError(f"{name}: has {len(filled)} sheets with rows ({', '.join(map(str, filled))}). Leave one.")
    ((sheet, frame),) = filled.items()
    rows = frame.where(frame.notna() & (frame != ""), None).rename(columns=str).to_dict("records")
    rows = [{} if keeps_blank and not any(one is not None for one in row.values()) else row for row in rows]
    yield from (Line(f"{name}: {sheet}, row {number}", row) for number, row in enumerate(rows, start=2))


def _arrow_rows(path: Path) -> Iterator[Line]:
    datasets = optional("datasets", f"{path}: a data set of Arrow files")
    data = datasets.Dataset.from_file(str(path)) if path.is_file() else datasets.load_from_disk(str(path))
    if not isinstance(data, datasets.Dataset):
        raise InputError(f"{path}: holds several data sets ({', '.join(data)}). Name the folder of one of them.")
    yield from _numbered(str(path), iter(data))


def _numbered(name: str, rows: Iterable[Any]) -> Iterator[Line]:
    return (Line(f"{name}: row {number}", row) for number, row in enumerate(rows, start=1))
