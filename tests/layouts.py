"""A row of each layout as published, and files of such rows; those of FED and ConvAI are in `fed_files` and `convai_files`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.corpora.readers.cgdialog import CRITERIA
from dialeval_plugin.corpora.readers.usr import SCALES

RESPONSE = {"dialogue_id": "a", "model": "m", "context": "Tea ?", "response": "Yes .", "reference": ["No ."],
            "annotations": {"Overall": [4, 5, 3]}}  # fmt: skip
"""Of DSTC10, as `DIALOGUE`."""
DIALOGUE = {"dialogue_id": "a", "model": "m", "dialog": [{"speaker": "A", "text": "Hi!"}], "annotations": {"Overall": [4]}}
ANSWER = {"response": "me too", "model": "m", **{quality: [low, low] for quality, (low, _) in SCALES.items()}}
USR = {"context": "tea ?", "fact": "", "annotators": ["a", "b"], "responses": [ANSWER, ANSWER]}
CONTURE = {"dialog_id": 7, "turns": [{"user": "User: Who are you? ", "chatbot": "Chatbot: a book.", "overall impression": 2}],
           "dialog_ratings": [{"coherent": 3}]}  # fmt: skip
SPOKEN = {"speaker": "A", "utterance": "Hi."}
COMPARED = "human_response-vs-x_response"
PREFERENCE = {"history": [SPOKEN], "human_response": SPOKEN, "x_response": SPOKEN,
              COMPARED: {"human_evaluation_1": dict.fromkeys(CRITERIA, "Both are good.")}}  # fmt: skip


def array(*rows: Any) -> str:
    """A JSON array with a row a line, the first on line 2."""
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"


def lines(*rows: Any) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, *rows: Any) -> Path:
    """Write a JSON array of the rows, or the text that is the only one; its folder is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows[0] if isinstance(rows[0], str) else array(*rows), encoding="utf-8", newline="")
    return path


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The row without these fields."""
    return {name: value for name, value in row.items() if name not in names}
