"""Tables 2, 3 and 7 of Feng et al. 2024, with the figures of metrics that were run here next to those that the paper prints.

`published.json` holds the paper's, from its Tables 5 to 7, which contain Tables 2 and 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, HUMAN, OPTIONS, PreferenceDialogue
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.preferences import (
    PreferenceAgreement,
    Preferences,
    cont2cat,
    ignore_equal,
    preference_difference,
    preferences,
    voting,
)
from dialeval_plugin.statistics.ranking import holm
from reproduction.documents import estimate, published
from reproduction.intervals import normal_p_value, percentile_bootstrap

from .triads import circular_triads

Figures: TypeAlias = Mapping[tuple[str, str], PreferenceAgreement]
"""Criterion and statistic to the agreement of one metric on one corpus."""
ScoresById: TypeAlias = Mapping[str, float | None]
"""Id of an example, `<dialogue>/<system>`, to its score, the higher the better; None where it is unscored."""

STATISTICS: Mapping[str, Callable[[Preferences], PreferenceAgreement]] = {
    "voting_pearson": partial(voting, coefficient="pearson"),
    "voting_spearman": voting,
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}
FIRST = "voting_pearson"
TITLES = {
    "voting_pearson": "Voting, Pearson",
    "voting_spearman": "Voting, Spearman",
    "ignore_equal": "IgnoreEqual",
    "cont2cat": "Cont2Cat",
}
NAMES = {"dream": "DREAM", "esconv": "ESConv", "msc": "MSC"}
COIN_FLIP, MAJORITY = "coin flip", "human majority"


class PaperRow(NamedTuple):
    """One row of a table."""

    label: str | None
    """Label of the metric here; None for a row that the paper has and nothing here."""
    paper: str | None = None
    """Label of the row in the paper's table; None for a metric that the paper does not have."""


def figures_of(
    dialogues: Sequence[PreferenceDialogue], scores: ScoresById, criteria: Sequence[str], *, with_human: bool = True
) -> Figures:
    """Every statistic of some criteria of one metric; intervals resample whole dialogues.

    With `with_human`, the human's response is one of the systems, as in the paper.
    """
    found: dict[tuple[str, str], PreferenceAgreement] = {}
    for criterion in criteria:
        compared = _compared(dialogues, scores, criterion, with_human=with_human)
        found |= {(criterion, name): statistic(compared) for name, statistic in STATISTICS.items()}
    return found


def metrics_table(figures: Mapping[str, Figures], rows: Sequence[PaperRow], corpus: str, criterion: str, part: str) -> str:
    """The table of one corpus and criterion.

    Floor and ceiling of the first metric that scores every response become rows; a row of which neither figures nor a paper's
    row are there is left out. `part` of the paper's figures: "metrics", "ablation", or "out_of_domain", relevance only.
    """
    printed = _paper(part, criterion, corpus)
    lines = []
    for row in rows:
        theirs = printed.get(row.paper or "", [""] * len(STATISTICS))
        if row.label is not None and (found := figures.get(row.label)):
            ours = [estimate(found[criterion, name]) for name in STATISTICS]
            first = found[criterion, FIRST]
            label, n_scored = row.label, f"{first.n_scored} of {first.n_total}"
        elif any(theirs):
            label, ours, n_scored = f"{row.paper} (not run here)", [""] * len(STATISTICS), ""
        else:
            continue
        lines.append([label, *(cell for pair in zip(ours, theirs, strict=True) for cell in pair), n_scored])
    lines += _end_rows(figures, criterion)
    head = [f"{NAMES[corpus]}, {criterion}", *(cell for title in TITLES.values() for cell in (title, "paper")), "scored"]
    return markdown_table(head, lines)


def _end_rows(figures: Mapping[str, Figures], criterion: str) -> list[list[str]]:
    complete = [found for found in figures.values() if found[criterion, FIRST].n_unscored == 0]
    if not (chosen := next(iter(complete or figures.values()), None)):
        return []
    rows = []
    for label, field in ((COIN_FLIP, "floor"), (MAJORITY, "ceiling")):
        values = [getattr(chosen[criterion, name], field) for name in STATISTICS]
        cells = [cell for value in values for cell in (number_text(value), "")]
        rows.append([label, *cells, ""])
    return rows


def without_human_table(figures: Mapping[str, Mapping[str, Figures]], rows: Sequence[PaperRow], criterion: str) -> str:
    """The comparisons without the human's response, one column per corpus; `figures` are of each corpus."""
    lines = [
        [row.label, *(estimate(found[row.label][criterion, name]) for found in figures.values() for name in STATISTICS)]
        for row in rows
        if row.label is not None and all(row.label in found for found in figures.values())
    ]
    titles = [f"{NAMES[corpus]}, {title}" for corpus in figures for title in TITLES.values()]
    return markdown_table([f"{criterion}, without the human's response", *titles], lines)


