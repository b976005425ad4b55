"""Coefficients: hand-worked values, brute force on ties (R21), scipy (R30), undefined cases (R20, R22), invariances (R27)."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pkgutil
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from scipy import stats
from sklearn.metrics import roc_auc_score

from dialeval_plugin import statistics
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.annotators.raters import leave_one_rater_out
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.coefficients import kendall
from dialeval_plugin.statistics.coefficients.by_name import COEFFICIENTS, COEFFICIENTS_OF_GROUPS, Coefficient, coefficient_named
from dialeval_plugin.statistics.coefficients.kendall import auroc, kendall_b, kendall_c
from dialeval_plugin.statistics.coefficients.pearson import pearson, point_biserial, spearman
from dialeval_plugin.statistics.correlation import correlate, correlations, sensitivity_range
from dialeval_plugin.statistics.levels import AverageBy
from tests.refusals import refused

NAMES = sorted(COEFFICIENTS)
few_levels = st.integers(1, 3).map(float)
some_levels = st.sampled_from([-2.5, 0.0, 0.1, 0.30000000000000004, 0.3, 1.0, 7.0, 1e6])
pairs = st.lists(st.tuples(some_levels | few_levels, few_levels), min_size=3, max_size=30)


def of_pairs(entry: Coefficient | str, x: Any, y: Any) -> float:
    """The value, NaN where it is undefined."""
    try:
        return (COEFFICIENTS[entry] if isinstance(entry, str) else entry).of_pairs(x, y)
    except StatisticUndefined:
        return math.nan


def tau_b_by_counting(x: list[float], y: list[float]) -> float:
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in itertools.combinations(range(len(x)), 2)]
    untied = math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    return float(sum(a * b for a, b in signs) / untied) if untied else math.nan


def tau_c_by_counting(x: list[float], y: list[float]) -> float:
    pairs = itertools.combinations(range(len(x)), 2)
    difference = sum(float(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])) for i, j in pairs)
    levels = min(len(set(x)), len(set(y)))
    return 2 * levels * difference / (len(x) ** 2 * (levels - 1)) if levels > 1 else math.nan


def midranks_by_counting(x: list[float]) -> list[float]:
    return [sum(b < a for b in x) + (sum(b == a for b in x) + 1) / 2 for a in x]


def pearson_by_definition(x: list[float], y: list[float]) -> float:
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    sxy = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    sxx, syy = math.fsum((a - mean_x) ** 2 for a in x), math.fsum((b - mean_y) ** 2 for b in y)
    return sxy / math.sqrt(sxx * syy)


@given(pairs)
def test_equal_to_the_definitions_on_ties(rows: list[tuple[float, float]]) -> None:
    x, y = [a for a, _ in rows], [b for _, b in rows]
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert all(math.isnan(of_pairs(name, x, y)) for name in ("spearman", "kendall_b", "kendall_c"))
        return
    assert kendall_c(x, y) == pytest.approx(tau_c_by_counting(x, y), abs=1e-9)
    assert kendall_b(x, y) == pytest.approx(tau_b_by_counting(x, y), abs=1e-9)
    expected = pearson_by_definition(midranks_by_counting(x), midranks_by_counting(y))
    assert spearman(x, y) == pytest.approx(expected, abs=1e-9)
    if not math.isnan(value := of_pairs("pearson", x, y)):
        assert value == pytest.approx(pearson_by_definition(x, y), abs=1e-9)


def test_equal_to_scipy() -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=200).round(1)
    y = (x + generator.normal(size=200)).round()
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    for variant, tau in (("b", kendall_b), ("c", kendall_c)):
        assert tau(x, y) == pytest.approx(stats.kendalltau(x, y, variant=variant).statistic, abs=1e-9)


rows_of_two_kinds = st.lists(st.tuples(st.integers(-3, 3).map(float), st.sampled_from([2.0, 5.0])), min_size=3, max_size=30)


@given(rows_of_two_kinds)
def test_binary_coefficients_equal_the_oracles_on_ties(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        with pytest.raises(StatisticUndefined):
            auroc(x, y)
        return
    assert auroc(x, y) == pytest.approx(roc_auc_score(y == 5, x), abs=1e-12)
    assert point_biserial(x, y) == pytest.approx(stats.pointbiserialr(y == 5, x).statistic, abs=1e-9)
    assert auroc(-x, y) == pytest.approx(1 - auroc(x, y), abs=1e-12)
    assert auroc(x**3, y) == pytest.approx(auroc(x, y), abs=1e-12)
    assert auroc(y, y) == 1.0


@st.composite
def weighted_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    distinct = draw(st.lists(st.tuples(some_levels | few_levels, few_levels), min_size=1, max_size=12, unique=True))
    weights = draw(st_numpy.arrays(np.int64, (draw(st.integers(1, 5)), len(distinct)), elements=st.integers(0, 3)))
    x, y = np.array(distinct).T
    return x, y, weights.astype(float)


@pytest.mark.parametrize("at_once", [1, 2**17])
@pytest.mark.parametrize("name", NAMES)
def test_samples_equal_the_value_of_each_sample_written_out(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kendall, "_NUMBERS_AT_ONCE", at_once)

    @settings(max_examples=40)
    @given(weighted_pairs())
    def check(sample: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        x, y, weights = sample
        entry = COEFFICIENTS[name].calibrated(x, y)
        expected = [of_pairs(entry, np.repeat(x, times), np.repeat(y, times)) for times in weights.astype(int)]
        np.testing.assert_allclose(entry.of_samples(x, y)(weights), expected, rtol=0, atol=1e-9, equal_nan=True)

    check()


@given(weighted_pairs(), st.integers(0, 3), st.booleans())
def test_rising_pairs_are_counted(sample: tuple[np.ndarray, np.ndarray, np.ndarray], behind: int, ties: bool) -> None:
    x, y, weights = (np.unique(sample[0], return_inverse=True)[1], sample[1].astype(int), sample[2])
    n_below = np.maximum(np.arange(x.max() + 1) - behind, 0)
    is_counted = (x[:, None] < n_below[x][None, :]) & (y[:, None] == y if ties else y[:, None] < y)
    expected = [times @ is_counted @ times for times in weights]
    assert kendall.RisingPairs(x, y, n_below, ties=ties)(weights).tolist() == expected


def test_an_outlier_that_is_not_drawn_costs_no_digits() -> None:
    x, y = np.array([1.0, 2.0, 4.0, 1e9]), np.array([1.0, 3.0, 2.0, 1e9])
    found = COEFFICIENTS["pearson"].of_samples(x, y)(np.array([[1.0, 1.0, 1.0, 0.0]]))
    assert found[0] == pytest.approx(pearson(x[:3], y[:3]), abs=1e-12)


def test_a_sample_of_rounding_errors_is_undefined() -> None:
    x, y = np.array([0.3, 0.1 + 0.2, 5.0]), np.array([1.0, 2.0, 3.0])
    found = COEFFICIENTS["pearson"].of_samples(x, y)(np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))
    assert np.isnan(found).tolist() == [True, False]


@pytest.mark.parametrize("scale", [1e308, 1e-300])
@pytest.mark.parametrize("name", NAMES)
def test_magnitude_does_not_matter(name: str, scale: float) -> None:
    x, y = [0.1, 0.4, -0.9, 0.6], [1, 2, 1, 2]
    scaled = [value * scale for value in x]
    assert of_pairs(name, scaled, y) == pytest.approx(of_pairs(name, x, y), abs=1e-12)
    weights = np.array([[1.0, 2.0, 0.0, 1.0]])
    plain, of_scaled = (
        COEFFICIENTS[name].calibrated(column, y).of_samples(np.array(column), np.array(y, float))(weights)
        for column in (x, scaled)
    )
    assert of_scaled == pytest.approx(plain, abs=1e-12)


STRETCH, CUBE = np.poly1d([3, 5]), np.poly1d([1, 0, 0, 5])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rising"), [("pearson", STRETCH), *itertools.product(("spearman", "kendall_b", "kendall_c"), (STRETCH, CUBE))]
)
def test_invariances(name: str, rising: np.poly1d) -> None:
    whole = st.integers(-9, 9).map(float)

    @given(st.lists(st.tuples(whole, few_levels), min_size=3, max_size=30), st.randoms(use_true_random=False))
    def check(rows: list[tuple[float, float]], random: Any) -> None:
        x, y = np.array(rows).T
        value = of_pairs(name, x, y)
        shuffled = np.array(random.sample(rows, len(rows))).T
        for same in (of_pairs(name, rising(x), y), of_pairs(name, *shuffled), of_pairs(name, y, x), -of_pairs(name, -x, y)):
            assert same == pytest.approx(value, abs=1e-12, nan_ok=True)
        if len(set(x)) > 1 and name != "kendall_c":
            assert of_pairs(name, x, x) == pytest.approx(1, abs=1e-12)

    check()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("scores", "ratings", "message"),
    [
        ([], [], "{}: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples."),
        ([1, 2], [1, 2], "{}: 2 pairs of score and rating, at least 3 are needed. Score and rate more examples."),
        ([0.5, 0.5, 0.5], [1, 2, 3], "{}: all 3 scores are 0.5. Give scores that differ."),
        ([1, 2, 3], [4, 4, 4], "{}: all 3 ratings are 4.0. Give ratings that differ."),
        ([0, 0, 0], [4, 4, 4], "{}: all 3 scores are 0.0. Give scores that differ."),
        ([0.0, -0.0, 0.0], [1, 2, 3], "{}: all 3 scores are 0.0. Give scores that differ."),
    ],
)
def test_undefined(name: str, scores: list[float], ratings: list[float], message: str) -> None:
    with refused(message.format(name), StatisticUndefined):
        COEFFICIENTS[name].of_pairs(scores, ratings)


NEARLY_EQUAL = [0.3, 0.1 + 0.2, 0.3]


@pytest.mark.parametrize(
    ("name", "scores", "ratings", "message"),
    [
        ("auroc", [1, 2, 3], [1, 2, 3], "3 different ratings, exactly 2 are needed. Give ratings of two values."),
        ("point_biserial", [1, 2, 3], [1, 2, 3], "3 different ratings, exactly 2 are needed. Give ratings of two values."),
        ("pearson", [1, 2, 2], NEARLY_EQUAL, "the ratings differ by rounding error only. Give ratings that differ."),
        ("point_biserial", NEARLY_EQUAL, [1, 2, 2], "the scores differ by rounding error only. Give scores that differ."),
    ],
)
def test_undefined_for_some(name: str, scores: list[float], ratings: list[float], message: str) -> None:
    with refused(f"{name}: {message}", StatisticUndefined):
        COEFFICIENTS[name].of_pairs(scores, ratings)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("scores", "ratings", "message"),
    [
        ([1, math.nan, 3], [1, 2, 3], "{}: scores[1] is nan, not a finite number. Leave the row out."),
        ([1, 2, -math.inf], [1, 2, 3], "{}: scores[2] is -inf, not a finite number. Leave the row out."),
        ([1, 2, 3], np.array([math.inf, 2, 3]), "{}: ratings[0] is inf, not a finite number. Leave the row out."),
        ([1, 10**400, 3], [1, 2, 3], "{}: scores[1] is inf, not a finite number. Leave the row out."),
        ([1, None, 3], [1, 2, 3], "{}: scores[1] is None, not a finite number. Leave the row out."),
        (["1", 2, 3], [1, 2, 3], "{}: scores[0] is '1', not a finite number. Leave the row out."),
        ([1, 2, 3], [1, 2], "{}: 3 scores but 2 ratings. Give one of each for every row."),
    ],
)
def test_wrong_input(name: str, scores: Any, ratings: Any, message: str) -> None:
    with refused(message.format(name)):
        COEFFICIENTS[name].of_pairs(scores, ratings)


def test_unknown_name() -> None:
    known = sorted(COEFFICIENTS | COEFFICIENTS_OF_GROUPS)
    with refused(f"there is no coefficient 'kendall'. Did you mean 'kendall_b'? Known are: {', '.join(known)}."):
        coefficient_named("kendall")


@pytest.mark.parametrize(
    "compute",
    [
        lambda name: sensitivity_range([1, 2, 4, None, 5], [1, 2, 3, 4, 5], coefficient=name),
        lambda name: leave_one_rater_out([[1, 2], [2, 2], [4, 3]], coefficient=name),
        lambda name: correlate([1, 2, 3], [1, 2, 3], coefficient=name),
    ],
)
def test_what_compares_systems_or_items_is_not_computed_of_single_rows(compute: Callable[[str], Any]) -> None:
    """Pearson's correlation stood for it where no group was asked for."""
    with refused("soft_pairwise_accuracy: compares systems. Give level='system', which is --by-system."):
        compute("soft_pairwise_accuracy")
    by_item = "compares responses to one item. Give average_by='item', which is --average-by item."
    with refused(f"pairwise_difference_pearson: {by_item}"):
        compute("pairwise_difference_pearson")


