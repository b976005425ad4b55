"""The alternative annotator test: whether an evaluator can replace a human annotator.

Each person is left out in turn. On each row labelled by this person, either the person or the evaluator is closer to the labels
of the others. The evaluator matches a person if it is closer often enough, and can replace one if it matches half of them
(Calderon, Reichart and Dror, ACL 2025, arXiv 2501.10970).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import optional
from dialeval_plugin.labels.table import JudgedLabels, LabelTable
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    ROUGH_CLUSTERS,
    Bootstrap,
    Counts,
    Estimate,
    Resampled,
    rows_by_cell,
)
from dialeval_plugin.statistics.rows import canonical_rows, check_choice

Calibration: TypeAlias = Literal["none", "quantiles", "isotonic"]

MIN_ROWS = 30
"""Smallest number of labels of a person who is left out, as the t-test needs (section 3 of the paper)."""
FEW_RATERS = 3
PASSING_RATE = 0.5
N_FOLDS = 5
FALSE_DISCOVERIES = 0.05
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RaterComparison:
    """The evaluator compared with one person.

    Attributes:
        advantage: share of the rows on which the evaluator is at least as close to the others as the person is.
        p_value: one-sided, for the hypothesis that the person is closer by epsilon or more.
        is_matched: whether the hypothesis is rejected, after correction for the number of persons.
    """

    rater: str
    n_rows: int
    n_clusters: int
    advantage: float
    p_value: float
    is_matched: bool


@dataclass(frozen=True, kw_only=True)
class AlternativeAnnotatorTest:
    """Result of the test of one evaluator.

    Attributes:
        advantage: mean `advantage` over the persons, in [0, 1]; use it to compare evaluators.
        winning_rate: share of the persons whom the evaluator matches.
        over_constant: share of rows where the evaluator is closer, minus the share where the person is, minus the same
            difference for the best constant label; in [-2, 2].
        cautions: remarks on how reliable the result is.
    """

    evaluator: str
    epsilon: float
    comparisons: tuple[RaterComparison, ...]
    advantage: Estimate
    winning_rate: float
    over_constant: Estimate
    cautions: tuple[str, ...]

    @property
    def passes(self) -> bool:
        """Whether the evaluator can replace a person: it matches half of them, and is better than a constant label."""
        gain = self.over_constant.value if self.over_constant.ci_low is None else self.over_constant.ci_low
        return self.winning_rate >= PASSING_RATE and (gain or 0) > 0

    @property
    def verdict(self) -> str:
        """Result in plain words."""
        answer = "yes" if self.passes else "not shown"
        if self.winning_rate >= PASSING_RATE and not self.passes:
            answer = "unclear, as one that says the same of every row may do as well"
        n_matched = sum(one.is_matched for one in self.comparisons)
        return (
            f"May {self.evaluator} stand in for a person: {answer}. It matches {n_matched} of {len(self.comparisons)} raters "
            f"(winning rate {self.winning_rate:.2f} at epsilon {self.epsilon:g}, {PASSING_RATE} is needed), and on "
            f"{self.advantage.text(2)} of the rows it is at least as close to the other raters as the one left out."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return {**asdict(self), "passes": self.passes, "verdict": self.verdict}

    def to_pandas(self) -> Any:
        """Return the comparisons as a DataFrame, one row per person."""
        return optional("pandas", "to_pandas").DataFrame([asdict(one) for one in self.comparisons])


def alternative_annotator_test(
    judged: JudgedLabels,
    *,
    epsilon: float = 0.2,
    calibration: Calibration | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> AlternativeAnnotatorTest:
    r"""Leave out each person in turn, and test whether the evaluator matches this person.

    Closeness to the others' labels is the share of equal labels (binary, nominal), or the negative root mean squared difference
    (ordinal, interval). With $d_i$ = 1 if the person is closer, -1 if the evaluator is, and 0 for a tie, the hypothesis that
    the mean of d is `epsilon` or more is tested with the cluster-robust error $s^2 = \frac{G}{G - 1} \sum_g (\sum_{i \in g}
    (d_i - \bar d))^2 / n^2$ of G conversations and $G - 1$ degrees of freedom: the paper's t-test if each row is a
    conversation. If all d are equal, p is its bound $(1 - \epsilon)^G$. The false discovery rate of the p-values is
    `FALSE_DISCOVERIES` (Benjamini and Yekutieli 2001). Rows with one label or no score are left out.

    Args:
        judged: the evaluator's answers with the labels.
        epsilon: allowance for the evaluator's lower cost, in [0, 1). The paper recommends 0.2 for experts, 0.15 for skilled
            people and 0.1 for crowdworkers.
        calibration: how scores become labels. "none": they are labels. "quantiles": the label at the same quantile. "isotonic":
            the mean label by isotonic regression. Both are fitted to other conversations. None: scores have to be numbers used
            as labels.
        bootstrap: settings of the interval of the mean advantage.

    Raises:
        InputError: epsilon is out of range, scores are on another scale without a calibration, or nobody can be left out.

    Example:
        >>> from dialeval_plugin.labels.table import Scale
        >>> labels = np.array([[1.0, 2, 2], [3, 3, 4], [5, 5, 4], [2, 2, 2]] * 10)
        >>> ids, raters = [str(row) for row in range(40)], ("ann", "bob", "eve")
        >>> table = LabelTable(source="mine.csv", ids=ids, labels=labels, scale=Scale("interval"), raters=raters)
        >>> judged = JudgedLabels(evaluator="judge", scores=np.array([2.0, 3, 5, 2] * 10), labels=table)
        >>> found = alternative_annotator_test(judged)
        >>> found.winning_rate, found.passes, [one.advantage for one in found.comparisons]
        (1.0, True, [1.0, 1.0, 1.0])
    """
    where, table = "alternative annotator test", judged.labels
    if not 0 <= epsilon < 1:
        raise InputError(f"{where}: epsilon is {epsilon!r}. Give a number from 0 to below 1, such as 0.2.")
    used = np.flatnonzero(~np.isnan(judged.scores) & (table.n_labels > 1))
    columns = [judged.scores, *table.labels.T]
    contents = [*map(np.nan_to_num, columns), *(np.isnan(column).astype(np.int64) for column in columns)]
    rows = canonical_rows(where, contents, used, table.clusters)
    labels, clusters = table.labels[rows.order], rows.clusters
    has_label = ~np.isnan(labels)
    sizes = [(int(of.sum()), len(np.unique(clusters[of]))) for of in has_label.T]
    tested = [place for place, (n_rows, n_clusters) in enumerate(sizes) if n_rows >= MIN_ROWS and n_clusters >= MIN_CLUSTERS]
    if not tested:
        labelled = [f"{rater} {n_rows} ({n_clusters})" for rater, (n_rows, n_clusters) in zip(table.raters, sizes, strict=True)]
        raise InputError(
            f"{table.source}: no rater can be left out to test {judged.evaluator}: rows (and their conversations) with a score "
            f"and two labels are {', '.join(labelled) or 0}. Have {MIN_ROWS} rows of {MIN_CLUSTERS} conversations labelled by "
            "three people."
        )
    is_category = table.scale.kind in {"binary", "nominal"}
    persons = []
    for place in tested:
        of, others = has_label[:, place], np.delete(labels[has_label[:, place]], place, axis=1)
        persons.append((of, others, _closeness(labels[of, place], others, is_category=is_category)))

    def differences(answers: FloatArray) -> FloatArray:
        """Return d for each row and person, NaN if the person did not label the row."""
        signs = np.full((len(labels), len(tested)), np.nan)
        for column, (of, others, own) in enumerate(persons):
            ahead = own - _closeness(answers[of], others, is_category=is_category)
            signs[of, column] = np.where(np.abs(ahead) <= _ROUNDING, 0, np.sign(ahead))
        return signs

    signs = differences(_answers(judged, judged.scores[rows.order], labels, clusters, calibration))
    is_there = ~np.isnan(signs)
    p_values = [clustered_t_test(d[of], clusters[of], epsilon) for d, of in zip(signs.T, is_there.T, strict=True)]
    is_matched = stats.false_discovery_control(p_values, method="by") <= FALSE_DISCOVERIES
    all_labels = labels[has_label]
    constants = np.quantile(all_labels, np.linspace(0, 1, 11), method="inverted_cdf")
    constants = np.unique(constants if is_category else [*constants, all_labels.mean()])
    rivals = [differences(np.full(len(labels), label)) for label in constants]
    rival = min(rivals, key=lambda of: float(np.nanmean(of, axis=0).mean()))
    by_cluster = rows_by_cell(np.arange(len(labels)), clusters)
    sums = np.hstack([by_cluster @ of for of in (is_there, signs <= 0, np.nan_to_num(rival - signs))])
    resampled = {
        name: Resampled(partial(_mean_over_raters, len(tested), place), sums)
        for place, name in enumerate(("advantage", "over_constant"), 1)
    }
    counts = Counts(len(table.ids), len(used), rows.n_clusters, len(table.ids) - len(used))
    return AlternativeAnnotatorTest(
        evaluator=judged.evaluator,
        epsilon=epsilon,
        comparisons=tuple(
            RaterComparison(table.raters[place], *sizes[place], float((d <= 0).sum() / sizes[place][0]), p, bool(wins))
            for place, d, p, wins in zip(tested, signs.T, p_values, is_matched, strict=True)
        ),
        winning_rate=float(np.mean(is_matched)),
        cautions=_cautions(table, tested, min(sizes[place][1] for place in tested)),
        **bootstrap.estimates(resampled, counts),
    )


def clustered_t_test(differences: FloatArray, clusters: IntArray, epsilon: float) -> float:
    """Return the p-value of the hypothesis that the mean of `differences`, in [-1, 1], is `epsilon` or more."""
    mean, sizes = differences.mean(), np.bincount(clusters)
    n_clusters = int((sizes > 0).sum())
    residuals = np.bincount(clusters, weights=differences) - mean * sizes
    error = np.sqrt(n_clusters / (n_clusters - 1) * (residuals**2).sum()) / len(differences)
    if error <= _ROUNDING:
        return float((1 - epsilon) ** n_clusters) if mean <= 0 else 1.0
    return float(stats.t.cdf((mean - epsilon) / error, n_clusters - 1))


@np.errstate(invalid="ignore")
def _mean_over_raters(n_raters: int, place: int, drawn: FloatArray) -> FloatArray:
    """Return the mean of the raters' means; `drawn` starts with their numbers of rows."""
    of_raters = drawn[:, place * n_raters : (place + 1) * n_raters]
    return np.asarray((of_raters / drawn[:, :n_raters]).mean(axis=1))


