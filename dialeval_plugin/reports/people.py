"""Comparison with individual people: the alternative annotator test, and each person as a row of the table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dialeval_plugin.core.arrays import OptionalNumbers
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.labels.scales import ZERO_OR_ONE
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, Scale
from dialeval_plugin.statistics.annotators.alternative_annotator_test import (
    MIN_ROWS,
    AlternativeAnnotatorTest,
    Calibration,
    alternative_annotator_test,
)
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.estimates import mean_within_set
from dialeval_plugin.statistics.levels import RatingTable, ScoredRatings
from dialeval_plugin.statistics.ranking import holm, rank_clusters
from dialeval_plugin.statistics.significance import Measure, Paired, permutation_test

from .correlation_report import AgreementResult, EvaluatorScores, ReportOptions, by_cell, side_by_side
from .tables import Table

PEOPLE = (
    "People: each is compared with the mean of the others on the rows that this person rated, and so are the evaluators, whose "
    "value is the mean over the people. Two are tested on one target: the mean of the people who are neither of them. A place "
    "is that in the lists of a file that does not name its raters, and holds several people."
)


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
    more = {name: getattr(rated, name) for name in ("clusters", "systems", "items")}
    answers, named = (
        {id: values_of_row for of in cell for id, values_of_row in getattr(of, field).items()} for field in ("raters", "people")
    )
    table = label_table(one.dataset, ids, answers, named)
    others = np.array([n > 1 for n in table.n_labels])
    people = {
        f"{rater} (person)" if table.has_people else f"{rater} (people)": place
        for place, rater in enumerate(table.raters)
        if (others & ~np.isnan(table.labels[:, place])).sum() >= MIN_ROWS
    }
    if len(people) < 2:
        raise InputError(
            f"{one.dataset}: {len(people)} people rated {MIN_ROWS} rows of {one.quality!r} or more that others rated too. "
            "Leave out --people, or have two people rate as many."
        )
    everyone: dict[str, OptionalNumbers] = {**scores, **{name: _given(table.labels[:, of]) for name, of in people.items()}}

    def target(*names: str) -> RatingTable:
        """Return the mean ratings of the unnamed people, on the rows that the named people rated."""
        places = [people[name] for name in names if name in people]
        if not places:
            return rated
        rest = np.delete(table.labels, places, axis=1)
        counts, has_rated = (~np.isnan(rest)).sum(axis=1), ~np.isnan(table.labels[:, places]).any(axis=1)
        means = np.nansum(rest, axis=1) / np.maximum(1, counts)
        return RatingTable(ratings=_given(np.where(has_rated & (counts > 0), means, np.nan)), **more)

    def estimate(name: str, on: RatingTable) -> Estimate:
        row = ScoredRatings(scores=everyone[name], **vars(on))
        return level_correlations(row, level=one.level, coefficients=[coefficient], bootstrap=options.bootstrap)[coefficient]

    targets = {name: target(name) for name in people}
    estimates = {name: estimate(name, on) for name, on in targets.items()}
    for name in scores:
        over_people = mean_within_set([estimate(name, on) for on in targets.values()])
        estimates[name] = replace(
            estimate(name, rated), value=over_people.value, ci_low=over_people.ci_low, ci_high=over_people.ci_high
        )
    p_values = {
        (a, b): permutation_test(
            Paired(scores_a=everyone[a], scores_b=everyone[b], **vars(target(a, b))),
            Measure(coefficient, one.level),
            rounds=options.permutations,
            seed=options.bootstrap.seed,
        ).p_value
        for a, b in itertools.combinations(everyone, 2)
        if options.permutations
    }
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


def _given(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
