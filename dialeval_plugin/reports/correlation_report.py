"""Agreement of evaluators with people as one table: coefficients of every evaluator, with ceilings and ranks.

`dialeval meta-eval` reads `EvaluatorScores` from score files, `dialeval rescore` from lm-eval's result files. For both,
`evaluate_agreement` computes the statistics and `report_table` shows them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.labels.table import ZERO_OR_ONE, LabelTable, Scale
from dialeval_plugin.statistics.annotators.raters import Raters, by_place, leave_one_rater_out, split_half
from dialeval_plugin.statistics.annotators.reliability import disattenuated_correlation, intraclass_correlation
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, ROUGH_CLUSTERS, Bootstrap, Estimate, Resampled
from dialeval_plugin.statistics.choices import best_of_several, quality_of_kept
from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS, covariate_bias, level_correlations, sensitivity_range
from dialeval_plugin.statistics.levels import AverageBy, LevelOrSystem, Range, RatingTable, ScoredRatings, TiedGroups
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.ranking import Ranking, rank_metrics
from dialeval_plugin.statistics.significance import Measure, Paired, detectable_difference, resampled_difference

from .tables import Table, TableColumn, TableRow, figure, interval_column, named_column, text_column

_LENGTHS = {
    "length_of_scores": "score_length",
    "length_of_ratings": "rating_length",
    "length_bias": "score_length_given_rating",
}
"""Columns of the table to the names of `covariate_bias`."""

NO_CLUSTERS = "No file says which rows belong to one dialogue: intervals resample single rows and may be too narrow."
ROUGH = f"Rough: an interval of fewer than {ROUGH_CLUSTERS} clusters contains the true value less often than stated."

TIED = {
    "zero": "Tied: groups in which people differ and the evaluator gives one score to all. Each counts as 0 (0.5 for auroc).",
    "skip": "Tied: groups in which people differ and the evaluator gives one score to all. They are left out of the mean, "
    "evaluators are averaged over different groups, and there are no ranks. Leave out --tied-groups skip to count them as 0.",
}
UNDEFINED = "Left out: groups with fewer than 3 scored rows, or in which people rate all rows the same."

DETECTABLE = (
    "Detectable: no test tells the evaluator from the first one of its rank, and such rows would show a difference of so much "
    "four times in five."
)

LOW_CEILING = 0.3
"""Ceiling below which a warning is printed: under Cohen's (1988) medium correlation, even the best metric looks poor."""


@dataclass(frozen=True, kw_only=True)
class EvaluatorScores(ScoredRatings):
    """Scores (higher is better) and ratings of the same items; `words` are word counts, `unscored` has counts by reason."""

    evaluator: str
    dataset: str
    quality: str
    level: LevelOrSystem
    ids: Sequence[str]
    raters: Mapping[str, Sequence[float]]
    """Ratings of all rated rows by id, one per rater, scored or not; () where they are unknown."""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of the raters in the same order, by id; an id without known names is missing."""
    words: Sequence[int] | None
    unscored: Mapping[str, int] = field(default_factory=dict)
    sign: float = 1.0
    """-1 for an evaluator whose lower scores are better."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Settings shared by all evaluators."""

    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS
    by_system: bool = False
    """Compare means of systems instead of rows."""
    average_by: AverageBy = "none"
    tied_groups: TiedGroups = "zero"
    """Treatment of groups in which people differ and the evaluator does not, see `level_correlations`."""
    within_range: Range | None = None
    threshold: float | None = None
    """For ratings of 0 or 1: add the accuracy of calling a response good if its score reaches this threshold."""
    choices: bool = False
    """Add the gain in ratings from filtering by scores, and from choosing one of several responses to an item."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    permutations: int = 1000
    """Permutations for each pair of evaluators, for p-values and ranks; 0 omits both."""
    alpha: float = 0.05
    """Significance level of the ranks, after Holm's correction."""
    min_coverage: float = 0.8
    """Smallest share of rated rows with a score; below it, a coefficient is withheld."""

    @property
    def is_plain(self) -> bool:
        """Whether coefficients are over all rows, as the agreement between raters is."""
        return not self.by_system and self.average_by == "none" and self.within_range is None


