"""The tables of results.md about answers of assistants: of which spoiled answers a scorer sees that they are spoiled.

Good answers are those of `reproduction.assistant.data.best_answers` that are plain English prose. DIALEVAL_DATA_DIR names the
folder with `assistant`. A scorer is a bundled model or a folder.

    python -m reproduction.contrasts.assistant --scorer general --work FOLDER --document reproduction/contrasts/results.md
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from scipy.stats import binomtest

from dialeval_plugin.conversations.messages import USER
from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.methods.assistant.scorer import AssistantScorer
from dialeval_plugin.pretrained.catalogue import open_scorer
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.estimates import interval_text, number_text
from reproduction.assistant.data import RatedAnswer, best_answers, prompt_key, words_of
from reproduction.assistant.sources import is_reported
from reproduction.contrasts.measures import OVERALL, ContrastPair, OrderedPair, ordered_by, shares_of_right_pairs
from reproduction.contrasts.spoiled_answers import KINDS, NEUTRAL, Others, SpoiledKind
from reproduction.documents import script_parser, write_tables
from reproduction.kept_results import kept_scores

N_PAIRS = 100
"""Number of pairs of each kind, as far as there are answers that it fits."""
WORDS = (25, 350)
"""Least and most words of a good answer."""
AIM, MOST_ALARMS, MOST_MOVED = 0.95, 0.02, 0.02
"""Aims that a table names where they are missed: shares of right pairs and of false alarms, median move of a neutral change."""
UNSEEN = "all, new answers"
"""Name of the row of all kinds together, of answers that no packaged model has learned from."""
ALARM = 0.5
"""Probability from which on a defect counts as seen, where the model has no threshold of its own."""
_NOT_PLAIN = re.compile(r"^(?:I'm sorry|I am sorry|I apologi[sz]e|As an AI|Sorry)|as an AI|language model", re.IGNORECASE)


def good_answers() -> list[RatedAnswer]:
    """Return one plain good answer to each prompt: OpenAssistant's first, then those with thumbs up, then chosen ones.

    Further answers of one tree come last, so that few pairs of a kind are of one cluster.
    """
    order = ("oasst", "kto", "dpo")
    by_prompt: dict[str, RatedAnswer] = {}
    for one in sorted(best_answers(), key=lambda one: order.index(one.group)):
        if _is_plain(one.answer):
            by_prompt.setdefault(prompt_key(one.answer), one)
    firsts = {one.cluster: one for one in reversed(by_prompt.values())}
    return sorted(by_prompt.values(), key=lambda one: firsts[one.cluster] is not one)


def _is_plain(answer: Example) -> bool:
    text = answer.response.text.strip()
    return (
        WORDS[0] <= words_of(answer) <= WORDS[1]
        and all(sum(map(str.isascii, part)) >= 0.97 * len(part) for part in (text, answer.context[-1].text))
        and text.endswith((".", "!", "?", ")", '"', "`"))
        and _NOT_PLAIN.search(text) is None
    )


def spoiled_pairs(kinds: Sequence[SpoiledKind], good: Sequence[RatedAnswer]) -> list[ContrastPair]:
    """Return at most `N_PAIRS` pairs of each kind: a good answer, and the same spoiled."""
    by_earlier = _answers_by_prompt(good)
    found: list[ContrastPair] = []
    for kind in kinds:
        pairs: list[ContrastPair] = []
        for cluster, answer, _ in good:
            others = [one.answer for one in good if one.cluster != cluster]
            rng = random.Random(f"{kind.name} {answer.id}")
            of = Others(
                [one.response.text for one in others],
                [one.context[-1].text for one in others],
                {answer.id: _earlier_answers(answer, by_earlier)},
            )
            text = kind.spoil(answer, of, rng)
            if text and text != answer.response.text and len(pairs) < N_PAIRS:
                worse = replace(answer, id=f"{answer.id}/{kind.name}", response=replace(answer.response, text=text))
                pairs.append(ContrastPair(cluster, kind.name, answer, worse))
        found += pairs
    return found


def _answers_by_prompt(good: Iterable[RatedAnswer]) -> dict[str, list[str]]:
    """The good answers to each prompt, and those in contexts."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for answer in [one.answer for one in good]:
        turns = (*answer.context, answer.response)
        for place in range(1, len(turns), 2):
            found[_said(turns[:place])][turns[place].text] = None
    return {prompt: list(texts) for prompt, texts in found.items()}


