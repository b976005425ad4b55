"""Set stored verdicts of large models beside their fusion with small models: tables, and what a cascade saves, with its plot.

    export DIALEVAL_DATA_DIR=/data
    python -m reproduction.fusion.write --work FOLDER --everywhere

The folder of the public data has to hold `llm_judgements` and the sets that it is about. With `--everywhere` the tables go
into docs/fusion.md, what they say of judges of GPT-4's kind into docs/results.md and README.md too, the plot into docs/images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import cast

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora.verdicts import StoredColumn, read_collection
from dialeval_plugin.methods.judging.prompts import level_of
from dialeval_plugin.methods.slide.fusion import LLM_SCALE, SMALL_WEIGHT, Fusion, FusionReading, Refinement
from dialeval_plugin.reports.plots import cascade_figure, write_figure
from dialeval_plugin.reports.tables import Table, TableRow, estimate, named_column
from dialeval_plugin.statistics.cascade import cascade_curve, share_that_keeps
from dialeval_plugin.statistics.coefficients.pearson import spearman
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.ranking import holm
from dialeval_plugin.statistics.significance import Measure, Paired, paired_bootstrap, permutation_test
from reproduction.documents import script_parser, write_tables
from reproduction.fusion.sets import REPORTED, RatedSet, development_sets, reported_set
from reproduction.kept_results import kept_scores
from reproduction.pretrained.build import data_folder

ASKED = ("overall", "relevance", "coherence")
"""What a judge was asked, of which the first that it was asked about a set is compared."""
STRONG = ("GPT-4", "gpt-4o", "gemini-2.5-flash", "claude-haiku-4-5")
"""Judges of GPT-4's kind."""
SHOWN_IN_PROMPT = {"agent-voting-evaluation": (873, 281, 17)}
"""Rows of dailydialog-zhao that a source's prompt shows with their scores: their contexts are left out."""
TWICE_SHOWN = "g-eval"
"""The source whose prompts show each response of a turn-level set twice, which its authors did not mean."""
WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
TIE_BREAKS = 20
LEVEL = 0.05
"""Of the tests."""
ROUNDS = 10_000
OF_KIND, OF_ALL = "p (of this table)", "p (of all judges)"
"""Holm's correction over the judges of GPT-4's kind, and over all on the page."""
READINGS: tuple[FusionReading, ...] = ("first_match", "llm_first", "agree")
SHARES_SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)
CASCADES = (
    ("GPT-4/comp-analysis", "persona-zhao"),
    ("gpt-4o/agent-voting-evaluation", "dailydialog-zhao"),
    ("GPT-4/g-eval_persona-chat", "topical-usr"),
    ("GPT-4/g-eval_persona-chat", "persona-usr"),
    ("claude-3-haiku-20240307/llm-eval-analysis", "fed-turn"),
)
DOCUMENTS = Path("docs")


@dataclass(frozen=True)
class Judged:
    """A judge's verdicts about the rows of a set that it, people and `general` have scored, with the small models' scores."""

    column: StoredColumn
    clusters: Sequence[str]
    ratings: FloatArray
    llm: FloatArray
    """Shares of the judge's scale."""
    general: FloatArray
    slm: FloatArray | None
    """Score_SLM, in about [0, 2]; None of whole dialogues."""

    @property
    def judge(self) -> str:
        """Name and source."""
        return self.column.judge

    @property
    def is_strong(self) -> bool:
        """Whether it is of GPT-4's kind, and was asked as its authors meant to."""
        name, source, *_ = self.judge.split("/")
        return name in STRONG and not (source == TWICE_SHOWN and self.column.level == "turn")

    @cached_property
    def fused(self) -> FloatArray:
        """The mixture of both."""
        return self.mixture(SMALL_WEIGHT)

    def mixture(self, weight: float) -> FloatArray:
        """The mixture with another weight of `general`."""
        return fuse(Fusion("mixture", small_weight=weight), self.general, self.llm)

    def paired(self, scores: FloatArray) -> Paired:
        """Scores against the judge's own."""
        return Paired(scores_a=scores, scores_b=self.llm, ratings=self.ratings, clusters=self.clusters)

    def estimate(self, scores: FloatArray) -> str:
        """Spearman's coefficient of some scores with its interval."""
        return estimate(correlate(scores.tolist(), self.ratings.tolist(), coefficient="spearman", clusters=self.clusters))

    def agreement(self, scores: FloatArray) -> float:
        """Spearman's coefficient of some scores."""
        return spearman(scores, self.ratings)


def fuse(fusion: Fusion, small: FloatArray, llm: FloatArray) -> FloatArray:
    """Fuse row by row."""
    return np.array([fusion(one, other) for one, other in zip(small.tolist(), llm.tolist(), strict=True)])


_scorer = cache(load_scorer)


def judged(column: StoredColumn, rated: RatedSet, work: Path) -> Judged:
    """Join the verdicts about a set with ratings and small models' scores."""
    level = level_of(rated.items[0])
    found = [kept_scores(_scorer("general", level=level), rated.items, work, column.set).values]
    if level == "turn":
        found.append(kept_scores(_scorer("slide", variant="slm"), rated.items, work, column.set).values)
    low, high = column.scale
    verdicts = [column.scores[row] for row in rated.rows]
    hidden = {rated.clusters[row] for row in SHOWN_IN_PROMPT.get(column.judge.split("/")[1], ())}
    kept = [
        place
        for place, verdict in enumerate(verdicts)
        if verdict is not None
        and low <= verdict <= high
        and rated.ratings[place] is not None
        and rated.clusters[place] not in hidden
        and all(scores[place] is not None for scores in found)
    ]

    def of(values: Sequence[float | None]) -> FloatArray:
        return np.array([values[place] for place in kept], dtype=np.float64)

    clusters = [rated.clusters[place] for place in kept]
    slm = of(found[1]) if level == "turn" else None
    return Judged(column, clusters, of(rated.ratings), (of(verdicts) - low) / (high - low), of(found[0]), slm)


