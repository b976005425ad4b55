"""The tables of the bundled models, from the lines of figures alone, and the documents in which they stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.files import read_text
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets, number_text
from reproduction.contrasts.measures import OVERALL
from reproduction.documents import with_tables
from reproduction.results.write import TURN_LEVEL

from .figures import ACCURACY, AGREEMENT, CONTRASTS, DAILYDIALOG_PP, KINDS, RIGHT_PAIRS, SAME_ORDER, Figure

ROOT = Path(__file__).resolve().parents[2]
OVERVIEW, CHOICE, PACKED = "figures: packaged models", "figures: models to choose from", "figures: packed and full"
_CHOICE = {
    "general": ("general", "general-dialogue"),
    "general-open": ("general", "general-dialogue"),
    "slide": ("slide-slm", "slide-dialogue"),
}
"""Models of the README: the evaluators of responses and of whole dialogues, where there is one."""
_DIALOGUES = "fd"
_OVERALL = {DAILYDIALOG_PP: "overall", CONTRASTS: OVERALL}
"""Which figure on a data set stands for all of its responses, where there are several."""


def tables(figures: Sequence[Figure]) -> dict[str, str]:
    """Return every table in Markdown by the name of its markers; an empty text where there is no figure."""
    found = {OVERVIEW: overview(figures), CHOICE: choice(figures), PACKED: packed_table(figures)}
    return {**found, **{f"figures: {model}": model_table([one for one in figures if one.model == model]) for model in KINDS}}


def overview(figures: Sequence[Figure]) -> str:
    """Return a row an evaluator: the mean of the turn-level DSTC10 sets, FED's dialogues, accuracy, right pairs."""
    evaluators = dict.fromkeys((one.model, one.evaluator) for one in figures)
    rows = [[*evaluator, *_overall(figures, *evaluator)] for evaluator in evaluators]
    head = [
        "model",
        "evaluator",
        f"mean of {len(TURN_LEVEL)} turn-level sets",
        "FED's dialogues",
        "accuracy, DailyDialog++",
        "right pairs",
    ]
    return markdown_table(head, rows) if rows else ""


def choice(figures: Sequence[Figure]) -> str:
    """Return a row a model that users choose: agreement on responses and on FED's dialogues, and the share of right pairs."""
    rows = []
    for model, (of_responses, of_dialogues) in _CHOICE.items():
        mean, _, _, pairs = _overall(figures, model, of_responses)
        rows.append([model, mean, _overall(figures, model, of_dialogues)[1], pairs])
    head = ["model", f"responses, mean of {len(TURN_LEVEL)} sets", "whole dialogues, FED", "right pairs"]
    return markdown_table(head, rows) if figures else ""


def _overall(figures: Sequence[Figure], model: str, evaluator: str) -> list[str]:
    """Return the cells of an evaluator: the mean of the turn-level sets, FED's dialogues, accuracy, right pairs."""
    of = {
        (one.dataset, one.name): one
        for one in figures
        if (one.model, one.evaluator) == (model, evaluator)
        and (one.dataset not in _OVERALL or one.quality == _OVERALL[one.dataset])
    }
    mean = mean_over_sets([_interval(of.get((code, AGREEMENT))) for code in TURN_LEVEL])
    others = [of.get(place) for place in ((_DIALOGUES, AGREEMENT), (DAILYDIALOG_PP, ACCURACY), (CONTRASTS, RIGHT_PAIRS))]
    return ["" if mean.value is None else interval_text(*mean), *map(_cell, others)]


def model_table(figures: Sequence[Figure]) -> str:
    """Return a row a data set and quality, and a column an evaluator of one model."""
    shown = [one for one in figures if one.name != SAME_ORDER]
    names = list(dict.fromkeys(one.evaluator for one in shown))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in shown:
        title = dstc10.SETS[one.dataset].name if one.dataset in dstc10.SETS else one.dataset
        what = one.quality if one.name == AGREEMENT else f"{one.quality}, {one.name}"
        cells.setdefault((title, what), {})[one.evaluator] = _cell(one)
    rows = [[*place, *(of.get(name, "") for name in names)] for place, of in cells.items()]
    return markdown_table(["data", "quality", *names], rows) if rows else ""


def packed_table(figures: Sequence[Figure]) -> str:
    """Return a row an evaluator: how far packing moved scores and figures at most."""
    rows = []
    for model, evaluator in dict.fromkeys((one.model, one.evaluator) for one in figures if one.name == SAME_ORDER):
        of = [one for one in figures if (one.model, one.evaluator) == (model, evaluator)]
        orders = [one for one in of if one.name == SAME_ORDER]
        lowest = min(orders, key=lambda one: -1.0 if one.value is None else one.value)
        moved = [abs(one.value - one.full) for one in of if one.value is not None and one.full is not None]
        rows.append(
            [
                model,
                evaluator,
                f"{number_text(lowest.value, 5)} ({lowest.dataset})",
                str(len(orders)),
                number_text(max(moved), 4) if moved else "",
                str(len(moved)),
            ]
        )
    head = ["model", "evaluator", "lowest Spearman of scores", "sets", "largest difference of a figure", "figures"]
    return markdown_table(head, rows) if rows else ""


def documents(figures: Sequence[Figure], root: Path = ROOT) -> dict[Path, str]:
    """Return the texts of the documents that have a marker of a table, with the tables in their places, and of data files."""
    found: dict[Path, str] = {}
    written = tables(figures)
    patterns = ("README.md", "docs/*.md", "metrics/*/README.md", "reproduction/*/results.md")
    paths = [path for pattern in (*patterns, f"{PRETRAINED.relative_to(ROOT)}/*/README.md") for path in root.glob(pattern)]
    for path in sorted(paths):
        text = read_text(path)
        if of_page := {name: table for name, table in written.items() if f"<!-- {name} -->" in text}:
            found |= with_tables(path, of_page)
    return found


def _interval(one: Figure | None) -> ValueInterval | None:
    return None if one is None else ValueInterval(one.value, one.ci_low, one.ci_high)


def _cell(one: Figure | None) -> str:
    return "" if one is None else interval_text(one.value, one.ci_low, one.ci_high, is_rough=one.is_rough)
