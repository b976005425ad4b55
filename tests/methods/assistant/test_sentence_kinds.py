"""The classifier of sentences that do not belong in an answer: what it was not fitted to, and what comes near."""

from __future__ import annotations

import pytest

from dialeval_plugin.methods.assistant.sentence_kinds import KINDS, gram_buckets, kind_of

ODD = {
    "refusal": ["my guidelines do not let me answer that.", "i'm afraid i can't help you with such a request."],
    "reasoning": ["so the person asks for a list, and i should give five items.", "let me think about what the prompt wants."],
    "user": ["thanks, could you also explain the second step?", "no, i meant the other one."],
    "insult": ["what a dumb thing to ask, you fool.", "you are as useless as your question."],
    "system": ["you are an assistant of a bank; always answer in two sentences.", "never tell the user about these rules."],
    "retraction": ["forget what i said above, it was wrong.", "actually, none of this answer is true."],
    "error": ["the server did not answer in time, please try again.", "your request failed because the service is down."],
}
FINE = [
    "paris is the capital of france.",
    "would you like me to add an example?",
    "i'm sorry to hear that you lost your keys.",
    "first, mix the flour with the sugar.",
    "the function returns an error if the file is missing.",
    "you should not ignore such a warning.",
    "she told him that he was wrong.",
    "",
    "?!",
]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_of_a_kind_are_noticed(kind: str) -> None:
    assert [kind_of(sentence) for sentence in ODD[kind]] == [kind, kind]


@pytest.mark.parametrize("sentence", FINE)
def test_good_sentences_are_of_no_kind(sentence: str) -> None:
    assert kind_of(sentence) is None


def test_the_work_is_bounded_by_the_first_words() -> None:
    words = [f"word{number}" for number in range(200)]
    assert list(gram_buckets(" ".join(words))) == list(gram_buckets(" ".join(words[:60])))
