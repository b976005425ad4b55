"""Spoiled answers: seeded, never what they spoil, and seen by the rules that they are made for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dialeval_plugin.methods.assistant.judging import DEFECTS
from dialeval_plugin.methods.assistant.rules import (
    LANGUAGES,
    RULE_FEATURES,
    language_of,
    rule_features,
    split_sentences,
    topic_words,
)
from dialeval_plugin.methods.assistant.spoiling import LEFT_OPEN, restyled, spoiled

CONTEXT = (
    "Who painted the Mona Lisa?",
    "Leonardo da Vinci painted it in Florence, between 1503 and 1519.",
    "What should I pack for a week of hiking in Norway in September?",
)
ANSWER = (
    "For a week of hiking in Norway, take layers: a base layer of wool, a fleece and a jacket that is waterproof. Nights are"
    " close to freezing, so bring a warm sleeping bag. You will also need:\n\n1. Boots that you have worn.\n"
    "2. 3 pairs of socks.\n3. A map and a headlamp.\n\nThe weather can change within 2 hours, so do not leave your jacket."
)
OTHERS = (
    "The heart of a blue whale is about as large as a small car.",
    "To bake bread, mix flour, water, salt and yeast, and let the dough rest overnight.",
)
SEEN_BY = {
    "cut_off": ("no_end_mark",),
    "looping": ("looping_tail", "repeated_ngrams", "repeated_sentences", "longest_run"),
    "leaked": ("special_tokens", "reasoning", "system_prompt", "spoken_reasoning"),
    "second_voice": ("speaker_labels", "user_voice"),
    "refusal": ("refusal_opening",),
    "boilerplate": ("set_phrases",),
    "wrong_language": ("other_script", "other_language", "foreign_part"),
    "error_message": ("error_phrase", "raw_data"),
    "stale": ("repeated_answer",),
    "echo": ("copied_question", "whole_question"),
    "contradiction": ("contradicting_twin", "takes_back"),
    "gibberish": ("odd_letters", "odd_order", "odd_order_part", "other_language"),
    "insult": ("insult",),
}
"""Features that show each defect. No rule tells whether an answer is off topic."""


def drawn(n: int = 60) -> dict[str, list[str]]:
    generator = np.random.default_rng(7)
    found: dict[str, list[str]] = {defect.name: [] for defect in DEFECTS}
    for _ in range(n):
        for name, text in spoiled(CONTEXT, ANSWER, OTHERS, generator).items():
            found[name].append(text)
    return found


DRAWN = drawn()


def test_defects_stand_in_the_order_of_their_columns() -> None:
    assert [defect.name for defect in DEFECTS] == [
        *("cut_off", "looping", "leaked", "second_voice", "refusal", "boilerplate", "wrong_language"),
        *("error_message", "off_topic", "stale", "echo", "contradiction", "gibberish", "insult"),
    ]


@pytest.mark.parametrize("name", [defect.name for defect in DEFECTS])
def test_an_answer_is_spoiled_in_each_way_and_differs(name: str) -> None:
    assert len(DRAWN[name]) > 50
    assert ANSWER not in DRAWN[name]
    assert all(text.strip() for text in DRAWN[name])


@pytest.mark.parametrize("name", SEEN_BY)
def test_rules_see_what_was_done(name: str) -> None:
    columns = [RULE_FEATURES.index(feature) for feature in SEEN_BY[name]]
    good = rule_features(CONTEXT, ANSWER)[columns]
    seen = [(rule_features(CONTEXT, text)[columns] > good + 0.05).any() for text in DRAWN[name]]
    assert sum(seen) >= (0.8 if name == "contradiction" else 0.95) * len(seen)


@pytest.mark.parametrize(
    "name", ["cut_off", "looping", "leaked", "refusal", "boilerplate", "error_message", "gibberish", "insult"]
)
def test_no_text_is_drawn_again_and_again(name: str) -> None:
    assert Counter(DRAWN[name]).most_common(1)[0][1] < 10


def test_the_same_generator_draws_the_same_texts() -> None:
    assert drawn(5) == drawn(5)


def test_what_the_context_has_no_room_for_is_left_out() -> None:
    short = spoiled(("Translate hello into German.",), "Hallo", (), np.random.default_rng(1))
    assert short.keys().isdisjoint({"cut_off", "off_topic", "stale", "wrong_language", "contradiction"})
    assert {"refusal", "leaked", "insult"} <= short.keys()


def test_another_language_is_none_of_the_answers_own() -> None:
    generator = np.random.default_rng(3)
    texts = [
        spoiled(("Wie kocht man das Ei?",), "Das Ei kocht man in dem Wasser.", OTHERS, generator)["wrong_language"]
        for _ in range(30)
    ]
    german = LANGUAGES["de"]["sentences"]
    assert not [text for text in texts if any(sentence in text for sentence in german)]


@pytest.mark.parametrize(
    ("text", "code"), [("Das Ei kocht man in dem Wasser.", "de"), ("This is an egg.", "en"), ("C'est un œuf.", "fr")]
)
def test_a_language_is_told_by_its_frequent_words(text: str, code: str) -> None:
    assert language_of(text) == code


def test_topics_are_words_of_the_question() -> None:
    assert topic_words("What is the best way to boil brown eggs quickly?", 2) == "boil brown"
    assert topic_words("Why?", 3) == ""


def test_sentences_end_at_marks_and_lines() -> None:
    assert split_sentences('It is 3.5 m.\n"Really?" Yes!\n\n你好。再见。') == [
        "It is 3.5 m.",
        '"Really?"',
        "Yes!",
        "你好。",
        "再见。",
    ]


def test_each_way_of_spoiling_says_which_other_defects_it_leaves_open() -> None:
    names = {defect.name for defect in DEFECTS}
    assert set(LEFT_OPEN) == names
    for name, others in LEFT_OPEN.items():
        assert set(others) < names - {name}


def test_a_change_that_nobody_minds_leaves_the_words_as_they_are() -> None:
    generator = np.random.default_rng(3)
    response = f"# Packing\n\n**First** of all: {ANSWER}"
    made = Counter(restyled(response, generator) for _ in range(200))
    assert {response.removesuffix("."), response.replace("# ", "").replace("**", "")} <= set(made)
    bold = [text for text in made if text.count("**") > 2]
    assert len(bold) > 20
    assert all(text.replace("**", "").split() == response.replace("**", "").split() for text in bold)
    assert restyled("No", np.random.default_rng(4)) in ("No", "**No**")
