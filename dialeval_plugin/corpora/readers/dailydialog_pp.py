"""Reader of DailyDialog++ (Sai et al. 2020): one context per line, with five responses of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json_lines
from dialeval_plugin.corpora.corpus import Corpus, GroundedDialogue
from dialeval_plugin.corpora.rows import distinct_ids, id_field, require, texts_field, visible_turns

QUALITY = "appropriate"
"""Label of `ResponseSet.examples`: 1 for a positive response, 0 for a negative one."""
KINDS = ("positive", "random", "adversarial")
"""Kinds of responses, in the order of `ResponseSet.examples`."""


@dataclass(frozen=True, slots=True)
class ResponseSet:
    """A context, oldest turn first, with responses: positive, adversarial (share words), random (of another context)."""

    id: str
    context: tuple[str, ...]
    positive: tuple[str, ...]
    adversarial: tuple[str, ...] = ()
    random: tuple[str, ...] = ()

    def examples(self, quality: str = QUALITY) -> Iterator[Example]:
        """Yield one example per response, rated 1.0 (positive) or 0.0 (negative) in `quality`.

        The ids are the keys of the published predictions: `<id>p0` positive, `<id>r0` random, `<id>a0` adversarial.
        """
        context = tuple(Turn(text) for text in self.context)
        for kind in KINDS:
            ratings = {quality: (float(kind == "positive"),)}
            for index, response in enumerate(getattr(self, kind)):
                yield Example(f"{self.id}{kind[0]}{index}", context, Turn(response), ratings=ratings)

    @property
    def kinds(self) -> list[str]:
        """Return the kind of each of the `examples`."""
        return [kind for kind in KINDS for _ in getattr(self, kind)]


def read(path: Path) -> list[ResponseSet]:
    """Read a file of DailyDialog++ lines.

    Texts stay as published, with their mixed spacing. The file of further contexts has `dialog_id` instead of `id` and no
    negatives. Fields added by others (`bm25_sampled`, ...) are ignored.
    """
    rows = read_json_lines(path)
    for row in rows:
        if "id" not in row.value and "dialog_id" not in row.value:
            raise InputError(f"{row.where}: has neither 'id' nor 'dialog_id'. Give each row an 'id' of its own.")
        require(row, "context", "positive_responses")
    return _response_sets(rows)


def read_grounded(path: Path) -> list[GroundedDialogue]:
    """Read each positive response as the end of a dialogue, with the adversarial ones as misleading alternatives."""
    return [
        GroundedDialogue(Dialogue(f"{item.id}p{number}", tuple(map(Turn, (*item.context, text)))), misleading=item.adversarial)
        for item in read(path)
        for number, text in enumerate(item.positive)
    ]


def read_contexts(path: Path) -> list[ResponseSet]:
    """Read the contexts of a file to write responses to: DailyDialog++ lines, or any with `context`, a list of turns.

    Responses are read if there are any. A row without `id` or `dialog_id` gets its number, from 0, as its id.
    """
    rows = read_json_lines(path)
    for row in rows:
        require(row, "context", advice="Give the turns as a list of strings.")
    return _response_sets(rows)


def _response_sets(rows: Sequence[Line]) -> list[ResponseSet]:
    ids = [id_field(row, "id", "dialog_id") or str(number) for number, row in enumerate(rows)]
    sets = [
        ResponseSet(
            id=id,
            context=texts_field(row, "context"),
            positive=texts_field(row, "positive_responses"),
            adversarial=texts_field(row, "adversarial_negative_responses"),
            random=texts_field(row, "random_negative_responses"),
        )
        for row, id in zip(rows, ids, strict=True)
    ]
    distinct_ids(rows, ids, "Predictions are keyed by id: renumber one.")
    return sets


CORPUS = Corpus(
    name="dailydialog_pp",
    layout="JSON lines with `context`, `positive_responses`",
    recognises=lambda file: not file.is_array and file.has("positive_responses"),
    qualities={"turn": (QUALITY,)},
    overall={"turn": QUALITY},
    read_items=lambda path: [example for item in read(path) for example in item.examples()],
    # Each context with its first positive response.
    read_dialogues=lambda path: [
        Dialogue(item.id, visible_turns(map(Turn, (*item.context, *item.positive[:1])))) for item in read(path)
    ],
)
