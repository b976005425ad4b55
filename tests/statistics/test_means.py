"""Means and paired differences with intervals."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.means import (
    balanced_mean_interval,
    difference_of_means_interval,
    mean_interval,
    paired_difference_interval,
)
from tests.cluster_order import drawn_rows, expanded_ends, interval_by_loop
from tests.refusals import refusal

ANSWERS = [1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1]
CONTEXTS = list("bbaaacddefgghij")


def mean_by_loop(values: Any, clusters: Any, *, seed: int = 0, sign: int = 1) -> Any:
    kept = np.array(values)
    return interval_by_loop(lambda rows: kept[rows].mean(), clusters, [sign * kept], rounds=300, seed=seed)


def test_accuracy() -> None:
    found = mean_interval(ANSWERS, clusters=CONTEXTS, bootstrap=Bootstrap(rounds=300, seed=2))
    assert found.value == 2 / 3
    assert (found.ci_low, found.ci_high) == mean_by_loop(ANSWERS, CONTEXTS, seed=2)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_clusters) == (15, 15, 0, 10)
    json.dumps(found.to_dict(), allow_nan=False)


def test_booleans_are_answers_too() -> None:
    assert mean_interval([True, False, True, False]) == mean_interval(np.array([1, 0, 1, 0]) == 1)


def test_unscored_rows_are_left_out_and_counted() -> None:
    found = mean_interval([None, *ANSWERS], clusters=["other", *CONTEXTS], bootstrap=Bootstrap(rounds=50))
    kept = mean_interval(ANSWERS, clusters=CONTEXTS, bootstrap=Bootstrap(rounds=50))
    assert (found.value, found.ci_low, found.ci_high) == (kept.value, kept.ci_low, kept.ci_high)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_clusters) == (16, 15, 1, 10)


def test_all_right_is_no_certainty() -> None:
    found = mean_interval([1] * 20)
    assert (found.value, found.ci_low, found.ci_high) == (1.0, None, None)
    why = "the same on all resamples, which tells nothing of its spread"
    assert found.reason == f"mean: {why}, so there is no interval. Score and rate more examples."
    assert str(found) == "mean 1.000, 20 of 20 rows scored, 20 clusters"


@pytest.mark.parametrize(
    ("found", "n_unscored", "reason"),
    [
        (mean_interval([None, None]), 2, "mean_interval: none of 2 rows has a value. Score some examples."),
        (
            balanced_mean_interval([1, 0, None], ["fits", "fits", "misleads"]),
            1,
            "balanced_mean_interval: no row of group 'misleads' has a value. Score some of its examples.",
        ),
    ],
)
def test_no_value(found: Estimate, n_unscored: int, reason: str) -> None:
    assert (found.value, found.n_unscored, found.reason) == (None, n_unscored, reason)
    assert str(found) == f"mean undefined, {found.n_scored} of {found.n_total} rows scored, {found.n_scored} clusters"


def test_paired_difference() -> None:
    generator = np.random.default_rng(3)
    hardness = generator.normal(size=40)
    a, b = (hardness + generator.normal(scale=0.1, size=40) + shift for shift in (0.2, 0.0))
    labels = [f"context {i // 2}" for i in range(40)]
    found = paired_difference_interval(a, b, clusters=labels, bootstrap=Bootstrap(rounds=300))
    assert found.value == pytest.approx(float((a - b).mean()), abs=1e-12)
    # Rows are ordered by the one of a - b and b - a whose lowest value is lower, so that neither is preferred.
    sign = 1 if (a - b).min() < (b - a).min() else -1
    assert (found.ci_low, found.ci_high) == mean_by_loop(a - b, labels, sign=sign)
    assert found.ci_low > 0
    mirrored = paired_difference_interval(b, a, clusters=labels, bootstrap=Bootstrap(rounds=300))
    assert (mirrored.ci_low, mirrored.ci_high) == pytest.approx((-(found.ci_high or 0), -found.ci_low), abs=1e-12)


def test_paired_difference_uses_the_rows_that_have_both() -> None:
    found = paired_difference_interval([1, None, 3, 4], [0, 1, None, 1], bootstrap=Bootstrap(rounds=20))
    assert (found.value, found.n_scored, found.n_unscored) == (2.0, 2, 2)


@pytest.mark.parametrize(
    ("of", "columns", "clusters", "message"),
    [
        (mean_interval, [[1, math.nan]], None, "values[1] is nan, not a finite number. Give None where there is no value."),
        (mean_interval, [[1, 2]], ["a"], "2 values but 1 clusters. Give one of each for every row."),
        (paired_difference_interval, [[1, 2], [1]], None, "2 values_a but 1 values_b. Give one of each for every row."),
        (
            paired_difference_interval,
            [[1, 2], [1, math.inf]],
            None,
            "values_b[1] is inf, not a finite number. Give None where there is no value.",
        ),
        (paired_difference_interval, [[1, 2], [1, 2]], ["a"], "2 values_a but 1 clusters. Give one of each for every row."),
        (balanced_mean_interval, [[1, 0], ["fits"]], None, "2 values but 1 groups. Give one of each for every row."),
    ],
)
def test_wrong_input(of: Any, columns: Any, clusters: Any, message: str) -> None:
    assert refusal(of, *columns, clusters=clusters) == f"{of.__name__}: {message}"


KINDS = [{"f": "fits", "m": "misleads"}[letter] for letter in "fmffmmfmfffmmmf"]


def test_each_group_counts_the_same_in_value_and_interval() -> None:
    found = balanced_mean_interval(ANSWERS, KINDS, clusters=CONTEXTS, bootstrap=Bootstrap(rounds=300, seed=2))
    assert found.value == pytest.approx((7 / 8 + 3 / 7) / 2)
    kept, kinds = np.array(ANSWERS), np.array(KINDS)
    # Sorted, the answers of "misleads" come before those of "fits".
    drawn = drawn_rows(CONTEXTS, [ANSWERS], [ANSWERS, kinds == "fits"], rounds=300, seed=2)
    whole = [of for of in drawn if len(set(kinds[of])) == 2]
    means = [(kept[of][kinds[of] == "fits"].mean() + kept[of][kinds[of] == "misleads"].mean()) / 2 for of in whole]
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(np.quantile(means, expanded_ends(10))), abs=1e-12)
    assert found.n_degenerate == len(drawn) - len(whole)


def test_one_group_is_the_plain_mean() -> None:
    options: Any = {"clusters": ["x", *CONTEXTS], "bootstrap": Bootstrap(rounds=50)}
    grouped = balanced_mean_interval([None, *ANSWERS], [0] * 16, **options)
    assert grouped == mean_interval([None, *ANSWERS], **options)


def sides(n_a: int, n_b: int, *, n_shared: int) -> dict[str, Any]:
    """Two rows in each cluster of either side, of which the first ones are the same clusters."""
    generator = np.random.default_rng(0)
    levels = generator.normal(size=n_a + n_b)
    numbers = np.repeat(np.arange(n_a), 2), np.repeat(np.arange(n_b) + n_a - n_shared, 2)
    values = [levels[of] + generator.normal(scale=0.2, size=len(of)) for of in numbers]
    return dict(zip(("values_a", "values_b", "clusters_a", "clusters_b"), (*values, *numbers), strict=True))


@pytest.mark.parametrize("n_shared", [0, 15, 30])
def test_the_interval_of_a_difference_of_means_is_that_of_drawing_clusters_one_by_one(n_shared: int) -> None:
    given = sides(30, 40, n_shared=n_shared)
    a, b, of_a, of_b = given.values()
    found = difference_of_means_interval(**given)
    assert found.value == pytest.approx(a.mean() - b.mean(), abs=1e-14)
    generator, drawn = np.random.default_rng(1), []
    names = np.unique([*of_a, *of_b])
    for _ in range(4000):
        times = np.bincount(generator.choice(names, len(names)), minlength=names.max() + 1)
        drawn.append(np.average(a, weights=times[of_a]) - np.average(b, weights=times[of_b]))
    low, high = np.quantile(drawn, expanded_ends(len(names)))
    assert (found.ci_low, found.ci_high) == (pytest.approx(low, abs=0.04), pytest.approx(high, abs=0.04))
    assert (found.n_total, found.n_scored, found.n_clusters, found.is_rough) == (140, 140, 30, False)


def test_the_order_of_rows_and_which_side_comes_first_move_no_digit_of_a_difference_of_means() -> None:
    given = sides(30, 40, n_shared=15)
    found, order = difference_of_means_interval(**given), np.random.default_rng(2).permutation(60)
    moved = {**given, "values_a": given["values_a"][order], "clusters_a": [f"c{one}" for one in given["clusters_a"][order]]}
    moved["clusters_b"] = [f"c{one}" for one in given["clusters_b"]]
    assert difference_of_means_interval(**moved) == found
    turned = {f"{kind}_{side}": given[f"{kind}_{other}"] for kind in ("values", "clusters") for side, other in ("ab", "ba")}
    back = difference_of_means_interval(**turned)
    assert (back.value, back.ci_low, back.ci_high) == pytest.approx((-found.value, -found.ci_high, -found.ci_low), abs=1e-15)


def test_clusters_that_both_sides_have_narrow_the_interval_of_a_difference_of_means() -> None:
    widths = []
    for n_shared in (0, 15, 30):
        found = difference_of_means_interval(**sides(30, 30, n_shared=n_shared))
        widths.append(found.ci_high - found.ci_low)
    assert widths[0] > 1.2 * widths[1] > 3 * widths[2]


def test_the_side_with_fewer_clusters_says_whether_a_difference_of_means_has_an_interval() -> None:
    few = difference_of_means_interval(**sides(9, 40, n_shared=0))
    assert (few.ci_low, few.ci_high, few.n_clusters, few.is_rough) == (None, None, 9, False)
    assert few.reason == (
        "difference: an interval needs 10 clusters (dialogues), here are 9, so there is no interval. "
        "Score and rate more dialogues."
    )
    assert difference_of_means_interval(**sides(10, 40, n_shared=0)).is_rough
    none = difference_of_means_interval([None], [1.0], clusters_a=["a"], clusters_b=["a"])
    assert (none.value, none.n_total, none.n_scored, none.reason) == (
        None, 2, 1, "difference_of_means_interval: one side has no row with a value. Score some of its examples.",
    )  # fmt: skip
