"""Corpora in small, in the layouts as published, where a data folder has them."""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import cgdialog, dbdc, dstc10
from dialeval_plugin.corpora.readers.cgdialog import CRITERIA, OPTIONS
from tests.layouts import WORDS
from tests.tiny.breakdown import mini_dialogues

QUALITIES = {"tu": "Overall", "pu": "Overall", "dz": "appropriateness", "dgu": "overall", "ft": "Overall", "eg": "relevance"}
PREFERRED = ("human", "good", "bad", "blank")


def turn_rows(code: str) -> list[dict[str, Any]]:
    """Two responses to each of six contexts, of which the first fits."""
    human, system = ("User: ", "System: ") if code == "ft" else ("", "")
    fact = {"fact": "your persona: I like tea."} if code in {"tu", "pu"} else {}
    rows = []
    for index, word in enumerate(WORDS[:6]):
        context = f"{human}Do you like {word}? ({index})\n{system}I do like {word} ({code} {index})."
        good, bad = f"Then let us talk about {word}.", f"My left shoe is {index} years old."
        for is_good, name, response, ratings in ((1, "good", good, [4, 3]), (0, "bad", bad, [1, 2])):
            row = {"dialogue_id": f"{code}-{index}-{is_good}", "model": name, "context": context}
            rows.append(row | {"response": system + response, "annotations": {QUALITIES[code]: ratings}, **fact})
    return rows


def dialogue_rows() -> list[dict[str, Any]]:
    rows = []
    for index, word in enumerate(WORDS[:6]):
        texts = (f"Do you like {word}?", f"Number {index}.", "Bye.")
        dialog = [{"speaker": who, "text": text} for who, text in zip(("human", "model", "human"), texts, strict=True)]
        annotations = {"Overall": [index % 5, (index + 1) % 5]}
        rows.append({"dialogue_id": f"fd-{index}", "model": "bot", "dialog": dialog, "annotations": annotations})
    return rows


def write_dstc10(root: Path) -> Path:
    folder = root / dstc10.CORPUS.name
    folder.mkdir()
    for code in (*QUALITIES, "fd"):
        rows = dialogue_rows() if code == "fd" else turn_rows(code)
        (folder / dstc10.SETS[code].files[0]).write_text(json.dumps(rows), encoding="utf-8")
    return root


def turn(speaker: str, text: str, labels: str = "") -> dict[str, Any]:
    return {"speaker": speaker, "utterance": text, "annotations": [{"breakdown": label} for label in labels]}


def turns_about_words(number: int) -> list[dict[str, Any]]:
    found = [turn("S", "Hello!")]
    for place, word in enumerate(WORDS[:6]):
        said = "" if number == 1 and place == 3 else f"{word} " * (1 + (number + place) % 4)
        worse = (number * 7 + place * 5) % 30
        labels = "X" * worse + "T" * ((30 - worse) // 2) + "O" * (30 - worse - (30 - worse) // 2)
        found += [turn("U", f"Do you like {word}?"), turn("S", said, labels)]
    return found


def turns_of_mini(number: int) -> list[dict[str, Any]]:
    """Their first response follows nothing."""
    texts = [said.text for said in mini_dialogues("test", 6)[number].turns]
    labels = ["" if place % 2 else "X" * ((7 * place + 5 * number) % 20) + "O" * 10 for place in range(len(texts))]
    return [turn("US"[place % 2 == 0], text, labels[place]) for place, text in enumerate(texts)]


def write_dbdc(
    root: Path, systems: Sequence[str] = dbdc.SYSTEMS, n_dialogues: int = 12, turns: Callable[[int], Any] = turns_about_words
) -> Path:
    """Write a zip of the published layout, with original annotations of yi only."""
    path = root / dbdc.CORPUS.name / dbdc.FILE
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for system, split, number in itertools.product(systems, ("dev", "eval"), range(n_dialogues)):
            value = json.dumps({"dialogue-id": f"{system}{split}{number}", "turns": turns(number)})
            archive.writestr(f"DBDC3/dbdc3_revised/en/{split}/{system.upper()}_5/{number}.log.json", value)
            if system == "yi":
                archive.writestr(f"DBDC3/dbdc3/en/{split}/YI_5/{number}.log.json", value.replace('"X"', '"O"'))
    return path


def preference_dialogue(number: int, systems: Sequence[str]) -> dict[str, Any]:
    """A dialogue whose responses are two of the embedded corpus', one that says little and one that says nothing."""
    item = mini.read_response_sets("test")[number]
    texts = (item.positive[0], item.positive[1], f"No {number}.", " " if number == 0 else "Hm.")
    spoken = {f"{name}_response": {"speaker": "A", "utterance": text} for name, text in zip(systems, texts, strict=False)}
    history = [{"speaker": "AB"[place % 2], "utterance": text} for place, text in enumerate(item.context)]
    row: dict[str, Any] = {"id": str(number), "history": history, **spoken}
    for first, second in itertools.combinations(spoken, 2):
        place = list(spoken).index(first)
        row[f"{first}-vs-{second}"] = {first: spoken[first], second: spoken[second]} | {
            f"human_evaluation_{rater}": {one: OPTIONS[(number * place + rater + len(one)) % 4] for one in CRITERIA}
            for rater in (1, 2, 3)
        }
    return row


def write_preferences(root: Path, *names: str, systems: Sequence[str] = PREFERRED) -> Path:
    """Write the preferences on some of the three corpora where a data folder has them."""
    folder = root / cgdialog.CORPUS.name
    folder.mkdir(parents=True)
    for name in names:
        rows = [preference_dialogue(number, systems) for number in range(12)]
        (folder / cgdialog.PREFERENCE_FILES[name]).write_text(json.dumps(rows), encoding="utf-8")
    return folder
