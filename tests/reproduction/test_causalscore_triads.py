"""Circular triads against orders, coin flips and ties."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reproduction.causalscore.triads import circular_triads


@given(st.permutations(range(6)), st.randoms(use_true_random=False))
def test_an_order_has_no_circle_whatever_way_round_its_pairs_stand(order: list[int], random: object) -> None:
    pairs = [pair if random.random() < 0.5 else pair[::-1] for pair in combinations(range(6), 2)]  # type: ignore[attr-defined]
    found = circular_triads({pair: min(pair, key=order.index) for pair in pairs})
    assert found == [False] * 20


def test_coin_flips_put_a_quarter_in_a_circle() -> None:
    generator = np.random.default_rng(0)
    found = [
        circular
        for _ in range(500)
        for circular in circular_triads({pair: pair[generator.integers(2)] for pair in combinations("abcd", 2)})
    ]
    assert len(found) == 2000
    assert abs(np.mean(found) - 0.25) < 0.04


def test_ties_and_missing_comparisons_leave_their_triads_out() -> None:
    assert circular_triads({("a", "b"): "a", ("b", "c"): None, ("a", "c"): "a"}) == []
    assert circular_triads({("a", "b"): "a", ("b", "c"): "b"}) == []
    assert circular_triads({}) == []
