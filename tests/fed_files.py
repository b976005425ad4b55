"""Small files in FED's published layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.corpora.readers.fed import FILE, HIGHEST

NOT_APPLICABLE = "N/A (no errors)"
WORDS = ("tea", "rain", "cats", "music", "trains", "bread", "snow", "books")


def fed_rows(n_dialogues: int) -> list[dict[str, Any]]:
    """Three rated responses of each dialogue, each followed by one turn, and the dialogue as a whole."""
    rows: list[dict[str, Any]] = []
    for number in range(n_dialogues):
        word = WORDS[number % len(WORDS)]
        context = f"User: Hi! ({number})\nSystem: Do you like {word}?\nUser: Why?"
        for place in range(3):
            response = f"System: Because {word} number {number * place} is here."
            rows.append(_row(context, number + place, "turn", response))
            if place < 2:
                context += f"\n{response}\nUser: And {word} {place}?"
        rows.append(_row(context, number, "dialogue"))
    return rows


def _row(context: str, shift: int, level: Level, response: str | None = None) -> dict[str, Any]:
    annotations = {
        quality: [(shift + place + rater // 2) % (top + 1) for rater in range(5)]
        for place, (quality, top) in enumerate(HIGHEST[level].items())
    }
    said = {} if response is None else {"response": response}
    return {"context": context, **said, "system": "Meena", "annotations": annotations}


def write_fed(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write `rows` where a data folder has FED, and return the file."""
    path = folder / "fed" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    return path
