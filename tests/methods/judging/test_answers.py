"""A language model that is asked each request once, and the file of its answers.

FAULTS R56, R60 (one key a request), R61 (foreign rows), R62 (two processes), R63 (kill -9), R64 (disk), R69 (failures).
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import multiprocessing
import os
import pwd
import sqlite3
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pooch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.llm import answers
from dialeval_plugin.llm.answers import (
    AnswerCache,
    CachedLanguageModel,
    DryRunLanguageModel,
    Usage,
    default_path,
    open_default,
    request_key,
)
from dialeval_plugin.llm.language_model import NOT_ASKED, CutAnswer, Request, Text
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from tests.refusals import refusal
from tests.requests_for import requests_for, samples_for

Caplog: TypeAlias = pytest.LogCaptureFixture

PARAMETERS: dict[str, Any] = {"max_tokens": 5, "stop": ["\n"], "temperature": 1.0, "sample": 0}
REQUEST: dict[str, Any] = {"identity": "hf:m@1", "kind": "sample", "prompt": "Rate this.", **PARAMETERS}


def unusable(path: Path, problem: str) -> str:
    """Return the refusal of a file that cannot be used."""
    ending = "What is in it stays; mend this and repeat the command, or name another file."
    return f"{path}: cannot be used for answers ({problem}). {ending}"


def write(cache: AnswerCache, answers: dict[str, Text | float]) -> None:
    with cache.session() as session:
        for key, answer in answers.items():
            session.write(key, answer)


def read(cache: AnswerCache, *keys: str) -> dict[str, Text | float]:
    with cache.session() as session:
        return session.read(keys)


def warnings(caplog: Caplog) -> list[str]:
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
    assert request_key(**REQUEST) == "36245df00ea0cceafc468fae1a349718bfbe40d916e5c361035369f992a394d2"


@given(st.text(), st.text(), st.text(), st.text())
def test_text_moved_from_one_part_to_another_is_another_request(one: str, two: str, three: str, four: str) -> None:
    same = (one, two) == (three, four)
    assert (request_key(one, "generate", two) == request_key(three, "generate", four)) == same


# Round trip


ANSWERS = st.one_of(
    st.text(st.characters()),
    st.builds(CutAnswer, st.text()),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just(-math.inf),
)


@given(answers=st.lists(ANSWERS, min_size=1))
def test_answers_come_back_as_they_were(answers: list[Text | float], shared_cache: AnswerCache) -> None:
    expected = {str(uuid.uuid4()): answer for answer in answers}
    write(shared_cache, expected)
    found = read(shared_cache, *expected)
    assert found == expected
    assert [type(found[key]) for key in expected] == list(map(type, answers))


def test_many_keys_are_read_at_once(cache: AnswerCache) -> None:
    kept: dict[str, str | float] = {f"key {index}": f"answer {index}" for index in range(0, 5000, 2)}
    write(cache, kept)
    assert read(cache, *(f"key {index}" for index in range(5000))) == kept


def test_a_later_answer_takes_the_place_of_one_that_could_not_be_read(cache: AnswerCache) -> None:
    write(cache, {"key": "first"})
    write(cache, {"key": "second"})
    assert read(cache, "key") == {"key": "second"}


def test_the_values_are_json_and_nothing_else(cache: AnswerCache) -> None:
    write(cache, {"a": "4 \ud800", "b": -0.5, "c": -math.inf, "d": CutAnswer("4 b")})
    with sqlite3.connect(cache.path) as connection:
        values = dict(connection.execute("SELECT key, value FROM answers").fetchall())
    assert {key: json.loads(value) for key, value in values.items()} == {
        "a": "4 \ud800",
        "b": -0.5,
        "c": None,
        "d": {"text": "4 b"},
    }


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


def test_d27_where_the_users_cache_cannot_be_written_there_is_none_and_one_warning(no_home: Path, caplog: Caplog) -> None:
    assert (open_default(), open_default()) == (None, None)
    assert warnings(caplog) == [
        f"{no_home}: cannot be written ([Errno 20] Not a directory: '{no_home.parent}'). The run goes on and keeps no "
        "answers; name a file with DIALEVAL_ANSWERS to keep them."
    ]


def test_where_there_is_no_home_folder_there_is_none_and_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: Caplog
) -> None:
    """Of a user without HOME and without an entry in passwd: a traceback, or a folder `~` in the working folder."""

    def unknown(_: object) -> object:
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "DIALEVAL_ANSWERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    assert (open_default(), open_default()) == (None, None)
    why = "the user's cache cannot be found, as there is no home folder. Set HOME or XDG_CACHE_HOME."
    assert warnings(caplog) == [f"{why} The run goes on and keeps no answers; name a file with DIALEVAL_ANSWERS to keep them."]
    monkeypatch.setattr(pooch, "os_cache", lambda name: f"~/.cache/{name}")
    assert refusal(default_path, error=MissingPrerequisite) == why
    assert not [*tmp_path.iterdir()]


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


def test_damaged_and_foreign_rows_are_dropped_with_a_count(cache: AnswerCache, caplog: Caplog) -> None:
    write(cache, {"good": "4", "bent": "4", "swapped": "4", "cut": "4"})
    with sqlite3.connect(cache.path) as connection:
        connection.execute("""UPDATE answers SET value = '"5"' WHERE key = 'bent'""")
        connection.execute("UPDATE answers SET checksum = 'x' WHERE key = 'swapped'")
        connection.execute("UPDATE answers SET value = CAST(x'ff22' AS TEXT) WHERE key = 'cut'")
        connection.execute("INSERT INTO answers VALUES ('foreign', 'no JSON', '')")

    assert read(cache, "good", "bent", "swapped", "foreign", "absent") == {"good": "4"}
    assert warnings(caplog) == [f"{cache.path}: 3 damaged answers were deleted and will be requested again"]
    write(cache, {"bent": "3"})
    assert read(cache, "bent", "swapped", "foreign") == {"bent": "3"}


@pytest.mark.parametrize("version", [answers.SCHEMA_VERSION + 1, 99])
def test_a_file_of_a_later_release_is_left_alone(version: int, cache: AnswerCache) -> None:
    """FAULTS, section 6: the very next schema too."""
    write(cache, {"a": "1"})
    with sqlite3.connect(cache.path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    problem = "was written by a later release. Install it, or name another file for the answers."
    assert refusal(AnswerCache, cache.path) == f"{cache.path}: {problem}"
    assert read(cache, "a") == {"a": "1"}


def test_what_another_program_wrote_is_left_alone(tmp_path: Path) -> None:
    photos, notes = tmp_path / "photos.sqlite", tmp_path / "notes.txt"
    with sqlite3.connect(photos) as connection:
        connection.execute("CREATE TABLE answers (photo)")
    notes.write_text("Milk, bread.\n" * 100)
    before = [path.read_bytes() for path in (photos, notes)]
    assert refusal(AnswerCache, photos) == f"{photos}: is the database of another program. Name another file for the answers."
    assert refusal(AnswerCache, notes) == unusable(notes, "file is not a database")
    assert [path.read_bytes() for path in (photos, notes)] == before


def test_a_place_where_no_file_can_be_is_named(tmp_path: Path) -> None:
    inside = tmp_path / "file" / "answers.sqlite"
    inside.parent.touch()
    assert refusal(AnswerCache, tmp_path) == unusable(tmp_path, "unable to open database file")
    assert refusal(AnswerCache, inside) == unusable(inside, f"[Errno 17] File exists: '{inside.parent}'")


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


def test_a_file_is_opened_while_another_process_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite does not wait until it can change how a file's journal is kept."""
    path, connect = tmp_path / "answers.sqlite", AnswerCache.connect
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:

        def connect_traced(cache: AnswerCache) -> sqlite3.Connection:
            connection = connect(cache)
            connection.set_trace_callback(lambda sql: other.execute("BEGIN IMMEDIATE") if "journal_mode" in sql else None)
            return connection

        monkeypatch.setattr(AnswerCache, "connect", connect_traced)
        cache = AnswerCache(path)
        assert other.in_transaction
    with cache.session() as answers:
        answers.write("key", "an answer")
    assert read(cache, "key") == {"key": "an answer"}


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


