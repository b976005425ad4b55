"""Judges that are cut, that reason first, or whose server takes other parameters. FAULTS a200 to a222: what can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.lm_eval.asking import note_cut_answers
from dialeval_plugin.hosts.lm_eval.backend import TOKENS_WHEN_CUT, LmEvalLanguageModel, load_language_model
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel, Usage
from dialeval_plugin.llm.language_model import CutAnswer, LanguageModel
from dialeval_plugin.methods.judging.classification import classify
from dialeval_plugin.methods.judging.criterion_judges import GEval, LlmChiang
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.dre import DreScorer
from tests.loopback import Loopback, Reply, prompt_of, serve
from tests.loopback import chat_reply as reply
from tests.refusals import refused
from tests.requests_for import requests_for
from tests.tiny.language_models import write_random_language_model, write_rating_language_model

Body = dict[str, Any]
EXAMPLES = [Example.from_texts(["Hi."], "Hello."), Example.from_texts(["Hi."], "No.")]
REASONING = "The conversation is between 2 individuals, and the second"


def chat(server: Loopback, **arguments: object) -> LmEvalLanguageModel:
    return loaded("local-chat-completions", model="m", base_url=server.chat, **arguments)


def loaded(kind: str, **arguments: object) -> LmEvalLanguageModel:
    return load_language_model(kind, ",".join(f"{name}={value}" for name, value in arguments.items()))


def reasoning_before(verdict: str, n_tokens: int = 400) -> Callable[[Body], Reply]:
    """A model that needs so many tokens to reason before its verdict."""
    return lambda body: reply(f"{REASONING}\n\n{verdict}") if body["max_tokens"] >= n_tokens else reply(REASONING, "length")


def rooms(server: Loopback) -> list[int]:
    return sorted(body["max_tokens"] for body in server.asked)


# A cut answer is asked for once more


def test_an_answer_that_was_cut_before_its_verdict_is_asked_for_once_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def rule(body: Body) -> Reply:
        # One answer is cut behind its verdict, and has no need to be asked for again.
        is_short = "No." in prompt_of(body)
        return reply("Rating: 2. The first speaker", "length") if is_short else reasoning_before("Rating: 4")(body)

    with serve(rule) as server:
        for _ in range(2):
            model = CachedLanguageModel(chat(server, num_concurrent=4), AnswerCache(tmp_path / "answers.sqlite"))
            judge = LlmChiang(model, criteria="coherence", n_samples=3)
            assert judge.score(EXAMPLES).values == (4.0, 2.0)
    assert rooms(server) == [64] * 6 + [TOKENS_WHEN_CUT] * 3
    assert model.usage == Usage(n_cached=6)
    assert [text for text in caplog.messages if "cut" in text] == [
        "3 of 6 answers were cut before their verdict; they are asked for once more, with 4096 tokens. "
        "max_gen_toks=4096 in llm_args asks with as many at once."
    ]


@pytest.mark.parametrize("content", [REASONING, "", None, "<think>\n4"])
def test_what_is_cut_twice_has_no_score_and_says_what_to_do(content: str | None) -> None:
    with serve(lambda body: reply(content, "length")) as server:
        scores = PromptedJudge(chat(server, num_concurrent=4)).score(EXAMPLES[:1])
    assert rooms(server) == [32, TOKENS_WHEN_CUT]
    assert scores.unscored[0].reason is Reason.TRUNCATED
    assert scores.unscored[0].detail.endswith(". Give the model more room with max_gen_toks=... in llm_args")


def test_a_second_answer_that_the_server_refuses_leaves_the_first() -> None:
    refusal = Reply({"error": "the window has 2048 tokens"}, 400)
    with serve(lambda body: refusal if body["max_tokens"] > 99 else reply(REASONING, "length")) as server:
        scores = PromptedJudge(chat(server)).score(EXAMPLES[:1])
    assert rooms(server) == [32, TOKENS_WHEN_CUT]
    assert scores.unscored[0].reason is Reason.TRUNCATED


def test_nobody_is_asked_with_more_tokens_than_were_given() -> None:
    with serve(lambda body: reply(REASONING, "length")) as server:
        scores = PromptedJudge(chat(server, max_gen_toks=16)).score(EXAMPLES[:1])
    assert rooms(server) == [16]
    assert scores.unscored[0].reason is Reason.TRUNCATED


def test_a_model_that_only_continues_a_text_is_not_asked_again() -> None:
    choice = {"index": 0, "finish_reason": "length", "text": REASONING}
    with serve(lambda body: Reply({"choices": [choice]})) as server:
        given = {"model": "m", "base_url": server.completions, "tokenizer_backend": "none", "tokenized_requests": False}
        scores = LlmChiang(loaded("local-completions", **given), criteria="coherence", n_samples=1).score(EXAMPLES[:1])
    assert rooms(server) == [64]
    assert scores.unscored[0].reason is Reason.TRUNCATED


JUDGES: dict[str, Callable[[LanguageModel], object]] = {
    "g_eval": lambda llm: GEval(llm, n_samples=1).score(EXAMPLES),
    "llm_chiang": lambda llm: LlmChiang(llm, n_samples=1).score(EXAMPLES),
    "slide": lambda llm: PromptedJudge(llm).score(EXAMPLES),
    "dre": lambda llm: DreScorer(llm, variant="non_dre").score(EXAMPLES),
    "classification": lambda llm: classify(llm, EXAMPLES),
}


@pytest.mark.parametrize("name", JUDGES)
def test_max_gen_toks_holds_for_every_request_of_every_judge(name: str) -> None:
    with serve(lambda body: reply(REASONING, "length")) as server:
        JUDGES[name](chat(server, max_gen_toks=700))
    assert set(rooms(server)) == {700}


# What a reply holds


def test_of_a_reply_in_parts_the_text_is_the_answer_and_the_thinking_is_not() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Could be a 1."}]}
    with serve(lambda body: reply([thought, {"type": "text", "text": "Rating: "}, {"type": "text", "text": "3"}])) as server:
        assert chat(server, num_concurrent=4).generate(requests_for(["a"])) == ["Rating: 3"]


def test_anthropics_replies_are_read_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    parts = [{"type": "thinking", "thinking": "Could be a 1."}, {"type": "text", "text": "Rating: 3, be"}]
    with serve(lambda body: Reply({"content": parts, "stop_reason": "max_tokens"})) as server:
        model = loaded("anthropic-chat-completions", model="m", base_url=server.url, tokenized_requests=False)
        assert model.generate(requests_for(["a"])) == [CutAnswer("Rating: 3, be")]


@pytest.mark.parametrize("answer", ["\n0.8", "Sure! Here is my evaluation:\n\nEngagingness: 0.8", "<think>\n\n</think>\n\n0.8"])
def test_a_chat_model_may_begin_with_an_empty_line_or_a_sentence(answer: str) -> None:
    def rule(body: Body) -> Reply:
        cut = min((answer.index(stop) for stop in body["stop"] if stop in answer), default=len(answer))
        return reply(answer[:cut])

    with serve(rule) as server:
        assert PromptedJudge(chat(server)).score(EXAMPLES[:1]).values == (0.8,)


# What a server takes of a request


def openai(body: Body) -> Reply:
    """The refusals of OpenAI's newer models."""
    message = "Unsupported parameter: '{}' is not supported with this model."
    if "max_tokens" in body:
        error = message.format("max_tokens") + " Use 'max_completion_tokens' instead."
    elif "temperature" in body:
        error = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
    elif "stop" in body:
        error = message.format("stop")
    else:
        return reply(f"{body['max_completion_tokens']} tokens")
    return Reply({"error": {"message": error, "type": "invalid_request_error", "code": "unsupported_parameter"}}, 400)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_what_a_server_refuses_is_renamed_or_left_out_from_then_on(concurrent: int, caplog: pytest.LogCaptureFixture) -> None:
    with serve(openai) as server:
        model = chat(server, num_concurrent=concurrent, max_retries=1)
        assert model.generate(requests_for(["a", "b", "c"], max_tokens=7)) == ["7 tokens"] * 3
        n_asked = len(server.asked)
        assert model.generate(requests_for(["d"], max_tokens=7)) == ["7 tokens"]
    assert len(server.asked) == n_asked + 1
    assert [text for text in caplog.messages if text.startswith("the server does not take")] == [
        "the server does not take 'max_tokens': it is sent as 'max_completion_tokens' from here on",
        "the server does not take 'temperature': it is not sent from here on",
        "the server does not take 'stop': it is not sent from here on",
    ]


