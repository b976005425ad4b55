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
from itertools import compress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named

from .bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Computed,
    Counts,
    Estimate,
    Resampled,
    defined,
    rows_by_cell,
)
from .categories import alpha, alpha_of_samples
from .correlation import correlate
from .estimates import interval_text
from .rows import (
    Canonical,
    canonical,
    canonical_rows,
    check_choice,
    cluster_codes,
    optional_numbers,
    same_length,
    used_codes,
)

Votes: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[Any]
"""One row per comparison, one column per rater: `A_IS_BETTER`, `B_IS_BETTER`, `BOTH_ARE_GOOD` or `BOTH_ARE_BAD`."""
VotingUnit: TypeAlias = Literal["comparison", "response"]
VoteCounting: TypeAlias = Literal["vote", "majority"]
TiedScores: TypeAlias = Literal["b", "missing"]
EqualAnswers: TypeAlias = Literal["category", "missing"]
AlphaRaters: TypeAlias = Literal["together", "one_by_one"]

A_IS_BETTER, B_IS_BETTER, BOTH_ARE_GOOD, BOTH_ARE_BAD = range(4)
N_FLIPS = 200
"""Number of coin flips averaged in the floor."""

POINTS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
"""Points of A and of B for each answer."""
_MISSING = -1


@dataclass(frozen=True, kw_only=True)
class PreferenceAgreement(Estimate):
    """Statistic between a metric's scores and the answers; counts are of comparisons.

    Attributes:
        n_rows: number of observations: responses, votes or comparisons.
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
    responses: IntArray | None
    """Numbers of the responses A, then of the responses B."""
    n_total: int

    @property
    def counts(self) -> Counts:
        """Numbers of comparisons."""
        n_clusters = int(self.clusters.max(initial=-1)) + 1
        return Counts(self.n_total, len(self.votes), n_clusters, self.n_total - len(self.votes))

    def _in(self, rows: Canonical) -> Preferences:
        order, clusters, _ = rows
        return Preferences(self.scores_a[order], self.scores_b[order], self.votes[order], clusters, None, self.n_total)


class _Observations(NamedTuple):
    scores: FloatArray
    compared_with: FloatArray
    clusters: IntArray


def preferences(
    scores_a: OptionalNumbers,
    scores_b: OptionalNumbers,
    votes: Votes,
    *,
    clusters: Labels | None = None,
    responses: tuple[Labels, Labels] | None = None,
) -> Preferences:
    """Return the comparisons with scores of both responses; the others are counted.

    `clusters` are labels of the dialogues, which are resampled whole; without them comparisons are independent, which is right
    only if no two share a context. `responses` are labels of the responses A and B, equal for equal responses. Raises
    InputError if lengths differ, a score is neither None nor finite, or an answer is not one of the four.
    """
    where = "preferences"
    responses_a, responses_b = responses or (None, None)
    columns = {"votes": votes, "clusters": clusters, "responses_a": responses_a, "responses_b": responses_b}
    same_length(where, scores_a=scores_a, scores_b=scores_b, **columns)
    a, b = optional_numbers(where, "scores_a", scores_a), optional_numbers(where, "scores_b", scores_b)
    is_scored = a.present & b.present
    used, numbers = np.flatnonzero(is_scored), None
    if responses is not None:
        scored = [label for side in responses for label in compress(side, is_scored)]
        numbers = cluster_codes(where, scored, len(scored))
    codes = used_codes(where, clusters, used)
    return Preferences(a.values[used], b.values[used], _answers(votes)[used], codes, numbers, len(votes))


def voting(
    compared: Preferences,
    *,
    coefficient: str = "spearman",
    unit: VotingUnit = "comparison",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> PreferenceAgreement:
    """Return a coefficient between scores and points, where a response gets a point from each rater who calls it good.

    Points of (A, B), summed over raters: A is better (1, 0), B is better (0, 1), both good (1, 1), both bad (0, 0).
    Observations: two per comparison, or with `unit="response"` one per response, with points summed over its comparisons.
    Range, ties and undefined cases: those of the coefficient. Ceiling: the points of the majority's answer, one half each
    without a majority.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(voting(compared, coefficient="pearson", bootstrap=Bootstrap(rounds=0)))
        voting_pearson 0.924, coin flip 0.066, human majority 0.941, 4 of 4 comparisons scored
    """
    check_choice("voting", "unit", unit, get_args(VotingUnit))
    if unit == "response" and compared.responses is None:
        raise InputError("voting: unit='response' needs to know which responses are the same. Give `responses` to preferences.")
    counts = _counts(compared.votes, "category")
    has_majority = counts.max(axis=1, initial=0) * 2 > compared.votes.shape[1]
    ideal = np.where(has_majority, POINTS[:, counts.argmax(axis=1)], 0.5)
    of_scores = partial(_points, compared, unit=unit)
    return _correlation(f"voting_{coefficient}", compared, of_scores, coefficient, ideal, bootstrap)


def ignore_equal(
    compared: Preferences, *, opinion: VoteCounting = "vote", bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> PreferenceAgreement:
    """Return the point-biserial correlation between score_A - score_B and who is better: 1 for A, 0 for B.

    The paper prints "A is better" for both codes; B is read as 0. Votes that both are good or bad are left out. Observations:
    one per vote; with `opinion="majority"` one per comparison in which more raters prefer A than B, or B than A. Range: -1 to
    1, 0 for no relation. Undefined: fewer than 3 observations, or all of one kind. Ceiling: the share of raters who prefer A
    minus that of those who prefer B.

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(ignore_equal(compared, bootstrap=Bootstrap(rounds=0)))
        ignore_equal 0.806, coin flip 0.095, human majority 0.837, 4 of 4 comparisons scored
    """
    check_choice("ignore_equal", "opinion", opinion, get_args(VoteCounting))
    name = "ignore_equal" if opinion == "vote" else "ignore_equal_majority"
    of_scores = partial(_gaps, compared, opinion=opinion)
    return _correlation(name, compared, of_scores, "pearson", _preferring(compared.votes), bootstrap)


def cont2cat(
    compared: Preferences,
    *,
    ties: TiedScores = "b",
    equal: EqualAnswers = "category",
    raters: AlphaRaters = "together",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> PreferenceAgreement:
    """Return Krippendorff's alpha with the metric as an additional rater, who says "A is better" if A's score is higher.

    Nominal scale of four answers, two of which the metric gives. Ceiling: scores that are shares of raters who prefer each.

    - `ties`: equal scores are "B is better" ("b", the paper), or no answer ("missing").
    - `equal`: both good and both bad are answers ("category", the paper), or none ("missing").
    - `raters`: the metric among all raters ("together", the paper), or the mean of its alpha with each ("one_by_one").

    Example:
        >>> votes = [[A_IS_BETTER] * 3, [B_IS_BETTER] * 3, [BOTH_ARE_GOOD] * 3, [A_IS_BETTER, A_IS_BETTER, B_IS_BETTER]]
        >>> compared = preferences([0.9, 0.1, 0.8, 0.9], [0.1, 0.7, 0.9, 0.2], votes)
        >>> print(cont2cat(compared, bootstrap=Bootstrap(rounds=0)))
        cont2cat 0.630, coin flip 0.426, human majority 0.630, 4 of 4 comparisons scored
    """
    name = "cont2cat"
    options = (("ties", ties, TiedScores), ("equal", equal, EqualAnswers), ("raters", raters, AlphaRaters))
    for option, choice, kind in options:
        check_choice(name, option, choice, get_args(kind))
    tables = partial(_tables, ties=ties, equal=equal, raters=raters)
    content = [column for table in tables(compared.votes, compared.scores_a, compared.scores_b) for column in table.T]
    ordered = compared._in(canonical(content, compared.clusters))

    def value(a: FloatArray, b: FloatArray) -> float:
        return float(np.mean([alpha(table) for table in tables(ordered.votes, a, b)]))

    whole = _defined(partial(value, ordered.scores_a, ordered.scores_b))
    computed = whole if isinstance(whole, str) else (whole, _resampled_alpha(ordered, tables))
    estimate = bootstrap.estimates({name: computed}, compared.counts)[name]
    return _agreement(vars(estimate), ordered, len(ordered.votes), value, _preferring(ordered.votes))


def preference_difference(
    one: Preferences, other: Preferences, *, statistic: str = "voting_spearman", bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return statistic(one) - statistic(other), with an interval from resamples of dialogues shared by both metrics.

    The statistic is "voting_pearson", "voting_spearman", "ignore_equal" or "cont2cat", with the paper's options. Range: -2 to
    2. Undefined if either is. Raises InputError if the metrics' comparisons, or their order, differ.
    """
    where = "preference_difference"
    check_choice(where, "statistic", statistic, _RESAMPLED)
    for column in ("votes", "clusters", "n_total"):
        if not np.array_equal(getattr(one, column), getattr(other, column)):
            raise InputError(
                f"{where}: the metrics' {column} differ. Compare them on the comparisons that both have a score for."
            )
    metrics = ([compared.scores_a, compared.scores_b] for compared in (one, other))
    rows = canonical_rows(where, list(one.votes.T), np.arange(len(one.votes)), one.clusters, metrics=metrics)
    name, reason = f"difference of {statistic}", f"{statistic}: undefined for one of the metrics. Score responses that differ."
    computed: Computed = reason
    is_observed = one.votes <= B_IS_BETTER if statistic == "ignore_equal" else one.votes >= A_IS_BETTER
    if is_observed.any():
        of_one, of_other = (_RESAMPLED[statistic](compared._in(rows)) for compared in (one, other))
        computed = defined(of_one - of_other, reason)
    return bootstrap.estimates({name: computed}, one.counts)[name]


