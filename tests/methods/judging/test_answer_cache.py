"""The file of answers. FAULTS R60 (one key a request), R61 (foreign rows), R62 (two processes)."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import sqlite3
import stat
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval_plugin.llm import answers
from dialeval_plugin.llm.answers import AnswerCache, default_path, open_default, request_key
from tests.refusals import refusal

PARAMETERS: dict[str, Any] = {"max_tokens": 5, "stop": ["\n"], "temperature": 1.0, "sample": 0}
REQUEST: dict[str, Any] = {"identity": "hf:m@1", "kind": "sample", "prompt": "Rate this.", **PARAMETERS}


def unusable(path: Path, problem: str) -> str:
    """What is said of a file that cannot be used."""
    ending = "What is in it stays; mend this and repeat the command, or name another file."
    return f"{path}: cannot be used for answers ({problem}). {ending}"


def write(cache: AnswerCache, answers: dict[str, str | float]) -> None:
    with cache.session() as session:
        for key, answer in answers.items():
            session.write(key, answer)


def read(cache: AnswerCache, *keys: str) -> dict[str, str | float]:
    with cache.session() as session:
        return session.read(keys)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    return caplog.messages


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(tmp_path / "folder" / "answers.sqlite")


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> AnswerCache:
    return AnswerCache(tmp_path_factory.mktemp("shared") / "answers.sqlite")


# Keys


def test_every_part_of_a_request_is_part_of_its_key() -> None:
    changes: list[tuple[str, Any]] = [
        ("identity", "hf:m@2"), ("identity", "hf:m@1+chat"), ("kind", "generate"), ("prompt", "Rate this. "), ("max_tokens", 6),
        ("stop", []), ("stop", ["\n", "\n"]), ("temperature", 0.9), ("sample", 1), ("continuation", " Yes"),
    ]  # fmt: skip
    keys = {request_key(**{**REQUEST, name: value}) for name, value in changes}
    assert len({request_key(**REQUEST), *keys}) == 1 + len(changes)


def test_a_new_version_of_the_code_that_asks_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = request_key(**REQUEST)
    monkeypatch.setattr(answers, "REQUEST_VERSION", answers.REQUEST_VERSION + 1)
    assert request_key(**REQUEST) != before


def test_a_key_depends_on_nothing_else() -> None:
    """Not on the order of the parameters, the process, or Python's hash seed: it is the same in every release."""
    assert request_key(**dict(reversed(REQUEST.items()))) == request_key(**REQUEST)
    assert request_key(**REQUEST) == "606358af9beb613f8a526264999cd98c4a935cab7ce32effbcf0c0dfbfb837ce"


@given(st.text(), st.text(), st.text(), st.text())
def test_text_moved_from_one_part_to_another_is_another_request(one: str, two: str, three: str, four: str) -> None:
    same = (one, two) == (three, four)
    assert (request_key(one, "generate", two) == request_key(three, "generate", four)) == same


# Round trip


ANSWERS = st.one_of(st.text(st.characters()), st.floats(allow_nan=False, allow_infinity=False), st.just(-math.inf))


@settings(deadline=None)  # a file is opened, which takes as long as the disk makes it
@given(answers=st.lists(ANSWERS, min_size=1))
def test_answers_come_back_as_they_were(answers: list[str | float], shared_cache: AnswerCache) -> None:
    expected = {str(uuid.uuid4()): answer for answer in answers}
    write(shared_cache, expected)
    found = read(shared_cache, *expected)
    assert found == expected
    assert [type(found[key]) for key in expected] == list(map(type, answers))


def test_many_keys_are_read_at_once(cache: AnswerCache) -> None:
    kept: dict[str, str | float] = {f"key {index}": f"answer {index}" for index in range(0, 5000, 2)}
    write(cache, kept)
    assert read(cache, *(f"key {index}" for index in range(5000))) == kept


def test_the_first_answer_stays(cache: AnswerCache) -> None:
    write(cache, {"key": "first"})
    write(cache, {"key": "second"})
    assert read(cache, "key") == {"key": "first"}


def test_the_values_are_json_and_nothing_else(cache: AnswerCache) -> None:
    write(cache, {"a": "4 \ud800", "b": -0.5, "c": -math.inf})
    with sqlite3.connect(cache.path) as connection:
        values = dict(connection.execute("SELECT key, value FROM answers").fetchall())
    assert {key: json.loads(value) for key, value in values.items()} == {"a": "4 \ud800", "b": -0.5, "c": None}


# Where it lies


