"""FED as published: every irregularity of the file, and what is said of a file that is not in its layout."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import dstc10, fed
from tests.fed_files import NOT_APPLICABLE, fed_rows, write_fed

Rows = list[dict[str, Any]]


@pytest.fixture
def rows() -> Rows:
    return fed_rows(2)


def test_an_item_with_a_response_is_of_turn_level_and_one_without_of_dialogue_level(rows: Rows, tmp_path: Path) -> None:
    first, second = fed.read(write_fed(tmp_path, rows))
    assert [response.id for response in first.responses] == ["fed_000_1", "fed_000_2", "fed_000_3"]
    assert (first.whole.id, second.whole.id) == ("fed_000", "fed_001")
    assert first.responses[0].context == (Turn("Hi! (0)", "User"), Turn("Do you like tea?", "System"), Turn("Why?", "User"))
    assert first.responses[0].response == Turn("Because tea number 0 is here.", "System")
    assert first.whole.turns == first.responses[2].context
    assert {first.whole.system, *(response.system for response in first.responses)} == {"Meena"}
    assert fed.read_examples(tmp_path / "fed" / fed.FILE) == [*first.responses, *second.responses]
    assert fed.read_dialogues(tmp_path / "fed" / fed.FILE) == [first.whole, second.whole]


def test_what_a_rater_did_not_answer_is_left_out_before_averaging(rows: Rows, tmp_path: Path) -> None:
    rows[0]["annotations"]["Specific"] = [2, "N/A (it isn't specific)", 1, 2, "N/A"]
    rows[3]["annotations"]["Error recovery"] = [NOT_APPLICABLE] * 5
    (first, _) = fed.read(write_fed(tmp_path, rows))
    assert first.responses[0].ratings["Specific"] == (2.0, 1.0, 2.0)
    assert mean_rating(first.responses[0], "Specific") == pytest.approx(5 / 3)
    assert first.whole.ratings["Error recovery"] == ()
    assert mean_rating(first.whole, "Error recovery") is None


def test_white_space_around_texts_goes(rows: Rows, tmp_path: Path) -> None:
    rows[0]["context"] += " "
    rows[0]["response"] = " " + rows[0]["response"] + " \n"
    rows[3]["context"] += " "
    (first, _) = fed.read(write_fed(tmp_path, rows))
    assert first.responses[0].context[-1].text == "Why?"
    assert first.responses[0].response.text == "Because tea number 0 is here."
    assert first.whole.turns[-1].text == "And tea 1?"


def test_a_turn_may_hold_a_colon_and_a_tag_in_its_middle(rows: Rows, tmp_path: Path) -> None:
    rows[0]["response"] = "System: He said: User: hello"
    (first, _) = fed.read(write_fed(tmp_path, rows))
    assert first.responses[0].response == Turn("He said: User: hello", "System")


def test_a_dialogue_may_have_any_number_of_rated_responses(rows: Rows, tmp_path: Path) -> None:
    assert [len(dialogue.responses) for dialogue in fed.read(write_fed(tmp_path, rows[1:4] + rows[7:]))] == [2, 0]


def test_the_file_is_found_in_the_data_folder(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    path = write_fed(tmp_path, rows)
    assert len(fed.read()) == 2
    path.unlink()
    message = f"{path.parent}: has no fed_data.json. Type `dialeval data fetch fed`."
    with pytest.raises(MissingPrerequisite, match=f"^{re.escape(message)}$"):
        fed.read()


@pytest.mark.real_data
def test_the_published_file(data_dir: Path) -> None:
    path = data_dir / "fed" / fed.FILE
    dialogues = fed.read(path)
    assert Counter(len(dialogue.responses) for dialogue in dialogues) == {3: 125}
    raw = json.loads(path.read_text(encoding="utf-8"))
    answers = [answer for row in raw for values in row["annotations"].values() for answer in values]
    kept = [
        value for item in (*fed.read_examples(path), *fed.read_dialogues(path)) for v in item.ratings.values() for value in v
    ]
    assert (len(answers), len(kept)) == (23750, 23750 - sum(isinstance(answer, str) for answer in answers))
    assert sum(not dialogue.whole.ratings["Error recovery"] for dialogue in dialogues) == 1


@pytest.mark.real_data
def test_dstc10_holds_the_same_data(data_dir: Path) -> None:
    ours = fed.read_examples(data_dir / "fed" / fed.FILE)
    theirs = dstc10.read_examples("ft", folder=data_dir / "dstc10")
    assert [(item.context, item.response, item.system) for item in ours] == [
        (item.context, item.response, item.system) for item in theirs
    ]
    assert [dict(item.ratings) for item in ours] == [dict(item.ratings) for item in theirs]
    whole = fed.read_dialogues(data_dir / "fed" / fed.FILE)
    dialogues = dstc10.read_dialogues("fd", folder=data_dir / "dstc10")
    assert [[turn.text for turn in item.turns] for item in whole] == [[turn.text for turn in d.turns] for d in dialogues]
    assert [dict(item.ratings) for item in whole] == [dict(item.ratings) for item in dialogues]
