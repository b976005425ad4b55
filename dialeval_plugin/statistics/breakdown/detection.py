"""How well a breakdown detector agrees with annotators: the metrics of the Dialogue Breakdown Detection Challenge.

Each system turn was called by every annotator `O` (not a breakdown, NB), `T` (possible breakdown, PB) or `X` (breakdown, B); a
detector gives a distribution over the three and one of them as its hard label. The definitions are those of the organisers'
`eval.py` (Higashinaka et al. 2017, DBDC3), whose numbers come out here; two of its rules are not in the papers:

- Ties between labels go to O before T before X. With a threshold, a turn on which no label reaches it is O.
- Accuracy and F1(B) compare with the annotators' strict majority. F1(PB+B) compares with their lenient one, which is a
  breakdown where T and X together have more than O: not the same as a strict majority of T or X.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate, Interval, Statistic
from dialeval_plugin.statistics.canonical import canonical
from dialeval_plugin.statistics.checks import (
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    Labels,
    OptionalNumbers,
    optional_numbers,
    same_length,
    used_codes,
)

Distributions: TypeAlias = Sequence[Sequence[float] | None] | npt.NDArray[Any]
"""One row a system turn: P(NB), P(PB), P(B), or None where the detector gave no answer."""
Counts: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[Any]
"""One row a system turn: how many annotators said O, T and X. A row of zeros was not annotated."""

LABELS = ("O", "T", "X")
NOT_BREAKDOWN, POSSIBLE_BREAKDOWN, BREAKDOWN = range(3)
"""Places of the labels, in a distribution and as hard labels."""
ALWAYS_BREAKDOWN = (0.0, 0.0, 1.0)
"""What the baseline that calls every turn a breakdown answers; F1(B) of about 0.4 and F1(PB+B) of about 0.6 need no skill."""
DEFAULT_CUT = 0.5

MERGES: Mapping[str, tuple[tuple[int, ...], ...]] = MappingProxyType(
    {"nb_pb_b": ((0,), (1,), (2,)), "nb_pbb": ((0,), (1, 2)), "nbpb_b": ((0, 1), (2,))}
)
"""Which labels count as one class: none, PB with B, NB with PB."""
METRICS = ("accuracy", "f1_b", "f1_pb_b", *(f"{name}_{merge}" for name in ("jsd", "mse") for merge in MERGES))
LOWER_IS_BETTER = tuple(name for name in METRICS if name.startswith(("jsd", "mse")))

_BOOTSTRAP = Bootstrap()
_SUM_TOLERANCE = 0.01
"""Detectors publish rounded shares: three of 0.33 are a distribution."""


@dataclass(frozen=True, kw_only=True)
class BreakdownMetric(Estimate):
    """One of `METRICS`; `n_total = n_scored + n_unscored + n_unannotated` counts system turns.

    Attributes:
        metric: its name.
        n_unannotated: turns left out because nobody annotated them, whether or not the detector answered.
    """

    metric: str
    n_unannotated: int

    def __str__(self) -> str:
        n_annotated = self.n_scored + self.n_unscored
        return (
            f"{self.metric} {self._text()}, {self.n_scored} of {n_annotated} annotated turns scored, {self.n_clusters} clusters"
        )


class Detections(NamedTuple):
    """What a detector that gives one number a turn says in the challenge's terms; None where it gave no number."""

    distributions: list[tuple[float, float, float] | None]
    labels: list[int | None]


