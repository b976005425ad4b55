"""How far evaluators agree with people: every coefficient of every evaluator, with what it is to be read beside, as one table.

`dialeval meta-eval` makes `Judgements` of score files, `dialeval rescore` of lm-eval's result files; from there on both are the
same: `find` computes the statistics, and `report_table` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, ROUGH_CLUSTERS, Bootstrap, Estimate, Resampled
from dialeval_plugin.statistics.choices.selection import best_of_several, quality_of_kept
from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS, level_correlations
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.levels import AverageBy, LevelOrSystem, Range, Rated, RatingTable, TiedGroups
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.partial import covariate_bias
from dialeval_plugin.statistics.planning.power import detectable_difference
from dialeval_plugin.statistics.ranking import Ranking, rank_metrics
from dialeval_plugin.statistics.raters import leave_one_rater_out, split_half
from dialeval_plugin.statistics.reliability import disattenuated_correlation, intraclass_correlation
from dialeval_plugin.statistics.sensitivity import sensitivity_range
from dialeval_plugin.statistics.significance import Measure, Paired, resampled_difference

from .tables import Table, TableColumn, TableRow, figure, named_column

_LENGTHS = {
    "length_of_scores": "score_length",
    "length_of_ratings": "rating_length",
    "length_bias": "score_length_given_rating",
}
"""Columns of the table to the names of `covariate_bias`."""

NO_CLUSTERS = "No file says which rows belong to one dialogue: intervals resample single rows and may be too narrow."
ROUGH = f"Rough: an interval of fewer than {ROUGH_CLUSTERS} clusters holds the true value less often than it says."

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
"""A ceiling below what Cohen (1988) calls a medium correlation is said in words: the best metric there is would look poor."""


@dataclass(frozen=True, kw_only=True)
class Judgements(Rated):
    """What an evaluator and people said of the same responses or dialogues; of its scores higher is better.

    `words` are those of the responses or dialogues; `unscored` counts the rows without a score by reason.
    """

    evaluator: str
    dataset: str
    quality: str
    level: LevelOrSystem
    ids: Sequence[str]
    raters: Mapping[str, Sequence[float]]
    """Each rater's answer by id, of all rated rows, scored or not; () where they are not known."""
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Who gave these answers, in the same order, by id; none of an id where it is not known."""
    words: Sequence[int] | None
    unscored: Mapping[str, int] = field(default_factory=dict)
    sign: float = 1.0
    """-1 where the evaluator's own scores are better the lower they are."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is computed of all judgements alike."""

    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS
    by_system: bool = False
    """Compare the systems' means instead of rows."""
    average_by: AverageBy = "none"
    tied_groups: TiedGroups = "zero"
    """What a group counts in which people differ and an evaluator does not, see `level_correlations`."""
    within_range: Range | None = None
    threshold: float | None = None
    """Where ratings are 0 or 1: the accuracy of calling a response good from this score on, as one more statistic."""
    choices: bool = False
    """What filtering by scores, and choosing one of several responses to an item, is worth in ratings."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    permutations: int = 1000
    """Of each pair of evaluators, for p-values and ranks; 0 for neither."""
    alpha: float = 0.05
    """Level of significance of the ranks, after Holm's correction."""
    min_coverage: float = 0.8
    """A coefficient is withheld where a smaller share of the rated rows has a score."""

    @property
    def is_plain(self) -> bool:
        """Whether coefficients are over all rows, which alone can be set beside the raters' own agreement."""
        return not self.by_system and self.average_by == "none" and self.within_range is None


class HumanCeiling(NamedTuple):
    """How well people reach a coefficient among themselves; None where no row has two raters or it is undefined.

    Between one rater and the mean of the others, and between the means of two halves of the raters.
    """

    leave_one_out: float | None = None
    split_half: float | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
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
    """Whether it is known which rows belong to one dialogue."""
    ceiling: HumanCeiling = field(default_factory=HumanCeiling)
    pearson_ceiling: float | None = None
    """The highest value to expect of any metric with the mean of the raters; of Pearson's correlation only."""
    share_of_ceiling: Estimate | None = None
    """Pearson's correlation by that ceiling, which is the disattenuated correlation."""
    if_unscored: tuple[float | None, float | None] = (None, None)
    """The statistic if the unscored rows contradicted the ratings, and if they agreed: a sensitivity range, no bound."""
    rank: int | None = None
    """Of the evaluator's cluster among those of the same data."""
    p_value: float | None = None
    """Against the best evaluator, after Holm's correction; None for that one itself."""
    detectable: float | None = None
    """Difference from the first evaluator of the same rank that such rows show four times in five; None for that one itself."""
    lengths: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(_LENGTHS))
    """Spearman's correlations with the number of words, of scores, of ratings, and of the scores among responses that people
    rate the same; None where the texts are not known."""

    @property
    def value(self) -> float | None:
        """The statistic, if it is defined and not withheld."""
        return None if self.is_withheld else self.estimate.value

    @property
    def n_rated(self) -> int:
        """Rows that the statistic could rest on."""
        return self.estimate.n_scored + self.estimate.n_unscored


