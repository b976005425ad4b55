"""SLIDE's classification prompt (appendix A.3) and the reading of its answers."""

from __future__ import annotations

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.classification import (
    PRINTED_EXAMPLES,
    ClassificationPrompt,
    classify,
    read_label,
)
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel

EXAMPLE = Example.from_texts(["Shall we walk?", "It rains."], "Then let us stay in.")

PRINTED = """\
Example 4:
Context:
FS: We have to pick up Conrad before the party.
SS: Alright, no problem.
FS: We're supposed to meet him at Cal's Bar at 10
Response:
I pushed the problem aside; at present it was insoluble."
Prediction: Negative

Example 5:
Context:
FS: Is there something wrong?
SS: I enjoy having your daughter in my class.
FS: I'm glad to hear it.
Response:
I think there was something wrong with the CCTV camera installed in the class.
Prediction: Negative

Context:
FS: Shall we walk?
SS: It rains.
Response:
Then let us stay in.
Prediction:"""


def test_the_prompt_is_the_printed_one_with_its_five_examples() -> None:
    text = ClassificationPrompt().render(EXAMPLE)
    assert text.startswith(
        "You are a classifier. Given a conversation context, which includes 2 speakers[annotated as FS(FirstSpeaker) and "
        "SS(SecondSpeaker)], and a response. Your task is to classify this response whether is positive or negative.\n\n"
        "Positive Response\nPositive response is valid for the conversation context.\n\nAdversarial Negative Response\n"
    )
    assert (
        '\n\nYour output format is only the "Positive" or "Negative".\n\nExample\n\nThe following are five examples of a '
        "conversation context and response, and the corresponding prediction.\n\nExample 1:\nContext:\n"
    ) in text
    assert text.endswith(PRINTED)
    predictions = [line.removeprefix("Prediction:") for line in text.splitlines() if line.startswith("Prediction")]
    assert predictions == [*[" Positive"] * 3, *[" Negative"] * 2, ""]


def test_a_change_of_wording_has_to_come_with_a_new_version() -> None:
    assert ClassificationPrompt().id == "slide_classification-v1-522cdbd03f2ae01d"
    assert ClassificationPrompt(PRINTED_EXAMPLES[:4]).id != ClassificationPrompt().id


@pytest.mark.parametrize(
    ("context", "n_shown", "heading"),
    [
        (["is there  something WRONG?", "I enjoy having your daughter in my class."], 1, "is one example"),
        (["Is there something wrong?", "I enjoy having your daughter in my class.", "I'm glad to hear it.", "So?"], 1, None),
        (["We have to pick up Conrad before the party."], 4, "are four examples"),
        (["Is there something else?"], 5, "are five examples"),
        ([], 5, None),
    ],
)
def test_no_example_comes_from_the_tested_dialogue(context: list[str], n_shown: int, heading: str | None) -> None:
    tested = Example.from_texts(context, "Yes.")
    text = ClassificationPrompt().render(tested)
    assert len(ClassificationPrompt().shown_for(tested)) == n_shown
    assert text.count("\nPrediction: ") == n_shown
    assert heading is None or f"The following {heading} of a conversation" in text


def test_without_examples_there_is_no_heading_for_them() -> None:
    text = ClassificationPrompt(()).render(EXAMPLE)
    assert text.partition('"Negative".')[2].startswith("\n\nContext:\nFS: Shall we walk?")


def test_named_speakers_keep_their_tags() -> None:
    turns = (Turn("a", "Tom"), Turn("b", "Tom"), Turn("c", "Ann"), Turn("d", "Tom"))
    text = ClassificationPrompt().render(Example("0", turns, Turn("e", "Ann")))
    assert text.partition("Example 5:")[2].endswith("\nContext:\nFS: a\nFS: b\nSS: c\nFS: d\nResponse:\ne\nPrediction:")


def test_answers_are_read_or_unscored_and_a_blank_response_is_not_asked_about() -> None:
    failed = Unscored(Reason.API_ERROR, "TimeoutError: slow")
    answers = {"alpha": " Positive", "beta": "negative.", "gamma": "Perhaps.", "delta": "**Positive**\n\nExample 6:"}
    model = ScriptedLanguageModel(lambda prompt: answers.get(prompt.splitlines()[-2], failed))
    assert (classify(model, []), model.batches) == ([], [])
    examples = [Example.from_texts(["Hi."], text) for text in ("alpha", "beta", " \u200b", "gamma", "delta", "epsilon")]
    found = classify(model, examples)
    assert [item.reason if isinstance(item, Unscored) else item for item in found] == [
        "positive", "negative", Reason.EMPTY_INPUT, Reason.PARSE_FAILURE, "positive", Reason.API_ERROR,
    ]  # fmt: skip
    assert (found[-1], model.batches) == (failed, [5])


@pytest.mark.parametrize("answer", ["Adversarial negative", "Prediction: Adversarial  Negative", "Negative"])
def test_a_negative_response_may_be_called_as_the_prompt_calls_it(answer: str) -> None:
    assert read_label(answer, "", EXAMPLE) == "negative"
