"""Rows of each rated corpus in small, in the layouts as published, and files of such rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA
from dialeval_plugin.corpora.readers.convai import CONVAI1_FILES, CONVAI2_FILES
from dialeval_plugin.corpora.readers.fed import FILE, HIGHEST
from dialeval_plugin.corpora.readers.usr import SCALES

Rows = list[dict[str, Any]]

RESPONSE = {"dialogue_id": "a", "model": "m", "context": "Tea ?", "response": "Yes .", "reference": ["No ."],
            "annotations": {"Overall": [4, 5, 3]}}  # fmt: skip
"""Row of DSTC10, as is `DIALOGUE`."""
DIALOGUE = {"dialogue_id": "a", "model": "m", "dialog": [{"speaker": "A", "text": "Hi!"}], "annotations": {"Overall": [4]}}
ANSWER = {"response": "me too", "model": "m", **{quality: [low, low] for quality, (low, _) in SCALES.items()}}
USR = {"context": "tea ?", "fact": "", "annotators": ["a", "b"], "responses": [ANSWER, ANSWER]}
CONTURE = {"dialog_id": 7, "turns": [{"user": "User: Who are you? ", "chatbot": "Chatbot: a book.", "overall impression": 2}],
           "dialog_ratings": [{"coherent": 3}]}  # fmt: skip
SPOKEN = {"speaker": "A", "utterance": "Hi."}
COMPARED = "human_response-vs-x_response"
PREFERENCE = {"history": [SPOKEN], "human_response": SPOKEN, "x_response": SPOKEN,
              COMPARED: {"human_evaluation_1": dict.fromkeys(CRITERIA, "Both are good.")}}  # fmt: skip
NOT_APPLICABLE = "N/A (no errors)"
"""Answers that a rater of FED may give."""

WORDS = ("tea", "rain", "cats", "music", "trains", "bread", "snow", "books")
_TEXTS = ("Hi there.", "Hello, do you like tea?", "I do.", "And cake?", "Cake is fine.", "Bye.")


def array(*rows: Any) -> str:
    """A JSON array with a row a line, the first on line 2."""
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"


def lines(*rows: Any) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, *rows: Any) -> Path:
    """Write a JSON array of the rows, or the text that is the only one; its folder is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows[0] if rows and isinstance(rows[0], str) else array(*rows), encoding="utf-8", newline="")
    return path


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The row without these fields."""
    return {name: value for name, value in row.items() if name not in names}


def fed_rows(n_dialogues: int) -> Rows:
    """Three rated responses of each dialogue, each followed by one turn, and the dialogue as a whole."""
    rows: Rows = []
    for number in range(n_dialogues):
        word = WORDS[number % len(WORDS)]
        context = f"User: Hi! ({number})\nSystem: Do you like {word}?\nUser: Why?"
        for place in range(3):
            response = f"System: Because {word} number {number * place} is here."
            rows.append(_fed_row(context, number + place, "turn", response))
            if place < 2:
                context += f"\n{response}\nUser: And {word} {place}?"
        rows.append(_fed_row(context, number, "dialogue"))
    return rows


def _fed_row(context: str, shift: int, level: Level, response: str | None = None) -> dict[str, Any]:
    annotations = {
        quality: [(shift + place + rater // 2) % (top + 1) for rater in range(5)]
        for place, (quality, top) in enumerate(HIGHEST[level].items())
    }
    said = {} if response is None else {"response": response}
    return {"context": context, **said, "system": "Meena", "annotations": annotations}


def write_fed(folder: Path, rows: Rows) -> Path:
    """Write `rows` where a data folder has FED, and return the file."""
    return write(folder / "fed" / FILE, *rows)


def convai1_rows(number: int = 6, first: int = 0) -> Rows:
    """Dialogues of 2, 3, 4, 5, 6, 3, ... turns; every third is between people, of the others the bot is rated."""
    names, rows = ("Alice", "Bob"), []
    for index in range(first, first + number):
        kinds = ("Human", "Human" if index % 3 == 2 else "Bot")
        thread = [
            {"userId": names[place % 2], "text": f"{text} ({index})", "evaluation": 0}
            for place, text in enumerate(_TEXTS[: 2 + index % 5])
        ]
        evaluation = [
            {"userId": name, **dict.fromkeys(("quality", "breadth", "engagement"), rating)}
            for name, rating in zip(names, (2 if kinds[1] == "Human" else 0, index % 6), strict=True)
        ]
        users = [{"id": name, "userType": kind} for name, kind in zip(names, kinds, strict=True)]
        said = {"thread": thread, "evaluation": evaluation}
        rows.append({"dialogId": -1000 - index, "context": "A paragraph.", "users": users, **said})
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
        for place, name in enumerate(names):
            write(root / corpus / name, *rows(number, place * number))
    return root