REFUSALS: list[tuple[int, object]] = [
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stop"], "msg": "Extra inputs are not permitted"}]}),
    (400, {"error": {"message": "unknown field `stop`, expected one of `model`, `messages`"}}),
    (400, {"error": "Unrecognized request argument supplied: 'stop'"}),
]


@pytest.mark.parametrize(("status", "refusal"), REFUSALS)
def test_other_servers_refuse_in_other_words(status: int, refusal: object) -> None:
    with serve(lambda body: Reply(refusal, status) if "stop" in body else reply("4")) as server:
        assert chat(server, num_concurrent=4, max_retries=1).generate(requests_for(["a"])) == ["4"]
    assert [sorted(body) for body in server.asked] == [
        ["max_tokens", "messages", "model", "seed", "stop", "temperature"],
        ["max_tokens", "messages", "model", "seed", "temperature"],
    ]


def test_a_parameter_that_is_refused_again_and_any_other_refusal_are_failures() -> None:
    too_large = "'max_tokens' is too large: 7. This model supports at most 5 completion tokens."
    for message, n_asked in ((too_large, 1), ("unknown field 'stop'", 2)):
        with serve(lambda body, message=message: Reply({"error": message}, 400)) as server:  # type: ignore[misc]
            (answer,) = chat(server, num_concurrent=4, max_retries=1).generate(requests_for(["a"], max_tokens=7))
        assert answer == Unscored(Reason.API_ERROR, "HTTP 400")
        assert len(server.asked) == n_asked


