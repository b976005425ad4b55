"""Agreement of a breakdown detector with annotators: the metrics of the Dialogue Breakdown Detection Challenge.

Every annotator labelled each system turn `O` (not a breakdown, NB), `T` (possible breakdown, PB) or `X` (breakdown, B); a
detector gives a distribution over the three and one of them as its hard label. The definitions and numbers are those of the
organisers' `eval.py` (Higashinaka et al. 2017, DBDC3); two of its rules are not in the papers:

- Ties between labels go to O before T before X. With a threshold, a turn whose labels are all below it is O.
- Accuracy and F1(B) use the annotators' strict majority. F1(PB+B) uses their lenient one, which is a breakdown if T and X
  together have more than O: not the same as a strict majority of T or X.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError

from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Counts, Estimate, Resampled, rows_by_cell
from .categories import jensen_shannon
from .rows import Canonical, CheckedColumn, canonical_rows, optional_numbers, same_length

Distributions: TypeAlias = Sequence[Sequence[float] | None] | npt.NDArray[Any]
"""One row per system turn: P(NB), P(PB), P(B), or None if the detector gave no answer."""
AnnotatorCounts: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[Any]
"""One row per system turn: the numbers of annotators who said O, T and X. A row of zeros was not annotated."""

LABELS = ("O", "T", "X")
NOT_BREAKDOWN, POSSIBLE_BREAKDOWN, BREAKDOWN = range(3)
"""Indices of the labels, in a distribution and as hard labels."""
ALWAYS_BREAKDOWN = (0.0, 0.0, 1.0)
"""Answer of the baseline that calls every turn a breakdown; it reaches an F1(B) of about 0.4 and F1(PB+B) of about 0.6."""
DEFAULT_CUT = 0.5
SUM_TOLERANCE = 0.01
"""Detectors publish rounded shares: three times 0.33 is a distribution."""

MERGES: Mapping[str, tuple[tuple[int, ...], ...]] = MappingProxyType(
    {"nb_pb_b": ((0,), (1,), (2,)), "nb_pbb": ((0,), (1, 2)), "nbpb_b": ((0, 1), (2,))}
)
"""Labels merged into one class: none, PB with B, NB with PB."""
METRICS = ("accuracy", "f1_b", "f1_pb_b", *(f"{name}_{merge}" for name in ("jsd", "mse") for merge in MERGES))


class Detections(NamedTuple):
    """Answers of a detector for some turns, in the challenge's terms; None without an answer."""

    distributions: Distributions
    labels: Sequence[int | None]


def breakdown_metrics(
    distributions: Distributions,
    counts: AnnotatorCounts,
    *,
    labels: Sequence[int | None] | None = None,
    threshold: float = 0.0,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return every metric of `METRICS` by name, with intervals from the same resamples; counts are of system turns.

    Accuracy: share of the turns whose hard label is the strict majority's. F1(B), F1(PB+B): 2 tp / (2 tp + fp + fn) for X, and
    for T or X; undefined if neither the detector nor the annotators ever use the label. JSD: Jensen-Shannon divergence with
    logarithms to base 2 and no square root, averaged over turns. MSE: mean squared difference over the 2 or 3 classes, then
    over turns. All are in [0, 1]. Turns without annotation (unrated) or without a distribution (unscored) are left out and
    counted.

    Args:
        distributions: the detector's, shape (turns, 3).
        counts: the annotators', shape (turns, 3).
        labels: the detector's hard labels; by default the most probable label, ties to O before T before X.
        threshold: share of the annotators that a majority needs. The organisers' runs had 0.
        clusters: label of the dialogue of each turn; turns of one dialogue are resampled together.
        bootstrap: settings of the intervals.

    Raises:
        InputError: lengths differ, a row is not a distribution or not counts, or a label is not 0, 1 or 2.

    Example:
        >>> found = breakdown_metrics(
        ...     [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], None], [[20, 5, 5], [2, 8, 20], [10, 10, 10]], bootstrap=Bootstrap(rounds=0)
        ... )
        >>> print(found["f1_b"])
        f1_b 1.000, 2 of 3 rows scored, 2 clusters
    """
    where = "breakdown_metrics"
    same_length(where, distributions=distributions, counts=counts, labels=labels, clusters=clusters)
    _check_threshold(threshold, where)
    annotations, answers = _checked_counts(counts), _checked_answers(distributions, labels)
    rows, row_counts = _used_rows(where, annotations, [answers], clusters)
    defined = _metrics(annotations, answers, rows, threshold)
    why = f"neither the detector nor the annotators call any of {row_counts.n_scored} turns so. Score more turns."
    if not row_counts.n_scored:
        why = "no annotated turn has an answer. Score annotated turns."
    computed = {name: defined.get(name, f"{name}: {why}") for name in METRICS}
    return bootstrap.estimates(computed, row_counts)


def breakdown_differences(
    one: Detections,
    other: Detections,
    counts: AnnotatorCounts,
    *,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return metric(one) - metric(other) by name, with intervals from resamples shared by both detectors.

    Only annotated turns answered by both detectors count. A metric that is undefined for one of them is left out.
    """
    where = "breakdown_differences"
    same_length(where, one=one.distributions, other=other.distributions, counts=counts, clusters=clusters)
    annotations = _checked_counts(counts)
    answers = [_checked_answers(detector.distributions, detector.labels) for detector in (one, other)]
    rows, row_counts = _used_rows(where, annotations, answers, clusters)
    if not row_counts.n_scored:
        raise InputError(f"{where}: no annotated turn has an answer of both. Score annotated turns.")
    of_a, of_b = (_metrics(annotations, detector, rows) for detector in answers)
    return bootstrap.estimates({name: of_a[name][1] - of_b[name][1] for name in of_a if name in of_b}, row_counts)


