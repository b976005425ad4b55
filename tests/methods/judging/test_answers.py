"""A language model that is asked each request once. FAULTS R56, R60, R63 (kill -9), R64 (disk), R69 (failures)."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel, UnaskedLanguageModel, Usage
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from tests.refusals import refusal
from tests.requests_for import requests_for, samples_for

DOWN = Unscored(Reason.API_ERROR, "HTTP 503")
shout = str.upper


@pytest.fixture
def cache(tmp_path: Path) -> AnswerCache:
    return AnswerCache(tmp_path / "answers.sqlite")


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

    unasked = CachedLanguageModel(UnaskedLanguageModel(scripted), cache)
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
    unasked = UnaskedLanguageModel(scripted)
    nothing = Unscored(Reason.API_ERROR, "not asked")
    assert unasked.generate(requests_for(["a", "b"])) == [nothing] * 2
    assert unasked.loglikelihood([("a", "b")]) == [nothing]
    assert unasked.identity == "scripted@1"


# A run that ends in the middle


def test_the_answers_before_an_interruption_are_kept(model: CachedLanguageModel, scripted: ScriptedLanguageModel) -> None:
    def interrupted(prompt: str) -> str:
        if prompt == "c":
            raise KeyboardInterrupt
        return shout(prompt)

    scripted.answer = interrupted
    with pytest.raises(KeyboardInterrupt):
        generate(model, "a", "b", "c", "d")
    scripted.answer = shout
    assert generate(model, "a", "b", "c", "d") == ["A", "B", "C", "D"]
    assert scripted.asked == ["a", "b", "c", "c", "d"]


def test_a_full_disk_ends_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    class Full(AnswerCache):
        def connect(self) -> Any:
            connection = super().connect()
            connection.execute("PRAGMA max_page_count = 4")
            return connection

    cache = Full(tmp_path / "answers.sqlite")
    scripted = ScriptedLanguageModel(lambda prompt: "long answer " * 50)
    prompts = [f"p{index}" for index in range(100)]
    assert refusal(generate, CachedLanguageModel(scripted, cache), *prompts) == (
        f"{cache.path}: cannot be used for answers (database or disk is full). What is in it stays; "
        "mend this and repeat the command, or name another file."
    )
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
