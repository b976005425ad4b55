"""The section "Small evaluators, without ratings" of docs/results.md: the bundled models next to published evaluators.

The first table has the small ones, on nine rated sets; the second one large models' published verdicts about the same items,
with the difference to `general` and its interval. DIALEVAL_DATA_DIR names the folder with `dstc10` and `llm_judgements`.

    python -m reproduction.general.comparison --document docs/results.md

`--again FOLDER` adds `general` as another training by its command made it, with another seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.verdicts import read_collection
from dialeval_plugin.methods.general.judging import GENERAL_FOLDER
from dialeval_plugin.reports.tables import Table, TableRow, figure, named_column
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.correlation import Correlation
from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets
from dialeval_plugin.statistics.significance import paired_bootstrap
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.fusion.judged import STRONG, Judged, compared_columns, judged, opened
from reproduction.fusion.sets import REPORTED, reported_set
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores

from .write import EIGHT, EvaluationSet, Values, controls, dstc10_set

SEVEN = ("tu", "pu", "dz", "dgu", "eg", "ft", "fd")
NINE = (*SEVEN, "pz", "cg")
TITLES = {dstc10.SETS[code].name: code.upper() for code in NINE}
"""Titles of the columns, by the name that verdicts have for a set."""
WITH_REFERENCES = ("tu", "pu", "dz", "pz", "dgu")
"""Sets whose rows have references."""
MEANS: Mapping[str, Sequence[str]] = {
    "mean of seven": SEVEN,
    "mean of nine": NINE,
    "mean of five with references": WITH_REFERENCES,
}
BEST = "Best of DSTC10 baselines"
"""Huynh et al.'s name of the best of their baselines on each set, whose mean was aimed at."""
OPEN = ("Vicuna-13B-v1.5", "Baichuan2-13B-chat", "Llama2-13B", "Qwen-14B", "ChatGLM3-6B")
MARK = "†"
"""Mark of a figure on other rows of a set than here."""
OF_GPT_4S_KIND, OPEN_CHAT_MODELS = "GPT-4-class judges", "open chat models of 6 to 14 billion parameters"
OTHER_JUDGES = "ChatGPT and Claude 3 Haiku"
KINDS = (OF_GPT_4S_KIND, OPEN_CHAT_MODELS, OTHER_JUDGES)
OUTCOMES = ABOVE, BELOW, UNDECIDED = ("higher in", "lower in", "undecided in")
GENERAL = "general"
_NO_OPTIONS: Mapping[str, str | bool] = MappingProxyType({})


class SmallEvaluator(NamedTuple):
    """One column of what a scorer says of responses and, mostly, of whole dialogues."""

    name: str
    scorer: str
    options: Mapping[str, str | bool] = _NO_OPTIONS
    column: str | None = None
    """The scorer's main one where there is none."""
    levels: Sequence[Level] = ("turn", "dialogue")
    sets: Sequence[str] = NINE
    leaves_own_out: bool = False
    """Whether responses that are their own reference are not judged."""

    def scores(self, entry: EvaluationSet, work: Path) -> Values:
        """The scores of a set's items, none where they are not of its levels; `work` keeps what a scorer has computed."""
        level: Level = "turn" if entry.is_of_turns else "dialogue"
        if level not in self.levels or entry.name not in self.sets:
            return [None] * len(entry.items)
        scorer = opened(self.scorer, level=level, **self.options)
        scores = kept_scores(scorer, entry.items, work, dstc10.SETS[entry.name].name)
        values = scores.values if self.column is None else scores.columns[self.column]
        if not self.leaves_own_out:
            return values
        return [None if is_own_reference(item) else value for item, value in zip(entry.items, values, strict=True)]


def is_own_reference(item: Item) -> bool:
    """Whether a response is one of its references, which every metric that reads references takes for perfect."""
    return isinstance(item, Example) and item.response.text.strip() in {text.strip() for text in item.references}


SMALL = (
    SmallEvaluator(GENERAL, "general"),
    SmallEvaluator("its relevance alone", "general", column="relevance"),
    SmallEvaluator("its cosine alone", "general", column="cosine"),
    SmallEvaluator("with references", "general", {"with_references": True}, sets=WITH_REFERENCES),
    SmallEvaluator("general, less own references", "general", sets=WITH_REFERENCES, leaves_own_out=True),
    SmallEvaluator(
        "with references, less own references",
        "general",
        {"with_references": True},
        sets=WITH_REFERENCES,
        leaves_own_out=True,
    ),
    SmallEvaluator("general-open", "general", {"model": "general-open"}),
    SmallEvaluator("slide, the small model alone", "slide", {"variant": "slm"}, levels=("turn",)),
    SmallEvaluator("likelihood, of language-model", "dialogue_likelihood"),
)


