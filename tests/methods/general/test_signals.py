"""Wrong texts: seeded, never what they spoil, and wrong in the way that their kind says."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.methods.general import signals
from dialeval_plugin.methods.general.conversations import Conversation, Pair, by_corpus
from dialeval_plugin.methods.general.signals import (
    GENERIC_REPLIES,
    NEGATIVES,
    CorpusSignals,
    replaced,
    replaced_turn,
    shuffled_turns,
    spliced,
    without_rare_words,
    words,
)

TEXT = "Well , I don't think the old harbour has a single lighthouse left, does it?"
texts = st.text(alphabet="ab c,.'d’E", max_size=40)


def corpus() -> list[Pair]:
    """Ten dialogues that differ in what they are about, a word of a single response each."""
    things = ["lighthouse", "violin", "glacier", "compost", "orchid", "sledge", "kettle", "quarry", "magnet", "tandem"]
    asked, answer = "Have you ever seen a {} up close?", "Yes, we cleaned the {} every Sunday morning."
    found = []
    for thing in things:
        turns = (asked.format(thing), "Only once, my aunt had an enormous one.", "Really?", answer.format(thing), "I see.")
        facts, misleading = ((f"I own a {thing}.",),) * 5, (f"A {thing} is what my dentist sells.",)
        found.append(Conversation("toy", turns, facts, misleading))
    return by_corpus(found)["toy"]


@given(texts, st.integers(0, 50), st.sampled_from([signals.shuffled, signals.dropped, signals.repeated]))
def test_a_spoiled_text_has_other_words_than_the_text(text: str, seed: int, spoil: object) -> None:
    spoiled = spoil(text, random.Random(seed))  # type: ignore[operator]
    assert spoiled is None or (words(spoiled) and words(spoiled) != words(text))
    assert spoiled == spoil(text, random.Random(seed))  # type: ignore[operator]


def test_each_kind_is_wrong_in_its_own_way() -> None:
    generator = random.Random(1)
    before = Counter(words(TEXT))
    shuffled, dropped, repeated = (spoil(TEXT, generator) for spoil in (signals.shuffled, signals.dropped, signals.repeated))
    assert Counter(words(str(shuffled))) == before
    assert not Counter(words(str(dropped))) - before
    assert 3 <= before.total() - len(words(str(dropped))) <= 6
    assert not before - Counter(words(str(repeated)))
    swapped = str(signals.swapped(TEXT, generator, ["zebra"]))
    assert len(words(swapped)) == before.total()
    assert 1 <= words(swapped).count("zebra") <= 5
    # Spacing and punctuation stay, so that they say nothing of what was done.
    assert swapped.startswith("Well ,") or swapped.startswith("zebra ,")
    assert swapped.endswith("?")


def test_rare_words_are_left_out_or_taken_from_elsewhere() -> None:
    def is_rare(word: str) -> bool:
        return word in {"harbour", "lighthouse", "piano"}

    assert without_rare_words(TEXT, is_rare) == "Well , I don't think the old has a single left, does it?"
    assert spliced(TEXT, "Her piano is out of tune.", is_rare) == (
        "Well , I don't think the old piano has a single piano left, does it?"
    )
    assert spliced(TEXT, "Her car is out of order.", is_rare) is None
    assert without_rare_words("It is out of order.", is_rare) is None
    assert without_rare_words("Lighthouse!", is_rare) is None


@pytest.mark.parametrize("text", ["", "...", "Yes.", "Oh no"])
def test_a_text_that_is_too_short_is_not_spoiled(text: str) -> None:
    generator = random.Random(0)
    assert signals.shuffled(text, generator) is None
    assert signals.dropped(text, generator) is None
    assert signals.swapped(text, generator, ["zebra"]) is None


def test_replaced_words_leave_the_rest_as_it_is() -> None:
    assert replaced("It’s  (very)  late , Ann-Marie!", {1: "rather", 3: "Eve"}) == "It’s (rather) late , Eve-Marie!"


def test_every_kind_is_drawn_repeatably_and_never_equals_the_response() -> None:
    pairs = corpus()
    drawn: Counter[str] = Counter()
    kinds = [kind for head in ("fit", "fluency", "specificity") for kind in NEGATIVES[head]]
    for seed in range(3):
        toy, again = CorpusSignals(pairs), CorpusSignals(pairs)
        tried = [(kind, number) for kind in kinds for number in range(len(pairs))]
        found = {(kind, number): toy.draw(kind, pairs[number], random.Random(f"{seed} {number}")) for kind, number in tried}
        # A draw does not depend on those before it.
        for kind, number in reversed(tried):
            text = found[kind, number]
            assert text == again.draw(kind, pairs[number], random.Random(f"{seed} {number}"))
            if text is not None:
                assert words(text) != words(pairs[number].response)
                drawn[kind] += 1
    assert set(drawn) == set(kinds)


def test_insults_speak_of_the_last_turn_and_stand_before_after_or_in_place_of_the_response() -> None:
    pair = Pair(Conversation("toy", ("I dropped my saxophone.", "Oh no, is it broken?")), 1)
    toy = CorpusSignals([pair, *corpus()])
    drawn = [toy.draw("insulting", pair, random.Random(seed)) or "" for seed in range(300)]
    places = {
        "before" if text.endswith(pair.response) else "after" if text.startswith(pair.response) else "alone" for text in drawn
    }
    assert places == {"before", "after", "alone"}
    assert any("saxophone" in text.lower() for text in drawn)
    assert not any("{" in text for text in drawn)


def test_wrong_responses_come_from_where_their_kind_says() -> None:
    pairs = corpus()
    toy = CorpusSignals(pairs)
    pair = next(pair for pair in pairs if pair.place == 3 and "glacier" in pair.response)
    for seed in range(20):
        generator = random.Random(seed)
        assert toy.draw("in_dialogue", pair, generator) in pair.context
        assert "glacier" not in str(toy.draw("random", pair, generator))
        # Only one dialogue is about glaciers, so what is shared is the other words of the context.
        keyword = words(str(toy.draw("keyword", pair, generator)))
        assert set(keyword) & {word for text in pair.context for word in words(text)}
        splice = str(toy.draw("splice", pair, generator))
        assert "glacier" not in splice
        assert splice.startswith("Yes, we cleaned the")
        assert toy.other_facts(pair, generator) not in (None, pair.facts)
    assert toy.draw("unspecific", pair, generator) == "Yes, we cleaned the every Sunday morning."
    assert toy.draw("written", pair, generator) is None
    last = next(pair for pair in pairs if pair.place == 4 and "glacier" in pair.context[0])
    assert toy.draw("written", last, generator) == "A glacier is what my dentist sells."


def test_the_corpus_own_frequent_utterances_are_generic_and_no_example_of_specific_ones() -> None:
    pairs = corpus()
    toy = CorpusSignals(pairs)
    assert {*GENERIC_REPLIES, "Only once, my aunt had an enormous one."} == set(toy.generic)
    generic = next(pair for pair in pairs if pair.response == "I see.")
    assert toy.draw("generic", generic, random.Random(0)) is None


def test_dialogues_are_spoiled_in_their_order_or_in_one_turn() -> None:
    turns = ("Hi.", "Hello, how are you?", "Fine.", "Good to hear.")
    mixed = shuffled_turns(turns, random.Random(0))
    assert mixed is not None
    assert mixed != turns
    assert sorted(mixed) == sorted(turns)
    assert shuffled_turns(turns[:2], random.Random(0)) is None
    assert shuffled_turns(("Yes.",) * 4, random.Random(0)) is None
    changed = replaced_turn(turns, random.Random(0), "The kettle boils.")
    assert changed is not None
    assert changed[0] == "Hi."
    assert [new for new, old in zip(changed, turns, strict=True) if new != old] == ["The kettle boils."]
    assert replaced_turn(("Hi.", "fine"), random.Random(0), "Fine.") is None
