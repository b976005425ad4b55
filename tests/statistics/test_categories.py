"""Statistics of labels beside scikit-learn, krippendorff, and the golden values of reproduction/references/categories.py."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from sklearn import metrics

from dialeval_plugin.labels.table import Scale, ScaleKind
from dialeval_plugin.statistics.bootstrap import Bootstrap, Counts, Resampled
from dialeval_plugin.statistics.categories import (
    cross_entropy,
    divergence,
    evaluator_cells,
    label_counts,
    label_statistics,
    people_cells,
    resampled_alpha,
)
from dialeval_plugin.statistics.choices import Costs, chosen_threshold
from reproduction.coverage.categories import drawn, shares_held, statistics_of
from reproduction.references.categories import Numbers, drawn_labels
from tests.refusals import refused


def scale_of(kind: ScaleKind, n: int) -> Scale:
    return Scale(kind, tuple(f"c{place}" for place in range(n)))


def with_evaluator(labels: Numbers, kind: ScaleKind, n: int) -> dict[str, float]:
    """Agreement of the first column with the others."""
    cells = evaluator_cells(labels[:, 0], label_counts(labels[:, 1:], n), np.arange(len(labels)) // 2)
    whole = cells.sum(axis=0, keepdims=True)
    return {name: float(statistic(whole)[0]) for name, statistic in label_statistics(scale_of(kind, n)).items()}


@pytest.mark.parametrize(("seed", "kind", "n"), [(0, "binary", 2), (1, "nominal", 4), (2, "ordinal", 5)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_statistics_are_those_of_scikit_learn(seed: int, kind: ScaleKind, n: int, missing: float) -> None:
    """With a weight of 1 / (number of labels) for each label of a row."""
    labels = drawn_labels(seed, n, missing)
    rows, raters = np.nonzero(~np.isnan(labels[:, 1:]))
    people, said = labels[rows, raters + 1], labels[rows, 0]
    weight = 1 / np.bincount(rows, minlength=len(labels))[rows]
    expected = {
        "accuracy": metrics.accuracy_score(people, said, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(people, said, sample_weight=weight),
        "mcc": metrics.matthews_corrcoef(people, said, sample_weight=weight),
        "kappa": metrics.cohen_kappa_score(people, said, sample_weight=weight),
    }
    if kind == "binary":
        expected["tpr"] = metrics.recall_score(people, said, sample_weight=weight)
        expected["tnr"] = metrics.recall_score(people, said, sample_weight=weight, pos_label=0)
        expected["precision"] = metrics.precision_score(people, said, sample_weight=weight)
        expected["f1"] = metrics.f1_score(people, said, sample_weight=weight)
    else:
        expected["macro_f1"] = metrics.f1_score(people, said, sample_weight=weight, average="macro")
    if kind == "ordinal":
        for name in ("linear", "quadratic"):
            expected[f"{name}_kappa"] = metrics.cohen_kappa_score(people, said, sample_weight=weight, weights=name)
    found = with_evaluator(labels, kind, n)
    assert found.keys() - expected.keys() == {"ac1"}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("seed", "n", "fleiss", "of_two", "of_three"), [(0, 2, 0.418331, 0.19622, 0.4784), (1, 4, 0.463967, 0.52519, 0.51096)]
)
def test_kappa_and_ac1_are_those_of_statsmodels_and_irrcac(
    seed: int, n: int, fleiss: float, of_two: float, of_three: float
) -> None:
    labels = drawn_labels(seed, n)
    cells = people_cells(label_counts(labels[:, 1:], n), np.arange(len(labels)))
    statistics = label_statistics(scale_of("nominal", n))
    whole = cells.sum(axis=0, keepdims=True)
    assert float(statistics["kappa"](whole)[0]) == pytest.approx(fleiss, abs=1e-6)
    assert float(statistics["ac1"](whole)[0]) == pytest.approx(of_three, abs=1e-5)
    assert with_evaluator(labels[:, :2], "nominal", n)["ac1"] == pytest.approx(of_two, abs=1e-5)


@pytest.mark.parametrize(("seed", "kind", "n"), [(0, "nominal", 3), (1, "ordinal", 5), (2, "interval", 5), (3, "ordinal", 2)])
def test_alpha_is_that_of_krippendorff(seed: int, kind: ScaleKind, n: int) -> None:
    labels = drawn_labels(seed, n, 0.4)[:, 1:]
    clusters = np.arange(len(labels)) // 4
    expected = krippendorff.alpha(reliability_data=labels.T, level_of_measurement=kind)
    found = resampled_alpha(labels, clusters, kind, n)
    assert found.value == pytest.approx(expected, abs=1e-12)
    # A cluster that is drawn twice counts twice.
    drawn = np.concatenate([labels, labels[clusters == 3]])
    assert float(found.statistic(found.whole + found.sums[[3]])[0]) == pytest.approx(
        krippendorff.alpha(reliability_data=drawn.T, level_of_measurement=kind), abs=1e-12
    )


def test_what_is_undefined_is_nan() -> None:
    same = np.ones((6, 2))
    found = with_evaluator(same, "binary", 2)
    assert {name for name, value in found.items() if np.isnan(value)} == {"tnr", "mcc", "kappa"}
    assert np.isnan(resampled_alpha(same, np.arange(6), "ordinal", 2).value)
    assert np.isnan(resampled_alpha(same, np.arange(6), "interval", 0).value)


def test_a_cost_picks_the_threshold_on_other_conversations() -> None:
    generator = np.random.default_rng(0)
    clusters = np.repeat(np.arange(100), 5)
    shares = (generator.random(500) < 0.7).astype(np.float64)
    scores = generator.normal(size=500) + 1.5 * shares
    counts = Counts(500, 500, 100, 0)

    def chosen(false_pass: float, false_fail: float) -> tuple[float, float, float, float]:
        costs = Costs(false_pass, false_fail)
        found, passes = chosen_threshold(scores, shares, clusters, counts, costs, Bootstrap(rounds=50))
        said = scores >= found.value
        best = (false_pass * (said * (1 - shares)) + false_fail * (~said * shares)).mean()
        held_out = (false_pass * passes * (1 - shares) + false_fail * (1 - passes) * shares).mean()
        assert found.cost.value == pytest.approx(held_out)
        assert found.cost.value >= best
        assert found.saving.value == pytest.approx(found.constant_cost.value - found.cost.value)  # type: ignore[operator]
        # No other threshold is cheaper on all rows.
        for cut in scores:
            said = scores >= cut
            assert best <= (false_pass * (said * (1 - shares)) + false_fail * (~said * shares)).mean() + 1e-12
        return found.value, float(found.cost.value or 0), float(found.constant_cost.value or 0), float(passes.mean())

    equal, strict = chosen(1, 1), chosen(5, 1)
    # Where a false pass costs more, fewer pass; always failing costs the share of good rows.
    assert strict[0] > equal[0]
    assert strict[3] < equal[3]
    assert equal[2] == pytest.approx(1 - shares.mean())
    assert strict[2] == pytest.approx(shares.mean())
    # The ratio of costs alone counts.
    assert chosen(10, 2)[0] == strict[0]


def test_an_evaluator_that_knows_nothing_is_not_shown_to_be_of_use() -> None:
    """In sample some threshold always looks good."""
    generator = np.random.default_rng(1)
    shares = (generator.random(400) < 0.5).astype(np.float64)
    clusters, counts = np.arange(400) // 4, Counts(400, 400, 100, 0)
    found, _ = chosen_threshold(generator.normal(size=400), shares, clusters, counts, Costs(), Bootstrap(rounds=200))
    assert found.saving.ci_low is not None
    assert found.saving.ci_low < 0
    with refused("--cost 0 1: expected two numbers above 0, of a false pass and of a false fail."):
        chosen_threshold(shares, shares, clusters, counts, Costs(0, 1), Bootstrap())


@pytest.mark.exhaustive
def test_intervals_of_conversations_hold_what_those_of_single_rows_do_not() -> None:
    """A small part of what stands in reproduction/coverage/NOTES.md."""
    truth = {name: one.value for name, one in statistics_of(*drawn(100_000, np.random.default_rng(1))).items()}
    held = shares_held(30, truth, sets=200)
    for name in ("accuracy", "tpr", "kappa"):
        assert held["expanded"][name] > 0.91
        assert held["rows"][name] < 0.91


@pytest.mark.parametrize(("seed", "n"), [(3, 2), (4, 4)])
def test_agreement_with_a_distribution_is_that_of_scipy_and_scikit_learn(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(n, size=(40, 5)).astype(float)
    labels[generator.random(labels.shape) < 0.2] = np.nan
    labels = labels[(~np.isnan(labels)).sum(axis=1) >= 3]
    chances, clusters = generator.dirichlet(np.ones(n), len(labels)), np.arange(len(labels)) // 2
    counts = label_counts(labels, n)
    of_evaluator, of_person, entropies = [], [], []
    for row, q in zip(labels, chances, strict=True):
        given = row[~np.isnan(row)].astype(int)
        others = [np.bincount(np.delete(given, place), minlength=n) / (len(given) - 1) for place in range(len(given))]
        of_evaluator.append(np.mean([jensenshannon(q, p, base=2) ** 2 for p in others]))
        of_person.append(np.mean([jensenshannon(np.eye(n)[own], p, base=2) ** 2 for own, p in zip(given, others, strict=True)]))
        loss = metrics.log_loss(given, np.tile(q, (len(given), 1)), labels=range(n))
        entropies.append(loss / np.log(2))
    assert divergence(chances, counts, clusters).value == pytest.approx(np.mean(of_evaluator), abs=1e-9)
    assert divergence(None, counts, clusters).value == pytest.approx(np.mean(of_person), abs=1e-9)
    entropy = cross_entropy(chances, counts, clusters)
    assert isinstance(entropy, Resampled)
    assert entropy.value == pytest.approx(np.mean(entropies), abs=1e-9)


def test_a_label_without_a_chance_that_a_person_gave_has_no_cross_entropy() -> None:
    counts = np.array([[2.0, 1.0], [3.0, 0.0]])
    assert cross_entropy(np.array([[1.0, 0.0], [1.0, 0.0]]), counts, np.array([0, 1])) == (
        "cross_entropy: in 1 of 2 rows the evaluator gives no chance to a label of a person. Give it chances between 0 and 1."
    )
