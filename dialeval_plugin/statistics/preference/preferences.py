"""How far a metric agrees with people who compared responses two at a time (Feng et al. 2024, section 4.2).

A comparison has two responses, A and B, and for each rater one of four answers: A is better, B is better, both are good,
both are bad. Three schemes set the metric's scores beside the answers: Voting, IgnoreEqual and Cont2Cat. Each result says
how a coin flip (`floor`) and the raters' own majority (`ceiling`) do in the metric's place, because Cont2Cat's alpha is far
from 0 for the one and far from 1 for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate, Interval
from dialeval_plugin.statistics.canonical import canonical
from dialeval_plugin.statistics.checks import (
    FloatArray,
    IntArray,
    Labels,
    OptionalNumbers,
    cluster_codes,
    optional_numbers,
    same_length,
    used_codes,
)
from dialeval_plugin.statistics.coefficients.alpha import alpha, alpha_of_samples
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.correlation import correlate

Votes: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[Any]
"""One row a comparison, one column a rater: `A_IS_BETTER`, `B_IS_BETTER`, `BOTH_ARE_GOOD` or `BOTH_ARE_BAD`."""
Observations: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
"""Scores, what they are compared with, and clusters."""
Unit: TypeAlias = Literal["comparison", "response"]
Opinion: TypeAlias = Literal["vote", "majority"]
Ties: TypeAlias = Literal["b", "missing"]
Equal: TypeAlias = Literal["category", "missing"]
Raters: TypeAlias = Literal["together", "one_by_one"]

A_IS_BETTER, B_IS_BETTER, BOTH_ARE_GOOD, BOTH_ARE_BAD = range(4)
N_FLIPS = 200
"""Coin flips that the floor averages over."""

POINTS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
"""Points of A and of B for each answer."""
_MISSING = -1
_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True, kw_only=True)
class Agreement(Estimate):
    """One statistic between a metric's scores and the answers; `n_total`, `n_scored` and `n_unscored` count comparisons.

    Attributes:
        statistic: its name.
        n_rows: number of its observations: responses, votes or comparisons.
        floor: its mean where a coin flip stands in the metric's place; None where undefined.
        ceiling: its value where the raters' majority stands there: no bound, but what a metric that is as good as they are
            would get; None where undefined.
    """

    statistic: str
    n_rows: int
    floor: float | None
    ceiling: float | None

    def __str__(self) -> str:
        ends = ", ".join(
            f"{name} {'undefined' if value is None else format(value, '.3f')}"
            for name, value in (("coin flip", self.floor), ("human majority", self.ceiling))
        )
        return f"{self.statistic} {self._text()}, {ends}, {self.n_scored} of {self.n_total} comparisons scored"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Checked columns, a row a comparison of which both responses have a score; make one with `comparisons`."""

    scores_a: FloatArray
    scores_b: FloatArray
    votes: IntArray
    clusters: IntArray
    responses: IntArray | None
    """Numbers of the responses A, then of the responses B."""
    n_total: int


def comparisons(
    scores_a: OptionalNumbers,
    scores_b: OptionalNumbers,
    votes: Votes,
    *,
    clusters: Labels | None = None,
    responses: tuple[Labels, Labels] | None = None,
) -> Comparisons:
    """Return the comparisons of which both responses have a score; the others are counted.

    Args:
        scores_a: of the responses called A; None where unscored.
        scores_b: of the responses called B.
        votes: the raters' answers.
        clusters: label of the dialogue of each comparison; comparisons of one dialogue are resampled together. Without it
            each stands alone, which is right only where no two share a context.
        responses: labels of the responses A and of the responses B, equal where it is the same response.

    Raises:
        InputError: lengths differ, a score is neither None nor a finite number, or an answer is none of the four.
    """
    where = "agreement"
    same_length(where, scores_a=scores_a, scores_b=scores_b, votes=votes)
    for name, labels in (("clusters", clusters), *zip(("responses_a", "responses_b"), responses or (None, None), strict=True)):
        if labels is not None:
            same_length(where, **{"scores_a": scores_a, name: labels})
    a, b = optional_numbers(where, "scores_a", scores_a), optional_numbers(where, "scores_b", scores_b)
    used = a.present & b.present
    numbers = None
    if responses is not None:
        kept = [label for side in responses for label, is_used in zip(side, used, strict=True) if is_used]
        numbers = cluster_codes(where, kept, len(kept))
    codes = used_codes(where, clusters, used, len(used))
    return Comparisons(a.values[used], b.values[used], _answers(votes)[used], codes, numbers, len(used))