def find(judgements: Sequence[Judgements], options: ReportOptions) -> list[Finding]:
    """Return every coefficient of every evaluator; InputError where it needs what the judgements do not have."""
    return [finding for cell in by_cell(judgements) for finding in _of_cell(cell, options)]


def by_cell(judgements: Sequence[Judgements]) -> list[list[Judgements]]:
    """Return those of one quality of one data set together."""
    cells: dict[tuple[str, str, str], list[Judgements]] = {}
    for one in judgements:
        cells.setdefault((one.dataset, one.quality, one.level), []).append(one)
    return list(cells.values())


def _of_cell(judgements: Sequence[Judgements], options: ReportOptions) -> list[Finding]:
    """The findings on one quality of one data set."""
    level = "system" if options.by_system else judgements[0].level
    raters = {id: answers for one in judgements for id, answers in one.raters.items()}
    ceilings, rankings, pearson_ceiling = {}, {}, None
    if options.is_plain and "pearson" in options.coefficients and any(len(answers) > 1 for answers in raters.values()):
        pearson_ceiling = intraclass_correlation(list(raters.values()), bootstrap=NO_RESAMPLES).ceiling_of_mean.value
    estimates = [_estimates(one, level, options) for one in judgements]
    for name in options.coefficients:
        # Means of systems, averages of groups and a range of ratings are not what the raters are compared on.
        if options.is_plain:
            ceilings[name] = human_ceiling(list(raters.values()), name, seed=options.bootstrap.seed)
        # Evaluators that are averaged over different groups are not ranked.
        is_fair = options.tied_groups == "zero" or not any(_n_groups(of[name], "tied") for of in estimates)
        if len(judgements) > 1 and options.permutations and is_fair:
            rankings[name] = _ranking(judgements, Measure(name, level, options.average_by), options)
    found = []
    for one, of_statistics in zip(judgements, estimates, strict=True):
        lengths = dict.fromkeys(_LENGTHS)
        if one.words is not None:
            biases = covariate_bias(one.scores, one.ratings, one.words, name="length", bootstrap=NO_RESAMPLES)
            lengths = {column: biases[of].value for column, of in _LENGTHS.items()}
        for name, estimate in of_statistics.items():
            rank, p_value, first = _place(rankings[name], one.evaluator) if name in rankings else (None, None, one.evaluator)
            share_of_ceiling = None
            if name == "pearson" and pearson_ceiling is not None:
                answers = [one.raters.get(id, ()) for id in one.ids]
                share_of_ceiling = disattenuated_correlation(
                    one.scores, answers, clusters=one.clusters, bootstrap=options.bootstrap
                )
            finding = Finding(
                evaluator=one.evaluator,
                dataset=one.dataset,
                quality=one.quality,
                level=level,
                statistic=name,
                estimate=estimate,
                unscored=one.unscored,
                is_withheld=estimate.n_scored < options.min_coverage * (estimate.n_scored + estimate.n_unscored),
                is_clustered=one.clusters is not None,
                ceiling=ceilings.get(name, HumanCeiling()),
                pearson_ceiling=pearson_ceiling if name == "pearson" else None,
                share_of_ceiling=share_of_ceiling,
                if_unscored=_if_unscored(one, options, name),
                rank=rank,
                p_value=p_value,
                detectable=_detectable(judgements, Measure(name, level, options.average_by), options, first, one.evaluator),
                lengths=lengths,
            )
            found.append(finding)
    return found


def human_ceiling(raters: Sequence[Sequence[float]], coefficient: str, *, seed: int = 0) -> HumanCeiling:
    """Return how well people reach a coefficient; `raters` holds each rater's answer for each row, () where not known."""
    if not any(len(answers) > 1 for answers in raters):
        return HumanCeiling()
    bootstrap = Bootstrap(rounds=0, seed=seed)
    return HumanCeiling(
        leave_one_rater_out(raters, coefficient=coefficient, bootstrap=bootstrap).value,
        split_half(raters, coefficient=coefficient, bootstrap=bootstrap).value,
    )


def _ranking(judgements: Sequence[Judgements], measure: Measure, options: ReportOptions) -> Ranking:
    """Tests between all evaluators."""
    _, scores, rated = side_by_side(judgements, options)
    seed = options.bootstrap.seed
    return rank_metrics(scores, rated, measure, alpha=options.alpha, rounds=options.permutations, seed=seed)


