"""Splits, leaks and mined negatives."""

from __future__ import annotations

import random

import pytest

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.data import (
    FITS,
    MISLEADS,
    UNRELATED,
    LexicalNegatives,
    MixedSets,
    all_labelled,
    split_by_context,
    trained_on,
    without_blanks,
)

FULL = mini.read_response_sets("train")
WEAK = [ResponseSet(f"w{item.id}", item.context, item.positive) for item in mini.read_response_sets("validation")]


def test_no_context_is_on_both_sides_of_the_split_whatever_their_order() -> None:
    twice = [*FULL, ResponseSet("copy", FULL[3].context, ("Another answer.",), ("Another trap.",)), *WEAK]
    training, validation = split_by_context(twice, fraction=0.2, seed=1)
    assert len(training) + len(validation) == len(twice)
    assert {dialogue_key(item.context) for item in training}.isdisjoint(dialogue_key(item.context) for item in validation)
    assert all(item.adversarial for item in validation)
    assert len({dialogue_key(item.context) for item in validation}) == round(0.2 * len(FULL))
    found = {seed: {item.id for item in split_by_context(twice[::-1], fraction=0.2, seed=seed).validation} for seed in (1, 2)}
    assert found[1] == {item.id for item in validation} != found[2]


def test_a_leak_is_found_whatever_its_spacing_and_case() -> None:
    known = {dialogue_key(item.context) for item in FULL}
    copy = ResponseSet("x", tuple(f"  {turn.upper()} " for turn in FULL[0].context), ("Yes.",))
    assert trained_on(known, [copy, *WEAK]) == [copy]


def test_blank_responses_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Thirty contexts whose responses were all empty became a model, without a word."""
    blank = ResponseSet("b", ("Hello.",), ("", "Hi.", " \t"), ("",), ("Yes.", "\n"))
    assert without_blanks([FULL[0], blank]) == [FULL[0], ResponseSet("b", ("Hello.",), ("Hi.",), (), ("Yes.",))]
    assert caplog.messages == ["training data: 4 blank responses are left out"]


def test_contexts_without_anything_to_learn_are_in_no_part() -> None:
    """A training with one context of positive responses only looked for a negative for ever; one with none had no rows."""
    unrelated = ResponseSet("u", ("Is it far?",), (), (), ("Yes.",))
    for useless in ([unrelated], [WEAK[0], unrelated]):
        training, validation = split_by_context([*FULL, *useless], fraction=0.2, seed=1)
        assert {item.id for item in (*training, *validation)} == {item.id for item in FULL}
    assert set(WEAK[:2]) <= set(split_by_context([*FULL, *WEAK[:2], unrelated], fraction=0.2, seed=1).training)


def test_mined_negatives_share_words_and_belong_to_another_context() -> None:
    sets = [
        ResponseSet("a", ("Did you water the roses?",), ("Yes, this morning.",)),
        ResponseSet("b", ("What did she bring?",), ("A vase of roses.", "Nothing.")),
        ResponseSet("c", ("Is it far?",), ("Two stops.",)),
    ]
    negatives = LexicalNegatives(sets)
    assert {negatives.draw(0, random.Random(seed)) for seed in range(20)} == {"A vase of roses."}
    # "Is it far?" shares no word with any response: any but its own will do.
    assert "Two stops." not in {negatives.draw(2, random.Random(seed)) for seed in range(50)}


def test_an_epoch_has_every_written_set_and_fresh_ranked_ones() -> None:
    sets = MixedSets([*FULL[:3], *WEAK], ranked_per_set=2, seed=5)
    seen = []
    for sets.epoch in range(2):
        rows = [sets[position] for position in range(len(sets))]
        assert [row.context for row in rows[:3]] == [item.context for item in FULL[:3]]
        assert [row.ranked for row in rows] == [False] * 3 + [True] * 6
        seen += [row.context for row in rows[3:]]
    assert len(set(seen)) == 12 == len(WEAK)


def test_a_row_depends_on_seed_epoch_and_position_alone() -> None:
    one, other = (MixedSets([*FULL, *WEAK], ranked_per_set=1, seed=5) for _ in range(2))
    one.epoch = other.epoch = 3
    assert [one[position] for position in (50, 2)] == [other[position] for position in (50, 2)]
    assert one[0].responses[:10] == (*FULL[0].positive, *FULL[0].adversarial)
    assert one[0].labels == (FITS,) * 5 + (MISLEADS,) * 5 + (UNRELATED,) * 2
    assert set(one[0].responses[10:]) < set(FULL[0].random)


def test_a_ranked_row_has_three_positive_responses_or_all_that_there_are() -> None:
    few = ResponseSet("few", ("Is it far?",), ("Two stops.",))
    sets = MixedSets([*WEAK, few], ranked_per_set=1, seed=5)
    rows = [sets[position] for position in range(len(sets))]
    positive = {item.context: set(item.positive) for item in (*WEAK, few)}
    for row in rows:
        n = min(3, len(positive[row.context]))
        assert row.labels == (FITS,) * n + (UNRELATED,)
        assert len(set(row.responses[:n])) == n
        assert set(row.responses[:n]) <= positive[row.context]
        assert row.responses[n] not in positive[row.context]


def test_every_response_has_the_label_of_its_kind() -> None:
    item = ResponseSet("a", ("Is it far?",), ("Two stops.", "No."), ("Far stops.",), ("Plums.",))
    assert all_labelled(item).labels == (FITS, FITS, MISLEADS)
    row = all_labelled(item, item.random)
    assert row.labels == (FITS, FITS, MISLEADS, UNRELATED)
    assert row.responses == ("Two stops.", "No.", "Far stops.", "Plums.")