def voting(
    compared: Comparisons, *, coefficient: str = "spearman", unit: Unit = "comparison", bootstrap: Bootstrap = _BOOTSTRAP
) -> Agreement:
    """Return a coefficient between scores and points, where a response gets a point from each rater who finds it good.

    A is better gives (1, 0), B is better (0, 1), both good (1, 1), both bad (0, 0), summed over raters.
    Observations: two a comparison; with `unit="response"` one a response, whose points are summed over its comparisons.
    Range, ties and undefined cases: those of the coefficient. Ceiling: the points of the majority's answer, one half each
    where there is no majority.

    Args:
        compared: see `comparisons`; with `unit="response"` it needs `responses`.
        coefficient: "pearson", "spearman" or "kendall_b".
        unit: see above.
        bootstrap: of the interval, over clusters.

    Raises:
        InputError: the coefficient or the unit is unknown, or `responses` is missing.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = comparisons([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(voting(compared, coefficient="pearson", bootstrap=Bootstrap(rounds=0)))
        voting_pearson 0.924 (no interval), coin flip 0.066, human majority 0.941, 4 of 4 comparisons scored
    """
    _check_choice("voting", "unit", unit, Unit)
    if unit == "response" and compared.responses is None:
        raise InputError("voting: unit='response' needs to know which responses are the same. Give `responses` to comparisons.")

    def rows(a: FloatArray, b: FloatArray) -> Observations:
        scores, points = np.concatenate([a, b]), POINTS[:, compared.votes].sum(axis=2).ravel()
        clusters = np.concatenate([compared.clusters, compared.clusters])
        if unit == "comparison" or compared.responses is None:
            return scores, points, clusters
        names, first = compared.responses, np.unique(compared.responses, return_index=True)[1]
        mean: FloatArray = np.bincount(names, scores) / np.bincount(names)
        return mean, np.bincount(names, points).astype(np.float64), clusters[first]

    majority = _majority(compared.votes)
    ideal_a, ideal_b = np.where(majority == _MISSING, 0.5, POINTS[:, majority])
    return _correlation(f"voting_{coefficient}", compared, rows, coefficient, (ideal_a, ideal_b), bootstrap)


def ignore_equal(compared: Comparisons, *, opinion: Opinion = "vote", bootstrap: Bootstrap = _BOOTSTRAP) -> Agreement:
    """Return the point-biserial correlation between score_A - score_B and who is better: 1 for A, 0 for B.

    The paper prints "A is better" for both codes; B is read as 0. Votes that both are good or bad are left out.
    Observations: one a vote; with `opinion="majority"` one a comparison in which more raters prefer A than B, or B than A.
    Range: -1 to 1, 0 for no relation. Undefined: fewer than 3 observations, or all of one kind. Ceiling: the share of raters
    who prefer A less that of those who prefer B.

    Raises:
        InputError: `opinion` is unknown.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = comparisons([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(ignore_equal(compared, bootstrap=Bootstrap(rounds=0)))
        ignore_equal 0.806 (no interval), coin flip 0.095, human majority 0.837, 4 of 4 comparisons scored
    """
    _check_choice("ignore_equal", "opinion", opinion, Opinion)
    answers = compared.votes
    if opinion == "majority":
        a, b = _preferring(compared.votes)
        answers = np.select([a > b, a < b], [A_IS_BETTER, B_IS_BETTER], _MISSING)[:, None]
    owner, rater = np.nonzero((answers == A_IS_BETTER) | (answers == B_IS_BETTER))
    preferred = (answers[owner, rater] == A_IS_BETTER).astype(np.float64)

    def rows(a: FloatArray, b: FloatArray) -> Observations:
        return (a - b)[owner], preferred, compared.clusters[owner]

    name = "ignore_equal" if opinion == "vote" else "ignore_equal_majority"
    return _correlation(name, compared, rows, "pearson", _preferring(compared.votes), bootstrap)