class HumanCeiling(NamedTuple):
    """Coefficients between one rater and the mean of the others, and between the means of two halves of the raters.

    None if no row has two raters or the coefficient is undefined.
    """

    leave_one_out: float | None = None
    split_half: float | None = None


@dataclass(frozen=True, kw_only=True)
class AgreementResult:
    """One statistic of one evaluator."""

    evaluator: str
    dataset: str
    quality: str
    level: LevelOrSystem
    statistic: str
    estimate: Estimate
    unscored: Mapping[str, int]
    is_withheld: bool = False
    is_clustered: bool = True
    """Whether the dialogue of each row is known."""
    ceiling: HumanCeiling = field(default_factory=HumanCeiling)
    pearson_ceiling: float | None = None
    """Highest expected correlation of any metric with the mean of the raters; for Pearson's correlation only."""
    share_of_ceiling: Estimate | None = None
    """Disattenuated correlation: Pearson's correlation divided by that ceiling."""
    if_unscored: tuple[float | None, float | None] = (None, None)
    """Statistic if the unscored rows contradicted the ratings, and if they agreed: a sensitivity range, not a bound."""
    rank: int | None = None
    """Rank of the evaluator's cluster among evaluators of the same data."""
    p_value: float | None = None
    """P-value against the best evaluator, after Holm's correction; None for the best evaluator."""
    detectable: float | None = None
    """Difference from the first evaluator of the same rank that would be found with 80 % power; None for the first one."""
    lengths: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(_LENGTHS))
    """Spearman's correlations of the word count with scores, ratings, and scores among responses of equal rating; None
    where the texts are unknown."""

    @property
    def value(self) -> float | None:
        """The statistic, if it is defined and not withheld."""
        return None if self.is_withheld else self.estimate.value

    @property
    def n_rated(self) -> int:
        """Number of rows with a rating."""
        return self.estimate.n_scored + self.estimate.n_unscored


def evaluate_agreement(judgements: Sequence[EvaluatorScores], options: ReportOptions) -> list[AgreementResult]:
    """Return every coefficient of every evaluator; raises InputError if the judgements lack data that an option needs."""
    return [result for cell in by_cell(judgements) for result in _of_cell(cell, options)]


def by_cell(judgements: Sequence[EvaluatorScores]) -> list[list[EvaluatorScores]]:
    """Group the judgements by data set, quality and level."""
    cells: dict[tuple[str, str, str], list[EvaluatorScores]] = {}
    for one in judgements:
        cells.setdefault((one.dataset, one.quality, one.level), []).append(one)
    return list(cells.values())


class _Cell(NamedTuple):
    """What the evaluators of one data set, quality and level share."""

    level: LevelOrSystem
    options: ReportOptions
    table: SideBySide
    ceilings: Mapping[str, HumanCeiling]
    pearson_ceiling: float | None
    rankings: Mapping[str, Ranking]

    def result(
        self, one: EvaluatorScores, name: str, estimate: Estimate, lengths: Mapping[str, float | None]
    ) -> AgreementResult:
        """Return one statistic of one evaluator with all that is measured on the whole cell."""
        options, n_rated = self.options, estimate.n_scored + estimate.n_unscored
        rank, p_value, first = None, None, one.evaluator
        if name in self.rankings:
            rank, p_value, first = _place(self.rankings[name], one.evaluator)
        ends: tuple[float | None, float | None] = (None, None)
        if name in options.coefficients and options.is_plain and None in one.scores:
            ends = sensitivity_range(one.scores, one.ratings, coefficient=name)
        ceiling, share = (self.pearson_ceiling if name == "pearson" else None), None
        if ceiling is not None:
            answers = [one.raters.get(id, ()) for id in one.ids]
            share = disattenuated_correlation(one.scores, answers, clusters=one.clusters, bootstrap=options.bootstrap)
        return AgreementResult(
            evaluator=one.evaluator,
            dataset=one.dataset,
            quality=one.quality,
            level=self.level,
            statistic=name,
            estimate=estimate,
            unscored=one.unscored,
            is_withheld=estimate.n_scored < options.min_coverage * n_rated,
            is_clustered=one.clusters is not None,
            ceiling=self.ceilings.get(name, HumanCeiling()),
            pearson_ceiling=ceiling,
            share_of_ceiling=share,
            if_unscored=ends,
            rank=rank,
            p_value=p_value,
            detectable=_detectable(self.table, Measure(name, self.level, options.average_by), options, first, one.evaluator),
            lengths=lengths,
        )