def strict_labels(counts: AnnotatorCounts, threshold: float = 0.0) -> IntArray:
    """Return the annotators' majority of each turn: ties go to O before T before X; below `threshold` it is O."""
    _check_threshold(threshold, "strict_labels")
    return _strict(_shares(_checked_counts(counts)), threshold)


def detections(scores: OptionalNumbers, *, cut: float = DEFAULT_CUT) -> Detections:
    """Turn breakdown scores s into distributions [1 - s, 0, s] and hard labels: X above `cut`, else O (METHODS, section 7).

    Scores are in [0, 1]; higher is worse. The default cut of 0.5 is not tuned; `best_cut` tunes it on development data.
    """
    column = _breakdown_scores("detections", scores)
    numbers = [float(value) if is_there else None for value, is_there in zip(*column, strict=True)]
    return Detections(
        [None if score is None else (1 - score, 0.0, score) for score in numbers],
        [None if score is None else BREAKDOWN if score > cut else NOT_BREAKDOWN for score in numbers],
    )


def best_cut(scores: OptionalNumbers, counts: AnnotatorCounts, *, metric: str = "f1_b") -> float:
    """Return the lowest cut with which `detections` has the best value of `metric` on annotated development data.

    Candidates are -1, midpoints between scores, and the highest score. InputError: unknown metric, or no cut gives it a value.
    """
    if metric not in ("accuracy", "f1_b", "f1_pb_b"):
        raise InputError(f"best_cut: there is no cut for {metric!r}. Give accuracy, f1_b or f1_pb_b.")
    same_length("best_cut", scores=scores, counts=counts)
    column, annotations = _breakdown_scores("best_cut", scores), _checked_counts(counts)
    ordered = np.unique(column.values[column.present])
    candidates = np.concatenate([[-1.0], (ordered[1:] + ordered[:-1]) / 2, ordered[-1:]])
    used = (annotations.sum(axis=1) > 0) & column.present
    scores, shares = column.values[used], _shares(annotations[used])
    strict = _strict(shares, 0.0)
    true = _is_lenient_breakdown(shares, 0.0) if metric == "f1_pb_b" else strict == BREAKDOWN
    values = []
    for cut in candidates:
        calls = scores > cut
        hits, possible = 2 * (calls & true).sum(), calls.sum() + true.sum()
        if metric == "accuracy":
            hits, possible = (np.where(calls, BREAKDOWN, NOT_BREAKDOWN) == strict).sum(), len(calls)
        values.append(hits / possible if possible else math.nan)
    if np.isnan(values).all():
        raise InputError(f"best_cut: {metric} is undefined at every cut. Give annotated turns, some of them breakdowns.")
    return float(candidates[np.nanargmax(values)])


class _Answers(NamedTuple):
    distributions: FloatArray
    present: BoolArray
    labels: IntArray


def _used_rows(
    where: str, annotations: IntArray, detectors: Sequence[_Answers], clusters: Labels | None
) -> tuple[Canonical, Counts]:
    is_annotated = annotations.sum(axis=1) > 0
    is_scored = np.logical_and.reduce([answers.present for answers in detectors])
    used = np.flatnonzero(is_annotated & is_scored)
    metrics = ([*answers.distributions.T, answers.labels] for answers in detectors)
    rows = canonical_rows(where, list(annotations.T), used, clusters, metrics=metrics)
    n_unscored, n_unannotated = int((is_annotated & ~is_scored).sum()), int((~is_annotated).sum())
    return rows, Counts(len(annotations), len(used), rows.n_clusters, n_unscored, n_unannotated)


