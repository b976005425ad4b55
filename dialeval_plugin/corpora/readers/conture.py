"""Reader of ConTurE (Ghazarian et al. 2022) as published: people with DSTC9's chatbots, rated by turn and as a whole.

The file is a JSON array of `{dialog_id, turns: [{user, chatbot, "overall impression"}], dialog_ratings: [{quality: number}]}`.
Texts begin with `User:` or `Chatbot:`. A turn has one rating; a dialogue two or three raters' objects, "N/A" if unanswered.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.corpus import Corpus, RatedDialogue
from dialeval_plugin.corpora.rows import finite, id_field, objects_field, read_array, require, text_field

FILE = "data.json"
TURN_QUALITY = "overall impression"
USER, CHATBOT = "User", "Chatbot"
NOT_APPLICABLE = "N/A"


def read(path: Path | None = None) -> list[RatedDialogue]:
    """Read all dialogues with their rated responses, in file order; without a path, those of the corpus' own file.

    Changes by the reader: texts lose `User:`, `Chatbot:` and the white space around them, and get speakers from these marks.
    Dialogues are named `conture_0`, ... after their `dialog_id`, responses `conture_0_1`, ... The file names no systems.
    """
    return [_dialogue(row) for row in read_array(CORPUS.file(FILE) if path is None else path)]


def read_examples(path: Path | None = None) -> list[Example]:
    """Read the rated responses; see `read`."""
    return [example for dialogue in read(path) for example in dialogue.responses]


def read_dialogues(path: Path | None = None) -> list[Dialogue]:
    """Read the dialogues that were rated as a whole; see `read`."""
    return [rated.whole for rated in read(path)]


def _dialogue(row: Line) -> RatedDialogue:
    require(row, "dialog_id")
    id = f"conture_{id_field(row, 'dialog_id')}"
    turns: list[Turn] = []
    responses = []
    for place, exchange in enumerate(objects_field(row, "turns"), start=1):
        turns.append(_turn(exchange, "user", USER))
        response = _turn(exchange, "chatbot", CHATBOT)
        ratings = {TURN_QUALITY: (_number(exchange, TURN_QUALITY),)}
        responses.append(Example(f"{id}_{place}", tuple(turns), response, ratings=ratings))
        turns.append(response)
    whole = Dialogue(id, tuple(turns), ratings=_ratings(objects_field(row, "dialog_ratings")))
    return RatedDialogue(whole, tuple(responses))


def _turn(exchange: Line, field: str, speaker: str) -> Turn:
    text = text_field(exchange, field)
    if not text.startswith(f"{speaker}:"):
        raise InputError(f"{exchange.where}: {field}: expected a text that begins with '{speaker}:', got {text!r:.80}.")
    return Turn(text.removeprefix(f"{speaker}:").strip(), speaker)


def _ratings(raters: Sequence[Line]) -> dict[str, tuple[float, ...]]:
    qualities = dict.fromkeys(quality for rater in raters for quality in rater.value)
    return {
        quality: tuple(
            _number(rater, quality) for rater in raters if rater.value.get(quality, NOT_APPLICABLE) != NOT_APPLICABLE
        )
        for quality in qualities
    }


def _number(row: Line, name: str) -> float:
    return finite(row.value.get(name), f"{row.where}: {name}", "Leave out what was not rated.")


CORPUS = Corpus(
    name="conture",
    layout="JSON array with `turns`, `dialog_ratings`",
    recognises=lambda file: file.is_array and file.has("dialog_ratings"),
    qualities={
        "turn": (TURN_QUALITY,),
        "dialogue": (
            *("consistent", "likeable", "diverse", "informative", "coherent", "human (overall)"),
            *("understanding", "flexible", "topic depth", "error recovery", "inquisitive"),
        ),
    },
    overall={"turn": TURN_QUALITY, "dialogue": "human (overall)"},
    read_items=read_dialogues,
    sets={"conture": read_dialogues},
)
