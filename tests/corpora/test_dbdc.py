"""The logs of the breakdown detection challenges: every irregularity of the published zip, and what is refused."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.corpora.readers.dbdc import QUALITY, SYSTEMS, counts, read, read_logs
from tests.refusals import refusal

INSIDE = "DBDC3/dbdc3_revised/en/eval/YI_50/"
NAME = f"{INSIDE}YIT0001.log.json"


def turn(speaker: str, utterance: str, labels: str = "", **fields: Any) -> dict[str, Any]:
    annotations = [
        {"breakdown": label, "annotator-id": str(rater), "comment": "", "ungrammatical-sentence": ""}
        for rater, label in enumerate(labels)
    ]
    return {"turn-index": 0, "speaker": speaker, "utterance": utterance, "annotations": annotations, **fields}


def log(*turns: dict[str, Any], id: str = "YIT0001") -> dict[str, Any]:
    return {"dialogue-id": id, "speaker-id": "s", "group-id": "", "turns": list(turns)}


ELSE = "Is this another file's layout?"
LOG = log(turn("S", "Hello!"), turn("U", "Hi. "), turn("S", "Good.", "OTTX"), turn("U", "What?"), turn("S", " \n", "XXXX"))


def write_zip(folder: Path, members: dict[str, Any], method: int = zipfile.ZIP_STORED) -> Path:
    path = folder / "DBDC3.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("DBDC3/00README", "Overview")
        for member, value in members.items():
            archive.writestr(member, value if isinstance(value, (str, bytes)) else json.dumps(value))
    return path


def test_annotated_system_turns_become_responses(tmp_path: Path) -> None:
    (found,) = read_logs(write_zip(tmp_path, {NAME: LOG}))
    # Some of YI's turns are blank, and raters judged that too.
    texts = ("Hello!", "Hi.", "Good.", "What?", "")
    turns = tuple(map(Turn, texts, ("System", "User", "System", "User", "System")))
    assert found.whole == Dialogue("YIT0001", turns, "YI")
    # The opening greeting has no annotation and is no response; it is part of the context of all others.
    assert found.responses == (
        Example("YIT0001_02", turns[:2], turns[2], system="YI", ratings={QUALITY: (0.0, 1.0, 1.0, 2.0)}),
        Example("YIT0001_04", turns[:4], turns[4], system="YI", ratings={QUALITY: (2.0,) * 4}),
    )
    assert [counts(response) for response in found.responses] == [(1, 2, 1), (0, 0, 4)]


def test_a_user_may_open_and_an_opening_system_turn_may_be_annotated(tmp_path: Path) -> None:
    opened_by_user = log(turn("U", "Hi"), turn("S", "Yes.", "O"), turn("U", "Bye"), id="a")
    # The Japanese logs annotate the greeting as well.
    opened_by_system = log(turn("S", "やあ", "OOX"), turn("U", "はい"), id="b")
    members = {f"{INSIDE}a.log.json": opened_by_user, f"{INSIDE}b.log.json": opened_by_system}
    first, second = read_logs(write_zip(tmp_path, members))
    assert [response.id for response in first.responses] == ["a_01"]
    assert [(response.id, response.context) for response in second.responses] == [("b_00", ())]


def test_reading_unpacks_nothing_and_the_same_logs_in_a_folder_give_the_same(tmp_path: Path) -> None:
    path = write_zip(tmp_path, {NAME: LOG})
    found = read_logs(path)
    assert list(tmp_path.iterdir()) == [path]
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(path).extractall(folder)
    assert read_logs(folder) == read_logs(folder, inside=INSIDE) == found


def test_a_system_is_found_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dbdc3"
    folder.mkdir()
    original, again = log(turn("U", "Hi"), turn("S", "Hello", "X")), NAME.replace("_revised", "")
    development = log(turn("U", "Hi"), turn("S", "Hello", "T"), id="YI1")
    path = write_zip(folder, {NAME: LOG, again: original, "DBDC3/dbdc3_revised/en/dev/YI_100/YI1.log.json": development})
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    assert [len(found.responses) for found in read("yi")] == [2]
    ratings = [response.ratings[QUALITY] for found in read("yi", annotations="original") for response in found.responses]
    assert ratings == [(2.0,)]
    assert read("yi", split="dev", path=path)[0].whole.id == "YI1"
    assert refusal(read, "cic") == (
        f"{path}: has no .log.json whose name begins with 'DBDC3/dbdc3_revised/en/eval/CIC_'. Is this another corpus' file?"
    )
    assert refusal(read_logs, path) == (
        f"{path}!{NAME}: the dialogue-id 'YIT0001' is also that of {path}!{again}. Name one set of annotations with `inside`."
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"dialogue-id": "a",\n "turns": [', ":2: not valid JSON (Expecting value). Was the file cut off?"),
        ("[]", ": expected an object, got []."),
        ({"turns": []}, f": has no 'dialogue-id', only 'turns'. {ELSE}"),
        (log(turn("X", "Hi")), f": turns[0]: speaker: expected 'U' or 'S', got 'X'. {ELSE}"),
        (log(turn("U", "Hi", "O")), ": turns[0]: a user's turn has 1 annotations. Only system turns are annotated."),
        (log(turn("S", "Hi", "OB")), ": turns[0]: annotations[1]: breakdown: expected one of O, T, X, got 'B'."),
        (log(turn("S", 3)), ": turns[0]: utterance: expected a string, got 3 (int). Pass text."),  # type: ignore[arg-type]
        (log(turn("S", "Hi", annotations={})), f": turns[0]: annotations: expected a list of objects, got {{}}. {ELSE}"),
        (b"\xff{}", ": byte 0 is not UTF-8. Copy the zip again."),
    ],
)
def test_a_malformed_log_is_named(tmp_path: Path, value: Any, text: str) -> None:
    path = write_zip(tmp_path, {NAME: value, f"{INSIDE}YIT0000.log.json": log(id="0")})
    assert refusal(read_logs, path) == f"{path}!{NAME}{text}"


def test_what_is_no_zip_or_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "DBDC3.zip"
    assert refusal(read_logs, path) == f"{path}: there is no such file or folder."
    path.write_bytes(b"PK\x03\x04 cut off")
    assert refusal(read_logs, path) == f"{path}: is not a complete zip (File is not a zip file). Copy it again."
    assert refusal(read, "siri") == f"dbdc3: there is no system 'siri'. Did you mean 'iris'? Known are: {', '.join(SYSTEMS)}."
    assert refusal(read, "yi", split="test") == "dbdc3: there is no split 'test'. Known are: dev, eval."


@pytest.mark.real_data
def test_the_published_zip(data_dir: Path) -> None:
    path = data_dir / dbdc.CORPUS.name / dbdc.FILE
    expected = {"cic": (50, 500), "iris": (50, 500), "tktk": (50, 500), "yi": (50, 500)}
    blank = Counter[str]()
    for system in SYSTEMS:
        dialogues = read(system, path=path)
        responses = [response for found in dialogues for response in found.responses]
        assert (len(dialogues), len(responses)) == expected[system]
        assert {sum(counts(response)) for response in responses} == {30}
        assert {len(found.whole.turns) for found in dialogues} <= {20, 21}
        blank[system] = sum(response.response.text == "" for response in responses)
        greets = system in {"cic", "yi"}
        assert any(found.whole.turns[0].speaker == "System" for found in dialogues) == greets
        assert all(response.context for response in responses)
    assert blank == {"yi": 2, "cic": 0, "iris": 0, "tktk": 0}
    same = [read(system, path=path) == read(system, annotations="original", path=path) for system in SYSTEMS]
    assert dict(zip(SYSTEMS, same, strict=True)) == {"cic": False, "iris": True, "tktk": True, "yi": False}
    assert len(read_logs(path, inside="DBDC3/dbdc3/ja/eval/DCM/")) == 50


def patched(path: Path, *changes: tuple[bytes, int, bytes]) -> Path:
    """Overwrite bytes of a zip, given by the mark that a header begins with and the place after it."""
    raw = bytearray(path.read_bytes())
    for mark, offset, new in changes:
        at = raw.rindex(mark) + offset
        raw[at : at + len(new)] = new
    path.write_bytes(bytes(raw))
    return path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ([(b"PK\x03\x04", 6, b"\x01"), (b"PK\x01\x02", 8, b"\x01")], "is encrypted"),
        ([(b"PK\x03\x04", 8, b"\x63"), (b"PK\x01\x02", 10, b"\x63")], "is packed by the method 99"),
        ([(b"PK\x03\x04", 8, b"\x0e"), (b"PK\x01\x02", 10, b"\x0e")], "is packed by the method 14"),
    ],
    ids=["encrypted", "method 99", "lzma"],
)
def test_d23_a_log_that_is_packed_otherwise_is_named(
    changes: list[tuple[bytes, int, bytes]], problem: str, tmp_path: Path
) -> None:
    path = patched(write_zip(tmp_path, {NAME: LOG}), *changes)
    assert refusal(read_logs, path) == f"{path}!{NAME}: {problem}. Pack it anew, as an ordinary zip."


def test_d23_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path, {NAME: LOG}, zipfile.ZIP_DEFLATED)
    name = NAME.encode()
    place = path.read_bytes().index(name)
    damaged = patched(path, (path.read_bytes()[place : place + len(name) + 1], len(name), b"\xff" * 20))
    assert refusal(read_logs, damaged) == (
        f"{path}: is not a complete zip (Error -3 while decompressing data: invalid block type). Copy it again."
    )


def test_d23_logs_beyond_the_limit_are_refused_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_zip(tmp_path, {f"{number}{NAME}": bytes(1_000_000) for number in range(4)}, zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(dbdc, "MAX_FILE_BYTES", 3_000_000)
    assert refusal(read_logs, path) == f"{path}: its logs are more than 3 MB, the limit of a file. Split it."
