from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dialeval_plugin.core.dialogue import mean_rating
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dailydialog_pp
from tests.refusals import refused

SIZES: dict[mini.Split, int] = {"train": 48, "validation": 12, "test": 12}


@pytest.mark.parametrize(("split", "size"), SIZES.items())
def test_splits_have_five_responses_of_each_kind_and_random_ones_fit_five_other_contexts(split: mini.Split, size: int) -> None:
    sets = mini.read_response_sets(split)
    assert len(sets) == size
    for found in sets:
        assert len(found.context) >= 1
        assert [len(set(responses)) for responses in (found.positive, found.adversarial, found.random)] == [5, 5, 5]
        owners = [{other.id for other in sets if response in other.positive} for response in found.random]
        assert all(owner and found.id not in owner for owner in owners)
        assert len({tuple(sorted(owner)) for owner in owners}) == mini.RANDOM_NEGATIVES


def test_splits_are_disjoint_and_make_up_the_whole_as_the_dailydialog_pp_reader_has_it() -> None:
    parts = [found for split in mini.SPLITS for found in mini.read_response_sets(split)]
    # Random negatives are the same every time; the file has none.
    assert mini.read_response_sets() == parts
    assert len({found.id for found in parts}) == len({found.context for found in parts}) == sum(SIZES.values())
    published = {found.id: found for found in dailydialog_pp.read(mini.folder() / "dailydialog_pp.jsonl")}
    assert {found.id: replace(found, random=()) for found in parts} == published


@pytest.mark.parametrize(("split", "size"), SIZES.items())
def test_examples_are_labelled_by_construction(split: mini.Split, size: int) -> None:
    examples = mini.read_examples(split)
    assert len({example.id for example in examples}) == len(examples) == size * 15
    assert {tuple(example.ratings) for example in examples} == {("fits",)}
    assert Counter((example.system, mean_rating(example, "fits")) for example in examples) == {
        ("positive", 1.0): size * 5,
        ("random", 0.0): size * 5,
        ("adversarial", 0.0): size * 5,
    }


def test_examples_hold_the_response_sets_texts() -> None:
    by_id = {example.id: example for example in mini.read_examples("test")}
    for found in mini.read_response_sets("test"):
        assert by_id[f"{found.id}a4"].response.text == found.adversarial[4]
        assert tuple(turn.text for turn in by_id[f"{found.id}p0"].context) == found.context


def test_unknown_split_lists_the_known_ones() -> None:
    message = "mini: there is no split 'dev'. Known are: train, validation, test."
    with refused(message):
        mini.read_examples("dev")  # type: ignore[arg-type]
