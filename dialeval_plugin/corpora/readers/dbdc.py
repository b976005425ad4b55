"""Reader of the logs of the Dialogue Breakdown Detection Challenges 3 and 4 (Higashinaka et al. 2017, 2019), from their zip.

A log `<name>.log.json` is one dialogue: `{dialogue-id, turns: [{turn-index, speaker, utterance, annotations}]}`. Speakers are
`U` (user) and `S` (system). A system turn has one annotation per rater, whose `breakdown` is `O` (not a breakdown), `T`
(possible breakdown) or `X` (breakdown); user turns, and the opening greeting of some systems, have none.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import MAX_FILE_BYTES, Line, parse_json, read_bounded, read_text
from dialeval_plugin.corpora.corpus import Corpus, RatedDialogue
from dialeval_plugin.corpora.rows import as_object, objects_field, text_field

DbdcSplit: TypeAlias = Literal["dev", "eval"]
Annotations: TypeAlias = Literal["revised", "original"]

FILE = "DBDC3.zip"
SYSTEMS = ("cic", "iris", "tktk", "yi")
"""Systems of the English DBDC3, in lower case; the folders add the number of dialogues, for example `CIC_115`."""
QUALITY = "breakdown"
"""Name of the rating: the index of a rater's label in `LABELS`, so 0 is good and 2 is bad."""
LABELS = ("O", "T", "X")

_SUFFIX = ".log.json"
_ENCRYPTED = 0x1
"""Flag of an encrypted zip member."""
_SPEAKERS = {"U": "User", "S": "System"}
_FOLDERS = {"revised": "dbdc3_revised", "original": "dbdc3"}


def read(
    system: str, *, split: DbdcSplit = "eval", annotations: Annotations = "revised", path: Path | None = None
) -> list[RatedDialogue]:
    """Read the English dialogues with one of the `SYSTEMS` of DBDC3, in the order of their file names.

    The "revised" annotations have new ones of CIC and YI, by raters who each saw whole dialogues, which agree better; the
    "original" ones are those of the challenge. IRIS and TKTK have the same in both. Without a path the corpus' zip is read.
    """
    for name, value, known in (
        ("system", system, SYSTEMS),
        ("split", split, ("dev", "eval")),
        ("annotations", annotations, _FOLDERS),
    ):
        if value not in known:
            raise unknown_name(f"dbdc3: there is no {name} {value!r}", value, known)
    return read_logs(
        CORPUS.file(FILE) if path is None else path, inside=f"DBDC3/{_FOLDERS[annotations]}/en/{split}/{system.upper()}_"
    )


def read_logs(path: Path, *, inside: str = "") -> list[RatedDialogue]:
    """Read every log in a zip, without unpacking files, or below a folder, in the order of the names.

    Changes by the reader: utterances lose the white space around them; an utterance may then be empty, as some of YI's are, and
    is kept because it was annotated. A rater's label becomes its index in `LABELS`, under `QUALITY`; comments and marks of bad
    grammar are left out. A response is named after its dialogue and its turn, for example `YIT0039_02`. Its system is the log's
    folder, without the number of dialogues.

    `inside` is a prefix of the logs' names, for example `DBDC3/dbdc3_revised/en/eval/`; by default all are read.
    """
    texts = _zip_texts(path, inside) if path.is_file() else _folder_texts(path, inside)
    found: dict[str, tuple[str, RatedDialogue]] = {}
    for where, system, text in texts:
        annotated = _read_log(where, system, text)
        id = annotated.whole.id
        if id in found:
            raise InputError(
                f"{where}: the dialogue-id {id!r} is also that of {found[id][0]}. Name one set of annotations with `inside`."
            )
        found[id] = (where, annotated)
    if not found:
        raise InputError(f"{path}: has no {_SUFFIX} whose name begins with {inside!r}. Is this another corpus' file?")
    return [annotated for _, annotated in found.values()]


def counts(response: Example) -> tuple[int, int, int]:
    """Return the numbers of raters with the labels O, T and X for a response that `read` returned."""
    values = response.ratings[QUALITY]
    return values.count(0.0), values.count(1.0), values.count(2.0)


def _zip_texts(path: Path, inside: str) -> Iterator[tuple[str, str, str]]:
    """Yield the location of each log, its system and its text."""
    try:
        with zipfile.ZipFile(path) as archive:
            logs = sorted(
                (log for log in archive.infolist() if log.filename.startswith(inside) and log.filename.endswith(_SUFFIX)),
                key=lambda log: log.filename,
            )
            if sum(log.file_size for log in logs) > MAX_FILE_BYTES:
                raise InputError(f"{path}: its logs are more than {MAX_FILE_BYTES // 10**6} MB, the limit of a file. Split it.")
            for log in logs:
                where = f"{path}!{log.filename}"
                yield where, _system(log.filename), _unpacked(archive, log, where)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: is not a complete zip ({error}). Copy it again.") from error


def _unpacked(archive: zipfile.ZipFile, log: zipfile.ZipInfo, where: str) -> str:
    # The other methods unpack any amount at once, whatever size the zip states.
    if log.flag_bits & _ENCRYPTED or log.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        how = "encrypted" if log.flag_bits & _ENCRYPTED else f"packed by the method {log.compress_type}"
        raise InputError(f"{where}: is {how}. Pack it anew, as an ordinary zip.")
    with archive.open(log) as file:
        raw = read_bounded(file, where)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: byte {error.start} is not UTF-8. Copy the zip again.") from None


def _folder_texts(path: Path, inside: str) -> Iterator[tuple[str, str, str]]:
    if not path.is_dir():
        raise InputError(f"{path}: there is no such file or folder.")
    for name in sorted(file.relative_to(path).as_posix() for file in path.rglob(f"*{_SUFFIX}")):
        if name.startswith(inside):
            yield str(path / name), _system((path / name).as_posix()), read_text(path / name)


def _system(name: str) -> str:
    return re.sub(r"_\d+$", "", PurePosixPath(name).parent.name)


def _read_log(where: str, system: str, text: str) -> RatedDialogue:
    log = as_object(parse_json(text, where), where)
    id = text_field(log, "dialogue-id")
    rows = objects_field(log, "turns")
    turns = tuple(_turn(row) for row in rows)
    responses = []
    for index, row in enumerate(rows):
        if labels := _labels(row):
            ratings = {QUALITY: labels}
            responses.append(Example(f"{id}_{index:02d}", turns[:index], turns[index], system=system, ratings=ratings))
    return RatedDialogue(Dialogue(id, turns, system), tuple(responses))


def _turn(row: Line) -> Turn:
    speaker = text_field(row, "speaker")
    if speaker not in _SPEAKERS:
        raise InputError(f"{row.where}: speaker: expected 'U' or 'S', got {speaker!r}. Is this another file's layout?")
    return Turn(text_field(row, "utterance").strip(), _SPEAKERS[speaker])


def _labels(row: Line) -> tuple[float, ...]:
    annotations = objects_field(row, "annotations")
    if annotations and row.value["speaker"] == "U":
        raise InputError(f"{row.where}: a user's turn has {len(annotations)} annotations. Only system turns are annotated.")
    values = []
    for annotation in annotations:
        label = text_field(annotation, "breakdown")
        if label not in LABELS:
            raise InputError(f"{annotation.where}: breakdown: expected one of {', '.join(LABELS)}, got {label!r}.")
        values.append(float(LABELS.index(label)))
    return tuple(values)


CORPUS = Corpus(name="dbdc3", layout="zip, or folder, of logs `*.log.json`", qualities={"turn": (QUALITY,)})