def _closeness(labels: FloatArray, others: FloatArray, *, is_category: bool) -> FloatArray:
    if not is_category:
        return np.asarray(-np.sqrt(np.nanmean((others - labels[:, None]) ** 2, axis=1)))
    return np.asarray(np.nanmean(np.where(np.isnan(others), np.nan, labels[:, None] == others), axis=1))


def _answers(
    judged: JudgedLabels, scores: FloatArray, labels: FloatArray, clusters: IntArray, calibration: Calibration | None
) -> FloatArray:
    scale, known = judged.labels.scale, labels[~np.isnan(labels)]
    check_choice("alternative annotator test", "calibration", calibration, (None, "none", "quantiles", "isotonic"))
    if calibration == "none" or (calibration is None and (judged.scale is not None or np.isin(scores, known).all())):
        return scores
    where = f"{judged.evaluator}: its scores, from {scores.min():g} to {scores.max():g},"
    if scale.kind == "nominal":
        raise InputError(
            f"{where} are no labels, and no order leads from numbers to {', '.join(scale.categories)}. Give labels."
        )
    if calibration is None:
        raise InputError(
            f"{where} are not all numbers that people gave, from {known.min():g} to {known.max():g}: they may mean something "
            "else. Say --calibrate isotonic or quantiles to make labels of them, or --calibrate none if they are labels."
        )
    folds, answers = clusters % N_FOLDS, np.empty(len(scores))
    for fold in np.unique(folds):
        here = folds == fold
        fitted = _by_isotonic if calibration == "isotonic" else _by_quantiles
        answers[here] = fitted(scores[~here], labels[~here], scores[here])
    return np.where(answers >= 0.5, 1.0, 0.0) if scale.kind == "binary" else answers