def _points(compared: Preferences, a: FloatArray, b: FloatArray, unit: VotingUnit = "comparison") -> _Observations:
    scores, points = np.concatenate([a, b]), POINTS[:, compared.votes].sum(axis=2).ravel()
    clusters = np.concatenate([compared.clusters, compared.clusters])
    if unit == "comparison" or compared.responses is None:
        return _Observations(scores, points, clusters)
    names, first = compared.responses, np.unique(compared.responses, return_index=True)[1]
    mean: FloatArray = np.bincount(names, scores) / np.bincount(names)
    return _Observations(mean, np.bincount(names, points).astype(np.float64), clusters[first])


def _gaps(compared: Preferences, a: FloatArray, b: FloatArray, opinion: VoteCounting = "vote") -> _Observations:
    answers = compared.votes
    if opinion == "majority":
        for_a, for_b = _preferring(compared.votes)
        answers = np.select([for_a > for_b, for_a < for_b], [A_IS_BETTER, B_IS_BETTER], _MISSING)[:, None]
    owner, rater = np.nonzero((answers == A_IS_BETTER) | (answers == B_IS_BETTER))
    preferred = (answers[owner, rater] == A_IS_BETTER).astype(np.float64)
    return _Observations((a - b)[owner], preferred, compared.clusters[owner])