# The model that is asked


DOWN = Unscored(Reason.API_ERROR, "HTTP 503")
shout = str.upper


@pytest.fixture
def scripted() -> ScriptedLanguageModel:
    return ScriptedLanguageModel(shout)


@pytest.fixture
def model(scripted: ScriptedLanguageModel, cache: AnswerCache) -> CachedLanguageModel:
    return CachedLanguageModel(scripted, cache)


def generate(model: CachedLanguageModel, *prompts: str, max_tokens: int = 5, stop: Sequence[str] = ("\n",)) -> list[Any]:
    return model.generate(requests_for(prompts, max_tokens=max_tokens, stop=stop))


def sample(model: CachedLanguageModel, *prompts: str, n: int, temperature: float = 1.0, first: int = 0) -> list[Any]:
    return model.generate(samples_for(prompts, n_samples=n, temperature=temperature, first_sample=first))


def test_a_request_is_asked_once(model: CachedLanguageModel, scripted: ScriptedLanguageModel, cache: AnswerCache) -> None:
    assert generate(model, "a", "b", "a") == ["A", "B", "A"]
    assert generate(model, "b", "c") == ["B", "C"]
    assert generate(CachedLanguageModel(scripted, AnswerCache(cache.path)), "c", "a") == ["C", "A"]
    assert (scripted.asked, scripted.batches) == (["a", "b", "c"], [2, 1])


