"""The tables of results.md: SLIDE's Table 2 and Huynh et al.'s Table 6 with our figures, and the means of all evaluators.

Figures come from the result files that `reproduction.results.runs` left, and no model is run; `published.json` here and that of
`reproduction/huynh` hold the papers'. A row that has no result says why.

    python -m reproduction.results.write --work FOLDER --document reproduction/results/results.md
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.leaderboard.evidence import ONE_PERSON
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import TaskRun
from dialeval_plugin.reports.correlation_report import human_ceiling
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets, number_text
from reproduction.documents import published, script_parser, write_tables

from .evaluators import Evaluator, evaluators, row_of

Results: TypeAlias = Mapping[str, Mapping[str, TaskRun]]
"""Name of an evaluator to its newest run of each task."""

FIGURES: Mapping[str, str] = {"pearson": "Pearson", "spearman": "Spearman"}
WITH_REFERENCES = ("tu", "pu", "dz", "pz", "dgu", "d7")
"""Turn-level sets whose rows have references."""
TURN_LEVEL = (*WITH_REFERENCES, "eg", "cg", "ft")
SLIDE_SETS: Mapping[str, tuple[str, ...]] = {
    "DailyDialog++": ("dgu", "dz"),
    "PersonaChat": ("pu", "pz"),
    "TopicalChat": ("tu",),
}
"""Each of SLIDE's evaluation sets, none of which is published, to the rated sets over the same corpus."""
SLIDE_LLMS = ("GPT-3.5", "Gemini", "GPT-4")
"""Large language models that rows of SLIDE's Table 2 ask, as "Ours (LLMs-only (GPT-4))" does; what asks another has its own."""
SLIDE_ROWS: Mapping[str, str] = {
    **{f"BLEU-{n}": f"bleu-{n}" for n in range(1, 5)},
    **{f"ROUGE-{kind}": f"rouge-{kind.lower()}" for kind in "12L"},
    "METEOR": "meteor",
    **{name: f"embedding-{name.lower()}" for name in ("Extrema", "Greedy", "Average")},
    "BERTScore": "bertscore",
    "BARTSCORE": "bartscore",
    "Unieval": "unieval",
    "Ours (SLM-Prob-only)": "slide-probability",
    "Ours (SLM-Dis-only)": "slide-distance",
    "Ours (SLM-Dis and Prob)": "slide-slm",
}
"""A row of SLIDE's Table 2 without a large language model to the evaluator here."""
_KIND_WORDS = {"slm": "SLM", "llm": "LLM"}


def read_results(folder: Path) -> dict[str, dict[str, TaskRun]]:
    """Read `folder`, which has a folder of result files for each evaluator; InputError where none has results."""
    found: dict[str, dict[str, TaskRun]] = {}
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        if place.is_dir() and any(place.rglob("results_*.json")):
            for run in read_runs([place]):
                found.setdefault(place.name, {}).setdefault(run.task, run)
    if not found:
        raise InputError(
            f"{folder}: no evaluator has results here. Type `python -m reproduction.results.runs --work {folder.parent}`."
        )
    return found


def report(results: Results) -> str:
    """Return all tables in Markdown."""
    return "\n\n".join([means_table(results), *slide_tables(results), huynh_table(results), not_run_table(results)])


def means_table(results: Results) -> str:
    """Return the mean Spearman coefficient of each turn-level evaluator, the best over all sets first."""
    rows = []
    for name, runs in results.items():
        values, cells = zip(*(_mean_over(runs, sets) for sets in (TURN_LEVEL, WITH_REFERENCES)), strict=True)
        if any(cells):
            rows.append((values, [_label(name, results), *cells]))
    rows.sort(key=lambda row: row[0], reverse=True)
    head = ["evaluator", f"mean over {len(TURN_LEVEL)} sets", f"mean over the {len(WITH_REFERENCES)} with references"]
    return "### Means\n\n" + markdown_table(head, [cells for _, cells in rows])


def slide_tables(results: Results) -> list[str]:
    """Return the twins of SLIDE's Table 2, one for each corpus."""
    paper = published("results")
    tables = []
    for place, (corpus, sets) in enumerate(SLIDE_SETS.items()):
        head = ["metric", *(f"paper, {corpus}, {title}" for title in FIGURES.values())]
        head += [f"{dstc10.SETS[code].name}, {title}" for code in sets for title in FIGURES.values()]
        rows = []
        for label, figures in paper["table_2"].items():
            printed = [f"{value:.3f}" for value in figures[2 * place : 2 * place + 2]]
            rows.append([label, *printed, *_slide_cells(results, label, sets)])
        for name in _others(results, SLIDE_ROWS.values(), sets):
            rows.append([f"*{_label(name, results)}*", "", "", *_cells(results[name], sets)])
        tables.append(f"### SLIDE, Table 2: {corpus}\n\n{markdown_table(head, rows)}")
    return tables


