"""Reader of FED (Mehri and Eskenazi 2020): `fed_data.json`, in the published layout.

The file is a JSON array of `{context, response, system, annotations}` for a rated response and `{context, system, annotations}`
for a whole dialogue. A whole dialogue follows its rated responses (three in the published file). Every line of a context, and
every response, starts with `User: ` or `System: `. An annotation is a whole number or, for a missing answer, a text that starts
with `N/A`. DSTC10's fed-turn and fed-dial hold the same data in another layout, without those texts (`dstc10.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.corpus import Corpus, RatedDialogue
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.rows import read_array, tagged_turn, text_field

FILE = "fed_data.json"
NOT_APPLICABLE = "N/A"

HIGHEST: Mapping[Level, Mapping[str, int]] = {
    "turn": {
        **dict.fromkeys(("Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate"), 2),
        **{"Understandable": 1, "Fluent": 2, "Overall": 4},
    },
    "dialogue": {
        **{"Coherent": 2, "Error recovery": 2, "Consistent": 1},
        **dict.fromkeys(("Diverse", "Depth", "Likeable", "Understanding", "Flexible", "Informative", "Inquisitive"), 2),
        "Overall": 4,
    },
}
"""Qualities of each level with the top of their scale, taken from the published file; the bottom is 0."""


def read(path: Path | None = None) -> list[RatedDialogue]:
    """Read all dialogues with their rated responses, in file order; without a path, those of the corpus' own file.

    Changes by the reader: texts lose the white space around them; `User: ` and `System: ` become the speaker; missing answers
    are left out, so a quality without any answer has an empty tuple. The file has no ids: the dialogues are named `fed_000`,
    `fed_001`, ... and the responses in one `fed_000_1`, `fed_000_2`, ...
    """
    dialogues: list[RatedDialogue] = []
    waiting: list[tuple[Line, Example]] = []
    for index, line in enumerate(read_array(CORPUS.file(FILE) if path is None else path)):
        row = Line(f"{line.where}: item {index}", line.value)
        id = f"fed_{len(dialogues):03d}"
        if "response" in row.value:
            context, response = _turns(row), _turn(text_field(row, "response"), f"{row.where}: response")
            system, ratings = text_field(row, "system"), _ratings(row, "turn")
            waiting.append((row, Example(f"{id}_{len(waiting) + 1}", context, response, system=system, ratings=ratings)))
        else:
            whole = Dialogue(id, _turns(row), text_field(row, "system"), _ratings(row, "dialogue"))
            dialogues.append(_rated_dialogue(waiting, whole, index))
            waiting = []
    if waiting:
        where = waiting[-1][0].where
        raise InputError(
            f"{where}: the file ends with {len(waiting)} responses that no whole dialogue follows. Was the file cut off?"
        )
    return dialogues


def read_examples(path: Path | None = None) -> list[Example]:
    """Read the rated responses; see `read`."""
    return [example for dialogue in read(path) for example in dialogue.responses]


def read_dialogues(path: Path | None = None) -> list[Dialogue]:
    """Read the dialogues that were rated as a whole; see `read`."""
    return [rated.whole for rated in read(path)]


def _rated_dialogue(responses: Sequence[tuple[Line, Example]], whole: Dialogue, index: int) -> RatedDialogue:
    for row, response in responses:
        # A response of another dialogue would be shown as an example next to its own dialogue.
        if context_key(response) != context_key(whole):
            raise InputError(
                f"{row.where}: its first turns are not those of item {index}, the next whole dialogue. "
                "Put the responses right before their dialogue, as in the published file."
            )
    return RatedDialogue(whole, tuple(response for _, response in responses))


def _turns(row: Line) -> tuple[Turn, ...]:
    lines = text_field(row, "context").strip().split("\n")
    return tuple(_turn(line, f"{row.where}: context: turn {index}") for index, line in enumerate(lines))


def _turn(text: str, where: str) -> Turn:
    turn = tagged_turn(text)
    if turn is None:
        raise InputError(f"{where}: expected 'User: ' or 'System: ' and a text, got {text!r}. Is this another file's layout?")
    return turn


def _ratings(row: Line, level: Level) -> dict[str, tuple[float, ...]]:
    annotations = row.value.get("annotations")
    if not isinstance(annotations, dict):
        raise InputError(f"{row.where}: annotations: expected an object of quality names and lists, got {annotations!r}.")
    highest = HIGHEST[level]
    if set(annotations) != set(highest):
        raise InputError(
            f"{row.where}: annotations: has the qualities {', '.join(annotations) or 'none'}, but {level} level has "
            f"{', '.join(highest)}. Is this another file's layout?"
        )
    return {quality: _answers(annotations[quality], top, row, quality) for quality, top in highest.items()}


def _answers(values: Any, highest: int, row: Line, quality: str) -> tuple[float, ...]:
    where = f"{row.where}: annotations[{quality!r}]"
    if not isinstance(values, list):
        raise InputError(f"{where}: expected the list of the raters' answers, got {values!r}.")
    answers = []
    for rater, value in enumerate(values):
        if isinstance(value, str) and value.startswith(NOT_APPLICABLE):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest:
            raise InputError(
                f"{where}[{rater}]: expected a whole number from 0 to {highest} or a text that starts with "
                f"{NOT_APPLICABLE!r}, got {value!r}."
            )
        answers.append(float(value))
    return tuple(answers)


def _read_items(path: Path | None = None) -> list[Item]:
    return [*read_examples(path), *read_dialogues(path)]


CORPUS = Corpus(
    name="fed",
    layout="JSON array with `context`, `system`, `annotations`",
    recognises=lambda file: file.is_array and file.has("annotations", "system", "context") and not file.has("dialogue_id"),
    qualities={level: tuple(highest) for level, highest in HIGHEST.items()},
    overall=dict.fromkeys(HIGHEST, "Overall"),
    read_items=_read_items,
    sets={"fed": _read_items},
)