def _earlier_answers(answer: Example, by_prompt: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the answers of others to the earlier messages of an answer's context."""
    places = [place for place in range(1, len(answer.context)) if answer.context[place - 1].speaker == USER]
    texts = [text for place in places for text in by_prompt.get(_said(answer.context[:place]), ())]
    said = {turn.text for turn in (*answer.context, answer.response)}
    return [text for text in texts if text not in said]


def _said(turns: Sequence[Turn]) -> str:
    return "\n".join(turn.text for turn in turns)


@dataclass(frozen=True)
class ScoredAnswers:
    """The scores that a scorer gave to answers, by column and by id."""

    name: str
    main: str
    columns: Mapping[str, Mapping[str, float | None]]
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Probability from which on the scorer says that a defect is there, by column; of others `ALARM`."""

    @classmethod
    def of(cls, name: str, scorer: Scorer, answers: Iterable[Example], work: Path) -> ScoredAnswers:
        """Score each answer once; scores are kept in the folder `work`."""
        scores = kept_scores(scorer, list({answer.id: answer for answer in answers}.values()), work, Path(name).name)
        columns = {column: dict(zip(scores.ids, values, strict=True)) for column, values in scores.columns.items()}
        return cls(name, scores.main, columns, scorer.thresholds if isinstance(scorer, AssistantScorer) else {})

    def ordered(self, pairs: Sequence[ContrastPair], kinds: Mapping[str, SpoiledKind] | None = None) -> list[OrderedPair]:
        """Order pairs by the main score or, with `kinds`, by the largest of each kind's defects, of which less is better."""

        def value(id: str, kind: str) -> float | None:
            return self.columns[self.main][id] if kinds is None else self.defect(id, kinds[kind])

        better, worse = ([value(item.id, pair.kind) for pair, item in side] for side in _sides(pairs))
        return ordered_by(pairs, better, worse, is_lower_better=kinds is not None)

    def defect(self, id: str, kind: SpoiledKind) -> float | None:
        """Return the largest of the probabilities of a kind's defects; None without one."""
        values = [self.columns[name][id] for name in kind.columns if name in self.columns]
        return max((value for value in values if value is not None), default=None)

    def sees(self, id: str, column: str) -> bool:
        """Whether the scorer says that an answer has a defect."""
        return (self.columns[column][id] or 0.0) >= self.thresholds.get(column, ALARM)

    @property
    def defects(self) -> list[str]:
        """The columns that some kind is about."""
        return [name for name in dict.fromkeys(name for kind in KINDS for name in kind.columns) if name in self.columns]


def _sides(pairs: Sequence[ContrastPair]) -> list[list[tuple[ContrastPair, Example]]]:
    return [[(pair, item) for pair in pairs if isinstance(item := pair[side], Example)] for side in (2, 3)]


def kind_table(scored: Sequence[ScoredAnswers], pairs: Sequence[ContrastPair], unseen: Container[str]) -> Table:
    """Return a row a kind; of each scorer the share of right pairs and, where it has the defect, what its column says.

    The second share is that of pairs right by the column of the defect, the third that of spoiled ones in which it is seen.
    `unseen` are clusters that no packaged model has learned from.
    """
    kinds = {kind.name: kind for kind in KINDS}
    counts = {name: sum(pair.kind == name for pair in pairs) for name in kinds}
    rows: dict[str, dict[str, str | int]] = {
        name: {"worse by": name, "what it is": kind.means, "pairs": counts[name]}
        for name, kind in kinds.items()
        if counts[name]
    }
    rows[OVERALL] = {"worse by": OVERALL, "what it is": "", "pairs": len(pairs)}
    if new := [pair for pair in pairs if pair.id in unseen]:
        rows[UNSEEN] = {
            "worse by": UNSEEN,
            "what it is": "pairs of answers that no packaged model has learned from",
            "pairs": len(new),
        }
    notes = []
    for one in scored:
        shares = shares_of_right_pairs(one.ordered(pairs))
        missed = [name for name, share in shares.items() if name != OVERALL and share.value < AIM]
        shares |= {UNSEEN: shares_of_right_pairs(one.ordered(new))[OVERALL]} if new else {}
        for name, row in rows.items():
            row[one.name] = interval_text(*shares[name][:3])
        notes.append(f"Below {AIM}, {one.name}: {', '.join(missed) or 'none'}.")
        if one.defects:
            about = [pair for pair in pairs if any(name in one.columns for name in kinds[pair.kind].columns)]
            by_column = shares_of_right_pairs(one.ordered(about, kinds))
            for name, row in rows.items():
                of = [pair for pair in about if pair.kind == name]
                seen = sum(
                    any(one.sees(pair.worse.id, column) for column in kinds[name].columns if column in one.columns)
                    for pair in of
                )
                row[f"{one.name}, its column"] = interval_text(*by_column[name][:3]) if of else ""
                row[f"{one.name}, seen"] = number_text(seen / len(of)) if of else ""
            missed = [name for name, share in by_column.items() if name != OVERALL and share.value < AIM]
            notes.append(f"Below {AIM}, the columns of {one.name}: {', '.join(missed) or 'none'}.")
    return _table(list(rows.values()), ("worse by", "what it is"), notes)


def alarm_table(scored: Sequence[ScoredAnswers], good: Sequence[RatedAnswer], unseen: Container[str]) -> Table:
    """Return a row a defect: in which share of the good answers a scorer sees it, with Wilson's interval.

    A scorer's second column is of the answers of `unseen` clusters alone.
    """
    names = dict.fromkeys(name for one in scored for name in one.defects)
    rows: list[dict[str, str | int]] = []
    missed: dict[str, list[str]] = {}
    for name in names:
        row: dict[str, str | int] = {"defect": name}
        for one in scored:
            if name in one.columns:
                new = [answer for answer in good if answer.cluster in unseen]
                for title, of in ((f"{one.name} ({len(good)} answers)", good), (f"{one.name} ({len(new)} new answers)", new)):
                    n = sum(one.sees(answer.answer.id, name) for answer in of)
                    low, high = binomtest(n, len(of)).proportion_ci(0.95, method="wilson")
                    row[title] = interval_text(n / len(of), low, high)
                    missed.setdefault(title, []).extend([name] if n / len(of) > MOST_ALARMS else [])
        rows.append(row)
    notes = [f"Above {MOST_ALARMS}, {name}: {', '.join(of) or 'none'}." for name, of in missed.items()]
    return _table(rows, ("defect",), notes)


def neutral_table(scored: Sequence[ScoredAnswers], pairs: Sequence[ContrastPair]) -> Table:
    """Return a row a neutral kind: the median of how far the score moves, either way, and of the move itself."""
    rows: list[dict[str, str | int]] = []
    missed: dict[str, list[str]] = {one.name: [] for one in scored}
    for kind in NEUTRAL:
        of = [pair for pair in pairs if pair.kind == kind.name]
        row: dict[str, str | int] = {"change": kind.name, "what it is": kind.means, "answers": len(of)}
        for one in scored:
            main = one.columns[one.main]
            moves = [
                after - before
                for pair in of
                if (before := main[pair.better.id]) is not None and (after := main[pair.worse.id]) is not None
            ]
            size = median(map(abs, moves))
            row[one.name] = f"{number_text(size)} ({'+' if median(moves) >= 0 else ''}{number_text(median(moves))})"
            missed[one.name] += [kind.name] if size >= MOST_MOVED else []
        rows.append(row)
    notes = [f"Not below {MOST_MOVED}, {name}: {', '.join(of) or 'none'}." for name, of in missed.items()]
    return _table(rows, ("change", "what it is"), notes)


def _table(rows: Sequence[TableRow], texts: Sequence[str], notes: Sequence[str]) -> Table:
    names = dict.fromkeys(name for row in rows for name in row)
    full = [{name: row.get(name, "") for name in names} for row in rows]
    return Table(full, [named_column(name, 0, is_number=name not in texts) for name in names], notes)


def tables(scorers: Mapping[str, Scorer], good: Sequence[RatedAnswer], work: Path) -> dict[str, Table]:
    """Score the answers with each scorer and return the tables by the names of their markers."""
    spoiled, neutral = spoiled_pairs(KINDS, good), spoiled_pairs(NEUTRAL, good)
    unseen = {one.cluster for one in good if one.group == "oasst" and is_reported(one.cluster)}
    items = [*(one.answer for one in good), *(item for side in _sides([*spoiled, *neutral]) for _, item in side)]
    scored = [ScoredAnswers.of(name, scorer, items, work) for name, scorer in scorers.items()]
    return {
        "answers of assistants": kind_table(scored, spoiled, unseen),
        "false alarms": alarm_table(scored, good, unseen),
        "neutral changes": neutral_table(scored, neutral),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = script_parser(__doc__, work="the scores")
    parser.add_argument("--scorer", action="append", required=True, help="bundled model or folder of one; may be repeated")
    options = parser.parse_args(arguments)
    scorers = {name: open_scorer(name, backend="auto") for name in options.scorer}
    write_tables(options.document, tables(scorers, good_answers(), options.work))


if __name__ == "__main__":
    main()
