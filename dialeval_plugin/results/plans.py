"""Planning of runs: how many conversations detect which difference, simulated from the scores of a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.labels.scores import ScoredRows
from dialeval_plugin.reports.correlation_report import (
    EvaluatorScores,
    ReportOptions,
    by_cell,
    difference_of,
    evaluate_agreement,
    side_by_side,
)
from dialeval_plugin.reports.tables import Table, TableRow, named_column, text_column
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, MIN_CLUSTERS, Bootstrap, Resampled
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import difference_of_means
from dialeval_plugin.statistics.significance import Measure, clusters_needed, detectable_difference

from .comparison import Comparison

PLANNED = (20, 50, 100, 200, 500, 1000, 2000, 5000)


def plan_table(
    pilots: Mapping[tuple[str, ...], Resampled],
    difference: float,
    unit: str,
    *,
    names: Sequence[str] = (),
    clusters_of_unit: int = 1,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Table | None:
    """Return the smallest detectable difference for each of `PLANNED` numbers of units; None if no pilot is large enough.

    Args:
        pilots: pilot differences, by the values of the columns `names`.
        difference: at least 0; the number of units that detect it is printed below the table; 0 for none.
        unit: what is counted, such as "conversations".
        names: titles of the columns that distinguish the pilots.
        clusters_of_unit: 2 if each of two versions has its own clusters.
        bootstrap: settings of the planned intervals.
    """
    if difference < 0:
        raise InputError(f"--plan {difference:g}: a difference to plan for is above 0. Leave it out for a table alone.")
    rows: list[TableRow] = []
    notes: list[str] = []
    for labels, pilot in pilots.items():
        of = dict(zip(names, labels, strict=True))
        for n in PLANNED:
            detectable = detectable_difference(pilot, n * clusters_of_unit, bootstrap=bootstrap)
            if detectable is not None:
                rows.append({**of, unit: n, "difference": detectable.difference, "error": detectable.error})
        needed = clusters_needed(pilot, difference, bootstrap=bootstrap) if difference else None
        if needed is not None:
            n = -(-needed.n_clusters // clusters_of_unit)
            who = f"{', '.join(labels)}: " if labels else ""
            notes.append(f"{who}a difference of {number_text(difference)} needs {n} {unit} to be seen four times in five")
    columns = [
        *map(text_column, names),
        named_column(unit, decimals=0),
        named_column("difference", title="smallest difference"),
        named_column("error", 4, title="+-"),
    ]
    notes.append("smallest difference: seen four times in five; +-: standard error of the simulation")
    settings = {"power": 0.8, "confidence": bootstrap.confidence, "interval": bootstrap.interval}
    return Table(rows, columns, notes, settings) if rows else None


def agreement_plan(judgements: Sequence[EvaluatorScores], options: ReportOptions, difference: float = 0.0) -> Table:
    """Return the smallest difference between a pilot's two best evaluators that each number of dialogues detects.

    Raises InputError if no data set has two evaluators whose agreement is defined on 10 dialogues or more.
    """
    pilots: dict[tuple[str, ...], Resampled] = {}
    for own in by_cell(judgements):
        side = side_by_side(own, options)
        agreement = evaluate_agreement(own, replace(options, permutations=0))
        for name in options.coefficients:
            valued = [(one.value, one.evaluator) for one in agreement if one.statistic == name and one.value is not None]
            best = [evaluator for _, evaluator in sorted(valued)[:-3:-1]]
            if len(best) == 2:
                pilot = difference_of(side, Measure(name, agreement[0].level, options.average_by), *best)
                if pilot is not None:
                    pilots[own[0].dataset, own[0].quality, name, " - ".join(best)] = pilot
    names = ("dataset", "quality", "statistic", "evaluators")
    bootstrap = replace(options.bootstrap, confidence=1 - options.alpha)
    table = plan_table(pilots, difference, "dialogues", names=names, bootstrap=bootstrap)
    if table is None:
        raise InputError(
            "--plan: a plan needs a pilot of two evaluators on 10 dialogues that are rated. Give scores of two, and more rows."
        )
    return table


def plan(pilot: ScoredRows | Comparison, difference: float = 0.0, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Table:
    """Return the smallest difference of two versions that each number of conversations detects with 80 % power.

    Args:
        pilot: a comparison of two versions on few conversations, paired or not; or the scores of one version, with the
            assumption that the other answers different conversations and varies as much.
        difference: also return the number of conversations that detects it; 0 for none.
        bootstrap: settings of the planned intervals.

    Raises:
        InputError: the pilot has too few conversations, or all its scores are equal.
    """
    if isinstance(pilot, Comparison):
        name, is_paired, computed = " and ".join(pilot.names), pilot.matched_by is not None, pilot.pilot
        n, how = pilot.difference.n_clusters, ", paired" if is_paired else ", unpaired"
    else:
        scores, clusters = [row.score for row in pilot.rows], [row.conversation for row in pilot.rows]
        others = [("other", one) for one in clusters]
        difference_of_pilot, counts = difference_of_means(scores, scores, clusters_a=clusters, clusters_b=others)
        name, is_paired, computed = pilot.name, False, None if isinstance(difference_of_pilot, str) else difference_of_pilot[1]
        n, how = counts.n_clusters, ""
    each = 1 if is_paired else 2
    pilots: dict[tuple[str, ...], Resampled] = {} if computed is None or n < MIN_CLUSTERS else {(): computed}
    table = plan_table(pilots, difference, "conversations", clusters_of_unit=each, bootstrap=bootstrap)
    if table is None:
        raise InputError(
            f"{name}: a plan needs a pilot of {MIN_CLUSTERS} conversations whose scores differ. Score more of them."
        )
    notes = [f"pilot: {name}{how}, {n} conversations"]
    if not is_paired:
        notes.append("conversations of each version, different ones; a pilot of both on the same ones tells how many fewer do")
    return Table(table.rows, table.columns, [*notes, *table.notes], table.settings)