def cont2cat(
    compared: Comparisons,
    *,
    ties: Ties = "b",
    equal: Equal = "category",
    raters: Raters = "together",
    bootstrap: Bootstrap = _BOOTSTRAP,
) -> Agreement:
    """Return Krippendorff's alpha with the metric as one more rater, who says "A is better" where A's score is higher.

    Nominal scale of four answers, of which the metric gives two. Range and undefined cases: see `alpha.alpha`. Ceiling: the
    raters who prefer A against those who prefer B.

    Args:
        compared: see `comparisons`.
        ties: equal scores are "B is better" (the paper), or no answer.
        equal: both good and both bad are answers (the paper), or none.
        raters: the metric among all raters (the paper), or the mean of its alpha with each of them.
        bootstrap: of the interval, over clusters.

    Raises:
        InputError: an option is unknown.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = comparisons([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(cont2cat(compared, bootstrap=Bootstrap(rounds=0)))
        cont2cat 0.630 (no interval), coin flip 0.426, human majority 0.630, 4 of 4 comparisons scored
    """
    for option, choice, kind in (("ties", ties, Ties), ("equal", equal, Equal), ("raters", raters, Raters)):
        _check_choice("cont2cat", option, choice, kind)
    n_raters = compared.votes.shape[1]
    groups = [slice(None)] if raters == "together" else [slice(rater, rater + 1) for rater in range(n_raters)]

    def tables(a: FloatArray, b: FloatArray) -> list[FloatArray]:
        metric = np.where(a > b, A_IS_BETTER, B_IS_BETTER)
        if ties == "missing":
            metric = np.where(a == b, _MISSING, metric)
        return [_counts(np.column_stack([compared.votes[:, group], metric]), equal) for group in groups]

    def of_scores(a: FloatArray, b: FloatArray) -> float:
        return float(np.mean([alpha(table) for table in tables(a, b)]))

    def of_samples(given: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        values: FloatArray = np.mean([alpha_of_samples(table, weights) for table in given], axis=0)
        return values

    found = tables(compared.scores_a, compared.scores_b)
    order, clusters = canonical([column for table in found for column in table.T], compared.clusters)
    ordered = [table[order] for table in found]
    value, reason = _defined(lambda: float(np.mean([alpha(table) for table in ordered])))
    interval = Interval(None, None, 0, reason)
    if value is not None:
        statistic = partial(of_samples, ordered)
        interval = bootstrap.intervals({"cont2cat": statistic}, np.arange(len(order)), clusters)["cont2cat"]
    ends = _Ends(of_scores, _preferring(compared.votes), compared.votes)
    return _agreement("cont2cat", compared, len(compared.votes), value, interval, ends, bootstrap)


def human_alpha(votes: Votes, *, equal: Equal = "category") -> float:
    """Return Krippendorff's alpha among the raters alone, nominal, over the four answers.

    Raises:
        InputError: an answer is none of the four.
        StatisticUndefined: all answers are the same.

    Example:
        >>> round(human_alpha([[A_IS_BETTER] * 3, [B_IS_BETTER] * 2 + [A_IS_BETTER]]), 3)
        0.375
    """
    return alpha(_counts(_answers(votes), equal))


@dataclass(frozen=True, slots=True)
class _Ends:
    """What floor and ceiling are made of."""

    statistic: Callable[[FloatArray, FloatArray], float]
    ideal: tuple[FloatArray, FloatArray]
    """Scores of A and B that the raters' majority would give."""
    votes: IntArray

    @property
    def order(self) -> IntArray:
        """Of the comparisons by their votes: a coin is flipped for each whatever its place and its scores."""
        return np.lexsort([np.zeros(len(self.votes)), *self.votes.T[::-1]])

    def floor(self, seed: int) -> float | None:
        """Mean of the statistic over coin flips that stand in the metric's place."""
        flips = np.empty((N_FLIPS, len(self.order)))
        flips[:, self.order] = np.random.default_rng(seed).integers(2, size=flips.shape)
        values = [_defined(partial(self.statistic, flip, 1 - flip))[0] for flip in flips]
        defined = [value for value in values if value is not None]
        return float(np.mean(defined)) if defined else None

    def ceiling(self) -> float | None:
        return _defined(partial(self.statistic, *self.ideal))[0]


def _check_choice(where: str, name: str, value: object, kind: Any) -> None:
    if value not in get_args(kind):
        raise InputError(f"{where}: there is no {name}={value!r}. Choose one of {', '.join(get_args(kind))}.")


def _answers(votes: Votes) -> IntArray:
    widths = {len(row) for row in votes}
    if len(widths) > 1:
        raise InputError(f"agreement: the comparisons have {min(widths)} to {max(widths)} votes. Give as many for each.")
    for row, given in enumerate(votes):
        for rater, vote in enumerate(given):
            if isinstance(vote, bool) or not isinstance(vote, (int, np.integer)) or not A_IS_BETTER <= vote <= BOTH_ARE_BAD:
                raise InputError(
                    f"agreement: votes[{row}][{rater}] is {vote!r}. Give 0 (A), 1 (B), 2 (both are good) or 3 (both are bad)."
                )
    return np.array(votes, dtype=np.int64).reshape(len(votes), max(widths, default=0))


def _counts(answers: IntArray, equal: Equal) -> FloatArray:
    """How many raters gave each answer to each unit; what is no answer counts for none."""
    n_answers = 4 if equal == "category" else 2
    table: FloatArray = (answers[:, :, None] == np.arange(n_answers)).sum(axis=1).astype(np.float64)
    return table


def _majority(votes: IntArray) -> IntArray:
    """The answer that more than half of the raters gave, or `_MISSING`."""
    counts = _counts(votes, "category")
    found: IntArray = np.where(counts.max(axis=1, initial=0) * 2 > votes.shape[1], counts.argmax(axis=1), _MISSING)
    return found


def _preferring(votes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Shares of the raters who prefer A and who prefer B."""
    n_raters = max(1, votes.shape[1])
    return (votes == A_IS_BETTER).sum(axis=1) / n_raters, (votes == B_IS_BETTER).sum(axis=1) / n_raters


def _defined(compute: Callable[[], float]) -> tuple[float | None, str | None]:
    try:
        return compute(), None
    except StatisticUndefined as error:
        return None, str(error)


def _correlation(
    name: str,
    compared: Comparisons,
    rows: Callable[[FloatArray, FloatArray], Observations],
    coefficient: str,
    ideal: tuple[FloatArray, FloatArray],
    bootstrap: Bootstrap,
) -> Agreement:
    of_pairs = coefficient_named(coefficient).of_pairs
    scores, points, clusters = rows(compared.scores_a, compared.scores_b)
    settings = {"rounds": bootstrap.rounds, "seed": bootstrap.seed}
    found = correlate(scores, points, coefficient=coefficient, clusters=clusters, confidence=bootstrap.confidence, **settings)
    interval = Interval(found.ci_low, found.ci_high, found.n_degenerate, found.reason, found.is_rough)
    ends = _Ends(lambda a, b: of_pairs(*rows(a, b)[:2]), ideal, compared.votes)
    return _agreement(name, compared, len(scores), found.value, interval, ends, bootstrap)


def _agreement(
    name: str,
    compared: Comparisons,
    n_rows: int,
    value: float | None,
    interval: Interval,
    ends: _Ends,
    bootstrap: Bootstrap,
) -> Agreement:
    return Agreement(
        statistic=name,
        value=value,
        **bootstrap.fields(interval),
        n_total=compared.n_total,
        n_scored=len(compared.votes),
        n_unscored=compared.n_total - len(compared.votes),
        n_clusters=int(compared.clusters.max(initial=-1)) + 1,
        n_rows=n_rows,
        floor=ends.floor(bootstrap.seed),
        ceiling=ends.ceiling(),
    )