def huynh_table(results: Results) -> str:
    """Return the twin of Huynh et al.'s Table 6: Spearman's rho with people's overall rating."""
    paper = published("huynh")
    sets = paper["dstc10_sets"]
    rows = [
        [f"paper: {label}", *(f"{value:.3f}" for value in figures)]
        for label, figures in {**paper["dstc10"], **paper["dstc10_more"]}.items()
    ]
    for name in _others(results, (), sets):
        cells = [_cell(results[name], code, "spearman") for code in sets]
        rows.append([_label(name, results), *cells])
    rows.append([f"*{ONE_PERSON}*", *(number_text(_one_person(results, code)) for code in sets)])
    return "### Huynh et al., Table 6\n\n" + markdown_table(["model", *(code.upper() for code in sets)], rows)


def not_run_table(results: Results) -> str:
    """Return the evaluators that have no results, and why."""
    rows = [[row.name, why_not_run(row)] for row in evaluators() if not _of_row(results, row.name)]
    return "### Not run\n\n" + (markdown_table(["evaluator", "why"], rows) if rows else "Every evaluator has results.")


def why_not_run(row: Evaluator) -> str:
    """Say what an evaluator without results lacks."""
    if row.not_here:
        return row.not_here
    kinds = " and ".join(_KIND_WORDS.get(kind, kind.replace("_", " ")) for kind in row.kinds)
    return f"needs a model: {kinds}" if kinds else "not yet run"


def _slide_cells(results: Results, label: str, sets: Sequence[str]) -> list[str]:
    """Our figures for a row of SLIDE's Table 2, or why there are none."""
    name = SLIDE_ROWS.get(label)
    if name is None:
        why = f"needs {next(llm for llm in SLIDE_LLMS if f'({llm})' in label)}"
    elif name in results:
        return _cells(results[name], sets)
    else:
        why = why_not_run(next(row for row in evaluators() if row.name == name))
    return [f"not run ({why})", *[""] * (len(FIGURES) * len(sets) - 1)]


def _cells(runs: Mapping[str, TaskRun], sets: Sequence[str]) -> list[str]:
    return [_cell(runs, code, coefficient) for code in sets for coefficient in FIGURES]


def _others(results: Results, named: Collection[str], sets: Sequence[str]) -> list[str]:
    """Evaluators with results on any of the sets that are not named, in the order of the table of evaluators."""
    order = {name: place for place, row in enumerate(evaluators()) for name in _of_row(results, row.name)}
    found = [name for name in results if name not in named and any(_task(code) in results[name] for code in sets)]
    return sorted(found, key=lambda name: (order.get(name, len(order)), name))


def _of_row(results: Results, row: str) -> list[str]:
    """Names of the results of a row of the table of evaluators: one, or one for each folder of its model."""
    rows = {one.name for one in evaluators()}
    return [name for name in results if row_of(name, rows) == row]


def _one_person(results: Results, code: str) -> float | None:
    """How far one rater agrees with the others on a set, from the samples of any whole run; None where none tells."""
    for runs in results.values():
        run = runs.get(_task(code))
        if run is not None and run.rows and not run.is_partial:
            return human_ceiling([row.ratings for row in run.rows], "spearman").leave_one_out
    return None


def _label(name: str, results: Results) -> str:
    """The evaluator's name on the leaderboard; of a language model, what it does."""
    run = next(iter(results[name].values()))
    return f"{run.model}, as a judge" if name == "judge" else run.model


def _cell(runs: Mapping[str, TaskRun], code: str, coefficient: str) -> str:
    run = runs.get(_task(code))
    if run is None:
        return ""
    value, low, high = (run.metrics.get(f"{coefficient}{end}") for end in ("", "_ci_low", "_ci_high"))
    if value is None:
        return "undefined"
    shown = interval_text(value, low, high, bound_decimals=2, is_rough=run.has_rough_intervals)
    return f"{shown}{' (part of the set)' if run.is_partial else ''}{_coverage([run])}"


def _coverage(runs: Sequence[TaskRun]) -> str:
    """Share of the rows with a score, if it is below 0.99."""
    share = sum(run.n_scored for run in runs) / max(1, sum(run.n_total for run in runs))
    return "" if share >= 0.99 else f" ({share:.0%} scored)"


def _mean_over(runs: Mapping[str, TaskRun], sets: Sequence[str]) -> tuple[float, str]:
    """The mean over all of the sets, for the order and in words; without words where one is missing."""
    used = [run for code in sets if (run := runs.get(_task(code))) is not None]
    ends = ("spearman", "spearman_ci_low", "spearman_ci_high")
    mean = mean_over_sets([*(ValueInterval(*map(run.metrics.get, ends)) for run in used), *[None] * (len(sets) - len(used))])
    return (-math.inf, "") if mean.value is None else (mean.value, f"{interval_text(*mean)}{_coverage(used)}")


def _task(code: str) -> str:
    return f"dstc10_dialog_{code}"


def main(arguments: Sequence[str] | None = None) -> None:
    options = script_parser(__doc__, work="the results").parse_args(arguments)
    write_tables(options.document, {"results": report(read_results(options.work / "runs"))})


if __name__ == "__main__":
    main()