def _of_cell(judgements: Sequence[EvaluatorScores], options: ReportOptions) -> list[AgreementResult]:
    level = "system" if options.by_system else judgements[0].level
    raters, named = ratings_by_id(judgements)
    of_people = by_place(label_table(judgements[0].dataset, [*raters], raters, named).labels)
    ceilings, rankings, pearson_ceiling = {}, {}, None
    # The agreement between raters is not comparable with means of systems, means of groups, or a range of ratings.
    if options.is_plain:
        ceilings = {name: human_ceiling(of_people, name, seed=options.bootstrap.seed) for name in options.coefficients}
        if "pearson" in options.coefficients and any(len(answers) > 1 for answers in raters.values()):
            pearson_ceiling = intraclass_correlation(list(raters.values()), bootstrap=NO_RESAMPLES).ceiling_of_mean.value
    estimates = [_estimates(one, level, options) for one in judgements]
    table = side_by_side(judgements, options)
    for name in options.coefficients if len(judgements) > 1 and options.permutations else ():
        # Evaluators averaged over different groups are not ranked.
        if options.tied_groups == "zero" or not any(_n_groups(of[name], "tied") for of in estimates):
            measure, seed = Measure(name, level, options.average_by), options.bootstrap.seed
            rankings[name] = rank_metrics(*table[1:], measure, alpha=options.alpha, rounds=options.permutations, seed=seed)
    cell = _Cell(level, options, table, ceilings, pearson_ceiling, rankings)
    results = []
    for one, by_name in zip(judgements, estimates, strict=True):
        lengths = _lengths(one)
        results += [cell.result(one, name, estimate, lengths) for name, estimate in by_name.items()]
    return results


def _lengths(one: EvaluatorScores) -> dict[str, float | None]:
    if one.words is None:
        return dict.fromkeys(_LENGTHS)
    biases = covariate_bias(one.scores, one.ratings, one.words, name="length", bootstrap=NO_RESAMPLES)
    return {column: biases[of].value for column, of in _LENGTHS.items()}


def label_table(
    source: str,
    ids: Sequence[str],
    answers: Mapping[str, Sequence[float]],
    people: Mapping[str, Sequence[str]],
    **more: Any,
) -> LabelTable:
    """Return ratings by id as columns, one per person if all are named, else per position; `more` has other fields."""
    has_people = all(len(people.get(id, ())) == len(answers.get(id, ())) for id in ids)
    width = max((len(answers.get(id, ())) for id in ids), default=0)
    places = [f"place {place}" for place in range(1, width + 1)]
    names_of_rows = [people.get(id, ()) if has_people else places for id in ids]
    raters = list(dict.fromkeys(itertools.chain.from_iterable(names_of_rows)))
    labels = np.full((len(ids), len(raters)), np.nan)
    for row, (id, names) in enumerate(zip(ids, names_of_rows, strict=True)):
        for name, value in zip(names, answers.get(id, ()), strict=False):
            labels[row, raters.index(name)] = value
    is_binary = {*labels[~np.isnan(labels)]} <= {0.0, 1.0}
    scale = ZERO_OR_ONE if is_binary else Scale("interval")
    return LabelTable(source=source, ids=ids, labels=labels, scale=scale, raters=tuple(raters), has_people=has_people, **more)


