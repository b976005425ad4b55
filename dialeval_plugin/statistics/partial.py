r"""Partial correlations: agreement beyond length, and what a metric's scores follow other than quality.

Partial correlation of x and y given z: $(r_{xy} - r_{xz} r_{yz}) / \sqrt{(1 - r_{xz}^2)(1 - r_{yz}^2)}$, for Spearman on ranks
(Conover 1999, section 5.4) and for Kendall as by Kendall (1942); given several columns, the same formula on the partial
correlations given all but the last. For Pearson it is the correlation of least-squares residuals. Range: -1 to 1. Ties: as for
the coefficient. Undefined, with a `reason`: fewer than three rows more than columns held fixed, a constant column, or a column
determined by those held fixed. A row without a score, a rating or another column is left out and counted. InputError: lengths
differ, a value is neither None nor finite, or the coefficient is not in `COEFFICIENTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.statistics.coefficients.by_name import Coefficient, coefficient_named
from dialeval_plugin.statistics.coefficients.pearson import MIN_PAIRS

from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Computed, Counts, Estimate, Resampled, defined, rows_by_cell
from .rows import canonical_rows, check_choice, distinct_rows, optional_numbers, same_length

COEFFICIENTS = ("pearson", "spearman", "kendall_b")
"""Coefficients whose partial correlation has this formula."""

_ROUNDING = 1e-12


def partial_correlation(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariates: Mapping[str, OptionalNumbers],
    *,
    coefficient: str,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the correlation of scores and ratings with the covariates, by name, held fixed."""
    columns = {"scores": scores, "ratings": ratings, **covariates}
    pairs = {coefficient: tuple(columns)}
    return _associations("partial_correlation", columns, pairs, coefficient, clusters, bootstrap)[coefficient]


def covariate_bias(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariate: OptionalNumbers,
    *,
    name: str,
    coefficient: str = "spearman",
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return how scores and ratings correlate with the length of the response, or another covariate, and given it.

    Keys, for `name="length"`: "score_length" and "rating_length" are the preferences of metric and people for long responses;
    "score_length_given_rating" is the metric's bias, its preference among equally rated responses; "score_rating" is its
    agreement with people, and "score_rating_given_length" its agreement beyond length. All intervals are from the same
    resamples.

    Example:
        >>> scores, ratings, lengths = [1, 3, 2, 5, 4, 6], [1, 2, 3, 4, 6, 5], [2, 8, 3, 9, 4, 9]
        >>> found = covariate_bias(scores, ratings, lengths, name="length", bootstrap=Bootstrap(rounds=0))
        >>> round(found["score_length"].value, 3), round(found["score_length_given_rating"].value, 3)
        (0.928, 0.967)
    """
    columns = {"scores": scores, "ratings": ratings, "covariate": covariate}
    pairs = {
        f"score_{name}": ("scores", "covariate"),
        f"rating_{name}": ("ratings", "covariate"),
        "score_rating": ("scores", "ratings"),
        f"score_{name}_given_rating": ("scores", "covariate", "ratings"),
        f"score_rating_given_{name}": ("scores", "ratings", "covariate"),
    }
    return _associations("covariate_bias", columns, pairs, coefficient, clusters, bootstrap)


def _associations(
    where: str,
    columns: Mapping[str, OptionalNumbers],
    pairs: Mapping[str, tuple[str, ...]],
    coefficient: str,
    clusters: Labels | None,
    bootstrap: Bootstrap,
) -> dict[str, Estimate]:
    check_choice(where, "coefficient", coefficient, COEFFICIENTS)
    same_length(where, **columns, clusters=clusters)
    checked = {name: optional_numbers(where, name, values) for name, values in columns.items()}
    is_rated = checked["ratings"].present
    used = np.flatnonzero(np.logical_and.reduce([column.present for column in checked.values()]))
    rows = canonical_rows(where, [column.values for column in checked.values()], used, clusters)
    cells, distinct = distinct_rows(*(column.values[rows.order] for column in checked.values()))
    by_name = dict(zip(columns, distinct, strict=True))
    sums = rows_by_cell(cells, rows.clusters) if len(used) else np.zeros((0, 0))
    entry = coefficient_named(coefficient)
    why = "there are too few, a column is constant, or what is held fixed says all about another"
    computed: dict[str, Computed] = {}
    for name, chosen in pairs.items():
        computed[name] = reason = f"{name}: undefined on {len(used)} rows: {why}. Score and rate more examples."
        if len(used):
            computed[name] = defined(Resampled(_partial(entry, [by_name[column] for column in chosen]), sums), reason)
    n_unscored = int(is_rated.sum()) - len(used)
    counts = Counts(len(is_rated), len(used), rows.n_clusters, n_unscored, int((~is_rated).sum()))
    return bootstrap.estimates(computed, counts)


def _partial(entry: Coefficient, columns: Sequence[FloatArray]) -> Statistic:
    x, y, *held = columns
    if not held:
        return entry.of_samples(x, y)
    *others, last = held
    of_pairs = [_partial(entry, [*pair, *others]) for pair in ((x, y), (x, last), (y, last))]

    def statistic(weights: FloatArray) -> FloatArray:
        xy, xz, yz = (of(weights) for of in of_pairs)
        left = (1 - xz**2) * (1 - yz**2)
        is_defined = (left > _ROUNDING) & (weights.sum(axis=1) >= MIN_PAIRS + len(held))
        return np.clip(np.where(is_defined, (xy - xz * yz) / np.sqrt(np.maximum(left, _ROUNDING)), np.nan), -1, 1)

    return statistic
