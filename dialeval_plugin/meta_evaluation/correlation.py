"""How far scores agree with human ratings: coefficients with intervals and with the counts that they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dialeval_plugin.errors import StatisticUndefined

from .bootstrap import Bootstrap, Estimate, Interval, Statistic
from .checks import FloatArray, IntArray, Labels, OptionalNumbers, cluster_codes, optional_numbers, same_length
from .coefficients import coefficient_named

DEFAULT_COEFFICIENTS = ("pearson", "spearman", "kendall_b")


@dataclass(frozen=True, kw_only=True)
class Correlation(Estimate):
    """One coefficient between scores and ratings.

    `n_total = n_scored + n_unscored + n_unrated`: the coefficient rests on the `n_scored` rows that have both; `n_unscored`
    rows are rated but have no score; `n_unrated` rows have no rating, whether or not they have a score. Coefficients of
    different kinds are never averaged or compared: there is one `Correlation` for each.

    Attributes:
        coefficient: its name.
        n_unrated: rows left out because nobody rated them.
    """

    coefficient: str
    n_unrated: int

    @property
    def coverage(self) -> float | None:
        """Share of the rated rows that have a score; None where no row is rated."""
        n_rated = self.n_scored + self.n_unscored
        return self.n_scored / n_rated if n_rated else None

    def __str__(self) -> str:
        n_rated = self.n_scored + self.n_unscored
        return f"{self.coefficient} {self._text()}, {self.n_scored} of {n_rated} rated rows scored, {self.n_clusters} clusters"


def correlate(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficient: str,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Correlation:
    """Return one coefficient with its interval; `correlations` with a single name.

    Raises:
        InputError: as in `correlations`.

    Example:
        >>> scores = [0.1, 0.4, None, 0.3, 0.9, 0.8, 0.2, 0.7]
        >>> ratings = [1, 2, 5, 2, 4, 5, None, 3]
        >>> print(correlate(scores, ratings, coefficient="spearman", clusters=["a", "a", "b", "b", "c", "d", "e", "f"]))
        spearman 0.928 (95 % interval 0.240 to 1.000), 6 of 7 rated rows scored, 5 clusters
    """
    found = correlations(
        scores,
        ratings,
        coefficients=(coefficient,),
        clusters=clusters,
        rounds=rounds,
        confidence=confidence,
        seed=seed,
    )
    return found[coefficient]


def correlations(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Correlation]:
    """Return several coefficients between the same scores and ratings, with intervals from the same resamples.

    Formulas, ranges and ties: see `coefficients`. Interval and seed: see `bootstrap.Bootstrap`.
    Missing values: a row whose score or rating is None is left out and counted; NaN is refused.
    Undefined: the value is None and `reason` says why; nothing is raised, and no NaN is returned.
    Cost: 1000 rows, 1000 rounds and all three coefficients take less than half a second; the time grows with the number of
    distinct pairs of score and rating, for Kendall's tau with its square (see `coefficients.kendall_b_of_samples`).

    Args:
        scores: one a row; None where the row is unscored.
        ratings: one a row, after aggregating the raters; None where nobody rated the row.
        coefficients: names out of `coefficients.COEFFICIENTS`.
        clusters: label of the context, dialogue or other unit that a row belongs to; rows of one unit are resampled
            together. Without it each row stands alone, which is right only where no two rows share a context.
        rounds: number of resamples; 0 for no interval.
        confidence: of the interval.
        seed: of the resamples.

    Raises:
        InputError: lengths differ, a value is neither None nor a finite number, a label names no cluster, a coefficient is
            unknown, or an argument is out of its range.

    Example:
        >>> found = correlations([1, 2, 3, 4], [5, 5, 5, 5], coefficients=["pearson"])
        >>> found["pearson"].value, found["pearson"].reason
        (None, 'pearson: all 4 ratings are 5.0. Give ratings that differ.')
    """
    bootstrap = Bootstrap(rounds, confidence, seed)
    chosen = [coefficient_named(name) for name in dict.fromkeys(coefficients)]
    rows = _rows(scores, ratings, clusters)
    cells, x, y = _distinct_pairs(rows.scores, rows.ratings)
    values: dict[str, float] = {}
    undefined: dict[str, str] = {}
    statistics: dict[str, Statistic] = {}
    for entry in chosen:
        try:
            values[entry.name] = entry.of_pairs(rows.scores, rows.ratings)
            statistics[entry.name] = partial(entry.of_samples, x, y)
        except StatisticUndefined as error:
            undefined[entry.name] = str(error)
    intervals = bootstrap.intervals(statistics, cells, rows.clusters) if statistics else {}
    results = {}
    for entry in chosen:
        interval = intervals.get(entry.name, Interval(None, None, 0, undefined.get(entry.name)))
        results[entry.name] = Correlation(
            coefficient=entry.name,
            value=values.get(entry.name),
            ci_low=interval.low,
            ci_high=interval.high,
            n_total=len(scores),
            n_scored=len(rows.scores),
            n_unscored=rows.n_unscored,
            n_unrated=rows.n_unrated,
            n_clusters=int(rows.clusters.max(initial=-1)) + 1,
            n_degenerate=interval.n_degenerate,
            confidence=confidence,
            rounds=rounds,
            seed=seed,
            reason=interval.reason,
        )
    return results


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that have a score and a rating."""

    scores: FloatArray
    ratings: FloatArray
    clusters: IntArray
    n_unscored: int
    n_unrated: int


def _rows(scores: OptionalNumbers, ratings: OptionalNumbers, clusters: Labels | None) -> _Rows:
    where = "correlate"
    same_length(where, scores=scores, ratings=ratings)
    if clusters is not None:
        same_length(where, scores=scores, clusters=clusters)
    scored, rated = optional_numbers(where, "scores", scores), optional_numbers(where, "ratings", ratings)
    used = scored.present & rated.present
    codes = cluster_codes(where, clusters, len(used))[used]
    return _Rows(
        scored.values[used],
        rated.values[used],
        cluster_codes(where, codes, len(codes)),
        n_unscored=int((rated.present & ~scored.present).sum()),
        n_unrated=int((~rated.present).sum()),
    )


def _distinct_pairs(x: FloatArray, y: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return for each row the number of its pair, and the distinct pairs: ties, of which ratings are full, cost nothing."""
    (values_x, codes_x), (values_y, codes_y) = (np.unique(values, return_inverse=True) for values in (x, y))
    pairs, cells = np.unique(codes_x.reshape(-1) * len(values_y) + codes_y.reshape(-1), return_inverse=True)
    if not len(pairs):
        return cells, x, y
    return cells.reshape(-1), values_x[pairs // len(values_y)], values_y[pairs % len(values_y)]
