"""Judges whose server is asked for JSON with a schema: what is sent, what counts as an answer, and what is refused."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Scores, Unscored
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.hosts.lm_eval.backend import TOKENS_WHEN_CUT, LmEvalLanguageModel, load_language_model
from dialeval_plugin.llm.answers import AnswerCache, CachedLanguageModel
from dialeval_plugin.llm.language_model import LanguageModel
from dialeval_plugin.llm.parsing import logger as unread_answers
from dialeval_plugin.methods.judging.classification import classify
from dialeval_plugin.methods.judging.criterion_judges import GEval, LlmChiang
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.slide.dre import DreScorer
from tests.loopback import Loopback, Reply, prompt_of, serve
from tests.loopback import chat_reply as reply
from tests.refusals import refused
from tests.requests_for import requests_for

Body = dict[str, Any]
ONE = [Example.from_texts(["Do you like tea?"], "Yes, black tea.")]
MORE_ROOM = "Give the model more room with max_gen_toks=... in llm_args"


def chat(server: Loopback, **arguments: object) -> LmEvalLanguageModel:
    given = {"model": "m", "base_url": server.chat, "structured_output": True, **arguments}
    return load_language_model("local-chat-completions", ",".join(f"{name}={value}" for name, value in given.items()))


def number(kind: str, low: float, high: float) -> Body:
    return {"type": kind, "minimum": low, "maximum": high}


def response_format(**properties: Body) -> Body:
    """Schema that OpenAI's API documents for an object with these keys and no other."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}


def answering(values: Mapping[str, object]) -> Callable[[Body], Reply]:
    """A server that keeps to the schema: what it is asked for, from these values."""

    def rule(body: Body) -> Reply:
        if "response_format" not in body:
            return reply("I see.")
        names = body["response_format"]["json_schema"]["schema"]["properties"]
        return reply(json.dumps({name: values[name] for name in names}))

    return rule


CRITERIA = ("Naturalness", "Coherence", "Engagingness", "Groundedness")
DRE_NUMBERS = {"LLM_Overall_Score": number("number", 0, 5), "Influence_degree": number("number", 0, 1)}
KINDS: dict[str, tuple[Callable[[LanguageModel], object], Mapping[str, object], object, list[Body]]] = {
    "g_eval": (
        lambda llm: GEval(llm, n_samples=1).score(ONE).values,
        dict(zip(CRITERIA, (1, 2, 3, 3), strict=True)),
        (2.25,),
        [response_format(**{name: number("integer", 1, 3)}) for name in CRITERIA],
    ),
    "llm_chiang": (
        lambda llm: LlmChiang(llm, criteria="coherence", n_samples=1).score(ONE).values,
        {"Rating": 4},
        (4.0,),
        [response_format(Rating=number("integer", 1, 5))],
    ),
    "slide": (
        lambda llm: PromptedJudge(llm).score(ONE).values,
        {"Engagingness": 1e-05},
        (1e-05,),
        [response_format(Engagingness=number("number", 0, 1))],
    ),
    "plain prompt of dre": (
        lambda llm: DreScorer(llm, variant="non_dre").score(ONE).values,
        {"LLM_Overall_Score": 3.5},
        (3.5,),
        [response_format(LLM_Overall_Score=DRE_NUMBERS["LLM_Overall_Score"])],
    ),
    "interior prompt of dre": (
        lambda llm: [(row["llm"], row["influence"]) for row in DreScorer(llm, variant="in_dre").score(ONE).rows()],
        {"LLM_Overall_Score": 3.5, "Influence_degree": 0.25},
        [(3.5, 0.25)],
        [response_format(**DRE_NUMBERS)],
    ),
    "classification": (
        lambda llm: classify(llm, ONE),
        {"Prediction": "Negative"},
        ["negative"],
        [response_format(Prediction={"type": "string", "enum": ["Positive", "Negative"]})],
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_judge_asks_for_its_verdict_as_json_and_reads_it(name: str) -> None:
    judge, values, verdict, formats = KINDS[name]
    with serve(answering(values)) as server:
        assert judge(chat(server, num_concurrent=4)) == verdict
        prompts = sorted(server.prompts())
        assert sorted([body["response_format"] for body in server.asked], key=json.dumps) == sorted(formats, key=json.dumps)
        server.asked.clear()
        judge(chat(server, num_concurrent=4, structured_output=False, max_retries=1))
        # The prompts are the papers' own with it and without.
        assert sorted(server.prompts()) == prompts
        assert not any("response_format" in body for body in server.asked)


def test_the_doors_take_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))
    given, output = tmp_path / "given.jsonl", tmp_path / "scores.jsonl"
    given.write_text(json.dumps({"context": ["Tea?"], "response": "Black tea."}) + "\n", encoding="utf-8")
    with serve(answering({"Rating": 5})) as server:
        llm_args = f"model=m,base_url={server.chat},structured_output=true"
        options = {"llm": "local-chat-completions", "llm_args": llm_args, "criteria": "coherence", "n_samples": 1}
        assert load_scorer_with_judge("llm_chiang", options).score(ONE).values == (5.0,)
        words = ["--llm", "local-chat-completions", "--llm-args", llm_args, "--option", "criteria=coherence"]
        words += ["--option", "n_samples=1", "--scorer", "llm_chiang", "--output", str(output)]
        done = CliRunner().invoke(app, ["score", str(given), *words])
        assert done.exit_code == 0, done.output
    assert json.loads(output.read_text(encoding="utf-8").splitlines()[0])["llm_chiang"] == 5.0
    assert "+chat+json|" in output.with_name("scores.jsonl.meta.json").read_text(encoding="utf-8")