def side_by_side(
    judgements: Sequence[Judgements], options: ReportOptions
) -> tuple[list[str], dict[str, list[float | None]], RatingTable]:
    """Return the ids of all rows, each evaluator's scores in their order, and the ratings within the range asked for."""
    # Every id with where it stands: not all evaluators need to have been run on the same rows.
    rows: dict[str, tuple[Judgements, int]] = {}
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


def difference_of(
    judgements: Sequence[Judgements], measure: Measure, options: ReportOptions, a: str, b: str
) -> Resampled | None:
    """Return the difference of two evaluators' coefficients as it is resampled; None where either is undefined."""
    _, scores, table = side_by_side(judgements, options)
    try:
        return resampled_difference(Paired(**vars(table), scores_a=scores[a], scores_b=scores[b]), measure)
    except StatisticUndefined:
        return None


def _detectable(
    judgements: Sequence[Judgements], measure: Measure, options: ReportOptions, first: str, evaluator: str
) -> float | None:
    """The smallest difference from the first evaluator of the same rank that such rows would show."""
    pilot = None if first == evaluator else difference_of(judgements, measure, options, first, evaluator)
    bootstrap = replace(options.bootstrap, confidence=1 - options.alpha)
    found = None if pilot is None else detectable_difference(pilot, bootstrap=bootstrap)
    return None if found is None else found.difference


