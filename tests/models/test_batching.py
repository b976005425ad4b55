"""Rows of token ids in batches of about one length."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.models.batching import length_batches, padded


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60) | st.none(), st.integers(1, 5) | st.none())
def test_batches_keep_to_the_budget_and_lose_nothing(lengths: list[int], tokens: int | None, rows: int | None) -> None:
    found = list(length_batches(lengths, tokens, rows=rows))
    assert [lengths[place] for batch in found for place in batch] == sorted(lengths, reverse=True), "the longest first"
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        assert rows is None or len(batch) <= rows
        assert tokens is None or len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= tokens


def test_rows_are_padded_on_the_right() -> None:
    ids, mask = padded([(5, 6), (7,)], 9, torch.device("cpu"))
    assert ids.tolist() == [[5, 6], [7, 9]]
    assert mask.tolist() == [[1, 1], [1, 0]]
    assert padded([(5, 6), (7,)], None, torch.device("cpu"))[0].tolist() == [[5, 6], [7, 0]]
