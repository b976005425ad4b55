"""The rated sets that stored verdicts are about, in the order of the verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Item, Turn, mean_rating
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.verdicts import SET_READERS

RATING = "rating"
_TASKS_OF_IEVAL = [(mood, bot) for mood in ("positive", "negative") for bot in ("Pink", "Purple", "Green", "Yellow")]
_DSTC9_BOTS, _PER_BOT, _EVERY = 11, 200, 5
_TAG = re.compile(r"(?:^|\n)(User|System): ?")


class RatedSet(NamedTuple):
    """Items with people's mean rating of one quality, and what is resampled together."""

    items: Sequence[Item]
    ratings: Sequence[float | None]
    clusters: Sequence[str]
    rows: Sequence[int]
    """Places of the items in the columns of stored verdicts."""

    @classmethod
    def of(cls, items: Sequence[Item], quality: str = RATING, rows: Sequence[int] | None = None) -> RatedSet:
        """Make it of items of a reader."""
        ratings = [mean_rating(item, quality) if quality in item.ratings else None for item in items]
        is_chat = bool(items) and quality == "eval_score"
        clusters = [item.id if is_chat else context_key(item) for item in items]
        return cls(items, ratings, clusters, range(len(items)) if rows is None else rows)

    def judged(self, columns: Sequence[Sequence[float | None]]) -> RatedSet:
        """Those items that some column has a verdict about."""
        places = [place for place, row in enumerate(self.rows) if any(column[row] is not None for column in columns)]
        return RatedSet(
            [self.items[place] for place in places],
            [self.ratings[place] for place in places],
            [self.clusters[place] for place in places],
            [self.rows[place] for place in places],
        )


REPORTED: Mapping[str, str] = {
    "topical-usr": "Overall",
    "persona-usr": "Overall",
    "dailydialog-zhao": "appropriateness",
    "persona-zhao": "appropriateness",
    "fed-turn": "Overall",
    "conture-turn": "overall impression",
    "fed-dial": "Overall",
    "conture-dial": "human (overall)",
    "convai2": "eval_score",
}
"""The quality that scores are compared with, by set."""


def reported_set(name: str) -> RatedSet:
    """Return a set of `REPORTED`."""
    return RatedSet.of(SET_READERS[name](), REPORTED[name])


def development_sets(data: Path) -> dict[str, RatedSet]:
    """Whole dialogues of sets that are not reported: of DSTC9 every fifth that is not in ConTurE, of the others all."""
    return {"dstc9": _dstc9(data / "dstc9"), "ieval": _ieval(data / "ieval"), "reliable": _reliable(data / "reliable_eval")}


def _dialogue(id: str, turns: Sequence[str]) -> Dialogue:
    return Dialogue(id, tuple(Turn(text.strip(), speaker) for speaker, _, text in (turn.partition(":") for turn in turns)))


def _rated(dialogues: Sequence[Dialogue], ratings: Sequence[float]) -> list[Dialogue]:
    return [replace(one, ratings={RATING: (rating,)}) for one, rating in zip(dialogues, ratings, strict=True)]


def dstc9_dialogues(folder: Path) -> list[Dialogue]:
    """Return DSTC9's dialogues of all chatbots, in the order of `conture_rows.json`, with one rater's overall rating."""
    dialogues: list[Dialogue] = []
    ratings: list[float] = []
    for bot in range(1, _DSTC9_BOTS + 1):
        distinct = {row["context"]: float(row["human (overall)"]) for row in read_json(folder / f"chatbot{bot}.json")}
        for number, context in enumerate(distinct):
            _, *parts = _TAG.split(context)
            turns = [f"{speaker}: {text}" for speaker, text in zip(parts[::2], parts[1::2], strict=True)]
            dialogues.append(_dialogue(f"dstc9_{bot}_{number}", turns))
        ratings += distinct.values()
    return _rated(dialogues, ratings)


def _dstc9(folder: Path) -> RatedSet:
    dialogues = dstc9_dialogues(folder)
    reported = set(read_json(folder / "conture_rows.json"))
    rows = [row for row in range(0, len(dialogues), _EVERY) if row not in reported]
    return RatedSet.of([dialogues[row] for row in rows], rows=rows)


def _ieval(folder: Path) -> RatedSet:
    tasks: list[Any] = read_json(folder / "ieval_data.json")
    ratings = [float(task[mood][bot]["Rating"]) for task in tasks for mood, bot in _TASKS_OF_IEVAL]
    return RatedSet.of(_rated(read_chats(folder / "ieval-dial_text.txt"), ratings))


def _reliable(folder: Path) -> RatedSet:
    ratings = [fmean(row["z"].values()) for row in read_json(folder / "ratings.json")]
    return RatedSet.of(_rated(read_chats(folder / "reliable-dial_text.txt"), ratings))


def read_chats(path: Path) -> list[Dialogue]:
    """Return the chats of a file with one a line: id and turns, `speaker: text`, separated by tabs."""
    with path.open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [_dialogue(id, turns) for id, *turns in rows]