def test_without_a_file_equal_requests_of_a_call_are_asked_once_and_nothing_is_kept(scripted: ScriptedLanguageModel) -> None:
    model = CachedLanguageModel(scripted, None)
    assert (generate(model, "a", "a"), generate(model, "a")) == (["A", "A"], ["A"])
    assert scripted.asked == ["a", "a"]
    assert model.usage == Usage(n_asked=2, prompt_tokens=2, is_estimate=True)


def test_no_requests_ask_nothing(model: CachedLanguageModel, scripted: ScriptedLanguageModel) -> None:
    assert (generate(model), sample(model, n=3), model.loglikelihood([])) == ([], [], [])
    assert (scripted.batches, model.usage) == ([], Usage())


@pytest.mark.parametrize(
    "other",
    [
        lambda model: generate(model, "a", max_tokens=6),
        lambda model: generate(model, "a", stop=("\n\n",)),
        lambda model: generate(model, "a "),
        lambda model: sample(model, "a", n=1),
        lambda model: model.loglikelihood([("a", "")]),
        lambda model: generate(CachedLanguageModel(ScriptedLanguageModel(shout, identity="scripted@2"), model.cache), "a"),
    ],
    ids=["max_tokens", "stop", "prompt", "sample", "loglikelihood", "model"],
)
def test_another_request_is_not_answered_from_the_file(other: Callable[[CachedLanguageModel], Any], cache: AnswerCache) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel(shout, lambda *_: -1.0), cache)
    generate(model, "a")
    other(model)
    with contextlib.closing(cache.connect()) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (2,)


def test_a_failure_is_no_answer(cache: AnswerCache) -> None:
    failures = {"b": iter([DOWN, DOWN])}
    scripted = ScriptedLanguageModel(lambda prompt: next(failures.get(prompt, iter(())), shout(prompt)))
    model = CachedLanguageModel(scripted, cache)
    for second in (DOWN, DOWN, "B", "B"):
        assert generate(model, "a", "b", "c") == ["A", second, "C"]
    assert scripted.asked == ["a", "b", "c", "b", "b"]
    assert (model.usage.n_asked, model.usage.n_cached, model.usage.n_failed) == (5, 7, 2)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_text_is_handed_on_and_asked_for_again(blank: str, cache: AnswerCache) -> None:
    answers = iter([blank, "4"])
    model = CachedLanguageModel(ScriptedLanguageModel(lambda prompt: next(answers)), cache)
    assert [model.generate(requests_for(["a"])) for _ in range(3)] == [[blank], ["4"], ["4"]]


def test_an_answer_is_read_once(cache: AnswerCache, caplog: Caplog) -> None:
    """`--show-unparsed` prints what is logged where an answer is read; a file of answers, and whoever asks, read it as well."""
    caplog.set_level(logging.DEBUG, "dialeval_plugin.llm.parsing")
    model = CachedLanguageModel(ScriptedLanguageModel(lambda prompt: "no number"), cache)
    PromptedJudge(model, prompt="dre").score(mini.read_examples("test")[:1])
    assert [text for text in caplog.messages if "no number" in text] == ["unread answer (parse_failure): 'no number'"]


def test_an_answer_without_a_verdict_is_asked_for_again_by_the_next_run(cache: AnswerCache) -> None:
    """FAULTS a214: a server that was mended, and the same command."""
    examples = mini.read_examples("test")[:2]
    answers = iter(["no number", "4.0", "3.0"])
    scripted = ScriptedLanguageModel(lambda prompt: next(answers))
    runs = [PromptedJudge(CachedLanguageModel(scripted, cache), prompt="dre").score(examples).values for _ in range(3)]
    assert runs == [(None, 0.8), (0.6, 0.8), (0.6, 0.8)]
    # One that was kept, and that this release cannot read, is asked for as well.
    with contextlib.closing(cache.connect()) as connection:
        (key,) = connection.execute("SELECT key FROM answers WHERE value = '\"3.0\"'").fetchone()
    write(cache, {key: "no number"})
    answers = iter(["5.0"])
    assert PromptedJudge(CachedLanguageModel(scripted, cache), prompt="dre").score(examples).values == (1.0, 0.8)
    assert read(cache, key) == {key: "5.0"}


