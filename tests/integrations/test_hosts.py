"""Every host has of a conversation what dialeval says of it: with the host's real package, where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import Scorer, examples_from, load_scorer, register_scorer
from dialeval_plugin.core.dialogue import Item
from tests.integrations.through_hosts import LAST, WHOLE, Messages, Record, chat, needed
from tests.refusals import refused

HOSTS = {**WHOLE, **LAST}


CHATS = [
    chat("Have you been up to anything this weekend?", "We went hiking in the mountains. How about you?"),
    chat("Have you been up to anything this weekend?", "I see."),
    chat("Hi, how are you?", "Great, just back from a run.", "Where do you run?", "The parking garage closes at ten."),
    chat("Hi, how are you?", "Great, just back from a run.", "Where do you run?", " "),
    chat("Hi, how are you?", " "),
]


def expected(scorer: str, said: Messages, host: str) -> Record:
    """Return the record of a conversation, by the public names alone."""
    opened = load_scorer(scorer)
    examples = examples_from([said], "last" if host in LAST else None)
    scores = opened.score(examples)
    signature = str(scores.signature)
    found = [value for value in scores.values if value is not None]
    if not found:
        return Record(opened.name, None, scores.unscored[0].reason.value, scores.unscored[0].detail, signature)
    worst = scores.values.index(min(found))
    explanation = opened.explain([examples[worst]])[0] if scorer == "general" else ""
    if len(examples) > 1:
        begin = f"the worst of {scores.n_scored} scored answers is message {2 * worst + 2} with {min(found):.2f}"
        explanation = f"{begin}: {explanation}" if explanation else begin
    return Record(opened.name, sum(found) / len(found), "", explanation, signature)


@pytest.mark.parametrize("scorer", ["general", "response_length"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_what_dialeval_says(host: str, scorer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # DeepEval writes to the working folder
    found = HOSTS[host](CHATS, tmp_path, scorer)
    wanted = [expected(scorer, said, host) for said in CHATS]
    assert [one._replace(value=None) for one in found] == [one._replace(value=None) for one in wanted]
    assert [one.value for one in found] == pytest.approx([one.value for one in wanted], abs=1e-6)


@pytest.mark.parametrize("host", ["inspect-ai"])
def test_an_output_that_is_no_message_of_the_sample_is_scored(host: str) -> None:
    needed("inspect_ai")
    from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    from dialeval_plugin.integrations.inspect_ai import dialeval_scorer

    asked, said = (message["content"] for message in CHATS[0])
    messages = [ChatMessageUser(content=asked)]
    state = TaskState(
        model=ModelName("mockllm/model"), sample_id=1, epoch=1, input=asked, messages=messages,
        output=ModelOutput.from_content("mockllm/model", said),
    )  # fmt: skip
    score = asyncio.run(dialeval_scorer("response_length")(state, Target("")))
    assert score is not None
    assert score.value == len(said.split())


@pytest.mark.parametrize("host", ["inspect-ai"])
def test_a_scorer_that_there_is_not_and_one_without_a_common_scale_are_refused(host: str) -> None:
    needed("inspect_ai")
    from dialeval_plugin.integrations.inspect_ai import dialeval_scorer

    with refused("auto: its scores have no common scale, so no mean. Choose general or assistant."):
        dialeval_scorer("auto")
    with pytest.raises(Exception, match=r"^there is no scorer 'generals'\. Did you mean 'general'\?"):
        dialeval_scorer("generals")


@pytest.mark.parametrize("host", ["deepeval"])
def test_a_low_score_passes_where_lower_is_better(host: str) -> None:
    needed("deepeval")
    from deepeval.test_case import ConversationalTestCase, Turn

    from dialeval_plugin.integrations.deepeval import DialevalMetric

    @register_scorer("loudness")
    class Loudness(Scorer):
        name = "loudness"
        columns = ("loudness",)
        orientation = "lower"

        def score_batch(self, items: Sequence[Item]) -> list[Any]:
            return [{"loudness": float(item.response.text.count("!"))} for item in items]  # type: ignore[union-attr]

        def signature_fields(self) -> dict[str, Any]:
            return {"method": self.name}

    def passes(text: str, threshold: float | None) -> bool | None:
        metric = DialevalMetric("loudness", threshold)
        metric.measure(ConversationalTestCase(turns=[Turn(role="user", content="Hi."), Turn(role="assistant", content=text)]))
        return metric.success

    assert [passes(text, 1.0) for text in ("Hi.", "Hi!", "Hi!!", "")] == [True, True, False, False]
    assert passes("Hi.", None) is None


@pytest.mark.parametrize("host", ["deepeval"])
def test_what_deepeval_would_take_for_a_failed_case_is_refused(host: str) -> None:
    needed("deepeval")
    from deepeval.test_case import LLMTestCase

    from dialeval_plugin.integrations.deepeval import DialevalMetric

    with refused("response_length: threshold is '3'. Give a number."):
        DialevalMetric("response_length", threshold="3")  # type: ignore[arg-type]
    kind = "Give a ConversationalTestCase, with the answers among its turns."
    with refused(f"dialeval words: got a LLMTestCase. {kind}"):
        DialevalMetric("response_length", threshold=3, label="words").measure(LLMTestCase(input="Hi.", actual_output="Hi."))


@pytest.mark.parametrize("host", ["mlflow"])
def test_two_scorers_of_one_name_have_two_means(host: str, tmp_path: Path) -> None:
    mlflow = needed("mlflow")
    from dialeval_plugin.integrations.mlflow import dialeval_scorer

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_experiment("chat")
    rows = [{"inputs": {"messages": CHATS[0][:1]}, "outputs": ["One two.", "Three."]}]
    scorers = [dialeval_scorer("response_length"), dialeval_scorer("response_length", label="last", turns="last")]
    found = mlflow.genai.evaluate(data=rows, scorers=scorers).metrics
    assert found == {"dialeval_response_length/mean": 1.5, "dialeval_last/mean": 1.0}
