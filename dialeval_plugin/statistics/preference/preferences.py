"""Agreement of a metric with people who compared pairs of responses (Feng et al. 2024, section 4.2).

A comparison has two responses, A and B, and one of four answers per rater: A is better, B is better, both are good, both are
bad. Three schemes compare the metric's scores with the answers: Voting, IgnoreEqual and Cont2Cat. Each result includes the
value of a coin flip (`floor`) and of the raters' majority (`ceiling`) instead of the metric, because Cont2Cat's alpha is far
from 0 for the former and far from 1 for the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Counts, Estimate, Resampled, rows_by_cell
from dialeval_plugin.statistics.categories.alpha import alpha, alpha_of_samples
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.rows import (
    Canonical,
    canonical,
    optional_numbers,
    same_length,
    used_codes,
)

Votes: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[Any]
"""One row per comparison, one column per rater: `A_IS_BETTER`, `B_IS_BETTER`, `BOTH_ARE_GOOD` or `BOTH_ARE_BAD`."""

A_IS_BETTER, B_IS_BETTER, BOTH_ARE_GOOD, BOTH_ARE_BAD = range(4)
N_FLIPS = 200
"""Number of coin flips averaged in the floor."""

POINTS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
"""Points of A and of B for each answer."""


@dataclass(frozen=True, kw_only=True)
class PreferenceAgreement(Estimate):
    """Statistic between a metric's scores and the answers; counts are of comparisons.

    Attributes:
        n_rows: number of observations: votes or comparisons, two per comparison for `voting`.
        floor: mean value of coin flips instead of the metric; None if undefined.
        ceiling: value of the raters' majority instead of the metric, which a better metric can exceed; None if undefined.
    """

    n_rows: int
    floor: float | None
    ceiling: float | None

    def __str__(self) -> str:
        floor, ceiling = (interval_text(value, None, None) for value in (self.floor, self.ceiling))
        ends = f"coin flip {floor}, human majority {ceiling}"
        return f"{self.name} {self.text()}, {ends}, {self.n_scored} of {self.n_total} comparisons scored"


@dataclass(frozen=True, slots=True)
class Preferences:
    """Scores and answers, one row per comparison with both scores; use `preferences` to make one."""

    scores_a: FloatArray
    scores_b: FloatArray
    votes: IntArray
    clusters: IntArray
    n_total: int

    @property
    def counts(self) -> Counts:
        """Numbers of comparisons."""
        n_clusters = int(self.clusters.max(initial=-1)) + 1
        return Counts(self.n_total, len(self.votes), n_clusters, self.n_total - len(self.votes))

    def in_order(self, rows: Canonical) -> Preferences:
        """Return the comparisons in canonical order."""
        order, clusters, _ = rows
        return Preferences(self.scores_a[order], self.scores_b[order], self.votes[order], clusters, self.n_total)


class Observations(NamedTuple):
    """Scores with the points or preferences that they are compared with."""

    scores: FloatArray
    compared_with: FloatArray
    clusters: IntArray


def preferences(
    scores_a: OptionalNumbers, scores_b: OptionalNumbers, votes: Votes, *, clusters: Labels | None = None
) -> Preferences:
    """Return the comparisons with scores of both responses; the others are counted.

    `clusters` are labels of the dialogues, which are resampled whole; without them comparisons are independent, which is right
    only if no two share a context. Raises InputError if lengths differ, a score is neither None nor finite, or an answer is
    not one of the four.
    """
    where = "preferences"
    same_length(where, scores_a=scores_a, scores_b=scores_b, votes=votes, clusters=clusters)
    a, b = optional_numbers(where, "scores_a", scores_a), optional_numbers(where, "scores_b", scores_b)
    used = np.flatnonzero(a.present & b.present)
    return Preferences(a.values[used], b.values[used], _answers(votes)[used], used_codes(where, clusters, used), len(votes))


def voting(
    compared: Preferences, *, coefficient: str = "spearman", bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> PreferenceAgreement:
    """Return a coefficient between scores and points, where a response gets a point from each rater who calls it good.

    Points of (A, B), summed over raters: A is better (1, 0), B is better (0, 1), both good (1, 1), both bad (0, 0).
    Observations: two per comparison. Range, ties and undefined cases: those of the coefficient. Ceiling: the points of the
    majority's answer, one half each without a majority.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(voting(compared, coefficient="pearson", bootstrap=Bootstrap(rounds=0)))
        voting_pearson 0.924, coin flip 0.066, human majority 0.941, 4 of 4 comparisons scored
    """
    counts = _counts(compared.votes, 4)
    has_majority = counts.max(axis=1, initial=0) * 2 > compared.votes.shape[1]
    ideal = np.where(has_majority, POINTS[:, counts.argmax(axis=1)], 0.5)
    return _correlation(f"voting_{coefficient}", compared, partial(voted_points, compared), coefficient, ideal, bootstrap)


def ignore_equal(compared: Preferences, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> PreferenceAgreement:
    """Return the point-biserial correlation between score_A - score_B and who is better: 1 for A, 0 for B.

    The paper prints "A is better" for both codes; B is read as 0. Votes that both are good or bad are left out. Observations:
    one per vote. Range: -1 to 1, 0 for no relation. Undefined: fewer than 3 observations, or all of one kind. Ceiling: the
    share of raters who prefer A minus that of those who prefer B.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(ignore_equal(compared, bootstrap=Bootstrap(rounds=0)))
        ignore_equal 0.806, coin flip 0.095, human majority 0.837, 4 of 4 comparisons scored
    """
    ideal = _preferring(compared.votes)
    return _correlation("ignore_equal", compared, partial(vote_gaps, compared), "pearson", ideal, bootstrap)


def cont2cat(compared: Preferences, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> PreferenceAgreement:
    """Return Krippendorff's alpha with the metric as an additional rater, who says "A is better" if A's score is higher.

    Nominal scale of four answers, two of which the metric gives; equal scores are "B is better", as in the paper. Ceiling:
    scores that are shares of raters who prefer each.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(cont2cat(compared, bootstrap=Bootstrap(rounds=0)))
        cont2cat 0.630, coin flip 0.426, human majority 0.630, 4 of 4 comparisons scored
    """
    content = list(_table(compared.votes, compared.scores_a, compared.scores_b).T)
    ordered = compared.in_order(canonical(content, compared.clusters))

    def value(a: FloatArray, b: FloatArray) -> float:
        return alpha(_table(ordered.votes, a, b))

    whole = _defined(partial(value, ordered.scores_a, ordered.scores_b))
    computed = whole if isinstance(whole, str) else (whole, resampled_alpha(ordered))
    estimate = bootstrap.estimates({"cont2cat": computed}, compared.counts)["cont2cat"]
    return _agreement(vars(estimate), ordered, len(ordered.votes), value, _preferring(ordered.votes))


def voted_points(compared: Preferences, a: FloatArray, b: FloatArray) -> Observations:
    """Return scores and points of all responses, see `voting`."""
    scores, points = np.concatenate([a, b]), POINTS[:, compared.votes].sum(axis=2).ravel()
    return Observations(scores, points, np.concatenate([compared.clusters, compared.clusters]))


def vote_gaps(compared: Preferences, a: FloatArray, b: FloatArray) -> Observations:
    """Return differences of scores and the preference of each vote, see `ignore_equal`."""
    answers = compared.votes
    owner, rater = np.nonzero((answers == A_IS_BETTER) | (answers == B_IS_BETTER))
    preferred = (answers[owner, rater] == A_IS_BETTER).astype(np.float64)
    return Observations((a - b)[owner], preferred, compared.clusters[owner])


def _table(votes: IntArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return numbers of raters, including the metric, by answer."""
    return _counts(np.column_stack([votes, np.where(a > b, A_IS_BETTER, B_IS_BETTER)]), 4)