def difference_table(
    dialogues: Mapping[str, Sequence[PreferenceDialogue]],
    one: Mapping[str, ScoresById],
    other: Mapping[str, ScoresById],
    criteria: Sequence[str],
) -> str:
    """Return by how much one metric's agreement is above another's, by corpus, with paired intervals over dialogues.

    Below stands how many intervals exclude 0, and the smallest p-value after Holm's correction for so many tests; each is
    that of a normal distribution as wide as the interval.
    """
    lines, differences = [], []
    for corpus, found in dialogues.items():
        for criterion in criteria:
            a, b = one[corpus], other[corpus]
            pair = (_compared(found, _where_both(a, b), criterion), _compared(found, _where_both(b, a), criterion))
            of_row = [preference_difference(*pair, statistic=name) for name in STATISTICS]
            lines.append([f"{NAMES[corpus]}, {criterion}", *map(estimate, of_row)])
            differences += of_row
    return f"{markdown_table(['difference', *TITLES.values()], lines)}\n\n{_tested(differences)}"


def _tested(differences: Sequence[Estimate]) -> str:
    p_values = [normal_p_value(found.value, found.ci_low, found.ci_high) for found in differences]
    n_told = sum((found.ci_low or 0.0) > 0 or (found.ci_high or 0.0) < 0 for found in differences)
    lowest = min((p for p in holm(p_values) if p is not None), default=None)
    words = "" if lowest is None else f" (smallest p-value after Holm's correction: {lowest:.2f})"
    return f"{n_told} of {len(differences)} intervals exclude 0{words}."


def triads_table(dialogues: Mapping[str, Sequence[PreferenceDialogue]]) -> str:
    """Return the number of circular triads of responses to one context, by the annotators' majorities, in each corpus."""
    lines = []
    for corpus, found in dialogues.items():
        for criterion in CRITERIA:
            circular = [(dialogue.id, is_circular) for dialogue in found for is_circular in _triads(dialogue, criterion)]
            share = mean_interval(
                [float(value) for _, value in circular], clusters=[id for id, _ in circular], bootstrap=percentile_bootstrap()
            )
            n_circular = sum(value for _, value in circular)
            lines.append([f"{NAMES[corpus]}, {criterion}", str(len(circular)), str(n_circular), estimate(share)])
    return markdown_table(["", "decided triads", "circular", "share (coin flips: 0.250)"], lines)


def _triads(dialogue: PreferenceDialogue, criterion: str) -> list[bool]:
    preferred: dict[tuple[str, str], str | None] = {}
    for row in dialogue.comparisons:
        votes = Counter(row.votes[criterion])
        lead = votes[OPTIONS[0]] - votes[OPTIONS[1]]
        preferred[row.first, row.second] = row.first if lead > 0 else row.second if lead < 0 else None
    return circular_triads(preferred)


def training_table(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures of both classifiers before and after each round; `records` are `training` of each causalscore.json."""
    lines = []
    for corpus, record in records.items():
        entries = [("unconditional", "", record["unconditional"])]
        for entry in record["rounds"]:
            kept = ", kept" if entry["round"] == record["best_round"] else ""
            entries.append((f"conditional, round {entry['round']}{kept}", str(entry["n_pseudo"]), entry))
        for title, n_pseudo, entry in entries:
            parts = [entry.get(part, {}) for part in ("validation", "evaluation")]
            figures = [number_text(part.get(name)) for part in parts for name in ("auroc", "f1")]
            lines.append([NAMES.get(corpus, corpus), title, str(entry["n_rows"]), n_pseudo, *figures])
    titles = [f"{part} {figure}" for part in ("validation", "test") for figure in ("AUROC", "F1")]
    return markdown_table(["corpus", "classifier", "rows", "new pseudo-labels", *titles], lines)


def _compared(
    dialogues: Sequence[PreferenceDialogue], scores: ScoresById, criterion: str, *, with_human: bool = True
) -> Preferences:
    rows = [
        (dialogue.id, row)
        for dialogue in dialogues
        for row in dialogue.comparisons
        if with_human or HUMAN not in (row.first, row.second)
    ]
    return preferences(
        [scores[f"{id}/{row.first}"] for id, row in rows],
        [scores[f"{id}/{row.second}"] for id, row in rows],
        [[OPTIONS.index(vote) for vote in row.votes[criterion]] for _, row in rows],
        clusters=[id for id, _ in rows],
    )


def _where_both(scores: ScoresById, other: ScoresById) -> ScoresById:
    """The scores of the responses that the other metric scores as well."""
    return {id: None if other[id] is None else value for id, value in scores.items()}


def _paper(part: str, criterion: str, corpus: str) -> dict[str, list[str]]:
    found = published("causalscore")[part]
    rows = found if part == "out_of_domain" else found[criterion]
    return {label: values[corpus] for label, values in rows.items()}