def breakdown_metrics(
    distributions: Distributions,
    counts: Counts,
    *,
    labels: Sequence[int | None] | None = None,
    threshold: float = 0.0,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = _BOOTSTRAP,
) -> dict[str, BreakdownMetric]:
    """Return every metric of `METRICS` by name, with intervals from the same resamples.

    Accuracy: share of the turns whose hard label is the strict majority's, from 0 to 1.
    F1(B), F1(PB+B): 2 tp / (2 tp + fp + fn) of X, and of T or X; from 0 to 1. Undefined where neither the detector nor the
    annotators ever say so; the organisers' script prints 0 there.
    JSD: Jensen-Shannon divergence of the two distributions, logarithms to base 2, no square root; from 0 to 1, the mean over
    turns. MSE: mean of the squared differences over the 2 or 3 classes, then over turns; from 0 to 1.
    Missing values: a turn without annotation or without a distribution is left out and counted.
    Undefined: the value is None and `reason` says why. Interval and seed: see `bootstrap.Bootstrap`.

    Args:
        distributions: the detector's, of shape (turns, 3).
        counts: the annotators', of shape (turns, 3).
        labels: the detector's hard labels, which may differ from its likeliest; without them the likeliest, ties to O before
            T before X.
        threshold: share of the annotators that a majority needs. The organisers' runs had 0.
        clusters: label of the dialogue of each turn; turns of one dialogue are resampled together.
        bootstrap: of the intervals.

    Raises:
        InputError: lengths differ, a row is no distribution or no row of counts, or a label is not 0, 1 or 2.

    Example:
        >>> found = breakdown_metrics(
        ...     [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], None], [[20, 5, 5], [2, 8, 20], [10, 10, 10]], bootstrap=Bootstrap(rounds=0)
        ... )
        >>> print(found["f1_b"])
        f1_b 1.000 (no interval), 2 of 3 annotated turns scored, 2 clusters
        >>> print(found["jsd_nb_pbb"])
        jsd_nb_pbb 0.002 (no interval), 2 of 3 annotated turns scored, 2 clusters
    """
    where = "breakdown_metrics"
    same_length(where, distributions=distributions, counts=counts)
    for name, column in (("labels", labels), ("clusters", clusters)):
        if column is not None:
            same_length(where, **{"distributions": distributions, name: column})
    _check_threshold(threshold, where)
    annotations = checked_counts(counts)
    predicted, is_scored = checked_distributions(distributions)
    hard = predicted.argmax(axis=1) if labels is None else checked_labels(labels, is_scored)
    is_annotated = annotations.sum(axis=1) > 0
    used = np.flatnonzero(is_annotated & is_scored)
    content = [*annotations[used].T, *predicted[used].T, hard[used]]
    order, codes = canonical(content, used_codes(where, clusters, used, len(predicted)))
    rows = used[order]
    values, statistics = _values(_columns(predicted[rows], annotations[rows], hard[rows], threshold))
    intervals = bootstrap.intervals(statistics, np.arange(len(rows)), codes) if statistics else {}
    n_scored = len(rows)
    found = {}
    for name in METRICS:
        interval = intervals.get(name, Interval(None, None, 0, _undefined(name, n_scored)))
        found[name] = BreakdownMetric(
            metric=name,
            value=values.get(name),
            n_total=len(predicted),
            n_scored=n_scored,
            n_unscored=int((is_annotated & ~is_scored).sum()),
            n_unannotated=int((~is_annotated).sum()),
            n_clusters=int(codes.max(initial=-1)) + 1,
            **bootstrap.fields(interval),
        )
    return found


def metric_statistics(
    distributions: Distributions, counts: Counts, labels: Sequence[int | None], threshold: float = 0.0
) -> dict[str, Statistic]:
    """Return the defined metrics as functions of the turns' weights, for statistics that combine detectors.

    Args:
        distributions: a detector's, of shape (turns, 3), none missing.
        counts: the annotators', of shape (turns, 3), no row of zeros.
        labels: the detector's hard labels.
        threshold: as in `breakdown_metrics`.

    Raises:
        InputError: as in `breakdown_metrics`.
    """
    predicted, is_scored = checked_distributions(distributions)
    return _values(_columns(predicted, checked_counts(counts), checked_labels(labels, is_scored), threshold))[1]


def strict_labels(counts: Counts, threshold: float = 0.0) -> IntArray:
    """Return the annotators' majority of each turn: ties go to O before T before X; below `threshold` it is O.

    Raises:
        InputError: a row is no row of counts, or the threshold is no share.

    Example:
        >>> strict_labels([[2, 3, 5], [5, 5, 0]]), strict_labels([[2, 3, 5]], threshold=0.6)
        (array([2, 0]), array([0]))
    """
    _check_threshold(threshold, "strict_labels")
    return _strict(_shares(checked_counts(counts)), threshold)


def detections(scores: OptionalNumbers, *, cut: float = DEFAULT_CUT) -> Detections:
    """Turn breakdown scores s into distributions [1 - s, 0, s] and hard labels: X above `cut`, else O (METHODS, section 7).

    Such a detector never says T, so both merges see the same pair of classes.

    Args:
        scores: in [0, 1], the higher the worse; None where there is none.
        cut: the challenge's F1 needs one. 0.5 is not tuned; `best_cut` tunes it on annotated development data.

    Raises:
        InputError: a score is neither None nor a number from 0 to 1.

    Example:
        >>> detections([0.25, None, 0.75])
        Detections(distributions=[(0.75, 0.0, 0.25), None, (0.25, 0.0, 0.75)], labels=[0, None, 2])
    """
    column = _breakdown_scores("detections", scores)
    given = [float(value) if is_there else None for value, is_there in zip(*column, strict=True)]
    return Detections(
        [None if score is None else (1 - score, 0.0, score) for score in given],
        [None if score is None else BREAKDOWN if score > cut else NOT_BREAKDOWN for score in given],
    )