def ratings_by_id(
    judgements: Sequence[EvaluatorScores],
) -> tuple[dict[str, Sequence[float]], dict[str, Sequence[str]]]:
    """Return the ratings of each row of some evaluators on one quality, and the known names of the raters."""
    raters = {id: answers for one in judgements for id, answers in one.raters.items()}
    return raters, {id: names for one in judgements for id, names in one.people.items()}


def human_ceiling(raters: Raters, coefficient: str, *, seed: int = 0) -> HumanCeiling:
    """Return coefficients among people."""
    bootstrap = Bootstrap(rounds=0, seed=seed)
    return HumanCeiling(
        leave_one_rater_out(raters, coefficient=coefficient, bootstrap=bootstrap).value,
        split_half(raters, coefficient=coefficient, bootstrap=bootstrap).value,
    )


SideBySide: TypeAlias = tuple[list[str], dict[str, list[float | None]], RatingTable]


def side_by_side(judgements: Sequence[EvaluatorScores], options: ReportOptions) -> SideBySide:
    """Return the ids of all rows, the scores of each evaluator in that order, and the ratings within the requested range."""
    # Evaluators may have been run on different rows.
    rows: dict[str, tuple[EvaluatorScores, int]] = {}
    for one in judgements:
        for row, id in enumerate(one.ids):
            rows.setdefault(id, (one, row))

    def labels(name: str) -> list[Any] | None:
        is_known = all(getattr(one, name) is not None for one in judgements)
        return [getattr(one, name)[row] for one, row in rows.values()] if is_known else None

    low, high = options.within_range or (-math.inf, math.inf)
    ratings = [one.ratings[row] for one, row in rows.values()]
    scores = {one.evaluator: dict(zip(one.ids, one.scores, strict=True)) for one in judgements}
    rated = RatingTable(
        ratings=[rating if rating is not None and low <= rating <= high else None for rating in ratings],
        clusters=labels("clusters"),
        systems=labels("systems"),
        items=labels("items"),
    )
    return list(rows), {name: [by_id.get(id) for id in rows] for name, by_id in scores.items()}, rated


def difference_of(table: SideBySide, measure: Measure, a: str, b: str) -> Resampled | None:
    """Return the resampled difference of two evaluators' coefficients; None if either is undefined."""
    _, scores, rated = table
    try:
        return resampled_difference(Paired(**vars(rated), scores_a=scores[a], scores_b=scores[b]), measure)
    except StatisticUndefined:
        return None


def _detectable(table: SideBySide, measure: Measure, options: ReportOptions, first: str, evaluator: str) -> float | None:
    pilot = None if first == evaluator else difference_of(table, measure, first, evaluator)
    bootstrap = replace(options.bootstrap, confidence=1 - options.alpha)
    smallest = None if pilot is None else detectable_difference(pilot, bootstrap=bootstrap)
    return None if smallest is None else smallest.difference


def _estimates(one: EvaluatorScores, level: LevelOrSystem, options: ReportOptions) -> dict[str, Estimate]:
    correlations = level_correlations(
        one,
        level=level,
        average_by=options.average_by,
        coefficients=options.coefficients,
        within_range=options.within_range,
        tied_groups=options.tied_groups,
        bootstrap=options.bootstrap,
    )
    more: dict[str, Estimate] = {}
    if options.threshold is not None:
        more["accuracy"] = _accuracy(one, options.threshold, options.bootstrap)
    if options.choices:
        more |= quality_of_kept(one, bootstrap=options.bootstrap)
        if one.items is not None:
            more |= best_of_several(one, bootstrap=options.bootstrap)
    return {**correlations, **more}


def _place(ranking: Ranking, evaluator: str) -> tuple[int | None, float | None, str]:
    """Return the rank, the p-value against the best evaluator, and the best evaluator of the same rank."""
    values: dict[str, float] = {}
    for (a, b), comparison in ranking.comparisons.items():
        values |= {name: value for name, value in ((a, comparison.value_a), (b, comparison.value_b)) if value is not None}

    def best_of(rank: int | None) -> str:
        of_rank = [name for name, its in ranking.ranks.items() if its == rank]
        return max(of_rank, key=lambda name: values.get(name, -math.inf), default=evaluator)

    p_values = {frozenset(pair): p for pair, p in ranking.adjusted.items()}
    rank = ranking.ranks[evaluator]
    return rank, p_values.get(frozenset((best_of(1), evaluator))), evaluator if rank is None else best_of(rank)


