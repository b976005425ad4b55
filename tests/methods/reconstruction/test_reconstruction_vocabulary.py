"""Words, and the vocabulary that is learnt from them."""

from __future__ import annotations

import pytest

from dialeval_plugin.methods.reconstruction.vocabulary import END, UNKNOWN, Vocabulary, words
from tests.refusals import refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know.", "i don ' t know ."),
        ("I don ’ t know .", "i don ' t know ."),
        ("“Well”, she said...", 'well " " , she said . . .'),
        ("<unk> </s>", "< unk > < / s >"),
        ("Ｆｕｌｌ width № 5", "full width no 5"),
        ("日本 🙂", "日本 🙂"),
        (" \t\n", ""),
    ],
)
def test_words_are_lower_case_and_punctuation_stands_alone(text: str, expected: str) -> None:
    assert sorted(words(text)) == sorted(expected.split())


def test_the_most_frequent_words_are_learnt_ties_in_the_order_of_the_alphabet() -> None:
    utterances = [["b", "a", "c"], ["b", "a", "d"], ["b", "e"]]
    assert Vocabulary.learn(utterances, max_words=10, min_count=2).words == ("b", "a")
    assert Vocabulary.learn(utterances, max_words=3, min_count=1).words == ("b", "a", "c")
    assert len(Vocabulary(("b", "a"))) == 6


def test_a_text_becomes_numbers_that_no_text_can_spell_besides_its_words() -> None:
    vocabulary = Vocabulary(("hi", "you", "unk", "s"))
    assert vocabulary.encode("Hi you stranger", max_tokens=30) == ((4, 5, UNKNOWN, END), False)
    assert vocabulary.encode("<unk>", max_tokens=30).ids == (UNKNOWN, 6, UNKNOWN, END)
    assert vocabulary.encode("", max_tokens=30) == ((END,), False)


@pytest.mark.parametrize(("n_words", "is_cut"), [(28, False), (29, False), (30, True), (1_000_000, True)])
def test_what_is_longer_than_the_window_is_cut_and_still_ends(n_words: int, is_cut: bool) -> None:
    found = Vocabulary(("hi",)).encode("hi " * n_words, max_tokens=30)
    assert found == ((4,) * min(29, n_words) + (END,), is_cut)


def test_a_word_that_stands_twice_is_refused() -> None:
    with refused("vocabulary: a word occurs twice. Give each word once."):
        Vocabulary(("hi", "hi"))