def best_cut(scores: OptionalNumbers, counts: Counts, *, metric: str = "f1_b", threshold: float = 0.0) -> float:
    """Return the cut that gives `detections` the best value of `metric` on annotated development data.

    Candidates are -1, with which every turn is X, the midpoints between neighbouring scores, and the highest score, with which
    none is; of equally good ones the lowest.

    Args:
        scores: as in `detections`.
        counts: the annotators' counts.
        metric: "accuracy", "f1_b" or "f1_pb_b".
        threshold: as in `breakdown_metrics`.

    Raises:
        InputError: the metric does not depend on a cut, no cut gives it a value, or as `breakdown_metrics`.

    Example:
        >>> best_cut([0.1, 0.2, 0.4], [[9, 1, 0], [0, 1, 9], [1, 0, 9]])
        0.15000000000000002
    """
    if metric not in ("accuracy", "f1_b", "f1_pb_b"):
        raise InputError(f"best_cut: there is no cut for {metric!r}. Give accuracy, f1_b or f1_pb_b.")
    same_length("best_cut", scores=scores, counts=counts)
    _check_threshold(threshold, "best_cut")
    column, annotations = _breakdown_scores("best_cut", scores), checked_counts(counts)
    ordered = np.unique(column.values[column.present])
    candidates = np.concatenate([[-1.0], (ordered[1:] + ordered[:-1]) / 2, ordered[-1:]])
    used = (annotations.sum(axis=1) > 0) & column.present
    values = _f1_or_accuracy(metric, candidates, column.values[used], _shares(annotations[used]), threshold)
    if np.isnan(values).all():
        raise InputError(f"best_cut: {metric} is undefined at every cut. Give annotated turns, some of them breakdowns.")
    return float(candidates[np.nanargmax(values)])


def _f1_or_accuracy(metric: str, cuts: FloatArray, scores: FloatArray, shares: FloatArray, threshold: float) -> FloatArray:
    """The metric at each cut, NaN where it is undefined; one sort in place of a pass over all turns for every cut."""
    strict = _strict(shares, threshold)
    order = np.argsort(-scores, kind="stable")
    n_said = len(scores) - np.searchsorted(np.sort(scores), cuts, side="right")

    def among_said(is_so: BoolArray) -> IntArray:
        return np.concatenate([[0], np.cumsum(is_so[order])])[n_said]

    if metric == "accuracy":
        rejected = int((strict == NOT_BREAKDOWN).sum()) - among_said(strict == NOT_BREAKDOWN)
        hits, possible = among_said(strict == BREAKDOWN) + rejected, np.full(len(cuts), len(scores))
    else:
        true = strict == BREAKDOWN if metric == "f1_b" else _is_lenient_breakdown(shares, threshold)
        hits, possible = 2 * among_said(true), n_said + int(true.sum())
    return np.asarray(np.divide(hits, possible, out=np.full(len(cuts), np.nan), where=possible > 0))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The turns that count, a row each."""

    means: Mapping[str, FloatArray]
    """Metrics that are means over turns."""
    hits: Mapping[str, tuple[BoolArray, BoolArray]]
    """F measures: whether the detector says so, whether the annotators do."""


def _columns(predicted: FloatArray, annotations: IntArray, hard: IntArray, threshold: float) -> _Columns:
    shares = _shares(annotations)
    strict = _strict(shares, threshold)
    means: dict[str, FloatArray] = {"accuracy": (hard == strict).astype(np.float64)}
    for merge, classes in MERGES.items():
        p, q = (
            np.stack([values[:, list(members)].sum(axis=1) for members in classes], axis=1) for values in (shares, predicted)
        )
        means[f"jsd_{merge}"] = _jensen_shannon(p, q)
        means[f"mse_{merge}"] = ((p - q) ** 2).mean(axis=1)
    hits = {
        "f1_b": (hard == BREAKDOWN, strict == BREAKDOWN),
        "f1_pb_b": (hard != NOT_BREAKDOWN, _is_lenient_breakdown(shares, threshold)),
    }
    return _Columns(means, hits)


def _values(columns: _Columns) -> tuple[dict[str, float], dict[str, Statistic]]:
    """The defined metrics and, for their intervals, each as a function of the turns' weights."""
    values: dict[str, float] = {}
    statistics: dict[str, Statistic] = {}
    for name, row_values in columns.means.items():
        if len(row_values):
            values[name] = math.fsum(row_values) / len(row_values)
            statistics[name] = partial(_weighted_mean, row_values)
    for name, (said, true) in columns.hits.items():
        if said.any() or true.any():
            values[name] = float(2 * (said & true).sum() / (said.sum() + true.sum()))
            statistics[name] = partial(_weighted_f1, said, true)
    return values, statistics


