"""Code that all adapters share, without any host."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from typing import Any

import pytest

from dialeval_plugin import load_scorer
from dialeval_plugin.integrations.evaluation import Evaluation, Evaluator
from tests.refusals import refused

SAID = {"role": "assistant", "content": "Great, just back from a run."}
NO_ROLE = (
    "input: conversation '0', message 2: has no 'role'. Name the field of its speaker by --columns speaker=NAME, or give a "
    "'role': user, assistant, system, or a speaker's name."
)
ASKED = {"role": "user", "content": "Hi, how are you?"}


def evaluated(*messages: dict[str, str], name: str = "response_length", **options: Any) -> Evaluation:
    (found,) = Evaluator(name, options)([{"messages": list(messages)}], "messages")
    return found


def test_a_score_is_the_mean_of_the_answers_and_the_details_are_of_the_worst() -> None:
    found = evaluated(ASKED, SAID, ASKED, {**SAID, "content": "Fine."}, ASKED, {**SAID, "content": ""})
    signature = str(load_scorer("response_length").score([]).signature)
    details = {"signature": signature, "scored": 2, "unscored": 1, "characters": 5.0}
    explanation = "the worst of 2 scored answers is message 4 with 1.00"
    assert found == Evaluation("response_length", 3.5, "", explanation, details)


@pytest.mark.parametrize(("turns", "mean"), [("last", 1.0), ("assistant", 3.5), ("all", 11 / 3), (None, 3.5)])
def test_turns_are_chosen(turns: str | None, mean: float) -> None:
    found = evaluated(ASKED, SAID, ASKED, {**SAID, "content": "Fine."}, turns=turns)
    assert found.value is not None
    assert math.isclose(found.value, mean)


@pytest.mark.parametrize(
    ("messages", "reason", "explanation"),
    [
        ([ASKED], "no_answer", "the conversation has no answer to score"),
        ([ASKED, {**SAID, "content": " "}], "empty_input", "the response has no visible character"),
        (
            [ASKED, {"content": "Fine."}],
            "unreadable",
            NO_ROLE,
        ),
    ],
)
def test_without_a_score_there_is_a_reason(messages: list[dict[str, str]], reason: str, explanation: str) -> None:
    found = evaluated(*messages)
    assert (found.value, found.reason, found.explanation) == (None, reason, explanation)
    assert found.details["signature"] == str(load_scorer("response_length").score([]).signature)


def test_a_request_in_fields_of_any_name_says_which_names_are_known() -> None:
    (found,) = Evaluator("response_length", {})([{"input": {"a": "Hi.", "b": "?"}, "output": "Fine."}], "exchange")
    message = "Give each as a text, messages, or in a field 'question' or 'answer'."
    assert found.reason == "unreadable"
    assert found.explanation.startswith(f"input: has a request or an answer that is no chat. {message}")


def test_conversations_keep_their_places_whatever_is_wrong_with_others() -> None:
    chats = [[ASKED], [ASKED, SAID], [ASKED, {"content": "Fine."}], [ASKED, {**SAID, "content": "Fine."}]]
    found = Evaluator("response_length", {})([{"messages": chat} for chat in chats], "messages")
    assert [(one.value, one.reason) for one in found] == [(None, "no_answer"), (6.0, ""), (None, "unreadable"), (1.0, "")]


def test_spans_without_an_answer_are_left_out_and_those_that_cannot_be_read_are_named(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"messages": chat} for chat in ([ASKED], [ASKED, SAID], [ASKED, {"content": "Fine."}])]
    with caplog.at_level(logging.WARNING, logger="dialeval_plugin"):
        found = Evaluator("response_length", {}).of_spans(["a", "b", "c"], rows, "messages")
    assert [(span, one.value) for span, one in found] == [("b", 6.0)]
    assert caplog.messages == [f"1 of 3 spans hold no conversation and are left out; the first: {NO_ROLE}"]


def test_a_dialogue_has_one_score() -> None:
    found = evaluated(ASKED, SAID, ASKED, SAID, name="general", level="dialogue")
    assert found.value is not None
    assert found.details["scored"] == 1
    assert found.explanation.startswith("turn 4 of 4: ")


def test_auto_is_recorded_under_the_name_of_the_one_that_judged_and_has_no_mean() -> None:
    assert evaluated(ASKED, SAID, name="auto").name == "general"
    message = "auto: its scores have no common scale, so no mean. Choose general or assistant."
    with refused(message):
        Evaluator("auto", {}, takes_mean=True)


def test_scorers_of_one_name_are_told_apart_by_a_label(caplog: pytest.LogCaptureFixture) -> None:
    chats = [[ASKED], [ASKED, SAID, ASKED, {**SAID, "content": "Fine."}], [ASKED, {"content": "Fine."}]]
    rows = [{"messages": chat} for chat in chats]
    with caplog.at_level(logging.WARNING, logger="dialeval_plugin"):
        for _ in range(2):
            found = Evaluator("random", {"turns": "last"}, label="last")(rows, "messages")
            assert [one.name for one in found] == ["last"] * 3
            assert Evaluator("random", {})(rows, "messages")[0].name == "random"
        assert caplog.messages == []
        for label, name in ((None, "random"), ("last", "last")):
            Evaluator("random", {"seed": 7}, label=label)
            problem = "was opened before with other options, and a host has one score of a name"
            assert caplog.messages[-1] == f"{name!r}: {problem}. Give each a label='...'."
        Evaluator("random", {"seed": 8}, takes_mean=True)
    assert len(caplog.messages) == 2
    found = Evaluator("auto", {}, label="mine")(rows, "messages")
    assert [one.name for one in found] == ["mine"] * 3


def test_a_choice_of_turns_that_there_is_not_is_refused() -> None:
    with refused("turns: there is no choice 'first'. Known are: assistant, all, last."):
        Evaluator("general", {"turns": "first"})


def test_the_package_imports_no_host() -> None:
    hosts = "inspect_ai mlflow deepeval opentelemetry langfuse phoenix"
    code = (
        "import sys, dialeval_plugin, dialeval_plugin.integrations.evaluation\n"
        f"print([host for host in {hosts.split()!r} if host in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