def resampled_alpha(compared: Preferences) -> Resampled:
    """Return the input of the bootstrap for `cont2cat`."""
    statistic = alpha_of_samples(_table(compared.votes, compared.scores_a, compared.scores_b))
    return Resampled(statistic, rows_by_cell(np.arange(len(compared.votes)), compared.clusters))


def _floor(of_scores: Callable[[FloatArray, FloatArray], float], votes: IntArray, seed: int) -> float | None:
    # Sorted by votes, so that a comparison's coin flip does not depend on its position or scores.
    order = np.lexsort([np.zeros(len(votes)), *votes.T[::-1]])
    flips = np.empty((N_FLIPS, len(order)))
    flips[:, order] = np.random.default_rng(seed).integers(2, size=flips.shape)
    values = [_defined(partial(of_scores, flip, 1 - flip)) for flip in flips]
    defined = [value for value in values if not isinstance(value, str)]
    return float(np.mean(defined)) if defined else None


def _answers(votes: Votes) -> IntArray:
    widths = {len(row) for row in votes}
    if len(widths) > 1:
        raise InputError(f"preferences: the comparisons have {min(widths)} to {max(widths)} votes. Give as many for each.")
    for row, answers in enumerate(votes):
        for rater, vote in enumerate(answers):
            if isinstance(vote, bool) or not isinstance(vote, (int, np.integer)) or not A_IS_BETTER <= vote <= BOTH_ARE_BAD:
                raise InputError(
                    f"preferences: votes[{row}][{rater}] is {vote!r}. Give 0 (A), 1 (B), 2 (both are good) or 3 (both are bad)."
                )
    return np.array(votes, dtype=np.int64).reshape(len(votes), max(widths, default=0))


def _counts(answers: IntArray, n_answers: int) -> FloatArray:
    return np.asarray((answers[:, :, None] == np.arange(n_answers)).sum(axis=1), dtype=np.float64)


def _preferring(votes: IntArray) -> FloatArray:
    return np.asarray(_counts(votes, 2).T / max(1, votes.shape[1]))


def _defined(compute: Callable[[], float]) -> float | str:
    try:
        return compute()
    except StatisticUndefined as error:
        return str(error)


def _correlation(
    name: str,
    compared: Preferences,
    rows: Callable[[FloatArray, FloatArray], Observations],
    coefficient: str,
    ideal: FloatArray,
    bootstrap: Bootstrap,
) -> PreferenceAgreement:
    of_pairs = coefficient_named(coefficient).of_pairs
    scores, points, clusters = rows(compared.scores_a, compared.scores_b)
    correlation = correlate(scores, points, coefficient=coefficient, clusters=clusters, bootstrap=bootstrap)
    estimate = {field.name: getattr(correlation, field.name) for field in fields(Estimate)}
    estimate |= {"name": name, **compared.counts._asdict()}
    return _agreement(estimate, compared, len(scores), lambda a, b: of_pairs(*rows(a, b)[:2]), ideal)


def _agreement(
    estimate: Mapping[str, Any],
    compared: Preferences,
    n_rows: int,
    of_scores: Callable[[FloatArray, FloatArray], float],
    ideal: FloatArray,
) -> PreferenceAgreement:
    """Return the estimate with floor and ceiling; `ideal` are the scores of A and B by the raters' majority."""
    ceiling = _defined(partial(of_scores, *ideal))
    return PreferenceAgreement(
        **estimate,
        n_rows=n_rows,
        floor=_floor(of_scores, compared.votes, estimate["bootstrap"].seed),
        ceiling=None if isinstance(ceiling, str) else ceiling,
    )