def test_log_probabilities_are_kept_minus_infinity_too_and_nan_is_not(cache: AnswerCache) -> None:
    values = {" Yes": -0.1, " No": -math.inf, " ?": math.nan}
    scripted = ScriptedLanguageModel(shout, lambda context, continuation: values[continuation])
    model = CachedLanguageModel(scripted, cache)
    pairs = [("a", " Yes"), ("a", " No"), ("a", " ?"), ("a", " Yes")]
    for _ in range(2):
        assert model.loglikelihood(pairs) == pytest.approx([-0.1, -math.inf, math.nan, -0.1], nan_ok=True)
    assert scripted.asked == ["a Yes", "a No", "a ?", "a ?"]


# Samples


class Numbered(ScriptedLanguageModel):
    """Is asked for a sample by prompt and number."""

    def generate(self, requests: Sequence[Request], *, on_answer: Any = None) -> Any:
        named = [replace(request, prompt=f"{request.prompt}{request.sample}") for request in requests]
        return super().generate(named, on_answer=on_answer)


def test_samples_are_kept_by_number(cache: AnswerCache) -> None:
    numbered = Numbered(str)
    model = CachedLanguageModel(numbered, cache)
    assert sample(model, "a", n=2) == ["a0", "a1"]
    assert sample(model, "a", "b", n=4) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]
    assert sample(model, "b", n=2, first=3) == ["b3", "b4"]
    assert numbered.asked == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "b4"]
    assert numbered.batches == [2, 6, 1]


def test_failed_samples_alone_are_drawn_again(cache: AnswerCache) -> None:
    down = {"a1", "b0", "b2"}
    numbered = Numbered(lambda name: DOWN if name in down else name)
    model = CachedLanguageModel(numbered, cache)
    assert sample(model, "a", "b", n=3) == ["a0", DOWN, "a2", DOWN, "b1", DOWN]
    down.clear()
    assert sample(model, "a", "b", n=3) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert numbered.asked[6:] == ["a1", "b0", "b2"]
    assert (model.usage.n_asked, model.usage.n_failed, model.usage.n_cached) == (9, 3, 3)


def test_equal_prompts_have_equal_samples_and_another_temperature_has_others(cache: AnswerCache) -> None:
    numbered = Numbered(str)
    model = CachedLanguageModel(numbered, cache)
    assert sample(model, "a", "a", n=2) == ["a0", "a1", "a0", "a1"]
    sample(model, "a", n=2, temperature=0.5)
    assert numbered.asked == ["a0", "a1", "a0", "a1"]
    assert numbered.batches == [2, 2]


# What reaches whoever listens


def test_answers_from_the_file_are_handed_over_too(cache: AnswerCache) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel(lambda prompt: DOWN if prompt == "b" else shout(prompt)), cache)
    generate(model, "a")
    handed: list[tuple[int, str]] = []
    model.generate(requests_for(["a", "b", "c", "a"], stop=("\n",)), on_answer=lambda *answer: handed.append(answer))
    assert handed == [(0, "A"), (2, "C"), (3, "A")]


# Usage


class Counting(ScriptedLanguageModel):
    """Knows its tokens: one a word."""

    def count_tokens(self, prompts: Sequence[str]) -> int:
        return sum(len(prompt.split()) for prompt in prompts)


def test_usage_counts_distinct_requests_and_the_tokens_of_those_that_reach_the_model(cache: AnswerCache) -> None:
    model = CachedLanguageModel(Counting(lambda prompt: DOWN if "x" in prompt else "4"), cache)
    generate(model, "one two", "one two three", "one two", "x")
    assert model.usage == Usage(n_asked=3, n_cached=0, n_failed=1, prompt_tokens=6)
    generate(model, "one two", "four")
    assert model.usage == Usage(n_asked=4, n_cached=1, n_failed=1, prompt_tokens=7)
    assert str(model.usage) == "4 calls, 7 prompt tokens, 1 of 5 requests from the cache (20 %), 1 failed"


