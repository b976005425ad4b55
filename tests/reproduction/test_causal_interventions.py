"""The pairs in which a cause, or another turn, is replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example
from reproduction.causalscore.interventions import EARLIER, FALLS, LATER, interventions
from reproduction.contrasts.measures import ContrastPair

HISTORY = ["Hi.", "Do you like tea?", "Yes.", "It rains.", "I see."]
OTHERS = ["Snow!", "How cold.", "Very."]


@pytest.fixture
def found(tmp_path: Path) -> dict[str, ContrastPair]:
    """Causes of a response, its second and last turn, next to another dialogue."""
    path = tmp_path / "causes.json"
    rows = [
        {"history": HISTORY, "response": "Green tea, and I see rain.", "entities": ["like tea?", "I see."]},
        {"history": OTHERS[:2], "response": OTHERS[2], "entities": []},
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return {pair.better.id: pair for pair in interventions("X", path)}


def replaced(item: object) -> list[int]:
    """Places of the turns that another dialogue's utterance stands in."""
    assert isinstance(item, Example)
    texts = [turn.text for turn in item.context]
    strange = [place for place, text in enumerate(texts) if text in OTHERS]
    assert [text for place, text in enumerate(texts) if place not in strange] == [
        text for place, text in enumerate(HISTORY) if place not in strange
    ]
    return strange


def test_a_cause_and_the_nearest_other_turn_on_each_side_are_replaced_by_the_same_utterance(
    found: dict[str, ContrastPair],
) -> None:
    # What is replaced in the better and in the worse context, by the cause and the kind.
    assert {id: (replaced(pair.better), replaced(pair.worse)) for id, pair in found.items()} == {
        f"X 0 1 {FALLS}": ([], [1]),
        f"X 0 1 {LATER}": ([0], [1]),
        f"X 0 1 {EARLIER}": ([2], [1]),
        f"X 0 4 {FALLS}": ([], [4]),
        f"X 0 4 {LATER}": ([3], [4]),
    }
    of_first = [pair for id, pair in found.items() if id.startswith("X 0 1")]
    strangers = {turn.text for pair in of_first for item in (pair.better, pair.worse) for turn in item.context} & set(OTHERS)
    assert len(strangers) == 1
    assert {pair.kind for pair in found.values()} == {f"X, {kind}" for kind in (FALLS, LATER, EARLIER)}
    assert len({pair.id for pair in found.values()}) == 1
