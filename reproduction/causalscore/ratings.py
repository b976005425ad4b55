"""Whether the preferences of Feng et al. 2024 can rank metrics, compared with the ratings of other data: no metric is needed.

DIALEVAL_DATA_DIR names the folder with `cgdialog_plus`, `dstc10` and `conture`.

    python -m reproduction.causalscore.ratings --document reproduction/causalscore/results.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.corpora.rated_items import of_level, read_rated_items
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS, PreferenceDialogue, RatedComparison
from dialeval_plugin.reports.rating_report import examine
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.categories import alpha
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import mean_interval
from reproduction.causalscore.tables import FIRST, NAMES, STATISTICS
from reproduction.causalscore.write import CAUSALSCORE, available
from reproduction.documents import estimate, published, script_parser, write_tables
from reproduction.intervals import percentile_bootstrap

ORDINARY: Mapping[str, tuple[str, Level]] = {
    "TopicalChat-USR": ("tu", "turn"),
    "PersonaChat-USR": ("pu", "turn"),
    "DailyDialog-Zhao": ("dz", "turn"),
    "PersonaChat-Zhao": ("pz", "turn"),
    "EmpatheticDialogues-GRADE": ("eg", "turn"),
    "ConvAI2-GRADE": ("cg", "turn"),
    "FED, turns": ("ft", "turn"),
    "FED, dialogues": ("fd", "dialogue"),
    "ConTurE, dialogues": ("conture", "dialogue"),
}
"""Sets that have each rater's own rating, by title; those of DSTC10 hold the ratings of USR's and FED's own files."""

ALIKE = 0.9
"""Responses count as nearly equal from this share of equal characters on: they differ by a word."""

_LETTERS = dict(zip(OPTIONS, "AB+-", strict=True))


def preferences_table(dialogues: Mapping[str, Sequence[PreferenceDialogue]]) -> str:
    """Return the reliability of the preferences on each corpus and criterion, and the agreement of the annotators."""
    lines = []
    for corpus, found in dialogues.items():
        path = cgdialog.CORPUS.folder() / cgdialog.PREFERENCE_FILES[corpus]
        for finding in examine(of_level(read_rated_items(str(path)), "turn", str(path)), CRITERIA, percentile_bootstrap()):
            criterion, reliability = finding.quality, finding.reliability
            paper = published("causalscore")["metrics"][criterion][CAUSALSCORE][corpus][list(STATISTICS).index(FIRST)]
            ceilings = map(estimate, (reliability.ceiling_of_one, reliability.ceiling_of_mean))
            agreements = map(estimate, (finding.agreement, votes_agreement(found, criterion)))
            own = number_text(alpha(answer_counts(found, criterion)))
            title = f"{NAMES[corpus]}, {criterion}"
            lines.append([title, estimate(reliability.of_one), *ceilings, paper, *agreements, own])
    head = ["", "variance between responses", "ceiling of Voting, Pearson", "by response", f"the paper's {CAUSALSCORE}"]
    return markdown_table([*head, "criteria agree, points", "single votes", "annotators' alpha"], lines)


def votes_agreement(dialogues: Sequence[PreferenceDialogue], criterion: str) -> Estimate:
    """How often an annotator prefers the same response by this criterion and by another, where both prefer one.

    Range: 0 to 1, 0.5 for criteria that have nothing to do with each other; the interval resamples dialogues.
    """
    agreed = [
        (dialogue.id, vote == of_other)
        for dialogue in dialogues
        for row in dialogue.comparisons
        for other in CRITERIA
        for vote, of_other in zip(row.votes[criterion], row.votes[other], strict=True)
        if other != criterion and {vote, of_other} <= set(OPTIONS[:2])
    ]
    return mean_interval([same for _, same in agreed], clusters=[id for id, _ in agreed], bootstrap=percentile_bootstrap())


def answer_counts(dialogues: Sequence[PreferenceDialogue], criterion: str) -> FloatArray:
    """Return how many annotators gave each of `OPTIONS`, a row a comparison."""
    rows = [row.votes[criterion] for dialogue in dialogues for row in dialogue.comparisons]
    return np.array([[votes.count(option) for option in OPTIONS] for votes in rows], dtype=np.float64)


def nearly_equal_table(dialogues: Mapping[str, Sequence[PreferenceDialogue]]) -> str:
    """The comparisons of responses that differ by a word, and what each annotator answered."""
    lines = [
        [NAMES[corpus], *texts, *("".join(_LETTERS[vote] for vote in row.votes[criterion]) for criterion in CRITERIA)]
        for corpus, found in dialogues.items()
        for row, texts in nearly_equal(found)
    ]
    return markdown_table(["", "A", "B", *CRITERIA], lines)


def nearly_equal(dialogues: Sequence[PreferenceDialogue]) -> Iterator[tuple[RatedComparison, tuple[str, str]]]:
    """Yield the comparisons of responses that share `ALIKE` of their characters, case aside, with their texts."""
    for dialogue in dialogues:
        for row in dialogue.comparisons:
            first, second = dialogue.responses[row.first].text, dialogue.responses[row.second].text
            if SequenceMatcher(None, first.casefold(), second.casefold()).ratio() >= ALIKE:
                yield row, (first, second)


def ordinary_table() -> str:
    """Figures of other ratings: the lowest and the highest value among the qualities of each set."""
    lines = []
    for title, (code, level) in ORDINARY.items():
        findings = examine(of_level(read_rated_items(code), level, code), (), percentile_bootstrap())
        n_raters = [finding.reliability.n_raters or 0 for finding in findings]
        of_one = [finding.reliability.ceiling_of_one for finding in findings]
        of_mean = [finding.reliability.ceiling_of_mean for finding in findings]
        # Two whole dialogues that happen to open alike are no two responses to one context.
        agreements = [one for finding in findings if (one := finding.agreement) is not None and one.ci_low is not None]
        raters = " to ".join(dict.fromkeys(number_text(end, 1) for end in (min(n_raters), max(n_raters))))
        lines.append([title, str(len(findings)), raters, *_ends(of_one), *_ends(of_mean), *_ends(agreements)])
    pairs = [(f"{title}, lowest", "highest") for title in ("ceiling of one rating", "of their mean", "qualities agree")]
    return markdown_table(["", "qualities", "raters", *chain.from_iterable(pairs)], lines)


def _ends(estimates: Sequence[Estimate]) -> list[str]:
    """The lowest and the highest; one alone is the lowest."""
    ordered = sorted(estimates, key=lambda one: one.value or 0.0)
    return [estimate(one) for one in (*ordered[:1], *ordered[1:][-1:])] + [""] * (2 - min(2, len(ordered)))


def report() -> str:
    """All tables, in Markdown."""
    dialogues = available()
    return "\n\n".join(
        [
            "### Whether the preferences can judge anything",
            preferences_table(dialogues),
            "### The same of other ratings",
            ordinary_table(),
            "### Comparisons of responses that differ by a word",
            nearly_equal_table(dialogues),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = script_parser(__doc__).parse_args(arguments)
    write_tables(options.document, {"rating tables": report()})


if __name__ == "__main__":
    main()
