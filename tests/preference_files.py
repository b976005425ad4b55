"""Files of human preferences between responses, in the layout of Feng et al. 2024, over the embedded corpus."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS


def _dialogue(number: int, systems: Sequence[str]) -> dict[str, Any]:
    """A dialogue whose responses are two of the embedded corpus', one that says little and one that says nothing."""
    item = mini.read_response_sets("test")[number]
    texts = (item.positive[0], item.positive[1], f"No {number}.", " " if number == 0 else "Hm.")
    spoken = {f"{name}_response": {"speaker": "A", "utterance": text} for name, text in zip(systems, texts, strict=False)}
    history = [{"speaker": "AB"[place % 2], "utterance": text} for place, text in enumerate(item.context)]
    row: dict[str, Any] = {"id": str(number), "history": history, **spoken}
    for first, second in itertools.combinations(spoken, 2):
        place = list(spoken).index(first)
        votes = {
            f"human_evaluation_{rater}": {name: OPTIONS[(number * place + rater + len(name)) % 4] for name in CRITERIA}
            for rater in (1, 2, 3)
        }
        row[f"{first}-vs-{second}"] = {first: spoken[first], second: spoken[second], **votes}
    return row


def write_preferences(folder: Path, systems: Sequence[str]) -> Path:
    """Write twelve dialogues of two of the three corpora below a data folder, and return where they lie."""
    place = folder / cgdialog.CORPUS.name
    place.mkdir(parents=True)
    rows = [_dialogue(number, systems) for number in range(12)]
    for name in ("dream", "msc"):
        (place / cgdialog.PREFERENCE_FILES[name]).write_text(json.dumps(rows), encoding="utf-8")
    return place