def trained_again(folder: Path) -> SmallEvaluator:
    """Return `general` as the training in a folder made it, named by its seed."""
    seed = GENERAL_FOLDER.read_settings(folder)["training"]["options"]["seed"]
    return SmallEvaluator(f"{GENERAL}, seed {seed}", "general", {"model": str(folder)})


class PublishedRow(NamedTuple):
    """Figures that somebody printed, by set, and of which sets other rows were judged than here."""

    name: str
    source: str
    figures: Mapping[str, float]
    other_rows: Mapping[str, str] = MappingProxyType({})


def published_rows() -> Iterator[PublishedRow]:
    """Baselines of Huynh et al.'s Table 14, and what others printed."""
    for name, values in published("huynh")["dstc10_baselines"].items():
        yield PublishedRow(name, "Huynh et al., Table 14", dict(zip(EIGHT, values, strict=True)))
    for row in published("general")["small_evaluators"]:
        yield PublishedRow(row["evaluator"], row["source"], row["figures"], row["other_rows"])


def agreements(
    sets: Sequence[EvaluationSet], evaluators: Sequence[SmallEvaluator], work: Path
) -> dict[str, dict[str, Correlation | None]]:
    """Agreement of each evaluator and control with people, by set."""
    found: dict[str, dict[str, Correlation | None]] = {}
    for entry in sets:
        scores = {**{one.name: one.scores(entry, work) for one in evaluators}, **controls(entry.items)}
        for name, values in scores.items():
            found.setdefault(name, {})[entry.name] = entry.agreement(values)
    return found


def small_table(found: Mapping[str, Mapping[str, Correlation | None]]) -> Table:
    """Return a row an evaluator, first those here with intervals, and a column a set, with the means in front."""
    rows: list[TableRow] = []
    for name, of in found.items():
        cells = {code.upper(): estimate(of.get(code)) for code in NINE}
        rows.append({"evaluator": name, **_means(of), **cells})
    other_rows: dict[str, list[str]] = {}
    for row in published_rows():
        cells = {code.upper(): figure(row.figures.get(code)) + (MARK if code in row.other_rows else "") for code in NINE}
        printed = {code: ValueInterval(value, None, None) for code, value in row.figures.items()}
        rows.append({"evaluator": f"{row.name} ({row.source})", **_means(printed), **cells})
        for code, which in row.other_rows.items():
            other_rows.setdefault(f"{code.upper()} with {which}", []).append(row.name)
    columns = [named_column(name, is_number=name != "evaluator") for name in rows[0]]
    shown = "; ".join(f"{', '.join(names)}: {which}" for which, names in other_rows.items())
    return Table(rows, columns, [f"Figures with {MARK} in the data file are of other rows. {shown}."])


def aim(of_general: Mapping[str, ValueInterval | Estimate | None]) -> str:
    """Say whether the mean of seven reaches that of the best of Huynh et al.'s baselines on each set."""
    best = dict(zip(EIGHT, published("huynh")["dstc10_more"][BEST], strict=True))
    aimed_at = fmean(best[code] for code in SEVEN)
    value, low, high = _mean(of_general, SEVEN)
    if value is None or low is None or high is None:
        return "`general` has no mean of seven."
    return (
        f"The aim was a mean of seven of {aimed_at:.3f}, that of the best of Huynh et al.'s baselines for each set. "
        f"`general` has {interval_text(value, low, high)}: the aim is {'' if value >= aimed_at else 'not '}reached, and is "
        f"{'inside' if low <= aimed_at <= high else 'outside'} the confidence interval."
    )


def spread(found: Mapping[str, Mapping[str, ValueInterval | Estimate | None]], again: Sequence[SmallEvaluator]) -> str:
    """Say how far the means of seven of `general` and of its other trainings lie apart; nothing where there are none."""
    means = [_mean(found[name], SEVEN).value for name in (GENERAL, *(one.name for one in again))]
    values = [value for value in means if value is not None]
    if not again or len(values) < len(means):
        return ""
    return (
        f"Trained by one command with {len(values)} seeds, `general` has means of seven of "
        f"{', '.join(f'{value:.3f}' for value in values)}, the bundled one first: {fmean(values):.3f} on average, standard "
        f"deviation {stdev(values):.3f}."
    )


