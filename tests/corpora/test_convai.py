"""ConvAI1 and ConvAI2 as published: every irregularity of the files, and what is said of one that is not in its layout."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import convai
from tests.convai_files import convai1_rows, convai2_rows, write_convai


def write(folder: Path, rows: Any, name: str = "file.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_a_dialogue_of_convai1_has_its_turns_speakers_kind_and_human_ratings(tmp_path: Path) -> None:
    with_bot, people = convai.read_convai1([write(tmp_path, [convai1_rows()[1], convai1_rows()[2]])])
    assert (with_bot.id, with_bot.system, people.system) == ("-1001", "Bot", "Human")
    assert with_bot.turns[:2] == (Turn("Hi there. (1)", "Alice"), Turn("Hello, do you like tea? (1)", "Bob"))
    assert with_bot.ratings == {"quality": (1.0,), "breadth": (1.0,), "engagement": (1.0,)}
    assert people.ratings["quality"] == (2.0, 2.0)


def test_the_zero_of_a_bot_is_no_rating_unless_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, convai1_rows()[1:2])
    (as_published,) = convai.read_convai1([path], bot_ratings="as_zero")
    assert as_published.ratings["quality"] == (1.0, 0.0)
    assert mean_rating(as_published, "quality") == 0.5
    with pytest.raises(InputError) as refused:
        convai.read_convai1([path], bot_ratings="both")  # type: ignore[arg-type]
    assert str(refused.value) == "bot_ratings: expected one of left_out, as_zero, got 'both'."


def test_blank_texts_and_empty_threads_stay(tmp_path: Path) -> None:
    rows = convai1_rows()[:2]
    rows[0]["thread"] = []
    rows[1]["thread"][0]["text"] = " "
    rows[1]["thread"][0]["time"] = 137000000
    empty, blank = convai.read_convai1([write(tmp_path, rows)])
    assert empty.turns == ()
    assert blank.turns[0] == Turn(" ", "Alice")


def test_an_id_that_two_files_share_is_numbered(tmp_path: Path) -> None:
    one, other = (write(tmp_path, convai1_rows()[:1], f"{name}.json") for name in "ab")
    assert [dialogue.id for dialogue in convai.read_convai1([one, other])] == ["-1000", "-1000#2"]


def test_a_dialogue_of_convai2_that_nobody_rated_has_no_rating(tmp_path: Path) -> None:
    rated, unrated = convai.read_convai2([write(tmp_path, convai2_rows(2, first=5))])
    assert (rated.id, rated.system) == ("0x5", None)
    assert rated.turns[1] == Turn("Hello, do you like tea? (5)", "participant2")
    assert rated.ratings == {"eval_score": (1.0,), "profile_match": (1.0,)}
    assert unrated.ratings == {"eval_score": (), "profile_match": ()}
    assert mean_rating(unrated, "eval_score") is None


def test_a_file_without_ids_gives_its_name_and_one_with_participants_the_bot(tmp_path: Path) -> None:
    rows = convai2_rows(2)
    for row in rows:
        del row["dialog_id"]
        row |= {"start_time": "2018-07-09 04:29:15", "end_time": "2018-07-09 04:29:15", "bot_profile": [], "user_profile": []}
        row["participant1_id"] = {"class": "User", "user_id": "User 00431"}
        row["participant2_id"] = {"class": "Bot", "user_id": "Bot 005"}
        for turn in row["dialog"]:
            turn |= {"evaluation_score": None, "sender_class": "Human"}
    first, second = convai.read_convai2([write(tmp_path, rows, "data_intermediate.json")])
    assert (first.id, second.id) == ("data_intermediate_00000", "data_intermediate_00001")
    assert first.system == "Bot 005"


def test_without_a_path_the_catalogues_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_convai(tmp_path)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    assert len(convai.read_convai1()) == 12
    assert [dialogue.id for dialogue in convai.read_convai2()][:2] == ["0x0", "0x1"]
    (tmp_path / "convai1" / convai.CONVAI1_FILES[1]).unlink()
    with pytest.raises(MissingPrerequisite) as refused:
        convai.read_convai1()
    assert str(refused.value) == (
        f"{tmp_path / 'convai1'}: has no {convai.CONVAI1_FILES[1]}. Type `dialeval data fetch convai1`."
    )


@pytest.mark.real_data
def test_convai1_as_published(data_dir: Path) -> None:
    dialogues = convai.read_convai1([data_dir / "convai1" / name for name in convai.CONVAI1_FILES])
    assert len(dialogues) == 2501 + 277 == len({dialogue.id for dialogue in dialogues})
    assert sum(len(dialogue.turns) > 2 for dialogue in dialogues) == 2154
    assert sum(not dialogue.turns for dialogue in dialogues) == 119
    assert sum(not turn.text.strip() for dialogue in dialogues for turn in dialogue.turns) == 216
    assert Counter(dialogue.system for dialogue in dialogues) == {"Bot": 2337, "Human": 441}
    assert {len(dialogue.ratings["quality"]) for dialogue in dialogues if dialogue.system == "Bot"} == {1}


@pytest.mark.real_data
def test_convai2_as_published(data_dir: Path) -> None:
    folder = data_dir / "convai2"
    exports = [convai.read_convai2([folder / name]) for name in convai.CONVAI2_FILES]
    assert [len(dialogues) for dialogues in exports] == [427, 438, 723, 1417]
    assert exports[0][0].id == "0xab38710"
    others = [convai.read_convai2([folder / f"data_{name}.json"]) for name in ("intermediate", "volunteers")]
    assert [len(dialogues) for dialogues in others] == [291, 1111]
    assert {dialogue.system is None for dialogues in others for dialogue in dialogues} == {False}
    long = [dialogue for dialogues in [*exports, *others] for dialogue in dialogues if len(dialogue.turns) > 2]
    exported = [dialogue for dialogues in exports for dialogue in dialogues if len(dialogue.turns) > 2]
    assert (len(exported), sum(bool(dialogue.ratings["eval_score"]) for dialogue in exported)) == (2145, 2095)
    assert len(long) == 2145 + 170 + 712
