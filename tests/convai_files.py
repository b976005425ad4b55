"""ConvAI1 and ConvAI2 in small, in the layouts as published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialeval_plugin.corpora.readers.convai import CONVAI1_FILES, CONVAI2_FILES

Rows = list[dict[str, Any]]
_TEXTS = ("Hi there.", "Hello, do you like tea?", "I do.", "And cake?", "Cake is fine.", "Bye.")


def convai1_rows(number: int = 6, first: int = 0) -> Rows:
    """Dialogues of 2, 3, 4, 5, 6, 3, ... turns; every third is between people."""
    rows = []
    for index in range(first, first + number):
        kinds = ("Human", "Human" if index % 3 == 2 else "Bot")
        names = ("Alice", "Bob")
        rows.append(
            {
                "dialogId": -1000 - index,
                "context": "A paragraph.",
                "users": [{"id": name, "userType": kind} for name, kind in zip(names, kinds, strict=True)],
                "thread": [
                    {"userId": names[place % 2], "text": f"{text} ({index})", "evaluation": 0}
                    for place, text in enumerate(_TEXTS[: 2 + index % 5])
                ],
                "evaluation": [
                    {"userId": name, **dict.fromkeys(("quality", "breadth", "engagement"), rating)}
                    for name, rating in zip(names, (index % 6, 2 if kinds[1] == "Human" else 0), strict=True)
                ],
            }
        )
    return rows


def convai2_rows(number: int = 6, first: int = 0) -> Rows:
    """Dialogues of 2, 3, 4, 5, 6, 3, ... turns, rated 1 to 5; nobody rated the seventh, the fourteenth, ..."""
    return [
        {
            "dialog_id": f"0x{index:x}",
            "dialog": [
                {"id": place, "sender": f"participant{1 + place % 2}", "text": f"{text} ({index})"}
                for place, text in enumerate(_TEXTS[: 2 + index % 5])
            ],
            "eval_score": None if index % 7 == 6 else 1 + index * 3 % 5,
            "profile_match": "" if index % 7 == 6 else index % 2,
        }
        for index in range(first, first + number)
    ]


def write_convai(root: Path, number: int = 6) -> Path:
    """Write both challenges' files below `root`, `number` dialogues each, the same in every call."""
    for corpus, names, rows in (("convai1", CONVAI1_FILES, convai1_rows), ("convai2", CONVAI2_FILES, convai2_rows)):
        folder = root / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for place, name in enumerate(names):
            (folder / name).write_text(json.dumps(rows(number, place * number)), encoding="utf-8")
    return root