def _accuracy(one: EvaluatorScores, threshold: float, bootstrap: Bootstrap) -> Estimate:
    rated = [(row, rating) for row, rating in enumerate(one.ratings) if rating is not None]
    if wrong := [rating for _, rating in rated if rating not in {0.0, 1.0}]:
        raise InputError(
            f"--threshold: ratings of {one.quality!r} are not all 0 or 1, {wrong[0]:g} is there. Leave the option out."
        )
    scores = [(one.scores[row], rating == 1.0) for row, rating in rated]
    hits = [None if score is None else float((score >= one.sign * threshold) == is_good) for score, is_good in scores]
    clusters = None if one.clusters is None else [one.clusters[row] for row, _ in rated]
    return mean_interval(hits, clusters=clusters, bootstrap=bootstrap)


def _n_groups(estimate: Estimate, kind: str) -> int | None:
    """Return the number of "tied" or "undefined" groups; None if the estimate is not a mean over groups."""
    is_mean = getattr(estimate, "average_by", "none") != "none" and estimate.value is not None
    return getattr(estimate, f"n_{kind}_groups") if is_mean else None


def report_table(results: Sequence[AgreementResult], options: ReportOptions) -> Table:
    """Return the results as a table by data set, quality and statistic, the best evaluator first."""
    rows = [_row(result) for result in _ordered(results)]
    columns = [
        *(text_column(name) for name in ("dataset", "quality") if len({row[name] for row in rows}) > 1),
        *map(text_column, ("level", "statistic", "evaluator")),
        TableColumn("value", _value),
        TableColumn(f"{100 * options.bootstrap.confidence:g} % interval", _interval),
        *(column for name, column in _OPTIONAL.items() if any(row[name] is not None for row in rows)),
        TableColumn("scored", lambda row: f"{row['n_scored']}/{row['n_rated']}"),
        named_column("n_clusters", 0, title="clusters"),
    ]
    settings = {
        "average_by": options.average_by,
        "tied_groups": options.tied_groups,
        "within_range": list(options.within_range) if options.within_range else None,
        **{name: getattr(options.bootstrap, name) for name in ("rounds", "confidence", "interval", "seed")},
        **{name: getattr(options, name) for name in ("permutations", "alpha", "min_coverage")},
    }
    return Table(rows, columns, _notes(results, options), settings)


def _ordered(results: Sequence[AgreementResult]) -> list[AgreementResult]:
    cells = list(dict.fromkeys((result.dataset, result.quality, result.level) for result in results))
    statistics = list(dict.fromkeys(result.statistic for result in results))

    def place(result: AgreementResult) -> tuple[int, int, bool, float]:
        cell = cells.index((result.dataset, result.quality, result.level))
        return cell, statistics.index(result.statistic), result.value is None, -(result.value or 0.0)

    return sorted(results, key=place)


