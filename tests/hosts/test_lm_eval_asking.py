"""Judges behind HTTP that fail. FAULTS R55 (rate limit, timeout, 5xx, half-written reply), R77 (what a chat model is sent)."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.score_files import read_meta
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.hosts.judges import load_cached_model
from dialeval_plugin.hosts.lm_eval import asking as lm_eval_asking
from dialeval_plugin.hosts.lm_eval.asking import MAX_FAILURES_IN_A_ROW
from dialeval_plugin.hosts.lm_eval.backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.hosts.lm_eval.served import MAX_REPLY_BYTES, _proxy_of
from dialeval_plugin.hosts.lm_eval.versions import redact_host_logs
from dialeval_plugin.llm.answers import CachedLanguageModel
from dialeval_plugin.llm.language_model import NOT_ASKED
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.reports.printed_scores import RunningSummary
from dialeval_plugin.streams.output import read_rows
from tests.loopback import Loopback, Reply, chat_reply, prompt_of, serve, serving, text_reply
from tests.refusals import refused
from tests.requests_for import requests_for, samples_for
from tests.streams.scored import score_file
from tests.tiny.language_models import write_random_language_model

Run = Callable[..., CompletedProcess[str]]
KINDS = ["local-completions", "local-chat-completions"]
BOTH_KINDS = pytest.mark.parametrize("kind", KINDS)
CONCURRENT = pytest.mark.parametrize("concurrent", [1, 4])
PROMPTS = [f"Rate reply {index}." for index in range(12)]


def echo(body: dict[str, Any]) -> Reply:
    return text_reply(body, f"re: {prompt_of(body)}")


def model(server: Loopback, kind: str = "local-completions", **arguments: object) -> LmEvalLanguageModel:
    url = server.chat if "chat" in kind else server.completions
    given = {"model": "judge", "base_url": url, "tokenizer_backend": "none", "tokenized_requests": False, **arguments}
    return load_language_model(kind, ",".join(f"{name}={value}" for name, value in given.items()))


def ask(server: Loopback, prompts: Sequence[str], kind: str = "local-completions", **arguments: object) -> list[str | Unscored]:
    return model(server, kind, **arguments).generate(requests_for(prompts, stop=["\n"]))


@contextlib.contextmanager
def lasting(shortest: float, longest: float) -> Iterator[None]:
    """The block takes so many seconds."""
    start = time.monotonic()
    yield
    assert shortest <= time.monotonic() - start < longest


def failed(detail: str) -> Unscored:
    return Unscored(Reason.API_ERROR, detail)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that would have been made, in seconds; none is."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(lm_eval_asking.time, "sleep", made.append)
    monkeypatch.setattr(lm_eval_asking.asyncio, "sleep", sleep)
    return made


@CONCURRENT
@BOTH_KINDS
def test_answers_come_in_the_order_of_the_prompts(kind: str, concurrent: int) -> None:
    with serve(echo) as server:
        assert ask(server, PROMPTS, kind, num_concurrent=concurrent) == [f"re: {prompt}" for prompt in PROMPTS]
    assert sorted(server.prompts()) == sorted(PROMPTS)


@CONCURRENT
def test_a_notebook_whose_event_loop_runs_is_answered(concurrent: int) -> None:
    async def cell(server: Loopback) -> list[str | Unscored]:
        return ask(server, PROMPTS[:2], num_concurrent=concurrent)

    with serve(echo) as server:
        assert asyncio.run(cell(server)) == [f"re: {prompt}" for prompt in PROMPTS[:2]]


def test_a_reply_without_a_text_is_an_empty_answer() -> None:
    with serve(lambda _: chat_reply(None)) as server:
        assert ask(server, ["a"], "local-chat-completions", num_concurrent=4) == [""]


FAILURES: dict[str, tuple[Reply, str]] = {
    "500": (Reply({"error": "boom"}, 500), "HTTP 500"),
    "429": (Reply({"error": "slow down"}, 429), "HTTP 429"),
    "not JSON": (Reply("<html>"), "the server's reply is no JSON"),
    "a page": (Reply("<html>", headers={"Content-Type": "text/html"}), "the server's reply is no JSON"),
    "nothing": (Reply(None), "ErrorReply: the server's reply has no answer"),
    "a list": (Reply([]), "ErrorReply: the server's reply has no answer"),
    "half a reply": (Reply('{"choices": [', promised=100), "ClientPayloadError"),
    "no choices": (Reply({"choices": None}), "ErrorReply: the server's reply has no answer"),
}


@CONCURRENT
@pytest.mark.parametrize("name", FAILURES)
def test_a_request_that_fails_for_good_costs_no_other_its_answer(name: str, concurrent: int, pauses: list[float]) -> None:
    reply, detail = FAILURES[name]
    with serve(lambda body: reply if prompt_of(body) == PROMPTS[5] else echo(body)) as server:
        answers = ask(server, PROMPTS, num_concurrent=concurrent, max_retries=3)
    # Without addresses, which may hold a key.
    assert answers == [failed(detail) if prompt == PROMPTS[5] else f"re: {prompt}" for prompt in PROMPTS]
    assert Counter(server.prompts()) == {prompt: 3 if prompt == PROMPTS[5] else 1 for prompt in PROMPTS}
    assert len(pauses) == 2


def test_a_request_that_fails_once_is_repeated(pauses: list[float]) -> None:
    seen: set[str] = set()

    def once(body: dict[str, Any]) -> Reply:
        prompt = prompt_of(body)
        is_first = prompt not in seen
        seen.add(prompt)
        return Reply({}, 503) if is_first and prompt in PROMPTS[2:4] else echo(body)

    with serve(once) as server:
        answers = ask(server, PROMPTS, num_concurrent=4)
    assert answers == [f"re: {prompt}" for prompt in PROMPTS]
    assert len(server.asked) == 14


def test_a_reply_that_does_not_come_in_time_is_a_failure() -> None:
    released = threading.Event()

    def slow(body: dict[str, Any]) -> Reply:
        if prompt_of(body) == "slow":
            released.wait(10)
        return echo(body)

    with serve(slow) as server:
        with lasting(1, 8):
            answers = ask(server, ["a", "slow", "b"], timeout=1, max_retries=1)
        released.set()
    assert answers == ["re: a", failed("TimeoutError"), "re: b"]


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_request_that_is_refused_is_not_repeated_and_does_not_count_as_a_server_that_is_down(
    status: int, pauses: list[float]
) -> None:
    prompts = [f"too long {index}" for index in range(MAX_FAILURES_IN_A_ROW + 2)]
    with serve(lambda body: Reply({}, status) if "long" in prompt_of(body) else echo(body)) as server:
        answers = ask(server, [*prompts, "a"], num_concurrent=4)
    assert answers == [*[failed(f"HTTP {status}")] * len(prompts), "re: a"]
    assert len(server.asked) == len(prompts) + 1
    assert pauses == []


@CONCURRENT
@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (401, "the server does not take the API key"),
        (404, "the server does not know the address or the model. Check base_url and model in llm_args"),
        (405, "the server has no chat or completions at this address. Check base_url in llm_args"),
    ],
)
def test_what_every_request_would_be_refused_for_is_asked_a_few_times(
    status: int, meaning: str, concurrent: int, pauses: list[float]
) -> None:
    with serve(lambda _: Reply({}, status)) as server:
        answers = ask(server, [f"p{index}" for index in range(200)], num_concurrent=concurrent)
    assert set(answers) == {failed(f"HTTP {status}: {meaning}"), NOT_ASKED}
    assert len(server.asked) < MAX_FAILURES_IN_A_ROW + concurrent
    assert pauses == []


@pytest.mark.parametrize(("finish", "content"), [("content_filter", ""), ("content_filter", "Score: 4"), ("refusal", "4")])
def test_an_answer_that_a_filter_ended_is_a_refusal(finish: str, content: str) -> None:
    with serve(lambda _: chat_reply(content, finish)) as server:
        (answer,) = ask(server, ["a"], "local-chat-completions")
    assert answer == Unscored(Reason.REFUSAL, f"the server's filter ended the answer ({finish})")


def test_a_refusal_in_the_place_of_a_text_is_the_answer() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I'm sorry, I can't help with that."}
    with serve(lambda _: Reply({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})) as server:
        assert ask(server, ["a"], "local-chat-completions") == ["I'm sorry, I can't help with that."]


@pytest.mark.parametrize(
    ("kind", "address", "path"),
    [
        ("local-chat-completions", "http://127.0.0.1:9/v1", "chat/completions"),
        ("local-chat-completions", "http://127.0.0.1:9/v1/", "chat/completions"),
        ("local-completions", "http://127.0.0.1:9", "completions"),
        ("local-completions", "127.0.0.1:9/v1/completions", "completions"),
    ],
)
def test_an_address_without_its_path_or_scheme_is_refused_before_anything_is_asked(kind: str, address: str, path: str) -> None:
    with refused(f"llm {kind!r}: base_url is {address!r}. Give all of it, as http://HOST/v1/{path}."):
        load_language_model(kind, f"model=m,base_url={address},tokenizer_backend=none")


def test_a_server_on_another_machine_is_asked_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(echo) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        elsewhere = "http://judge.invalid/v1/completions"
        assert ask(proxy, ["a"], base_url=elsewhere) == ["re: a"]  # which no name server knows
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        assert ask(proxy, ["b"]) == ["re: b"]
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "judge.invalid")
        (answer,) = ask(proxy, ["c"], base_url=elsewhere, max_retries=1)
    assert isinstance(answer, Unscored)
    assert proxy.prompts() == ["a", "b"]


@pytest.mark.parametrize(
    ("address", "is_direct"),
    [
        *(("http://[::1]:8000/v1", True), ("http://judge.invalid:8000/v1", True), ("http://me:pw@judge.invalid:8000/v1", True)),
        *(("http://[fd00::1]:8000/v1", True), ("http://judge.invalid:8001/v1", False)),
    ],
)
def test_no_proxy_may_name_a_port_or_an_address_of_ipv6(address: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "judge.invalid:8000,fd00::1")
    assert _proxy_of(address) == (None if is_direct else "http://127.0.0.1:9")


def test_nothing_is_sent_to_a_server_that_another_one_redirects_to(pauses: list[float]) -> None:
    with serve(echo) as other, serve(lambda _: Reply({}, 307, {"Location": other.completions})) as server:
        message = (
            f"base_url: the server redirects to {other.url}. "
            "Give that address, if you trust it with the conversations and the key."
        )
        with refused(message):
            ask(server, ["a", "b"])
        assert other.asked == []
    assert pauses == []


def test_a_redirect_on_the_same_server_is_followed() -> None:
    urls: list[str] = []

    def rule(body: dict[str, Any]) -> Reply:
        return Reply({}, 308, {"Location": urls.pop()}) if urls else echo(body)

    with serve(rule) as server:
        urls.append(server.completions)
        assert ask(server, ["a"]) == ["re: a"]


@CONCURRENT
def test_a_server_that_only_fails_is_left_alone_and_asked_again_by_the_next_call(concurrent: int, pauses: list[float]) -> None:
    is_up = threading.Event()
    with serve(lambda body: echo(body) if is_up.is_set() else Reply({}, 503)) as server:
        judge = model(server, num_concurrent=concurrent, max_retries=2)
        answers = judge.generate(requests_for([f"p{index}" for index in range(200)], stop=["\n"]))
        n_asked = len(server.asked)
        is_up.set()
        assert judge.generate(requests_for(["a"], stop=["\n"])) == ["re: a"]
    counts = Counter(answers)
    assert set(counts) == {failed("HTTP 503"), NOT_ASKED}
    assert counts[failed("HTTP 503")] < MAX_FAILURES_IN_A_ROW + concurrent
    assert n_asked <= 2 * (MAX_FAILURES_IN_A_ROW + concurrent)


def test_pauses_grow_and_vary_and_the_server_may_name_its_own(pauses: list[float]) -> None:
    with serve(lambda body: Reply({}, 503)) as server:
        judge = model(server, max_retries=4)
        for _ in range(20):
            judge.generate(requests_for(["a"]))
    for place, middle in enumerate((1.0, 2.0, 4.0)):
        column = pauses[place::3]
        assert all(0.5 * middle <= seconds <= 1.5 * middle for seconds in column)
        assert len(column) == 20
        assert len(set(column)) > 10
    pauses.clear()
    for seconds in ("7", "86400"):
        with serve(lambda body, seconds=seconds: Reply({}, 429, {"Retry-After": seconds})) as server:  # type: ignore[misc]
            ask(server, ["a"], max_retries=2)
    assert pauses == [7.0, 60.0]


@pytest.mark.parametrize(("seconds", "lowest", "highest"), [(30, 27.0, 30.0), (-30, 0.0, 0.0), (86400, 60.0, 60.0)])
def test_the_server_may_name_a_date_to_come_back_at(seconds: int, lowest: float, highest: float, pauses: list[float]) -> None:
    date = formatdate(time.time() + seconds, usegmt=True)
    with serve(lambda _: Reply({}, 429, {"Retry-After": date})) as server:
        ask(server, ["a"], max_retries=2)
    assert lowest <= pauses[0] <= highest


@pytest.mark.parametrize("text", ["", "soon", "nan", "-1"])
def test_a_waiting_time_that_is_neither_number_nor_date_is_passed_over(text: str, pauses: list[float]) -> None:
    with serve(lambda _: Reply({}, 429, {"Retry-After": text})) as server:
        ask(server, ["a"], max_retries=2)
    assert 0.5 <= pauses[0] <= 1.5


def test_a_log_message_that_does_not_fit_its_arguments_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    redact_host_logs()
    logging.getLogger("lm_eval.stand_in").warning("sent to %s", *("a", "Bearer sk-0123456789abcdef"))
    (message,) = caplog.messages
    assert message.startswith("sent to %s")
    assert "0123456789abcdef" not in message


@CONCURRENT
def test_answers_are_handed_over_as_they_come(concurrent: int, pauses: list[float]) -> None:
    """The answers before a failure are out before the failed request is repeated."""
    handed: list[object] = []
    with serve(lambda body: Reply({}, 500) if prompt_of(body) == "c" else echo(body)) as server:
        judge = model(server, num_concurrent=concurrent)
        requests = requests_for(["a", "b", "c", "d"], stop=["\n"])
        answers = judge.generate(requests, on_answer=lambda *given: handed.append(given))
    assert answers[2] == failed("HTTP 500")
    assert sorted(handed) == [(0, "re: a"), (1, "re: b"), (3, "re: d")]


def test_an_error_of_the_one_who_keeps_answers_is_not_a_failure_of_the_server(pauses: list[float]) -> None:
    def full(place: int, answer: str) -> None:
        raise InputError("answers.sqlite: the disk is full.")

    with serve(echo) as server, refused("answers.sqlite: the disk is full."):
        model(server).generate(requests_for(["a"], stop=["\n"]), on_answer=full)
    assert pauses == []


# FAULTS D25: servers that send slowly, too much, or an error where all is well


@pytest.mark.long
@BOTH_KINDS
def test_d25_the_timeout_holds_for_a_whole_reply_that_drips(kind: str) -> None:
    def dripping(body: dict[str, Any]) -> Reply:
        return Reply({"choices": []}, pause=0.5) if prompt_of(body) == "drip" else echo(body)

    with serve(dripping) as server, lasting(1, 4):
        answers = ask(server, ["a", "drip", "b"], kind, num_concurrent=1, timeout=1, max_retries=1)
    assert answers == ["re: a", failed("TimeoutError"), "re: b"]


def test_d25_the_timeout_holds_for_headers_that_drip() -> None:
    is_over = threading.Event()

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            with contextlib.suppress(OSError):
                for _ in range(25):  # an end, so that the test has one where the timeout fails
                    if is_over.wait(0.2):
                        break
                    self.request.sendall(b"x")

    with serving(Dripping) as url:
        with lasting(1, 4):
            answers = ask(Loopback(url), ["a"], num_concurrent=1, timeout=1, max_retries=1)
        is_over.set()
    assert answers == [failed("TimeoutError")]


@BOTH_KINDS
@CONCURRENT
def test_d25_a_reply_that_is_too_long_is_a_failure(kind: str, concurrent: int, pauses: list[float]) -> None:
    def padded(body: dict[str, Any]) -> Reply:
        text = json.dumps(echo(body).body)
        n_more = {"fits": 0, "one more": 1, "far more": MAX_REPLY_BYTES}.get(prompt_of(body))
        return Reply(text if n_more is None else text.ljust(MAX_REPLY_BYTES + n_more))

    with serve(padded) as server:
        answers = ask(server, ["fits", "one more", "far more", "a"], kind, num_concurrent=concurrent, max_retries=1)
    too_long = failed("ReplyTooLong: the reply has more than 16777216 bytes")
    assert answers == ["re: fits", too_long, too_long, "re: a"]


def test_d25_a_reply_is_measured_as_it_is_decompressed(pauses: list[float]) -> None:
    """A MiB of gzip may hold a GiB."""
    bomb = gzip.compress(b" " * (MAX_REPLY_BYTES + 1))
    assert len(bomb) < MAX_REPLY_BYTES / 100
    with serve(lambda body: Reply(bomb, headers={"Content-Encoding": "gzip"})) as server:
        assert ask(server, ["a"], max_retries=1) == [failed("ReplyTooLong: the reply has more than 16777216 bytes")]


SENT = [{"error": {"message": "overloaded", "key": "sk-aaaaaaaaaaaaaaaaaaaa"}}, [{"error": "overloaded"}]]


@pytest.mark.parametrize("sent", SENT)
@BOTH_KINDS
def test_d25_an_error_in_the_place_of_an_answer_is_a_failure(
    sent: object, kind: str, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with serve(lambda body: Reply(sent) if prompt_of(body) == PROMPTS[5] else echo(body)) as server:
        answers = ask(server, PROMPTS, kind, num_concurrent=4, max_retries=3)
    expected: list[object] = [f"re: {prompt}" for prompt in PROMPTS]
    expected[5] = failed("ErrorReply: the server sent an error in the place of an answer")
    assert answers == expected
    assert Counter(server.prompts()) == {prompt: 3 if prompt == PROMPTS[5] else 1 for prompt in PROMPTS}
    assert "overloaded" in caplog.text
    assert "sk-aaaa" not in caplog.text


@BOTH_KINDS
def test_d25_an_answer_beside_an_empty_error_counts(kind: str) -> None:
    with serve(lambda body: Reply({**echo(body).body, "error": None})) as server:
        assert model(server, kind, num_concurrent=4).generate(requests_for(["a"])) == ["re: a"]


def test_d25_an_error_in_the_place_of_log_probabilities_is_a_failure(tmp_path: Path, pauses: list[float]) -> None:
    folder = write_random_language_model(tmp_path)
    given = {"num_concurrent": 4, "max_retries": 2, "tokenizer_backend": "huggingface", "tokenizer": folder}
    with serve(lambda body: Reply({"error": "overloaded"})) as server:
        answers = model(server, **given).loglikelihood([("a", " Yes")])
    assert answers == [failed("ErrorReply: the server sent an error in the place of an answer")]
    assert len(server.asked) == 2


def test_d25_a_resumed_run_asks_again_where_an_error_came(tmp_path: Path, pauses: list[float]) -> None:
    is_up = threading.Event()
    examples = mini.read_examples("test")[:3]
    rows = [{"context": [turn.text for turn in one.context], "response": one.response.text} for one in examples]
    with serve(lambda body: text_reply(body, "4.0") if is_up.is_set() else Reply({"error": "overloaded"})) as server:

        def scored() -> RunningSummary:
            judge = PromptedJudge(model(server, "local-chat-completions", max_retries=1), prompt="dre")
            return score_file(judge, Source("examples", given=rows), tmp_path / "scores.jsonl")

        assert scored().unscored_by_reason == {"api_error": 3}
        is_up.set()
        scored()
        main = read_meta(tmp_path / "scores.jsonl")["main"]
        assert [row[main] for row in read_rows(tmp_path / "scores.jsonl")] == [0.8, 0.8, 0.8]


# What is sent


@BOTH_KINDS
def test_a_model_is_sent_the_whole_prompt_which_is_one_user_message_to_a_chat_model(kind: str) -> None:
    prompt = 'Context:\nPerson A: Hi! "quoted" {braces}\nPerson B: ¿Qué?\n\nScore:'
    with serve(echo) as server:
        model(server, kind, num_concurrent=4).generate(requests_for([prompt], max_tokens=7, stop=["\n\n"]))
    (body,) = server.asked
    if "chat" in kind:
        assert body["messages"] == [{"role": "user", "content": prompt}]
    else:
        assert (body["prompt"], "messages" in body) == (prompt, False)
    # A chat model ends by itself, and may begin with an empty line.
    stop = ["<|endoftext|>"] if "chat" in kind else ["\n\n"]
    assert (body["model"], body["max_tokens"], body["temperature"], body["stop"]) == ("judge", 7, 0.0, stop)


def test_a_continued_text_ends_at_every_stop_string_and_a_server_is_sent_one_at_least() -> None:
    with serve(lambda body: text_reply(body, "4 #5 because")) as server:
        judge = model(server, num_concurrent=4)
        assert judge.generate(requests_for(["a"])) == ["4 #5 because"]
        assert judge.generate(requests_for(["a"], stop=["#1", "#2", "#3", "#4", "#5"])) == ["4 "]
    assert server.asked[0]["stop"] == ["<|endoftext|>"]


def test_each_sample_has_a_seed_of_its_own() -> None:
    with serve(lambda body: text_reply(body, f"{body['prompt']} {body['seed']}")) as server:
        judge = model(server, num_concurrent=4, seed=100)
        handed: dict[int, str] = {}
        requests = samples_for(["a", "b"], n_samples=3, temperature=0.7, first_sample=2)
        samples = judge.generate(requests, on_answer=handed.__setitem__)
        assert judge.generate(requests_for(["c"])) == ["c 100"]
    assert samples == ["a 102", "a 103", "a 104", "b 102", "b 103", "b 104"]
    assert [handed[place] for place in range(6)] == samples
    assert {body["temperature"] for body in server.asked[:6]} == {0.7}


def test_missing_log_probabilities_are_an_error_and_not_a_row() -> None:
    message = (
        "gives no log probabilities of a prompt's text. Use a prompt that asks for words, or a model that gives them: "
        "hf, vllm, or local-completions where the server echoes the prompt and llm_args names a tokenizer."
    )
    with serve(echo) as server:
        for kind in KINDS:
            judge = model(server, kind, num_concurrent=4)
            with refused(f"llm {judge.identity}: {message}"):
                judge.loglikelihood([("a", " Yes")])


# Identity


def test_how_fast_or_patiently_a_model_is_asked_does_not_change_its_identity() -> None:
    with serve(echo) as server, serve(echo) as moved:
        plain = model(server).identity
        assert plain == model(server, num_concurrent=8, max_retries=9, timeout=5).identity
        # FAULTS D2: another server may hold another model of the same name.
        assert plain != model(moved).identity
        assert plain != model(server, seed=1).identity
        assert plain != model(server, "local-chat-completions").identity


@pytest.mark.parametrize("make", [lambda lm: lm, lambda lm: CachedLanguageModel(lm, None)], ids=["bare", "counted"])
def test_a_failure_among_equal_samples_takes_no_other_ones_answer(
    make: Callable[[LmEvalLanguageModel], Any], pauses: list[float]
) -> None:
    with serve(lambda body: Reply({}, 500) if body["seed"] == 1235 else text_reply(body, str(body["seed"]))) as server:
        samples = make(model(server, max_retries=1)).generate(samples_for(["a"], n_samples=3))
    assert samples == ["1234", failed("HTTP 500"), "1236"]


# Models in this process


class Breaking:
    """Answers one request after the other through the host's cache hook, and breaks where it is told to."""

    def __init__(self, breaks: Callable[[list[str]], bool], answer: Callable[[list[str]], str]) -> None:
        self.cache_hook: Any = None
        self.asked: list[str] = []
        self.breaks, self.answer = breaks, answer

    def generate_until(self, requests: list[Any]) -> list[str]:
        answers = []
        for request in requests:
            self.asked.append(request.args[0])
            if self.breaks(self.asked):
                raise RuntimeError("out of memory")
            answers.append(self.answer(self.asked))
            self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers


def test_a_batch_that_breaks_is_halved_and_what_was_answered_before_is_kept(pauses: list[float]) -> None:
    breaking = Breaking(lambda asked: asked[-1] == "bad", lambda asked: f"re: {asked[-1]}")
    prompts = ["a", "b", "c", "bad", "d", "e", "f"]
    handed: list[object] = []
    requests = requests_for(prompts, stop=["\n"])
    answers = LmEvalLanguageModel(breaking, "breaking@1").generate(requests, on_answer=lambda *given: handed.append(given))
    assert answers == [failed("RuntimeError: out of memory") if prompt == "bad" else f"re: {prompt}" for prompt in prompts]
    counts = Counter(breaking.asked)
    assert {prompt: counts[prompt] for prompt in prompts if prompt != "bad"} == dict.fromkeys("abcdef", 1)
    assert sorted(handed) == [(place, f"re: {prompt}") for place, prompt in enumerate(prompts) if prompt != "bad"]
    assert breaking.cache_hook is None


def test_equal_requests_of_a_batch_that_breaks_each_have_an_answer_of_their_own(pauses: list[float]) -> None:
    counted = Breaking(lambda asked: len(asked) == 3, lambda asked: f"answer {len(asked)}")
    samples = LmEvalLanguageModel(counted, "counted@1").generate(samples_for(["a"], n_samples=4))
    assert sorted(map(str, samples)) == ["answer 1", "answer 2", "answer 4", "answer 5"]