def test_requests_that_were_not_sent_are_no_calls(cache: AnswerCache) -> None:
    answers = {"one two": "4", "x": DOWN, "y y y": NOT_ASKED}
    model = CachedLanguageModel(Counting(lambda prompt: answers[prompt]), cache)
    generate(model, *answers)
    assert model.usage == Usage(n_asked=2, n_failed=1, n_not_sent=1, prompt_tokens=3)
    assert str(model.usage) == "2 calls, 3 prompt tokens, 0 of 3 requests from the cache (0 %), 1 failed, 1 not sent"


def test_tokens_are_estimated_where_the_model_does_not_count_and_it_is_said(model: CachedLanguageModel) -> None:
    generate(model, "123456789")
    assert model.usage == Usage(n_asked=1, prompt_tokens=3, is_estimate=True)
    assert str(model.usage) == (
        "1 calls, about 3 prompt tokens (at 4 characters a token), 0 of 1 requests from the cache (0 %), 0 failed"
    )
    assert str(Usage()) == "0 calls, 0 prompt tokens, 0 of 0 requests from the cache, 0 failed"


EXAMPLES = [Example.from_texts(["Do you like tea?"], response) for response in ("I do.", "No.", "I do.", "My shoe.")]


def test_a_rehearsal_asks_nothing_keeps_nothing_and_counts_what_a_run_asks(cache: AnswerCache) -> None:
    scripted = Counting(lambda prompt: "Score: 4")
    PromptedJudge(CachedLanguageModel(scripted, cache), prompt="dre").score(EXAMPLES[:1])
    scripted.asked.clear()

    unasked = CachedLanguageModel(DryRunLanguageModel(scripted), cache)
    rehearsed = PromptedJudge(unasked, prompt="dre").score(EXAMPLES)
    assert scripted.asked == []
    assert rehearsed.n_unscored == 2

    asked = CachedLanguageModel(scripted, cache)
    PromptedJudge(asked, prompt="dre").score(EXAMPLES)
    tokens = asked.usage.prompt_tokens
    assert len(scripted.asked) == 2
    assert asked.usage == Usage(n_asked=2, n_cached=1, prompt_tokens=tokens)
    assert unasked.usage == replace(asked.usage, n_failed=2)
    assert unasked.usage.estimate() == f"2 calls, {tokens} prompt tokens, 1 of 3 requests from the cache (33 %)"


def test_an_unasked_model_answers_nothing_of_any_kind(scripted: ScriptedLanguageModel) -> None:
    unasked = DryRunLanguageModel(scripted)
    nothing = Unscored(Reason.API_ERROR, "not asked")
    assert unasked.generate(requests_for(["a", "b"])) == [nothing] * 2
    assert unasked.loglikelihood([("a", "b")]) == [nothing]
    assert unasked.identity == "scripted@1"


# A run that ends in the middle


def test_a_full_disk_ends_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    class Full(AnswerCache):
        def connect(self) -> Any:
            connection = super().connect()
            connection.execute("PRAGMA max_page_count = 4")
            return connection

    cache = Full(tmp_path / "answers.sqlite")
    scripted = ScriptedLanguageModel(lambda prompt: "long answer " * 50)
    prompts = [f"p{index}" for index in range(100)]
    message = refusal(generate, CachedLanguageModel(scripted, cache), *prompts)
    assert message == unusable(cache.path, "database or disk is full")
    n_kept = len(scripted.asked) - 1
    assert 0 < n_kept < 99
    scripted.asked.clear()
    generate(CachedLanguageModel(scripted, AnswerCache(cache.path)), *prompts)
    assert scripted.asked == prompts[n_kept:]


SLOW = """
import sys, time
from pathlib import Path
from dialeval_plugin.llm.answers import AnswerCache
from dialeval_plugin.llm.answers import CachedLanguageModel
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel

def slow(prompt):
    print(prompt, flush=True)
    time.sleep(0.01)
    return prompt.upper()

model = CachedLanguageModel(ScriptedLanguageModel(slow), AnswerCache(Path(sys.argv[1])))
model.generate([Request(f"p{index}", 5) for index in range(1000)])
"""


@pytest.mark.parametrize("n_answers", [1, 7, 60])
def test_kill_9_loses_at_most_the_request_in_flight(n_answers: int, scripted: ScriptedLanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    deadline = time.monotonic() + 120
    asked: list[str] = []
    while len(asked) <= n_answers:
        assert time.monotonic() < deadline
        asked.append(process.stdout.readline().strip())
    process.kill()
    asked += process.stdout.read().split()
    process.wait()

    again = generate(CachedLanguageModel(scripted, AnswerCache(path)), *asked, stop=())
    assert again == [prompt.upper() for prompt in asked]
    assert scripted.asked in ([], asked[-1:])
