"""The published files, counted and averaged a second time from the raw JSON, without the reader."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import mean_rating
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers.dstc10 import SETS, overall_quality, read

pytestmark = pytest.mark.real_data

ROWS = {"tu": 360, "pu": 300, "dz": 900, "pz": 900, "dgu": 500, "eg": 300, "cg": 600, "ft": 375, "fd": 125, "d7": 1000}
DISTINCT_CONTEXTS = {"tu": 60, "pu": 60, "dz": 100, "pz": 149, "dgu": 100, "eg": 147, "cg": 258}


def raw_rows(data_dir: Path, code: str) -> list[dict[str, Any]]:
    paths = (data_dir / "dstc10" / name for name in SETS[code].files)
    return json.loads(next(path for path in paths if path.exists()).read_text(encoding="utf-8"))


@pytest.mark.parametrize("code", ROWS)
def test_rows_ids_qualities_and_ratings(data_dir: Path, code: str) -> None:
    entry = SETS[code]
    items = read(code, folder=data_dir / "dstc10")
    raw = raw_rows(data_dir, code)
    assert len(items) == len(raw) == ROWS[code]
    assert [item.id for item in items] == [row["dialogue_id"] for row in raw]
    assert [item.system for item in items] == [row.get("model", row.get("model_name")) for row in raw]
    assert {quality for item in items for quality in item.ratings} == set(entry.qualities)
    assert overall_quality(items, entry) == entry.overall
    for quality in entry.qualities:
        expected = [fmean(values) if values else None for values in (row["annotations"][quality] for row in raw)]
        assert [mean_rating(item, quality) for item in items] == pytest.approx(expected)


@pytest.mark.parametrize(("code", "distinct"), DISTINCT_CONTEXTS.items())
def test_distinct_contexts(data_dir: Path, code: str, distinct: int) -> None:
    assert len({example.context for example in read(code, folder=data_dir / "dstc10")}) == distinct


@pytest.mark.parametrize("code", [code for code in ROWS if code not in {"fd", "ft"}])
def test_texts_are_the_published_ones_without_the_white_space_around_them(data_dir: Path, code: str) -> None:
    for example, row in zip(read(code, folder=data_dir / "dstc10"), raw_rows(data_dir, code), strict=True):
        assert " ".join(turn.text for turn in example.context).split() == row["context"].split()
        assert len(example.context) == row["context"].strip().count("\n") + 1
        assert example.response.text == row["response"].strip()
        assert {turn.speaker for turn in (*example.context, example.response)} == {None}
        assert all(turn.text == turn.text.strip() != "" for turn in example.context)


def test_grade_on_dailydialog_where_it_is_there(data_dir: Path) -> None:
    if not (data_dir / "dstc10" / SETS["dgr"].files[0]).is_file():
        pytest.skip("dailydialog-grade_eval.json is not in the data folder")
    examples = read("dgr", folder=data_dir / "dstc10")
    assert len(examples) == 300
    assert overall_quality(examples, SETS["dgr"]) == "relevance"
    assert all(mean_rating(example, "relevance") is not None for example in examples)


def test_usr_facts(data_dir: Path) -> None:
    persona = read("pu", folder=data_dir / "dstc10")
    assert Counter(len(example.facts) for example in persona) == {4: 170, 5: 130}
    assert not any(fact.startswith("your persona") or not fact for example in persona for fact in example.facts)
    topical = read("tu", folder=data_dir / "dstc10")
    n_without = sum(row["fact"].strip() == "_nofact" for row in raw_rows(data_dir, "tu"))
    assert Counter(len(example.facts) for example in topical) == {1: 360 - n_without, 0: n_without}


@pytest.mark.parametrize(("code", "rows"), {"tu": 61, "pu": 60, "dz": 100, "pz": 150, "dgu": 2}.items())
def test_responses_that_equal_the_reference(data_dir: Path, code: str, rows: int) -> None:
    examples = read(code, folder=data_dir / "dstc10")
    assert sum(example.response.text in example.references for example in examples) == rows


def test_fed_turn_speakers_alternate_and_the_system_answers(data_dir: Path) -> None:
    for example in read("ft", folder=data_dir / "dstc10"):
        speakers = [turn.speaker for turn in (*example.context, example.response)]
        assert speakers == ["User", "System"] * (len(speakers) // 2)


def test_fed_dialogues_alternate_and_start_and_end_with_the_human(data_dir: Path) -> None:
    dialogues = read("fd", folder=data_dir / "dstc10")
    for dialogue in dialogues:
        assert [turn.speaker for turn in dialogue.turns] == [("human", "model")[i % 2] for i in range(len(dialogue.turns))]
        assert len(dialogue.turns) % 2 == 1
    assert sum(mean_rating(dialogue, "Error recovery") is None for dialogue in dialogues) == 1


def test_fed_items_of_one_dialogue_share_their_key(data_dir: Path) -> None:
    """FED rates three responses of each of 125 dialogues; two dialogues open with the same three turns."""
    examples = read("ft", folder=data_dir / "dstc10")
    keys = [context_key(example) for example in examples]
    assert [keys[i] == keys[i + 1] == keys[i + 2] for i in range(0, 375, 3)] == [True] * 125
    assert Counter(Counter(keys).values()) == {3: 123, 6: 1}
    for one, key in zip(examples, keys, strict=True):
        for other, other_key in zip(examples, keys, strict=True):
            if one.context == other.context[: len(one.context)]:
                assert key == other_key
    assert {context_key(dialogue) for dialogue in read("fd", folder=data_dir / "dstc10")} == set(keys)


def test_rated_twice_at_different_points_is_one_dialogue(data_dir: Path) -> None:
    keys = {code: {context_key(item) for item in read(code, folder=data_dir / "dstc10")} for code in DISTINCT_CONTEXTS}
    assert {code: len(found) for code, found in keys.items()} == {**DISTINCT_CONTEXTS, "tu": 56, "dz": 99}