def _by_isotonic(scores: FloatArray, labels: FloatArray, new_scores: FloatArray) -> FloatArray:
    from scipy.optimize import isotonic_regression

    # Equal scores are one point, with the mean of all their labels.
    points, point = np.unique(scores, return_inverse=True)
    n_labels = np.bincount(point, (~np.isnan(labels)).sum(axis=1))
    means = np.bincount(point, np.nansum(labels, axis=1)) / n_labels
    return np.asarray(np.interp(new_scores, points, isotonic_regression(means, weights=n_labels).x))


def _by_quantiles(scores: FloatArray, labels: FloatArray, new_scores: FloatArray) -> FloatArray:
    ordered = np.sort(scores)
    below, up_to = (np.searchsorted(ordered, new_scores, side=side) for side in ("left", "right"))
    shares = (below + up_to) / (2 * len(ordered))
    return np.asarray(np.quantile(labels[~np.isnan(labels)], shares, method="inverted_cdf"))


def _cautions(table: LabelTable, tested: list[int], n_clusters: int) -> tuple[str, ...]:
    left_out = ", ".join(rater for place, rater in enumerate(table.raters) if place not in tested)
    cautions = {
        f"{len(tested)} raters are few: with {FEW_RATERS} or more, the others have something in common.": len(tested)
        < FEW_RATERS,
        f"Not left out, as they labelled fewer than {MIN_ROWS} rows or {MIN_CLUSTERS} conversations: {left_out}.": left_out,
        f"Rough: a rater labelled {n_clusters} conversations, fewer than {ROUGH_CLUSTERS}.": n_clusters < ROUGH_CLUSTERS,
        "The file does not say who gave which label: a rater here is a place in its lists, which several people filled. The "
        "winning rate says how surely the evaluator matches people on average, not how many of them.": not table.has_people,
    }
    return tuple(caution for caution, holds in cautions.items() if holds)
