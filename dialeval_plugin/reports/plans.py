"""Tables of plans: so many conversations show a difference of so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Resampled
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.planning.power import clusters_needed, detectable_difference
from dialeval_plugin.statistics.significance import Measure

from .correlation_report import Judgements, ReportOptions, by_cell, difference_of, find
from .tables import Table, TableRow, named_column

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
    """Return the smallest difference for each of `PLANNED` numbers of units; None where no pilot tells.

    Args:
        pilots: what is planned, by the values of the columns `names`.
        difference: how many units show it is said below the table; 0 for none.
        unit: what is counted, such as "conversations".
        names: titles of the columns that tell the pilots apart.
        clusters_of_unit: 2 where each of two versions has clusters of its own.
        bootstrap: how the intervals will be made.

    Raises:
        InputError: the difference is negative.
    """
    if difference < 0:
        raise InputError(f"--plan {difference:g}: a difference to plan for is above 0. Leave it out for a table alone.")
    rows: list[TableRow] = []
    notes: list[str] = []
    for labels, pilot in pilots.items():
        of = dict(zip(names, labels, strict=True))
        for n in PLANNED:
            found = detectable_difference(pilot, n * clusters_of_unit, bootstrap=bootstrap)
            if found is not None:
                rows.append({**of, unit: n, "difference": found.difference, "error": found.error})
        needed = clusters_needed(pilot, difference, bootstrap=bootstrap) if difference else None
        if needed is not None:
            n = -(-needed.n_clusters // clusters_of_unit)
            who = f"{', '.join(labels)}: " if labels else ""
            notes.append(f"{who}a difference of {number_text(difference)} needs {n} {unit} to be seen four times in five")
    columns = [
        *(named_column(name, is_number=False) for name in names),
        named_column(unit, decimals=0),
        named_column("difference", title="smallest difference"),
        named_column("error", 4, title="+-"),
    ]
    notes.append("smallest difference: seen four times in five; +-: standard error of the simulation")
    settings = {"power": 0.8, "confidence": bootstrap.confidence, "interval": bootstrap.interval}
    return Table(rows, columns, notes, settings) if rows else None


def agreement_plan(judgements: Sequence[Judgements], options: ReportOptions, difference: float = 0.0) -> Table:
    """Return how small a difference of the agreement of two evaluators, the best ones of a pilot, so many dialogues show.

    Raises:
        InputError: no data set has two evaluators whose agreement is defined on 10 dialogues or more.
    """
    pilots: dict[tuple[str, ...], Resampled] = {}
    for own in by_cell(judgements):
        found = find(own, replace(options, permutations=0))
        for name in options.coefficients:
            valued = [(one.value, one.evaluator) for one in found if one.statistic == name and one.value is not None]
            best = [evaluator for _, evaluator in sorted(valued)[:-3:-1]]
            if len(best) == 2:
                pilot = difference_of(own, Measure(name, found[0].level, options.average_by), options, *best)
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