@pytest.mark.parametrize("column", ["scores", "ratings"])
def test_r22_a_mask_is_refused_not_ignored(column: str) -> None:
    """numpy's own functions would count what it hides."""
    columns: dict[str, Any] = {"scores": [1.0, 2.0, 3.0, 9.0], "ratings": [1.0, 3.0, 2.0, 5.0]}
    columns[column] = np.ma.masked_array(columns[column], mask=[0, 0, 0, 1])
    message = f"{column} is a masked array. Give a list with None where there is no value."
    with refused(f"pearson: {message}"):
        pearson(**columns)
    with refused(f"correlate: {message}"):
        correlate(**columns, coefficient="pearson")


def test_r32_no_function_takes_a_mean_over_coefficients_of_different_kinds() -> None:
    """A result is of one coefficient, whose name it bears; groups are averaged within it."""
    found = correlations([1, 2, 3, 5], [1, 3, 2, 4], coefficients=list(COEFFICIENTS)[:4], bootstrap=Bootstrap(rounds=0))
    assert {name: one.name for name, one in found.items()} == {name: name for name in found}
    assert get_args(AverageBy) == ("none", "system", "item")
    names = [module.name for module in pkgutil.walk_packages(statistics.__path__, f"{statistics.__name__}.")]
    assert len(names) > 20
    for name in names:
        module = importlib.import_module(name)
        for function, of in inspect.getmembers(module, inspect.isfunction):
            if of.__module__ != module.__name__ or function.startswith("_"):
                continue
            returned = str(inspect.signature(of).return_annotation)
            several = "coefficients" in inspect.signature(of).parameters
            # What takes several coefficients returns one result for each name, and no single number.
            assert not several or returned == "dict[str, Correlation]", (name, function, returned)