def _mean(figures: Mapping[str, ValueInterval | Estimate | None], names: Sequence[str]) -> ValueInterval:
    return mean_over_sets([figures.get(name) for name in names])


def _means(figures: Mapping[str, ValueInterval | Estimate | None]) -> dict[str, str]:
    """The means over the sets of each title; nothing where a set has no figure."""
    means = {title: _mean(figures, names) for title, names in MEANS.items()}
    return {title: "" if mean.value is None else interval_text(*mean) for title, mean in means.items()}


class Compared(NamedTuple):
    """A judge's verdicts about a set, and how far `general` is above them on the same items."""

    verdicts: Judged
    difference: Estimate

    @property
    def outcome(self) -> str:
        """Of `OUTCOMES` what the interval of the difference says."""
        low, high = self.difference.ci_low, self.difference.ci_high
        if low is None or high is None or low <= 0 <= high:
            return UNDECIDED
        return ABOVE if low > 0 else BELOW

    @property
    def kind(self) -> str:
        """Of judge."""
        name = self.verdicts.judge.split("/")[0]
        return OF_GPT_4S_KIND if name in STRONG else OPEN_CHAT_MODELS if name in OPEN else OTHER_JUDGES

    @property
    def asked(self) -> str:
        """Quality that the judge was asked about."""
        return "overall quality" if self.verdicts.column.quality == "overall" else "relevance or coherence"


def compared(found: Iterable[Judged]) -> list[Compared]:
    """Compare `general` with judges that were asked as their authors meant to, set by set."""
    kept = [one for one in found if one.column.set in TITLES and not one.is_twice_shown]
    kept.sort(key=lambda one: (list(TITLES).index(one.column.set), one.judge.casefold()))
    return [Compared(one, paired_bootstrap(one.paired(one.general), bootstrap=percentile_bootstrap())) for one in kept]


def judge_table(found: Sequence[Compared]) -> Table:
    """Return a row a judge and set: the agreement of both with people, and the difference."""
    rows: list[TableRow] = [
        {
            "judge": one.judge,
            "asked": one.column.quality,
            "set": TITLES[one.column.set],
            "items": len(one.ratings),
            "judge alone": one.estimate(one.llm),
            "general": one.estimate(one.general),
            "general less judge": estimate(difference),
        }
        for one, difference in found
    ]
    texts = ("judge", "asked", "set")
    return Table(rows, [named_column(name, 0, is_number=name not in texts) for name in rows[0]])


def counts(found: Sequence[Compared]) -> str:
    """Say of each kind of judge, and of what it was asked, on how many sets `general` is above it, below it, or neither."""
    groups: dict[str, list[str]] = {}
    for one in sorted(found, key=lambda one: (KINDS.index(one.kind), one.asked)):
        groups.setdefault(f"{one.kind}, asked for {one.asked}", []).append(one.outcome)
    return "\n".join(
        f"- {group}, {len(outcomes)} pairs of judge and data set: `general` is "
        + ", ".join(f"{outcome} {outcomes.count(outcome)}" for outcome in OUTCOMES)
        for group, outcomes in groups.items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__)
    parser.add_argument("--again", type=Path, action="append", default=[], metavar="FOLDER", help="may be repeated")
    options = parser.parse_args(arguments)
    again = [trained_again(folder) for folder in options.again]
    sets = [dstc10_set(code) for code in NINE]
    with TemporaryDirectory() as folder:
        work = Path(folder)
        found = agreements(sets, [*SMALL, *again], work)
        rated = {name: reported_set(name) for name in REPORTED if name in TITLES}
        columns = [column for column in compared_columns(read_collection()) if column.set in rated]
        pairs = compared(judged(column, rated[column.set], work) for column in columns)
    said = "\n".join(filter(None, [aim(found[GENERAL]), spread(found, again)]))
    tables = {
        "small-evaluators": f"{said}\n\n{small_table(found).render('markdown')}",
        "beside-judges": f"{counts(pairs)}\n\n{judge_table(pairs).render('markdown')}",
    }
    write_tables(options.document, tables)


if __name__ == "__main__":
    main()