def test_a_model_in_this_process_hands_answers_over_batch_by_batch(tmp_path: Path) -> None:
    folder = write_random_language_model(tmp_path)
    judge = load_language_model("hf", f"pretrained={folder},batch_size=2", device="cpu")
    prompts = [f"Person A: {'tea ' * index}" for index in range(5)]
    pairs = [(prompt, " Yes") for prompt in prompts]
    for ask_judge in (
        lambda **options: judge.generate(requests_for(prompts, max_tokens=3), **options),
        lambda **options: judge.loglikelihood(pairs, **options),
    ):
        expected = ask_judge()
        handed: dict[int, Any] = {}

        def stop_after_three(place: int, answer: object, handed: dict[int, Any] = handed) -> None:
            handed[place] = answer
            if len(handed) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ask_judge(on_answer=stop_after_three)
        # The host begins with the longest.
        assert sorted(handed) == [2, 3, 4]
        assert [handed[place] for place in (2, 3, 4)] == expected[2:]
        handed.clear()
        ask_judge(on_answer=handed.__setitem__)
        assert [handed[place] for place in range(5)] == expected


# FAULTS D5: the host writes down a failed request with its headers, and no key reaches stderr


MAIN = "from dialeval_plugin.cli.main import main; main()"
KEY = "sk-SECRETENV"
"""Too short for a key's look, so that it has to be known by its place or by its value."""