def test_the_default_file_lies_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIALEVAL_ANSWERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "dialeval" / "answers.sqlite"
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The path of the user's file of answers, where none can be made; as root too, who may write into any folder."""
    (tmp_path / "home").touch()
    monkeypatch.delenv("DIALEVAL_ANSWERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "dialeval" / "answers.sqlite"


def test_d27_where_the_users_cache_cannot_be_written_there_is_none_and_one_warning(
    no_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (open_default(), open_default()) == (None, None)
    assert warnings(caplog) == [
        f"{no_home}: cannot be written ([Errno 20] Not a directory: '{no_home.parent}'). The run goes on and keeps no "
        "answers; name a file with DIALEVAL_ANSWERS to keep them."
    ]


def test_d27_a_file_that_was_named_must_be_writable(no_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(no_home))
    expected = unusable(no_home, f"[Errno 20] Not a directory: '{no_home.parent}'")
    assert refusal(open_default) == refusal(AnswerCache, no_home) == expected


def test_d27_a_users_file_that_can_only_be_read_is_done_without(no_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_home.parent.parent.unlink()
    write(AnswerCache(no_home), {"a": "1"})
    monkeypatch.setattr(AnswerCache, "connect", ReadOnly.connect)
    assert open_default() is None


def test_d27_a_users_file_that_is_damaged_is_still_an_error(no_home: Path) -> None:
    no_home.parent.parent.unlink()
    no_home.parent.mkdir(parents=True)
    no_home.write_text("Milk, bread.\n" * 100)
    assert refusal(open_default) == unusable(no_home, "file is not a database")


# Damage


def test_damaged_and_foreign_rows_are_dropped_with_a_count(cache: AnswerCache, caplog: pytest.LogCaptureFixture) -> None:
    write(cache, {"good": "4", "bent": "4", "swapped": "4", "cut": "4"})
    with sqlite3.connect(cache.path) as connection:
        connection.execute("""UPDATE answers SET value = '"5"' WHERE key = 'bent'""")
        connection.execute("UPDATE answers SET checksum = 'x' WHERE key = 'swapped'")
        connection.execute("UPDATE answers SET value = CAST(x'ff22' AS TEXT) WHERE key = 'cut'")
        connection.execute("INSERT INTO answers VALUES ('foreign', 'no JSON', '')")

    assert read(cache, "good", "bent", "swapped", "foreign", "absent") == {"good": "4"}
    assert warnings(caplog) == [f"{cache.path}: 3 damaged answers were dropped and are asked for again"]
    write(cache, {"bent": "3"})
    assert read(cache, "bent", "swapped", "foreign") == {"bent": "3"}


def test_answers_of_an_earlier_schema_are_dropped_with_a_count(
    cache: AnswerCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cache, {"a": "1", "b": "2"})
    monkeypatch.setattr(answers, "SCHEMA_VERSION", answers.SCHEMA_VERSION + 1)
    again = AnswerCache(cache.path)

    assert read(again, "a", "b") == {}
    assert warnings(caplog) == [f"{cache.path}: 2 answers of an earlier release were dropped"]
    write(again, {"a": "3"})
    assert read(AnswerCache(cache.path), "a") == {"a": "3"}


@pytest.mark.parametrize("version", [answers.SCHEMA_VERSION + 1, 99])
def test_a_file_of_a_later_release_is_left_alone(version: int, cache: AnswerCache) -> None:
    """FAULTS, section 6: the very next schema too."""
    write(cache, {"a": "1"})
    with sqlite3.connect(cache.path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    assert refusal(AnswerCache, cache.path) == (
        f"{cache.path}: was written by a later release. Install it, or name another file for the answers."
    )
    assert read(cache, "a") == {"a": "1"}


def test_what_another_program_wrote_is_left_alone(tmp_path: Path) -> None:
    photos, notes = tmp_path / "photos.sqlite", tmp_path / "notes.txt"
    with sqlite3.connect(photos) as connection:
        connection.execute("CREATE TABLE answers (photo)")
        connection.execute("INSERT INTO answers VALUES ('cat')")
    notes.write_text("Milk, bread.\n" * 100)
    before = [path.read_bytes() for path in (photos, notes)]
    assert refusal(AnswerCache, photos) == f"{photos}: is the database of another program. Name another file for the answers."
    assert refusal(AnswerCache, notes) == unusable(notes, "file is not a database")
    assert [path.read_bytes() for path in (photos, notes)] == before


@pytest.mark.parametrize(
    ("name", "problem"),
    [(".", "unable to open database file"), ("file/answers.sqlite", "[Errno 17] File exists: '{folder}/file'")],
)
def test_a_place_where_no_file_can_be_is_named(name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    assert refusal(AnswerCache, path) == unusable(path, problem.format(folder=tmp_path))


class ReadOnly(AnswerCache):
    """The file as a user finds it who may not write it; the tests may run as root, who may."""

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)


def test_a_file_that_can_only_be_read_is_refused_before_anything_is_asked(cache: AnswerCache) -> None:
    write(cache, {"a": "1"})
    assert refusal(ReadOnly, cache.path) == unusable(cache.path, "attempt to write a readonly database")
    assert read(cache, "a") == {"a": "1"}


def test_an_error_of_the_model_is_not_taken_for_one_of_the_file(cache: AnswerCache) -> None:
    with pytest.raises(ConnectionError, match=r"^model$"), cache.session():
        raise ConnectionError("model")


# Processes


def _write_many(path: Path, name: str, n: int, start: Any) -> None:
    start.wait()
    cache = AnswerCache(path)
    for index in range(n):
        with cache.session() as session:
            session.write(f"{name} {index}", f"{name} {index}")
            session.write(f"common {index}", name)


def test_processes_that_share_a_file_lose_nothing(tmp_path: Path) -> None:
    names, n_answers = ("p0", "p1", "p2", "p3"), 40
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(names))
    path = tmp_path / "answers.sqlite"
    processes = [context.Process(target=_write_many, args=(path, name, n_answers, start)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(names)
    own = [f"{name} {index}" for name in names for index in range(n_answers)]
    assert read(AnswerCache(path), *own) == {key: key for key in own}
    common = read(AnswerCache(path), *(f"common {index}" for index in range(n_answers)))
    assert len(common) == n_answers
    assert set(common.values()) <= set(names)


def test_d31_peoples_dialogues_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with AnswerCache(tmp_path / "answers.sqlite").session() as answers:
            answers.write("key", "an answer")
            files = {path.name: stat.filemode(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(files.values()) == {"-rw-------"}
    assert "answers.sqlite-wal" in files