def compared_columns(columns: Sequence[StoredColumn]) -> Iterator[StoredColumn]:
    """Of each judge and set the verdicts about the first of `ASKED`."""
    by_judge: dict[tuple[str, str], dict[str, StoredColumn]] = {}
    for column in columns:
        by_judge.setdefault((column.judge, column.set), {}).setdefault(column.quality, column)
    for own in by_judge.values():
        if (quality := next((quality for quality in ASKED if quality in own), None)) is not None:
            yield own[quality]


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
    """Of each judge and set: both alone, the mixture, what it gains, Holm's p-value over all, and what ties have in it."""
    p_values = [permutation_test(one.paired(one.fused), rounds=ROUNDS).p_value for one in found]
    strong = iter(holm([p_value for one, p_value in zip(found, p_values, strict=True) if one.is_strong]))
    of_kind = [next(strong) if one.is_strong else None for one in found]
    corrected = zip(found, of_kind, holm(p_values), strict=True)
    return [{**_fusion_row(one), OF_KIND: kind, OF_ALL: p_value} for one, kind, p_value in corrected]


def _fusion_row(one: Judged) -> TableRow:
    gain = paired_bootstrap(one.paired(one.fused))
    pairwise = Measure("pairwise_accuracy")
    by_pairs = paired_bootstrap(one.paired(one.fused), pairwise)
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
    """SLIDE's and DRE's fusions with their small model: each reading of equation 9, and what needs no interior prompt.

    A figure is marked where the interval of its paired difference to the judge's own lies on one side of 0.
    """
    rows: list[TableRow] = []
    for one in found:
        if one.slm is None:
            continue
        pairs = list(zip(one.slm.tolist(), one.llm.tolist(), strict=True))
        scores = {
            "SLM": one.slm,
            **{f"SLIDE, {reading}": fuse(Fusion(reading), one.slm, one.llm) for reading in READINGS},
            "mixture with the SLM": fuse(Fusion("mixture", slm_scale=0.5), one.slm, one.llm),
            "ex_dre": np.array([Refinement().plain(slm, llm=LLM_SCALE[1] * llm)["ex_dre"] for slm, llm in pairs]),
        }
        marked = {name: f"{one.estimate(values)}{_mark(one, values)}" for name, values in scores.items()}
        judge: TableRow = {"judge": one.judge, "set": one.column.set, "items": len(one.ratings)}
        rows.append({**judge, "LLM (non_dre)": one.estimate(one.llm), **marked})
    names = [name for name in rows[0] if name not in {"judge", "set"}]
    labels = [named_column(name, is_number=False) for name in ("judge", "set")]
    return Table(rows, [*labels, *(named_column(name, 0) for name in names)])


def _mark(one: Judged, scores: FloatArray) -> str:
    difference = paired_bootstrap(one.paired(scores))
    if difference.ci_low is None or difference.ci_high is None:
        return ""
    return " ▲" if difference.ci_low > 0 else " ▼" if difference.ci_high < 0 else ""


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
    """What the fusion brings to judges of GPT-4's kind, in a sentence."""
    gains = [cast("float", row["value"]) for row in rows]

    def surely(sign: float, correction: str) -> list[TableRow]:
        return [
            row
            for row, gain in zip(rows, gains, strict=True)
            if sign * gain > 0 and row[correction] is not None and cast("float", row[correction]) < LEVEL
        ]

    def sets(found: Sequence[TableRow]) -> str:
        return ", ".join(dict.fromkeys(str(row["set"]) for row in found)) or "none"

    def pairs(found: Sequence[TableRow]) -> str:
        named = "; ".join(f"{_short(str(row['judge']))} on {row['set']} by {row['gain']}" for row in found)
        return f" ({named})" if found else ""

    better, worse = surely(1, OF_KIND), surely(-1, OF_KIND)
    return (
        f"Mixed into the published verdicts of judges of GPT-4's kind with a weight of {SMALL_WEIGHT:g}, `general` raises "
        f"their agreement with people in {len(better)} of {len(rows)} pairs of a judge and a set{pairs(better)}, lowers it "
        f"in {len(worse) or 'none'}{pairs(worse)}, and leaves the others where no test tells both apart.\n\n"
        "These are gains in Spearman's coefficient, by paired permutation tests that swap whole dialogues, with Holm's "
        f"correction over these {len(rows)} pairs at 5 %; corrected over all judges that were tried, it is better on "
        f"{sets(surely(1, OF_ALL))} and worse on {sets(surely(-1, OF_ALL))}."
    )


def _short(judge: str) -> str:
    """A judge's name and its way to ask, without the source."""
    name, _, *way = judge.split("/")
    return ", ".join([name, *way])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__, work="scores")
    parser.add_argument("--everywhere", action="store_true", help="write into docs/ and README.md")
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
        "slide": slide_table([one for one in reported if one.slm is not None]),
        "cascade": cascade,
        "sentence": said,
    }
    if not chosen.everywhere:
        write_tables(chosen.document, tables)
        write_figure(figure, chosen.work / "cascade.png")
        return
    write_tables(DOCUMENTS / "fusion.md", tables)
    write_tables(DOCUMENTS / "results.md", {"fusion": f"{said}\n\n{fusion_table(strong, OF_KIND, OF_ALL).render('markdown')}"})
    write_tables(Path("README.md"), {"fusion": said})
    write_figure(figure, DOCUMENTS / "images" / "cascade.png")


if __name__ == "__main__":
    main()
