"""The USR ratings as published: facts, trailing line ends, misspelt names, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.readers.usr import FILES, SCALES, read_examples, read_scored
from dialeval_plugin.corpora.registry import read_items

RATINGS = {
    "Understandable": [1, 1, 0],
    "Natural": [3, 2, 3],
    "Maintains Context": [3, 1, 2],
    "Engaging": [2, 2, 3],
    "Uses Knowledge": [0, 0, 1],
    "Overall": [5, 4, 1],
}
RESPONSE = {"response": "me too . \n", "model": "Argmax Decoding", **RATINGS}
ROW = {
    "context": "do you like tea ? \n yes , green tea . \n\n",
    "fact": "green tea is not fermented .\n",
    "annotators": ["sm", "er", "fl"],
    "responses": [RESPONSE, {**RESPONSE, "response": "so i hear", "model": "New Human Generated"}],
}


def write(folder: Path, *rows: Any, name: str = "usr_topical_chat.json") -> Path:
    path = folder / name
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]", encoding="utf-8")
    return path


def error(text: str) -> str:
    return f"^{re.escape(text)}$"


def test_each_response_becomes_an_example_without_the_line_ends(tmp_path: Path) -> None:
    first, second = read_examples(write(tmp_path, ROW))
    assert first == Example(
        id="usr_topical_chat_000_1",
        context=(Turn("do you like tea ?"), Turn("yes , green tea .")),
        response=Turn("me too ."),
        facts=("green tea is not fermented .",),
        system="Argmax Decoding",
        ratings={quality: tuple(map(float, values)) for quality, values in RATINGS.items()},
    )
    assert (second.id, second.response.text, second.system) == ("usr_topical_chat_000_2", "so i hear", "New Human Generated")


def test_facts_are_persona_lines_a_text_or_none(tmp_path: Path) -> None:
    persona = "your persona: i've three dogs.\nyour persona: i walk.\n"
    rows = [{**ROW, "fact": fact} for fact in (persona, "_nofact\n", "\n", "one line .\nanother .\n")]
    facts = [example.facts for example in read_examples(write(tmp_path, *rows))[::2]]
    assert facts == [("i've three dogs.", "i walk."), (), (), ("one line .\nanother .",)]


def test_published_numbers_come_with_the_examples(tmp_path: Path) -> None:
    assert dict(read_scored(write(tmp_path, ROW)).scores) == {}
    scored = [{**RESPONSE, "cola": 0.9, "fact_stsb": -0.1}, {**RESPONSE, "fact_stsb": 4, "cola": 0.2}]
    found = read_scored(write(tmp_path, {**ROW, "responses": scored}))
    assert dict(found.scores) == {"cola": (0.9, 0.2), "fact_stsb": (-0.1, 4.0)}
    assert len(found.examples) == 2


def test_a_file_that_is_scored_is_told_from_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path, ROW)
    assert read_items(path) == read_examples(path)


def test_names_are_looked_up_and_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "usr"
    folder.mkdir()
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    write(folder, ROW, name=FILES["persona_chat"])
    assert [example.id for example in read_examples("persona_chat")] == ["usr_percona_chat_000_1", "usr_percona_chat_000_2"]
    text = f"{folder}: has no usr_topical_chat.json. Type `dialeval data fetch usr`."
    with pytest.raises(MissingPrerequisite, match=error(text)):
        read_examples("topical_chat")
    text = "'topical': is neither a file nor a USR set. Known are: topical_chat, persona_chat, topical_chat_glue."
    with pytest.raises(InputError, match=error(text)):
        read_examples("topical")


@pytest.mark.real_data
def test_the_published_files(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    topical, persona, scored = read_examples("topical_chat"), read_examples("persona_chat"), read_scored("topical_chat_glue")
    assert (len(topical), len({example.context for example in topical})) == (360, 60)
    assert (len(persona), len({example.context for example in persona})) == (300, 60)
    assert sum(not example.facts for example in topical) == 8 * 6
    assert all(example.facts for example in persona)
    assert {len(values) for example in (*topical, *persona) for values in example.ratings.values()} == {3}
    for example in (*topical, *persona):
        texts = [example.response.text, *example.facts, *(turn.text for turn in example.context)]
        assert texts == [text.strip() for text in texts]
        assert "" not in texts
    assert [(e.context, e.response, e.facts, e.ratings) for e in scored.examples] == [
        (e.context, e.response, e.facts, e.ratings) for e in topical
    ]
    assert len(scored.scores) == 12
    assert min(scored.scores["stsb"] + scored.scores["fact_stsb"]) == pytest.approx(-0.13, abs=0.005)
    # DSTC10 holds the same responses and ratings.
    theirs = dstc10.read_examples(data_dir / "dstc10" / "topical-usr_eval.json")
    ours = {(example.context, example.response.text): dict(example.ratings) for example in topical}
    assert sum((example.context, example.response.text) in ours for example in theirs) == 360
    assert set(SCALES) == set(theirs[0].ratings)
