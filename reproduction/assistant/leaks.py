"""Leak check: training data of an evaluator of assistants and reported sets share no prompt and no answer.

Two rules. That of `corpora/identity.py` finds a reported conversation in a training conversation; one of single texts finds a
prompt, the whole context or its last message, and an answer, wherever they stand: letters and digits alike, in lower case. Of
texts with fewer than `MIN_WORDS` different words ("Yes", "Thank you!") only a whole context tells.

    python -m reproduction.assistant.leaks --document reproduction/assistant/results.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.identity import MIN_WORDS, LeakIndex
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.assistant.data import PAIRS, RATED, alpaca_answers, alpaca_eval_answers, prompt_key, shepherd_answers
from reproduction.documents import script_parser, write_tables

T = TypeVar("T")

REPORTED = ("pandalm", "oasst", "halie")
"""Sets with which development is reported, without a fold that left them out."""


class ReportedTexts:
    """Reported answers and contexts that other data contain."""

    def __init__(self, reported: Iterable[Example]) -> None:
        answers = list(reported)
        self._index = LeakIndex({"reported": answers})
        self._contexts = {_key(*(turn.text for turn in answer.context)) for answer in answers}
        self._texts = {
            _key(text)
            for answer in answers
            for text in (answer.context[-1].text, answer.response.text)
            if _is_distinctive(text)
        }

    def finds(self, answer: Example) -> bool:
        """Whether an answer, or its context, is among the reported ones."""
        context = [turn.text for turn in answer.context]
        return (
            _key(*context) in self._contexts
            or any(_is_distinctive(text) and _key(text) in self._texts for text in (*context, answer.response.text))
            or bool(self._index.find([*context, answer.response.text]))
        )


def leave_out_reported(rows: Sequence[T], reported: Iterable[Example], answers: Callable[[T], Iterable[Example]]) -> list[T]:
    """Return the training rows, each with some `answers`, of which none has a reported prompt or is a reported answer.

    Example:
        >>> row = Example.from_texts(["How do I descale a kettle?"], "With vinegar.")
        >>> leave_out_reported([row], [Example.from_texts(["how do I descale a kettle"], "By citric acid.")], lambda row: [row])
        []
    """
    texts = ReportedTexts(reported)
    return [row for row in rows if not any(map(texts.finds, answers(row)))]


def reported_answers(names: Sequence[str] = REPORTED) -> dict[str, list[Example]]:
    """Return the answers of reported sets by their names."""
    return {name: answers_of(name) for name in names}


def answers_of(name: str) -> list[Example]:
    """Return all answers of a set, one of `PAIRS` or `RATED`."""
    if name in PAIRS:
        return [answer for pair in PAIRS[name]() for answer in (pair.preferred, pair.other)]
    return [one.answer for one in RATED[name]()]


def training_answers() -> dict[str, list[Example]]:
    """Return the answers of all sets that may be learned from, by name."""
    named = ("dpo", "kto", "taskmaster", "begin", "diasafety train", "diasafety val", "pandalm", "oasst", "halie")
    return {
        "alpaca_eval": [one.answer for of in alpaca_eval_answers().values() for one in of.values()],
        "alpaca": [one.answer for one in alpaca_answers()],
        "shepherd": [one.answer for one in shepherd_answers()],
        **{name: answers_of(name) for name in named},
        "uss": [answer for name in RATED if name.startswith("uss") for answer in answers_of(name)],
    }


def overlap_table() -> Table:
    """Return a row a set that may be learned from, and a column a reported set: prompts that have a text of it."""
    reported = {name: ReportedTexts(answers) for name, answers in reported_answers().items()}
    rows: list[TableRow] = []
    for name, answers in training_answers().items():
        cells: dict[str, str] = {}
        prompts = {prompt_key(answer) for answer in answers}
        for of, texts in reported.items():
            found = {prompt_key(answer) for answer in answers if texts.finds(answer)}
            cells[of] = "" if of == name else str(len(found))
        rows.append({"learned from": name, "answers": len(answers), "prompts": len(prompts), **cells})
    return Table(rows, [named_column(name, 0, is_number=name != "learned from") for name in rows[0]])


def _key(*texts: str) -> str:
    return " ".join(re.sub(r"[\W_]+", "", text).casefold() for text in texts)


def _is_distinctive(text: str) -> bool:
    return len(set(re.findall(r"\w+", text.casefold()))) >= MIN_WORDS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = script_parser(__doc__).parse_args(arguments)
    write_tables(options.document, {"overlaps": overlap_table()})


if __name__ == "__main__":
    main()