def _estimates(one: Judgements, level: LevelOrSystem, options: ReportOptions) -> dict[str, Estimate]:
    found = level_correlations(
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
    return {**found, **more}


def _place(ranking: Ranking, evaluator: str) -> tuple[int | None, float | None, str]:
    """Rank, p-value against the best, and the best one of the same rank."""
    values: dict[str, float] = {}
    for (a, b), found in ranking.comparisons.items():
        values |= {name: value for name, value in ((a, found.value_a), (b, found.value_b)) if value is not None}

    def best_of(rank: int | None) -> str:
        of_rank = [name for name, its in ranking.ranks.items() if its == rank]
        return max(of_rank, key=lambda name: values.get(name, -math.inf), default=evaluator)

    p_values = {frozenset(pair): p for pair, p in ranking.adjusted.items()}
    rank = ranking.ranks[evaluator]
    return rank, p_values.get(frozenset((best_of(1), evaluator))), evaluator if rank is None else best_of(rank)


def _if_unscored(one: Judgements, options: ReportOptions, statistic: str) -> tuple[float | None, float | None]:
    if statistic not in options.coefficients or not options.is_plain or None not in one.scores:
        return None, None
    return sensitivity_range(one.scores, one.ratings, coefficient=statistic)


def _accuracy(one: Judgements, threshold: float, bootstrap: Bootstrap) -> Estimate:
    """Share of the rated rows whose score is on the rating's side of the threshold."""
    rated = [(row, rating) for row, rating in enumerate(one.ratings) if rating is not None]
    if wrong := [rating for _, rating in rated if rating not in {0.0, 1.0}]:
        raise InputError(
            f"--threshold: ratings of {one.quality!r} are not all 0 or 1, {wrong[0]:g} is there. Leave the option out."
        )
    scores = [(one.scores[row], rating == 1.0) for row, rating in rated]
    hits = [None if score is None else float((score >= one.sign * threshold) == is_good) for score, is_good in scores]
    clusters = None if one.clusters is None else [one.clusters[row] for row, _ in rated]
    return mean_interval(hits, clusters=clusters, bootstrap=bootstrap)


def _n_groups(found: Estimate, kind: str) -> int | None:
    """Groups of a kind, "tied" or "undefined"; None of what is no mean over groups."""
    is_mean = getattr(found, "average_by", "none") != "none" and found.value is not None
    return getattr(found, f"n_{kind}_groups") if is_mean else None


def report_table(findings: Sequence[Finding], options: ReportOptions) -> Table:
    """Return the findings as a table: data, qualities and statistics in their order, the best evaluator of each first."""
    rows = [_row(finding) for finding in _ordered(findings)]
    columns = [
        *(_text_column(name) for name in ("dataset", "quality") if len({row[name] for row in rows}) > 1),
        *map(_text_column, ("level", "statistic", "evaluator")),
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
    return Table(rows, columns, _notes(findings, options), settings)


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    cells = list(dict.fromkeys((finding.dataset, finding.quality, finding.level) for finding in findings))
    statistics = list(dict.fromkeys(finding.statistic for finding in findings))

    def place(finding: Finding) -> tuple[int, int, bool, float]:
        cell = cells.index((finding.dataset, finding.quality, finding.level))
        return cell, statistics.index(finding.statistic), finding.value is None, -(finding.value or 0.0)

    return sorted(findings, key=place)


def _row(finding: Finding) -> TableRow:
    found, is_withheld = finding.estimate, finding.is_withheld
    share = None if is_withheld else finding.share_of_ceiling
    why = f"withheld: {found.n_scored} of {finding.n_rated} rated rows have a score" if is_withheld else found.reason
    return {
        "dataset": finding.dataset,
        "quality": finding.quality,
        "level": finding.level,
        "average_by": getattr(found, "average_by", "none"),
        "statistic": finding.statistic,
        "evaluator": finding.evaluator,
        "value": finding.value,
        "ci_low": None if is_withheld else found.ci_low,
        "ci_high": None if is_withheld else found.ci_high,
        "is_rough": found.is_rough and not is_withheld,
        "rank": None if is_withheld else finding.rank,
        "p_value": None if is_withheld else finding.p_value,
        "detectable": None if is_withheld else finding.detectable,
        "if_unscored_low": finding.if_unscored[0],
        "if_unscored_high": finding.if_unscored[1],
        "people_leave_one_out": finding.ceiling.leave_one_out,
        "people_split_half": finding.ceiling.split_half,
        "pearson_ceiling": finding.pearson_ceiling,
        **{f"share_of_ceiling{end and '_'}{end}": getattr(share, end or "value", None) for end in ("", "ci_low", "ci_high")},
        **finding.lengths,
        "n_total": found.n_total,
        "n_rated": finding.n_rated,
        "n_scored": found.n_scored,
        "n_unscored": found.n_unscored,
        "unscored": ", ".join(f"{reason} {number}" for reason, number in sorted(finding.unscored.items())),
        "coverage": found.coverage,
        "n_clusters": found.n_clusters,
        "n_groups": getattr(found, "n_groups", None),
        "n_tied_groups": _n_groups(found, "tied"),
        "n_undefined_groups": _n_groups(found, "undefined"),
        "epsilon": getattr(found, "epsilon", None),
        "is_withheld": is_withheld,
        "reason": why,
    }


def _text_column(name: str) -> TableColumn:
    return named_column(name, is_number=False)


def _value(row: TableRow) -> str:
    if row["is_withheld"]:
        return "withheld"
    return "undefined" if row["value"] is None else figure(row["value"])


def _interval(row: TableRow) -> str:
    return f"{_range(row, 'ci_low', 'ci_high')}{', rough' if row['is_rough'] else ''}"


def _range(row: TableRow, low: str, high: str) -> str:
    return "" if row[low] is None or row[high] is None else f"{figure(row[low])} to {figure(row[high])}"


def _share(row: TableRow) -> str:
    value, low, high = (cast("float | None", row[f"share_of_ceiling{end}"]) for end in ("", "_ci_low", "_ci_high"))
    return "" if value is None else interval_text(value, low, high, 2)


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
    "share_of_ceiling": TableColumn("of the ceiling", _share),
    "length_bias": named_column("length_bias", title="length bias"),
    "n_tied_groups": TableColumn("groups", _groups),
}
"""Columns that are shown where some row has a value in them."""


def _notes(findings: Sequence[Finding], options: ReportOptions) -> list[str]:
    notes = []
    if options.bootstrap.rounds and not all(finding.is_clustered for finding in findings):
        notes.append(NO_CLUSTERS)
    if any(finding.estimate.is_rough and not finding.is_withheld for finding in findings):
        notes.append(ROUGH)
    n_tied, n_undefined = (sum(_n_groups(one.estimate, kind) or 0 for one in findings) for kind in ("tied", "undefined"))
    if n_tied:
        notes.append(TIED[options.tied_groups])
    if n_undefined:
        notes.append(UNDEFINED)
    if any(finding.detectable is not None and not finding.is_withheld for finding in findings):
        notes.append(DETECTABLE)
    if any(finding.is_withheld for finding in findings):
        notes.append(f"Withheld: fewer than {100 * options.min_coverage:g} % of the rated rows have a score (--min-coverage).")
    notes += dict.fromkeys(
        f"{finding.quality}: no metric can be expected to have a Pearson correlation above {figure(finding.pearson_ceiling)} "
        "with these ratings (dialeval meta-eval --ratings, without scores, has the interval)."
        for finding in findings
        if finding.pearson_ceiling is not None and finding.pearson_ceiling < LOW_CEILING
    )
    reasons = [
        finding.estimate.reason
        for finding in findings
        if finding.estimate.reason and not finding.is_withheld and (options.bootstrap.rounds or finding.value is None)
    ]
    return [*notes, *dict.fromkeys(reasons)]