def test_a_served_model_is_told_what_its_chat_template_is_given() -> None:
    with serve(lambda body: reply("4")) as server:
        plain = chat(server)
        silent = chat(server, enable_thinking=False, chat_template_kwargs='{"language": "en"}')
        assert silent.generate(requests_for(["a"])) == ["4"]
        assert server.asked[0]["chat_template_kwargs"] == {"language": "en", "enable_thinking": False}
        assert silent.identity != plain.identity


AS_JSON = 'Give a JSON object, as {"thinking": false}.'


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("max_gen_toks", "0", "max_gen_toks is 0. Give a whole number from 1."),
        ("max_gen_toks", "many", "max_gen_toks is 'many'. Give a whole number from 1."),
        ("apply_chat_template", "qwen", "apply_chat_template is 'qwen'. Give true or false."),
        ("chat_template_kwargs", "[1]", f"chat_template_kwargs: input should be an object. {AS_JSON}"),
        (
            *("chat_template_kwargs", "{no"),
            f"chat_template_kwargs: invalid JSON: key must be a string at line 1 column 2. {AS_JSON}",
        ),
    ],
)
def test_an_argument_of_ours_that_makes_no_sense_is_refused(name: str, value: str, problem: str) -> None:
    with refused(f"llm 'local-chat-completions': {problem}"):
        loaded("local-chat-completions", model="m", base_url="http://127.0.0.1:9", **{name: value})


# Models in this process


def test_a_model_in_this_process_says_which_answers_it_was_cut_in(tmp_path: Path) -> None:
    noise = loaded("hf", pretrained=write_random_language_model(tmp_path / "noise"), device="cpu", apply_chat_template=False)
    prompts = ["Response:", "I like that, do you?"]
    one, other = noise.generate(requests_for(prompts, max_tokens=8))
    assert isinstance(one, CutAnswer)
    assert isinstance(other, CutAnswer)
    stop = next(letter for letter in one.text if letter not in other.text)
    ended = one.text.partition(stop)[0]
    assert noise.generate(requests_for(prompts, max_tokens=8, stop=[stop])) == [ended, other]
    rating = loaded("hf", pretrained=write_rating_language_model(tmp_path / "rating"), device="cpu", apply_chat_template=False)
    assert rating.generate(requests_for(["Response:"], max_tokens=8)) == [" 4"]
    assert rating.generate(requests_for(["Response:"], max_tokens=1)) == [CutAnswer(" 4")]


@pytest.mark.parametrize(
    ("window", "n_tokens", "reason"), [(4096, [32, 2048], Reason.TRUNCATED), (1024, [32], Reason.CONTEXT_TOO_LONG)]
)
def test_a_model_in_this_process_is_asked_again_as_far_as_its_window_goes(
    window: int, n_tokens: list[int], reason: Reason, tmp_path: Path
) -> None:
    folder = write_random_language_model(tmp_path / "noise", n_positions=window)
    model = loaded("hf", pretrained=folder, device="cpu", apply_chat_template=True)
    asked: list[int] = []
    generate = model.lm._model_generate

    def watched(**given: Any) -> object:
        asked.append(given["max_length"] - given["context"].shape[1])
        return generate(**given)

    model.lm._model_generate = watched
    scores = PromptedJudge(model, prompt="dre").score(EXAMPLES[:1])
    assert asked == n_tokens
    assert scores.unscored[0].reason is reason


def test_a_model_of_vllm_says_it_itself() -> None:
    """vllm runs on no machine that the tests run on: its outputs, as its own classes have them."""

    class Output:
        def __init__(self, finish_reason: str) -> None:
            self.outputs = [self]
            self.finish_reason = finish_reason

    class Vllm:
        def _model_generate(self, **_: object) -> list[Output]:
            return [Output("length"), Output("stop")]

        def generate_until(self, requests: list[Any]) -> list[str]:
            self._model_generate()
            for request in requests:
                self.cache_hook.add_partial("generate_until", request.args, "4")
            return ["4"] * len(requests)

    assert LmEvalLanguageModel(Vllm(), "vllm@1").generate(requests_for(["a", "b"])) == [CutAnswer("4"), "4"]
    note_cut_answers(object())  # a model that generates in another way notes nothing


def test_a_model_with_a_chat_template_is_asked_in_it_or_a_warning_says_that_it_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_random_language_model(tmp_path / "instruct")
    warning = (
        f"llm 'hf': {folder} has a chat template, and prompts are sent without it. Give apply_chat_template=true in llm_args "
        "to ask in it, or apply_chat_template=false to leave it out."
    )
    found = {}
    for name, given in {"default": {}, "true": {"apply_chat_template": True}, "false": {"apply_chat_template": False}}.items():
        caplog.clear()
        found[name] = loaded("hf", pretrained=folder, device="cpu", **given)
        assert (warning in caplog.messages) == (name == "default")
    assert found["true"].identity == found["default"].identity + "+chat"
    assert found["false"].identity == found["default"].identity
    template = loaded("hf", pretrained=folder, device="cpu", chat_template_kwargs='{"language": "en"}', enable_thinking=False)
    assert template.lm.chat_template_args == {"language": "en", "enable_thinking": False}