def test_openais_own_kind_of_model_takes_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with serve(answering({"Engagingness": 0.5})) as server:
        model = load_language_model("openai-chat-completions", f"model=gpt-5,base_url={server.chat},structured_output=true")
        assert PromptedJudge(model).score(ONE).values == (0.5,)
    assert server.asked[0]["response_format"] == response_format(Engagingness=number("number", 0, 1))


# What counts as an answer


def llm_judge(content: object, finish: str = "stop", **arguments: object) -> Scores:
    with serve(lambda _: reply(content, finish)) as server:
        return PromptedJudge(chat(server, **arguments), prompt="dre").score(ONE)


@pytest.mark.parametrize(
    "content",
    ['{\n  "LLM_Overall_Score" : 4\n}\n', '<think>{"LLM_Overall_Score": 1}</think>\n{"LLM_Overall_Score": 4.0}', None],
)
def test_the_object_counts_however_it_is_laid_out(content: str | None) -> None:
    parts = [{"type": "thinking", "thinking": "{}"}, {"type": "text", "text": '{"LLM_Overall_Score": 4}'}]
    assert llm_judge(content or parts).values == (0.8,)


@pytest.mark.parametrize(
    "content",
    [
        *("LLM Overall Score: 4", '```json\n{"LLM_Overall_Score": 4}\n```', 'Sure: {"LLM_Overall_Score": 4}'),
        *('{"LLM Overall Score": 4}', '{"LLM_Overall_Score": 4, "why": "tea"}', '[{"LLM_Overall_Score": 4}]', "4", ""),
        *('{"LLM_Overall_Score": 4, "LLM_Overall_Score": 1}', '{"LLM_Overall_Score": NaN}', '{"LLM_Overall_Score": 1e999}'),
        *('{"LLM_Overall_Score": true}', '{"LLM_Overall_Score": {"score": 4}}', '{"LLM_Overall_Score": null}', "{}"),
    ],
)
def test_anything_else_has_no_score_though_a_number_could_be_read_in_it(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server may take `response_format` and ignore it."""
    caplog.set_level("DEBUG", unread_answers.name)
    with serve(lambda _: reply(content)) as server:
        for _ in range(2):
            model = CachedLanguageModel(chat(server), AnswerCache(tmp_path / "answers.sqlite"))
            scores = PromptedJudge(model, prompt="dre").score(ONE)
            problem = f"the answer is not the JSON that structured_output asks for: {content!r}"
            assert scores.unscored == {0: Unscored(Reason.PARSE_FAILURE, problem)}
        # It is not kept, so that the same command asks again when the server is mended.
        assert len(server.asked) == 2
    assert caplog.messages.count(f"unread answer (parse_failure): {content!r}") == 2


def test_a_number_beyond_the_scale_is_out_of_range() -> None:
    problem = "9 is not on the scale 0 to 5: 'LLM Overall Score: 9.0'"
    assert llm_judge('{"LLM_Overall_Score": 9}').unscored == {0: Unscored(Reason.OUT_OF_RANGE, problem)}


def test_json_that_was_cut_is_asked_for_once_more() -> None:
    def rule(body: Body) -> Reply:
        return reply('{"Rating": 4}') if body["max_tokens"] > 64 else reply('{"Rating": 4', "length")

    with serve(rule) as server:
        judge = LlmChiang(chat(server, num_concurrent=4), criteria="coherence", n_samples=2)
        assert judge.score(ONE).values == (4.0,)
    assert sorted(body["max_tokens"] for body in server.asked) == [64, 64, TOKENS_WHEN_CUT, TOKENS_WHEN_CUT]
    assert all(body["response_format"] == response_format(Rating=number("integer", 1, 5)) for body in server.asked)


@pytest.mark.parametrize("content", ['{"LLM_Overall_Score": 4', "<think> {", "LLM Overall Score: 4. The"])
def test_json_that_was_cut_twice_or_may_not_be_longer_is_truncated(content: str) -> None:
    problem = f"the answer was cut off before its JSON was complete: {content!r}. {MORE_ROOM}"
    for arguments in ({}, {"max_gen_toks": 16}):
        assert llm_judge(content, "length", **arguments).unscored == {0: Unscored(Reason.TRUNCATED, problem)}


def test_json_that_ends_where_its_tokens_do_is_whole() -> None:
    assert llm_judge('{"LLM_Overall_Score": 4}', "length").values == (0.8,)


# Which evaluator it is


def test_scores_with_and_without_it_are_those_of_two_evaluators(tmp_path: Path) -> None:
    def rule(body: Body) -> Reply:
        return reply('{"Engagingness": 0.75}' if "response_format" in body else "0.25")

    with serve(rule) as server:
        found = {}
        for given in (True, False, True, False):
            cache = AnswerCache(tmp_path / "answers.sqlite")
            judge = PromptedJudge(CachedLanguageModel(chat(server, structured_output=given), cache))
            scores = judge.score(ONE)
            found[given] = (scores.values, str(scores.signature))
        # Each was asked once, and neither was answered with what was kept of the other.
        assert len(server.asked) == 2
        plain = load_language_model("local-chat-completions", f"model=m,base_url={server.chat}").identity
    assert [values for values, _ in found.values()] == [(0.75,), (0.25,)]
    assert f"|llm:{plain}|" in found[False][1]
    assert found[True][1] == found[False][1].replace(plain, f"{plain}+json")


# What is refused


REFUSALS = [
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    'response_format type must be one of "text" or "json_object", but got: json_schema',
    "Grammar error: minimum is not implemented",
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_server_that_refuses_it_ends_the_run_with_the_way_out(words: str, caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"error": {"message": words, "api_key": "sk-abcdefghijklmnopqrstuvwxyz"}})
    with serve(lambda _: Reply(body, 400)) as server:
        judge = LlmChiang(chat(server, num_concurrent=4), n_samples=5)
        with refused(
            "llm_args: the server refuses what structured_output=true sends: "
            f"{body.replace('sk-abcdefghijklmnopqrstuvwxyz', '***')}. "
            "Leave structured_output out, or choose a server and a model that take response_format."
        ):
            judge.score(ONE)
    assert len(server.asked) <= 4
    gc.collect()
    # One error is raised; those of the requests that were under way beside it are not printed.
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_what_else_a_server_refuses_is_mended_or_fails_as_without_it() -> None:
    echoed = {"detail": [{"loc": ["body", "stop"], "msg": "Extra inputs are not permitted"}]}

    def rule(body: Body) -> Reply:
        if "stop" in body:
            return Reply({**echoed, "input": body, "error": "unknown field 'stop'"}, 422)
        return Reply({"error": "not today"}, 400) if "No tea" in prompt_of(body) else reply('{"Engagingness": 1}')

    with serve(rule) as server:
        scores = PromptedJudge(chat(server, num_concurrent=4)).score([*ONE, Example.from_texts(["Tea?"], "No tea.")])
    assert scores.values == (1.0, None)
    assert scores.unscored == {1: Unscored(Reason.API_ERROR, "HTTP 400")}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("hf", "pretrained=gpt2"),
        ("local-completions", "model=m,base_url=http://127.0.0.1:9"),
        ("anthropic-chat-completions", "model=m"),
    ],
)
def test_models_that_cannot_be_asked_so_are_refused(kind: str, given: str) -> None:
    with refused(
        f"llm {kind!r}: structured_output is for chat servers that take response_format. "
        "Leave it out, or choose llm='local-chat-completions' or 'openai-chat-completions'."
    ):
        load_language_model(kind, f"{given},structured_output=true")
    with refused(f"llm {kind!r}: structured_output is 'json'. Give true or false."):
        load_language_model(kind, f"{given},structured_output=json")


def test_a_prompt_that_asks_for_a_text_is_not_asked() -> None:
    with serve(answering({})) as server:
        model = chat(server)
        with refused(
            f"llm {model.identity}: structured_output asks for ratings and labels, and this prompt asks for a text. "
            "Leave structured_output out of llm_args."
        ):
            model.generate(requests_for(["Write a response."]))
    assert server.asked == []