def _row(result: AgreementResult) -> TableRow:
    estimate, reason = result.estimate, result.estimate.reason
    if result.is_withheld:
        reason = f"withheld: {estimate.n_scored} of {result.n_rated} rated rows have a score"
        estimate = replace(estimate, ci_low=None, ci_high=None, is_rough=False)
        result = replace(result, rank=None, p_value=None, detectable=None, share_of_ceiling=None)
    share, people = result.share_of_ceiling, result.ceiling._asdict()
    return {
        **_fields(result, "dataset", "quality", "level"),
        "average_by": getattr(estimate, "average_by", "none"),
        **_fields(result, "statistic", "evaluator", "value"),
        **_fields(estimate, "ci_low", "ci_high", "is_rough"),
        **_fields(result, "rank", "p_value", "detectable"),
        **dict(zip(("if_unscored_low", "if_unscored_high"), result.if_unscored, strict=True)),
        **{f"people_{name}": value for name, value in people.items()},
        "pearson_ceiling": result.pearson_ceiling,
        **{f"share_of_ceiling{end and '_'}{end}": getattr(share, end or "value", None) for end in ("", "ci_low", "ci_high")},
        **result.lengths,
        **_fields(estimate, "n_total"),
        **_fields(result, "n_rated"),
        **_fields(estimate, "n_scored", "n_unscored"),
        "unscored": ", ".join(f"{reason} {number}" for reason, number in sorted(result.unscored.items())),
        **_fields(estimate, "coverage", "n_clusters", "n_groups"),
        **{f"n_{kind}_groups": _n_groups(estimate, kind) for kind in ("tied", "undefined")},
        **_fields(estimate, "epsilon"),
        "is_withheld": result.is_withheld,
        "reason": reason,
    }


def _fields(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name, None) for name in names}


def _value(row: TableRow) -> str:
    if row["is_withheld"]:
        return "withheld"
    return "undefined" if row["value"] is None else figure(row["value"])


def _interval(row: TableRow) -> str:
    return f"{_range(row, 'ci_low', 'ci_high')}{', rough' if row['is_rough'] else ''}"


def _range(row: TableRow, low: str, high: str) -> str:
    return "" if row[low] is None or row[high] is None else f"{figure(row[low])} to {figure(row[high])}"


def _groups(row: TableRow) -> str:
    kinds = {"tied": row["n_tied_groups"], "left out": row["n_undefined_groups"]}
    return ", ".join([figure(row["n_groups"], 0), *(f"{number} {kind}" for kind, number in kinds.items() if number)])


_OPTIONAL = {
    "rank": named_column("rank", 0),
    "p_value": named_column("p_value", title="p"),
    "detectable": named_column("detectable"),
    "if_unscored_low": TableColumn("if unscored", lambda row: _range(row, "if_unscored_low", "if_unscored_high")),
    "people_leave_one_out": named_column("people_leave_one_out", title="one person"),
    "people_split_half": named_column("people_split_half", title="half the people"),
    "pearson_ceiling": named_column("pearson_ceiling", title="ceiling"),
    "share_of_ceiling": interval_column("of the ceiling", "share_of_ceiling", "share_of_ceiling_", 2, missing=""),
    "length_bias": named_column("length_bias", title="length bias"),
    "n_tied_groups": TableColumn("groups", _groups),
}
"""Columns shown only if a row has a value in them."""


def _notes(results: Sequence[AgreementResult], options: ReportOptions) -> list[str]:
    notes = []
    if options.bootstrap.rounds and not all(result.is_clustered for result in results):
        notes.append(NO_CLUSTERS)
    if any(result.estimate.is_rough and not result.is_withheld for result in results):
        notes.append(ROUGH)
    n_tied, n_undefined = (sum(_n_groups(one.estimate, kind) or 0 for one in results) for kind in ("tied", "undefined"))
    if n_tied:
        notes.append(TIED[options.tied_groups])
    if n_undefined:
        notes.append(UNDEFINED)
    if any(result.detectable is not None and not result.is_withheld for result in results):
        notes.append(DETECTABLE)
    if any(result.is_withheld for result in results):
        notes.append(f"Withheld: fewer than {100 * options.min_coverage:g} % of the rated rows have a score (--min-coverage).")
    notes += dict.fromkeys(
        f"{result.quality}: no metric can be expected to have a Pearson correlation above {figure(result.pearson_ceiling)} "
        "with these ratings (dialeval meta-eval --ratings, without scores, has the interval)."
        for result in results
        if result.pearson_ceiling is not None and result.pearson_ceiling < LOW_CEILING
    )
    reasons = [
        result.estimate.reason
        for result in results
        if result.estimate.reason and not result.is_withheld and (options.bootstrap.rounds or result.value is None)
    ]
    return [*notes, *dict.fromkeys(reasons)]
