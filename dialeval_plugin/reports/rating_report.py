"""People and their ratings: the reliability of ratings, the alternative annotator test, and each person as a row of the table.

`dialeval meta-eval` without scores prints the reliability.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, OptionalNumbers
from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.corpora.rated_items import RatedItem, qualities
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, known_labels
from dialeval_plugin.statistics.annotators.alternative_annotator_test import (
    MIN_ROWS,
    AlternativeAnnotatorTest,
    Calibration,
    alternative_annotator_test,
)
from dialeval_plugin.statistics.annotators.raters import aggregate
from dialeval_plugin.statistics.annotators.reliability import (
    SOURCES,
    Reliability,
    RepeatedItems,
    VarianceComponents,
    intraclass_correlation,
    quality_agreement,
    repeated_items,
    variance_components,
)
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.estimates import mean_within_set
from dialeval_plugin.statistics.levels import RatingTable, ScoredRatings
from dialeval_plugin.statistics.ranking import holm, rank_clusters
from dialeval_plugin.statistics.significance import Measure, Paired, permutation_test

from .correlation_report import (
    LOW_CEILING,
    NO_CLUSTERS,
    ROUGH,
    AgreementResult,
    EvaluatorScores,
    ReportOptions,
    by_cell,
    label_table,
    ratings_by_id,
    side_by_side,
)
from .score_alignment import asked_qualities
from .tables import CellValue, Table, TableColumn, TableRow, figure, interval_column, named_column, text_column

PEOPLE = (
    "People: each is compared with the mean of the others on the rows that this person rated, and so are the evaluators, whose "
    "value is the mean over the people. Two are tested on one target: the mean of the people who are neither of them. A place "
    "is that in the lists of a file that does not name its raters, and holds several people."
)


def alternative_annotator_tests(
    judgements: Sequence[EvaluatorScores], *, epsilon: float, calibration: Calibration | None = None, bootstrap: Bootstrap
) -> list[AlternativeAnnotatorTest]:
    """Return the test of each evaluator on each quality; raises as `alternative_annotator_test`."""
    has_several = len({one.quality for one in judgements}) > 1
    tests = []
    for one in judgements:
        table = label_table(one.dataset, one.ids, one.raters, one.people, clusters=one.clusters, quality=one.quality)
        name = f"{one.evaluator} ({one.quality})" if has_several else one.evaluator
        judged = JudgedLabels(evaluator=name, scores=np.asarray(one.scores, dtype=np.float64), labels=table)
        tests.append(alternative_annotator_test(judged, epsilon=epsilon, calibration=calibration, bootstrap=bootstrap))
    return tests


def with_tests(table: Table, tests: Sequence[AlternativeAnnotatorTest], notes: Sequence[str] = ()) -> Table:
    """Return the table with notes, verdicts and cautions below it; its JSON has the complete tests."""
    notes = [*notes, *(one.verdict for one in tests), *dict.fromkeys(caution for one in tests for caution in one.cautions)]
    whole = {"alternative_annotator_tests": [one.to_dict() for one in tests]} if tests else {}
    return replace(table, notes=[*table.notes, *notes], settings={**table.settings, **whole})


def evaluate_people(judgements: Sequence[EvaluatorScores], options: ReportOptions) -> list[AgreementResult]:
    """Return every coefficient of every evaluator and person; raises InputError if fewer than two people rated enough rows."""
    if not options.is_plain:
        raise InputError(
            "--people: compares people with evaluators row by row. Leave out --by-system, --average-by and --within."
        )
    return [result for cell in by_cell(judgements) for name in options.coefficients for result in _of_cell(cell, name, options)]


def _of_cell(cell: Sequence[EvaluatorScores], coefficient: str, options: ReportOptions) -> list[AgreementResult]:
    one = cell[0]
    ids, scores, rated = side_by_side(cell, options)
    table = label_table(one.dataset, ids, *ratings_by_id(cell))
    people = _places_of_people(table, one.quality)
    everyone: dict[str, OptionalNumbers] = {**scores, **{name: _given(table.labels[:, of]) for name, of in people.items()}}

    def target(*names: str) -> RatingTable:
        """Return the mean ratings of the unnamed people, on the rows that the named people rated."""
        places = [people[name] for name in names if name in people]
        return replace(rated, ratings=_means_without(table.labels, places)) if places else rated

    def estimate(name: str, on: RatingTable) -> Estimate:
        row = ScoredRatings(scores=everyone[name], **vars(on))
        return level_correlations(row, level=one.level, coefficients=[coefficient], bootstrap=options.bootstrap)[coefficient]

    targets = {name: target(name) for name in people}
    estimates = {name: estimate(name, on) for name, on in targets.items()}
    for name in scores:
        over_people = mean_within_set([estimate(name, on) for on in targets.values()])
        estimates[name] = replace(estimate(name, rated), **over_people._asdict())
    measure, p_values = Measure(coefficient, one.level), dict[tuple[str, str], float | None]()
    for a, b in itertools.combinations(everyone, 2) if options.permutations else ():
        paired = Paired(scores_a=everyone[a], scores_b=everyone[b], **vars(target(a, b)))
        p_values[a, b] = permutation_test(paired, measure, rounds=options.permutations, seed=options.bootstrap.seed).p_value
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    values = {name: one_estimate.value for name, one_estimate in estimates.items()}
    ranks = rank_clusters(values, adjusted, alpha=options.alpha) if adjusted else dict.fromkeys(values)
    best = max((name for name in values if ranks[name] == 1), key=lambda name: values[name] or 0.0, default="")
    return [
        AgreementResult(
            evaluator=name,
            dataset=one.dataset,
            quality=one.quality,
            level=one.level,
            statistic=coefficient,
            estimate=estimates[name],
            unscored={},
            is_clustered=rated.clusters is not None,
            rank=ranks[name],
            p_value=adjusted.get((name, best), adjusted.get((best, name))),
        )
        for name in everyone
    ]


def _places_of_people(table: LabelTable, quality: str) -> dict[str, int]:
    """Return the columns of the people who rated enough rows, by name; raises InputError for fewer than two."""
    kind, others = ("person" if table.has_people else "people"), table.n_labels > 1
    n_rated = (others[:, None] & ~np.isnan(table.labels)).sum(axis=0)
    people = {f"{rater} ({kind})": place for place, rater in enumerate(table.raters) if n_rated[place] >= MIN_ROWS}
    if len(people) < 2:
        raise InputError(
            f"{table.source}: {len(people)} people rated {MIN_ROWS} rows of {quality!r} or more that others rated too. "
            "Leave out --people, or have two people rate as many."
        )
    return people


def _means_without(labels: FloatArray, places: Sequence[int]) -> list[float | None]:
    """Return the mean label of each row without some raters; None if one of them did not rate it, or nobody else did."""
    rest, has_rated = np.delete(labels, places, axis=1), ~np.isnan(labels[:, places]).any(axis=1)
    counts = (~np.isnan(rest)).sum(axis=1)
    return _given(np.where(has_rated & (counts > 0), np.nansum(rest, axis=1) / np.maximum(1, counts), np.nan))


def _given(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


@dataclass(frozen=True, slots=True)
class RatingFinding:
    """Reliability of the ratings of one quality."""

    quality: str
    level: Level
    reliability: Reliability
    agreement: Estimate | None
    """Agreement with the other qualities; None if no other is rated or the dialogues of rows are unknown."""
    repeated: RepeatedItems | None
    """None if the file has no texts."""
    components: VarianceComponents | None
    """None if the components cannot be separated, such as with one rating per row."""
    is_clustered: bool
    """Whether the dialogue of each row is known."""

    @property
    def decision(self) -> str | None:
        """Sources of the variance, and the gain from more raters."""
        components = self.components
        if components is None or not (total := components.variance(*SOURCES)):
            return None
        shares = [f"{100 * components.variance(name) / total:.0f} % {_WHERE[name]}" for name in components.of]
        reliable = ", ".join(f"{components.reliability(n):.2f} of {n}" for n in (1, 3, 5, 10))
        unit = "conversations" if self.is_clustered else "responses"
        whose = " of a system" if "systems" in components.of else ""
        now, then = (
            components.standard_error(components.n_conversations, components.n_raters + more) for more in (0, MORE_RATERS)
        )
        return (
            f"{self.quality}: variance of one rating: {', '.join(shares)}. Reliability of the mean of raters: {reliable}. "
            f"{MORE_RATERS} more raters of each response (now {components.n_raters:.1f}) are worth "
            f"{components.worth_of_raters(MORE_RATERS):.0f} more {unit}{whose} (now {components.n_conversations:.0f}): the "
            f"standard error of the mean{whose} becomes {figure(then)} instead of {figure(now)}."
        )

    @property
    def verdict(self) -> str | None:
        """Warning if the interval of the ceiling is low or includes 0, else None."""
        ceiling = self.reliability.ceiling_of_mean
        if ceiling.ci_low is None or ceiling.ci_high is None:
            return None
        if not ceiling.ci_low:
            return (
                f"{self.quality}: nothing shows that these ratings judge anything: the interval of their mean's ceiling, "
                f"{figure(ceiling.ci_low)} to {figure(ceiling.ci_high)}, includes 0. Have more rated, by more raters each."
            )
        if ceiling.ci_high < LOW_CEILING:
            return f"{self.quality}: no metric can be expected to correlate above {figure(ceiling.ci_high)} with these ratings."
        return None


def examine(items: Sequence[RatedItem], wanted: Sequence[str], bootstrap: Bootstrap) -> list[RatingFinding]:
    """Return a finding on each requested quality, or on all; raises InputError if there are no such ratings."""
    rated = qualities(items)
    if not rated:
        raise InputError("meta-eval: nothing is rated there. Name a file that has ratings with --ratings.")
    raters = {quality: [item.ratings.get(quality, ()) for item in items] for quality in rated}
    means = {quality: aggregate(values) for quality, values in raters.items()}
    clusters, texts = known_labels([item.cluster for item in items]), known_labels([item.text for item in items])
    agreements: dict[str, Estimate] = {}
    if clusters is not None and len(rated) > 1:
        agreements = quality_agreement(means, clusters, bootstrap=bootstrap)
    ids, systems = [item.id for item in items], known_labels([item.system for item in items])

    def components(quality: str) -> VarianceComponents | None:
        answers, people = (
            {item.id: of.get(quality, ()) for item in items for of in [getattr(item, name)]} for name in ("ratings", "people")
        )
        try:
            table = label_table(quality, ids, answers, people, clusters=clusters, systems=systems)
            return variance_components(table, bootstrap=bootstrap)
        except StatisticUndefined:
            return None

    return [
        RatingFinding(
            quality=quality,
            level=items[0].level,
            reliability=intraclass_correlation(raters[quality], clusters=clusters, bootstrap=bootstrap),
            agreement=agreements.get(quality),
            repeated=None if texts is None else repeated_items(means[quality], texts),
            components=components(quality),
            is_clustered=clusters is not None,
        )
        for quality in asked_qualities(wanted, rated) or rated
    ]


def rating_table(findings: Sequence[RatingFinding], bootstrap: Bootstrap) -> Table:
    """Return the findings as a table with one row per quality, and their interpretation below."""
    rows = [_row(finding) for finding in findings]
    columns = [
        *map(text_column, ("level", "quality")),
        named_column("n_raters", 1, title="raters"),
        *(
            interval_column(title, name, f"{name}_")
            for name, title in _TITLES.items()
            if any(row[name] is not None for row in rows)
        ),
        *([_REPEATED] if any(row["n_repeated"] for row in rows) else []),
        TableColumn("rated", lambda row: f"{row['n_rated']}/{row['n_total']}"),
        named_column("n_clusters", 0, title="clusters"),
    ]
    notes = [note for finding in findings for note in (finding.verdict, finding.decision)]
    if bootstrap.rounds and not all(finding.is_clustered for finding in findings):
        notes.append(NO_CLUSTERS)
    if any(row[f"{name}_is_rough"] for row in rows for name in _TITLES):
        notes.append(ROUGH)
    is_asked = bool(bootstrap.rounds)
    notes += [f"{row['quality']}: {row['reason']}" for row in rows if row["reason"] and (is_asked or not row["n_raters"])]
    settings = {name: getattr(bootstrap, name) for name in ("rounds", "confidence", "interval", "seed")}
    return Table(rows, columns, [note for note in notes if note], settings)


def _row(finding: RatingFinding) -> TableRow:
    reliability, repeated = finding.reliability, finding.repeated
    estimates: dict[str, Estimate | None] = {
        "reliability_of_one": reliability.of_one,
        "reliability_of_mean": reliability.of_mean,
        "ceiling_of_one": reliability.ceiling_of_one,
        "ceiling_of_mean": reliability.ceiling_of_mean,
        "quality_agreement": finding.agreement,
    }
    components = {} if finding.components is None else finding.components.of
    estimates |= {f"variance_{source}": components.get(source) for source in SOURCES}
    row: dict[str, CellValue] = {"quality": finding.quality, "level": finding.level, "n_raters": reliability.n_raters}
    for name, estimate in estimates.items():
        row[name] = None if estimate is None else estimate.value
        row |= {f"{name}_{end}": None if estimate is None else getattr(estimate, end) for end in _ENDS}
    return {
        **row,
        "n_quality_pairs": None if finding.agreement is None else finding.agreement.n_scored,
        "n_repeated": None if repeated is None else repeated.n_pairs,
        "n_repeated_apart": None if repeated is None else repeated.n_apart,
        "n_total": reliability.of_one.n_total,
        "n_rated": reliability.of_one.n_scored,
        "n_clusters": reliability.of_one.n_clusters,
        "reason": reliability.of_one.reason,
    }


MORE_RATERS = 3

_WHERE = {
    "systems": "between systems",
    "conversations": "between conversations",
    "responses": "between responses",
    "raters": "between raters",
    "residual": "left over",
}

_ENDS = ("ci_low", "ci_high", "is_rough")

_TITLES = {
    "reliability_of_one": "one rating",
    "ceiling_of_one": "its ceiling",
    "reliability_of_mean": "their mean",
    "ceiling_of_mean": "its ceiling",
    "quality_agreement": "qualities agree",
}
"""Titles of columns with intervals, shown only if a row has a value in them."""

_REPEATED = TableColumn("same text, apart", lambda row: f"{row['n_repeated_apart']}/{row['n_repeated']}")
