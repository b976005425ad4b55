"""Windows, contexts, shared beginnings and batches of about one length: what a model reads, without a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.models.causal import (
    ForwardPass,
    TokenSpan,
    TurnTooLong,
    Window,
    dialogue_passes,
    full_windows,
    pair_windows,
    share_beginnings,
)
from dialeval_plugin.models.tensors import padded_tensors
from dialeval_plugin.models.texts import length_batches

ROOM = 12
LENGTHS = st.lists(st.integers(1, ROOM - 1), min_size=2, max_size=30)


@given(LENGTHS)
def test_windows_score_every_turn_but_the_first_once_and_fit(lengths: list[int]) -> None:
    for windows in (full_windows(lengths, ROOM), pair_windows(lengths, ROOM)):
        assert [turn for window in windows for turn in window.turns] == list(range(1, len(lengths)))
        for window in windows:
            assert window.end - window.start <= ROOM
            for turn in window.turns:
                begin = sum(lengths[:turn])
                assert window.start < begin, "something has to stand before a turn"
                assert begin + lengths[turn] <= window.end


@given(LENGTHS)
def test_a_turn_reads_the_same_whatever_follows_it(lengths: list[int]) -> None:
    starts = {turn: window.start for window in full_windows(lengths, ROOM) for turn in window.turns}
    for turn in range(1, len(lengths)):
        assert full_windows(lengths[: turn + 1], ROOM)[-1].start == starts[turn]


@given(LENGTHS)
def test_a_cut_context_is_half_a_window_or_all_that_fits(lengths: list[int]) -> None:
    for window in full_windows(lengths, ROOM)[1:]:
        first = window.turns[0]
        begin = sum(lengths[:first])
        assert begin - window.start == min(ROOM // 2, ROOM - lengths[first])


def test_the_number_of_tokens_read_is_linear_in_the_dialogue() -> None:
    assert sum(window.end - window.start for window in full_windows([10] * 10_000, 100)) < 2.1 * 100_000


@pytest.mark.parametrize("windows", [full_windows, pair_windows])
def test_a_turn_as_long_as_the_window_is_overlong_and_a_long_first_turn_is_not(windows: Callable[..., object]) -> None:
    assert windows([1, 3, 12], 12) == TurnTooLong(2, 12)
    assert windows([500, 11], 12) == [Window(499, 511, (1,))]


def test_passes_begin_with_the_prefix_and_point_at_the_turns() -> None:
    pieces = [[1, 2], [3, 4, 5], [6]]
    (whole,) = _passes(pieces, max_tokens=10)
    assert whole.ids == (9, 1, 2, 3, 4, 5, 6)
    assert [(span.turn, whole.ids[span.start : span.end], span.is_cut) for span in whole.spans] == [
        (1, (3, 4, 5), False),
        (2, (6,), False),
    ]
    first, second = _passes(pieces, max_tokens=6)
    assert (first.ids, second.ids) == ((9, 1, 2, 3, 4, 5), (9, 4, 5, 6))
    assert second.spans == (TokenSpan(3, 4, 7, 2, is_cut=True),)
    assert [one.ids for one in _passes(pieces, max_tokens=10, context="pair")] == [(9, 1, 2, 3, 4, 5), (9, 3, 4, 5, 6)]
    assert [span.turn for one in _passes(pieces, max_tokens=10, last_only=True) for span in one.spans] == [2]


def _passes(pieces: list[list[int]], *, max_tokens: int, context: str = "full", last_only: bool = False) -> list[ForwardPass]:
    return dialogue_passes(7, pieces, [9], max_tokens, context=context, last_only=last_only)  # type: ignore[return-value, arg-type]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=12))
def test_shared_beginnings_keep_every_span_in_a_pass_that_begins_as_its_own(rows: list[list[int]]) -> None:
    passes = [ForwardPass(tuple(row), (TokenSpan(0, len(row), number, 0, is_cut=False),)) for number, row in enumerate(rows)]
    merged = share_beginnings(passes)
    homes = {span.dialogue: one.ids for one in merged for span in one.spans}
    assert sorted(homes) == list(range(len(rows)))
    for number, row in enumerate(rows):
        assert homes[number][: len(row)] == tuple(row)
    for one in merged:
        others = [other.ids for other in merged if other is not one]
        assert all(other[: len(one.ids)] != one.ids for other in others), "one that begins another was left"


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60) | st.none(), st.integers(1, 5) | st.none())
def test_batches_keep_to_the_budget_and_lose_nothing(lengths: list[int], tokens: int | None, rows: int | None) -> None:
    found = list(length_batches(lengths, tokens, rows=rows))
    assert [lengths[place] for batch in found for place in batch] == sorted(lengths, reverse=True), "the longest first"
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        assert rows is None or len(batch) <= rows
        assert tokens is None or len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= tokens


def test_rows_are_padded_on_the_right() -> None:
    ids, mask = padded_tensors([(5, 6), (7,)], 9, torch.device("cpu"))
    assert ids.tolist() == [[5, 6], [7, 9]]
    assert mask.tolist() == [[1, 1], [1, 0]]
    assert padded_tensors([(5, 6), (7,)], None, torch.device("cpu"))[0].tolist() == [[5, 6], [7, 0]]
