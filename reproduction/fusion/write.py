"""Stored verdicts of large models and their fusion with small models: tables, and the savings of a cascade, with its plot.

    export DIALEVAL_DATA_DIR=/data
    python -m reproduction.fusion.write --work FOLDER --everywhere

The folder of the public data has to hold `llm_judgements` and the sets that it is about. With `--everywhere` the tables go
into results.md, the sentence on GPT-4-class judges into docs/slide.md, the papers' tables into
reproduction/results/results.md, the plot into docs/images.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from dialeval_plugin.corpora.verdicts import read_collection
from dialeval_plugin.methods.slide.fusion import SMALL_WEIGHT
from dialeval_plugin.reports.plots import cascade_figure, write_figure
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.choices import cascade_curve, share_that_keeps
from dialeval_plugin.statistics.ranking import holm
from dialeval_plugin.statistics.significance import Measure, paired_bootstrap, permutation_test
from reproduction.data import data_folder
from reproduction.documents import estimate, script_parser, write_tables
from reproduction.fusion.judged import Judged, compared_columns, judged
from reproduction.fusion.papers import huynh_twin, slide_twin
from reproduction.fusion.sets import REPORTED, development_sets, reported_set
from reproduction.intervals import percentile_bootstrap

WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
TIE_BREAKS = 20
LEVEL = 0.05
"""Significance level of the tests."""
ROUNDS = 10_000
OF_KIND, OF_ALL = "p (of this table)", "p (of all judges)"
"""Holm's correction over the judges of GPT-4's kind, and over all on the page."""
SHARES_SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)
CASCADES = (
    ("GPT-4/comp-analysis", "persona-zhao"),
    ("gpt-4o/agent-voting-evaluation", "dailydialog-zhao"),
    ("GPT-4/g-eval_persona-chat", "topical-usr"),
    ("GPT-4/g-eval_persona-chat", "persona-usr"),
    ("claude-3-haiku-20240307/llm-eval-analysis", "fed-turn"),
)
ROOT = Path(__file__).parents[2]


def development_table(found: Sequence[Judged]) -> Table:
    """Coefficients of mixtures by weight, on sets that are not reported, and their mean over the sets."""
    rows: list[TableRow] = [
        {"judge": one.judge, "set": one.column.set, **{f"{weight:g}": one.agreement(one.mixture(weight)) for weight in WEIGHTS}}
        for one in found
    ]
    names = list(dict.fromkeys(one.column.set for one in found))
    means: dict[str, float] = {
        f"{weight:g}": float(np.mean([np.mean([row[f"{weight:g}"] for row in rows if row["set"] == name]) for name in names]))
        for weight in WEIGHTS
    }
    rows.append({"judge": "mean over the sets", "set": "", **means})
    labels = [named_column(name, is_number=False) for name in ("judge", "set")]
    return Table(rows, [*labels, *(named_column(f"{weight:g}") for weight in WEIGHTS)])


def fusion_rows(found: Sequence[Judged]) -> list[TableRow]:
    """For each judge and set: both alone, the mixture, its gain, Holm's p-value over all, and the effect of ties."""
    p_values = [permutation_test(one.paired(one.fused), rounds=ROUNDS).p_value for one in found]
    strong = iter(holm([p_value for one, p_value in zip(found, p_values, strict=True) if one.is_strong]))
    of_kind = [next(strong) if one.is_strong else None for one in found]
    corrected = zip(found, of_kind, holm(p_values), strict=True)
    return [{**_fusion_row(one), OF_KIND: kind, OF_ALL: p_value} for one, kind, p_value in corrected]


def _fusion_row(one: Judged) -> TableRow:
    gain = paired_bootstrap(one.paired(one.fused), bootstrap=percentile_bootstrap())
    pairwise = Measure("pairwise_accuracy")
    by_pairs = paired_bootstrap(one.paired(one.fused), pairwise, bootstrap=percentile_bootstrap())
    generator = np.random.default_rng(0)
    smallest = np.diff(np.unique(one.llm)).min()
    broken = [one.agreement(one.llm + smallest * generator.random(len(one.llm)) / 2) for _ in range(TIE_BREAKS)]
    return {
        "judge": one.judge,
        "asked": one.column.quality,
        "set": one.column.set,
        "items": len(one.ratings),
        "judge alone": one.estimate(one.llm),
        "general": one.agreement(one.general),
        "fused": one.estimate(one.fused),
        "gain": estimate(gain),
        "value": gain.value,
        "ties broken at random": float(np.mean(broken)),
        "ties broken by general": one.agreement(one.llm + smallest * one.general / 2),
        "gain in pairwise accuracy": estimate(by_pairs),
    }


def fusion_table(rows: Sequence[TableRow], *p_values: str) -> Table:
    """The figures of the fusion, with the p-values of these names."""
    labels = [named_column(name, is_number=False) for name in ("judge", "asked", "set")]
    figures = ("items", "judge alone", "general", "fused", "gain", *p_values)
    return Table(rows, [*labels, *(named_column(name, 0 if name == "items" else 3) for name in figures)])


def ties_table(rows: Sequence[TableRow]) -> Table:
    """How much of the gain is that scores which a coarse scale leaves equal get an order."""
    labels = [named_column(name, is_number=False) for name in ("judge", "set")]
    figures = ("judge alone", "ties broken at random", "ties broken by general", "fused", "gain in pairwise accuracy")
    return Table(rows, [*labels, *map(named_column, figures)])