@pytest.mark.long
def test_d5_no_key_is_in_what_a_failed_request_leaves_on_stderr(clean_run: Run, tmp_path: Path) -> None:
    rows = "".join(f'{{"context": ["Hi {number}."], "response": "Hello."}}\n' for number in range(4))
    (tmp_path / "in.jsonl").write_text(rows, encoding="utf-8")
    with serve(lambda _: Reply({"error": "no"}, 500)) as server:
        done = clean_run(
            *("-c", MAIN, "score", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl")),
            *("--scorer", "llm_judge", "--llm", "local-chat-completions", "--no-answers"),
            *("--llm-args", f"model=m,base_url={server.chat}?api-key={KEY},max_retries=1,num_concurrent=4"),
            env={"OPENAI_API_KEY": KEY},
        )
    assert len(server.asked) == 4
    assert done.returncode == 1
    # The host's own message comes, without the key.
    assert "ClientResponseError" in done.stderr
    assert "Authorization" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert all(KEY not in path.read_text(encoding="utf-8") for path in tmp_path.glob("out*"))


@pytest.mark.long
def test_d5_nor_in_what_the_hosts_own_command_leaves(clean_run: Run, tmp_path: Path) -> None:
    with serve(lambda _: Reply({"error": "no"}, 500)) as server:
        done = clean_run(
            *("-c", MAIN, "lm-eval", "run", "--model", "local-chat-completions", "--apply_chat_template"),
            *("--model_args", f"model=m,base_url={server.chat},max_retries=1,num_concurrent=4,api_key=sk-ARGUMENT"),
            *("--tasks", "dailydialog_pp_generate_mini", "--limit", "4", "--output_path", str(tmp_path / "out")),
            env={"OPENAI_API_KEY": KEY},
        )
    assert server.asked
    assert done.returncode != 0
    assert "ClientResponseError" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert "sk-ARGUMENT" not in done.stderr + done.stdout


def test_d5_a_traceback_is_logged_without_the_key_and_other_loggers_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    redact_host_logs()
    redact_host_logs()
    host, other = logging.getLogger("lm_eval.models.new_one"), logging.getLogger("somebody")
    try:
        raise ValueError("api_key=abcdef")
    except ValueError:
        host.exception("failed for %s", "token=abcdef")
    other.error("token=abcdef")
    assert [record.getMessage() for record in caplog.records] == ["failed for token=***", "token=abcdef"]
    assert "ValueError: api_key=***" in caplog.text


def test_the_file_of_answers_may_be_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell leaves the sign for it as it is behind `answers=`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    llm_args = "model=m,base_url=http://127.0.0.1:9/v1/completions,tokenizer_backend=none,tokenized_requests=False"
    cache = load_cached_model("local-completions", llm_args, answers="~/kept/answers.sqlite").cache
    assert cache is not None
    assert cache.path == tmp_path / "kept" / "answers.sqlite"
    assert not Path("~").exists()