def _metrics(
    annotations: IntArray, answers: _Answers, rows: Canonical, threshold: float = 0.0
) -> dict[str, tuple[float, Resampled]]:
    order, clusters, _ = rows
    if not len(order):
        return {}
    predicted, hard, shares = answers.distributions[order], answers.labels[order], _shares(annotations[order])
    strict = _strict(shares, threshold)
    row_values: dict[str, FloatArray] = {"accuracy": (hard == strict).astype(np.float64)}
    for merge, classes in MERGES.items():
        p, q = (
            np.stack([values[:, list(members)].sum(axis=1) for members in classes], axis=1) for values in (shares, predicted)
        )
        row_values |= {f"jsd_{merge}": jensen_shannon(p, q), f"mse_{merge}": np.asarray(((p - q) ** 2).mean(axis=1))}
    # Whether the detector and the annotators use the label.
    hits = {
        "f1_b": (hard == BREAKDOWN, strict == BREAKDOWN),
        "f1_pb_b": (hard != NOT_BREAKDOWN, _is_lenient_breakdown(shares, threshold)),
    }
    sums = rows_by_cell(np.arange(len(clusters)), clusters)
    metrics = {}
    for name, of_rows in row_values.items():
        metrics[name] = math.fsum(of_rows) / len(of_rows), Resampled(partial(_weighted_mean, of_rows), sums)
    for name, (calls, true) in hits.items():
        if calls.any() or true.any():
            value = float(2 * (calls & true).sum() / (calls.sum() + true.sum()))
            metrics[name] = value, Resampled(partial(_weighted_f1, calls, true), sums)
    return metrics


def _weighted_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(weights @ values / weights.sum(axis=1))


@np.errstate(invalid="ignore")
def _weighted_f1(calls: BoolArray, true: BoolArray, weights: FloatArray) -> FloatArray:
    # If neither uses the label in a resample, 0 / 0 is NaN, which marks it as degenerate.
    return np.asarray(2 * (weights @ (calls & true)) / (weights @ calls.astype(np.float64) + weights @ true))


def _shares(counts: IntArray) -> FloatArray:
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


def _strict(shares: FloatArray, threshold: float) -> IntArray:
    # argmax takes the first of equal values, like the organisers.
    likeliest = shares.argmax(axis=1)
    return np.where(shares.max(axis=1, initial=0.0) >= threshold, likeliest, NOT_BREAKDOWN)


def _is_lenient_breakdown(shares: FloatArray, threshold: float) -> BoolArray:
    no, yes = shares[:, 0], shares[:, 1] + shares[:, 2]
    return np.asarray(~((no >= yes) & (no >= threshold)) & (yes >= no) & (yes >= threshold))


def _check_threshold(threshold: float, caller: str) -> None:
    if not 0 <= threshold <= 1:
        raise InputError(f"{caller}: threshold is {threshold!r}. Give a share of the annotators from 0 to 1.")


def _breakdown_scores(where: str, scores: OptionalNumbers) -> CheckedColumn:
    column = optional_numbers(where, "scores", scores)
    for index, value in enumerate(column.values):
        if not 0 <= value <= 1:
            raise InputError(f"{where}: scores[{index}] is {float(value)!r}. Give a breakdown score from 0 to 1, or None.")
    return column


def _checked_answers(rows: Distributions, labels: Sequence[int | None] | None) -> _Answers:
    """Check answers; hard labels default to the most probable ones, and may be None for turns without a distribution."""
    values = np.zeros((len(rows), len(LABELS)))
    present = np.array([row is not None for row in rows], dtype=np.bool_)
    for index, row in enumerate(rows):
        if row is None:
            continue
        try:
            numbers = np.array(row, dtype=object).astype(np.float64)
        except (TypeError, ValueError):
            numbers = np.array([np.nan])
        # Comparisons with NaN are false.
        if not (numbers.shape == (len(LABELS),) and (numbers >= 0).all() and abs(numbers.sum() - 1) <= SUM_TOLERANCE):
            why = f"distributions[{index}] is {row!r}"
            raise InputError(f"breakdown_metrics: {why}. Give P(NB), P(PB), P(B), which sum to 1, or None.")
        values[index] = numbers
    if labels is None:
        return _Answers(values, present, values.argmax(axis=1))
    hard = np.zeros(len(labels), dtype=np.int64)
    for index, (label, needed) in enumerate(zip(labels, present, strict=True)):
        if label is None and not needed:
            continue
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or label not in range(len(LABELS)):
            raise InputError(f"breakdown_metrics: labels[{index}] is {label!r}. Give 0 (O), 1 (T) or 2 (X).")
        hard[index] = label
    return _Answers(values, present, hard)


def _checked_counts(rows: AnnotatorCounts) -> IntArray:
    values = np.zeros((len(rows), len(LABELS)), dtype=np.int64)
    for index, row in enumerate(rows):
        numbers = [] if isinstance(row, str) or not hasattr(row, "__len__") else list(row)
        is_count = [isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0 for value in numbers]
        if len(numbers) != len(LABELS) or not all(is_count):
            why = f"counts[{index}] is {row!r}"
            raise InputError(f"breakdown_metrics: {why}. Give how many annotators said O, T and X, three whole numbers.")
        values[index] = numbers
    return values