def slide_table(found: Sequence[Judged]) -> Table:
    """SLIDE's and DRE's fusions with their small model: each reading of equation 9, and what needs no interior prompt."""
    rows: list[TableRow] = []
    for one in found:
        judge: TableRow = {"judge": one.judge, "set": one.column.set, "items": len(one.ratings)}
        marked = {name: one.marked(values) for name, values in one.own_fusions().items()}
        rows.append({**judge, "LLM (non_dre)": one.estimate(one.llm), **marked})
    names = [name for name in rows[0] if name not in {"judge", "set"}]
    labels = [named_column(name, is_number=False) for name in ("judge", "set")]
    return Table(rows, [*labels, *(named_column(name, 0) for name in names)])


def cascade_table(found: Sequence[Judged]) -> tuple[Table, dict[str, list[tuple[float, float]]]]:
    """The share of calls that keeps 99 % of the mixture's coefficient, coefficients at some shares, and the curves."""
    rows: list[TableRow] = []
    curves = {}
    for one in found:
        curve = cascade_curve(one.general, one.fused, one.ratings)
        name = f"{one.judge.split('/')[0]} on {one.column.set}"
        curves[name] = [(point.share, point.value) for point in curve]
        kept = share_that_keeps(curve, 0.99)
        shares = np.array([point.share for point in curve])
        of_shares = {f"{share:.0%}": curve[int(np.abs(shares - share).argmin())].value for share in SHARES_SHOWN}
        rows.append(
            {
                "judge": one.judge,
                "set": one.column.set,
                "none": curve[0].value,
                **of_shares,
                "all": curve[-1].value,
                "judge alone": one.agreement(one.llm),
                "calls that keep 99 %": f"{kept.share:.0%}",
                "cascade": f"{kept.half_width:.2f}",
            }
        )
    labels = [named_column(name, is_number=False) for name in ("judge", "set")]
    return Table(rows, [*labels, *(named_column(name) for name in rows[0] if name not in {"judge", "set"})]), curves


def sentence(rows: Sequence[TableRow]) -> str:
    """Say in two paragraphs what the fusion brings to GPT-4-class judges."""
    gains = [cast("float", row["value"]) for row in rows]

    def surely(sign: float, correction: str) -> list[TableRow]:
        return [
            row
            for row, gain in zip(rows, gains, strict=True)
            if sign * gain > 0 and row[correction] is not None and cast("float", row[correction]) < LEVEL
        ]

    def sets(found: Sequence[TableRow]) -> str:
        return " and ".join(dict.fromkeys(str(row["set"]) for row in found)) or "none"

    def pairs(found: Sequence[TableRow]) -> str:
        named = "; ".join(f"{_short(str(row['judge']))} on {row['set']} by {row['gain']}" for row in found)
        return f": {named}" if found else ""

    better, worse = surely(1, OF_KIND), surely(-1, OF_KIND)
    return (
        f"Mixed into published verdicts of GPT-4-class judges with a weight of {SMALL_WEIGHT:g}, `general` significantly "
        f"raises agreement with people in {len(better)} of {len(rows)} pairs of judge and data set{pairs(better)}. It lowers "
        f"it significantly in {len(worse) or 'none'}{pairs(worse)}.\n\n"
        "Gains are in Spearman's correlation, with 95 % confidence intervals; the tests are paired permutation tests over "
        f"whole dialogues, Holm-corrected over these {len(rows)} pairs at 5 %. Corrected over all judges that were tried, it "
        f"is significantly better on {sets(surely(1, OF_ALL))}, and worse on {sets(surely(-1, OF_ALL))}."
    )


def _short(judge: str) -> str:
    """A judge's name and its way to ask, without the source."""
    name, _, *way = judge.split("/")
    return ", ".join([name, *way])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__, work="scores")
    parser.add_argument("--everywhere", action="store_true", help="write into the documents that show them")
    chosen = parser.parse_args(arguments)
    columns = list(compared_columns(read_collection()))
    development = {
        name: rated.judged([column.scores for column in columns if column.set == name])
        for name, rated in development_sets(data_folder()).items()
    }
    tried = [judged(column, development[column.set], chosen.work) for column in columns if column.set in development]
    reported = [judged(column, reported_set(column.set), chosen.work) for column in columns if column.set in REPORTED]
    reported.sort(key=lambda one: (list(REPORTED).index(one.column.set), one.judge.casefold()))
    rows = fusion_rows(reported)
    strong = [row for row, one in zip(rows, reported, strict=True) if one.is_strong]
    others = [row for row, one in zip(rows, reported, strict=True) if not one.is_strong]
    cascades = [one for key in CASCADES for one in reported if (one.judge, one.column.set) == key]
    cascade, curves = cascade_table(cascades)
    figure = cascade_figure(curves)
    said = sentence(strong)
    tables: dict[str, Table | str] = {
        "weights": development_table(tried),
        "strong": fusion_table(strong, OF_KIND, OF_ALL),
        "others": fusion_table(others, OF_ALL),
        "ties": ties_table(strong),
        "slide": slide_table([one for one in reported if one.column.level == "turn"]),
        "cascade": cascade,
        "sentence": said,
    }
    if not chosen.everywhere:
        write_tables(chosen.document, tables)
        write_figure(figure, chosen.work / "cascade.png")
        return
    write_tables(ROOT / "reproduction" / "fusion" / "results.md", tables)
    twins = {"replayed-slide": slide_twin(reported), "replayed-huynh": huynh_twin(reported)}
    write_tables(ROOT / "reproduction" / "results" / "results.md", twins)
    write_tables(ROOT / "docs" / "slide.md", {"fusion": said})
    write_figure(figure, ROOT / "docs" / "images" / "cascade.png")


if __name__ == "__main__":
    main()