def _weighted_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(weights @ values / weights.sum(axis=1))


def _weighted_f1(said: BoolArray, true: BoolArray, weights: FloatArray) -> FloatArray:
    # A resample in which nobody says so is degenerate: 0 / 0 is NaN, which marks it.
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * (weights @ (said & true)) / (weights @ said.astype(np.float64) + weights @ true))


def _jensen_shannon(p: FloatArray, q: FloatArray) -> FloatArray:
    middle = (p + q) / 2
    return (_kullback_leibler(p, middle) + _kullback_leibler(q, middle)) / 2


def _kullback_leibler(p: FloatArray, q: FloatArray) -> FloatArray:
    positive = p > 0
    ratio = np.divide(p, q, out=np.ones_like(p), where=positive)
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def _shares(counts: IntArray) -> FloatArray:
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


def _strict(shares: FloatArray, threshold: float) -> IntArray:
    # argmax takes the first of equals, which is the organisers' order.
    likeliest = shares.argmax(axis=1)
    return np.where(shares.max(axis=1, initial=0.0) >= threshold, likeliest, NOT_BREAKDOWN)


def _is_lenient_breakdown(shares: FloatArray, threshold: float) -> BoolArray:
    no, yes = shares[:, 0], shares[:, 1] + shares[:, 2]
    return np.asarray(~((no >= yes) & (no >= threshold)) & (yes >= no) & (yes >= threshold))


def _undefined(name: str, n_scored: int) -> str:
    if not n_scored:
        return f"{name}: no annotated turn has an answer. Score annotated turns."
    return f"{name}: neither the detector nor the annotators call any of {n_scored} turns so. Score more turns."


def _check_threshold(threshold: float, caller: str) -> None:
    if not 0 <= threshold <= 1:
        raise InputError(f"{caller}: threshold is {threshold!r}. Give a share of the annotators from 0 to 1.")


def _breakdown_scores(where: str, scores: OptionalNumbers) -> Column:
    column = optional_numbers(where, "scores", scores)
    for index, value in enumerate(column.values):
        if not 0 <= value <= 1:
            raise InputError(f"{where}: scores[{index}] is {float(value)!r}. Give a breakdown score from 0 to 1, or None.")
    return column


def checked_distributions(rows: Distributions) -> tuple[FloatArray, BoolArray]:
    """Return distributions as an array, and which rows have one.

    Raises:
        InputError: a row is no distribution.
    """
    values = np.zeros((len(rows), len(LABELS)))
    present = np.zeros(len(rows), dtype=np.bool_)
    for index, row in enumerate(rows):
        if row is None:
            continue
        values[index], present[index] = _distribution(row, index), True
    return values, present


def _distribution(row: Any, index: int) -> FloatArray:
    found = np.asarray(row, dtype=object)
    try:
        values = found.astype(np.float64)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if (
        values.shape != (len(LABELS),)
        or not np.isfinite(values).all()
        or (values < 0).any()
        or abs(values.sum() - 1) > _SUM_TOLERANCE
    ):
        raise InputError(
            f"breakdown_metrics: distributions[{index}] is {row!r}. Give P(NB), P(PB), P(B), which sum to 1, or None."
        )
    return np.asarray(values)


def checked_counts(rows: Counts) -> IntArray:
    """Return the annotators' counts as an array.

    Raises:
        InputError: a row is no row of counts.
    """
    values = np.zeros((len(rows), len(LABELS)), dtype=np.int64)
    for index, row in enumerate(rows):
        found = [] if isinstance(row, str) or not hasattr(row, "__len__") else list(row)
        if len(found) != len(LABELS) or not all(_is_count(value) for value in found):
            raise InputError(
                f"breakdown_metrics: counts[{index}] is {row!r}. Give how many annotators said O, T and X, three whole numbers."
            )
        values[index] = found
    return values


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def checked_labels(labels: Sequence[int | None], is_scored: BoolArray) -> IntArray:
    """Return hard labels as an array; those of turns without a distribution may be None.

    Raises:
        InputError: a label is not 0, 1 or 2.
    """
    values = np.zeros(len(labels), dtype=np.int64)
    for index, (label, needed) in enumerate(zip(labels, is_scored, strict=True)):
        if label is None and not needed:
            continue
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or label not in range(len(LABELS)):
            raise InputError(f"breakdown_metrics: labels[{index}] is {label!r}. Give 0 (O), 1 (T) or 2 (X).")
        values[index] = label
    return values