def _tables(
    votes: IntArray,
    a: FloatArray,
    b: FloatArray,
    ties: TiedScores = "b",
    equal: EqualAnswers = "category",
    raters: AlphaRaters = "together",
) -> list[FloatArray]:
    """Return numbers of raters, including the metric, by answer: one table, or one for each rater with the metric."""
    metric = np.where(a > b, A_IS_BETTER, B_IS_BETTER)
    if ties == "missing":
        metric = np.where(a == b, _MISSING, metric)
    groups = [votes] if raters == "together" else [votes[:, [rater]] for rater in range(votes.shape[1])]
    return [_counts(np.column_stack([group, metric]), equal) for group in groups]


def _resampled_correlation(
    compared: Preferences, *, rows: Callable[[Preferences, FloatArray, FloatArray], _Observations], coefficient: str
) -> Resampled:
    observed = rows(compared, compared.scores_a, compared.scores_b)
    statistic = coefficient_named(coefficient).of_samples(observed.scores, observed.compared_with)
    return Resampled(statistic, rows_by_cell(np.arange(len(observed.scores)), observed.clusters))


def _resampled_alpha(compared: Preferences, tables: Callable[..., list[FloatArray]] = _tables) -> Resampled:
    of_tables = [alpha_of_samples(table) for table in tables(compared.votes, compared.scores_a, compared.scores_b)]

    def mean(weights: FloatArray) -> FloatArray:
        return np.asarray(np.mean([of_samples(weights) for of_samples in of_tables], axis=0))

    return Resampled(mean, rows_by_cell(np.arange(len(compared.votes)), compared.clusters))


_RESAMPLED: Mapping[str, Callable[[Preferences], Resampled]] = MappingProxyType(
    {
        "voting_pearson": partial(_resampled_correlation, rows=_points, coefficient="pearson"),
        "voting_spearman": partial(_resampled_correlation, rows=_points, coefficient="spearman"),
        "ignore_equal": partial(_resampled_correlation, rows=_gaps, coefficient="pearson"),
        "cont2cat": _resampled_alpha,
    }
)


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


def _counts(answers: IntArray, equal: EqualAnswers) -> FloatArray:
    n_answers = 4 if equal == "category" else 2
    return np.asarray((answers[:, :, None] == np.arange(n_answers)).sum(axis=1), dtype=np.float64)


def _preferring(votes: IntArray) -> FloatArray:
    return np.asarray(_counts(votes, "missing").T / max(1, votes.shape[1]))


def _defined(compute: Callable[[], float]) -> float | str:
    try:
        return compute()
    except StatisticUndefined as error:
        return str(error)


def _correlation(
    name: str,
    compared: Preferences,
    rows: Callable[[FloatArray, FloatArray], _Observations],
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
