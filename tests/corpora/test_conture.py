"""ConTurE: every irregularity of its file, and what is said of one that is not in its layout."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.corpora.readers import conture

EXCHANGE = {"user": "User: Who are you? ", "chatbot": "Chatbot: a book.", "overall impression": 2}
ROW = {
    "dialog_id": 7,
    "turns": [EXCHANGE, {"user": "User: What?", "chatbot": "Chatbot:", "overall impression": 0}],
    "dialog_ratings": [{"coherent": 3, "error recovery": "N/A"}, {"coherent": 1, "error recovery": 2}],
}


def write(folder: Path, *rows: Any) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_each_response_has_all_turns_before_it_and_answers_that_were_not_given_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, ROW)
    first, second = Turn("Who are you?", "User"), Turn("a book.", "Chatbot")
    third, last = Turn("What?", "User"), Turn("", "Chatbot")
    assert conture.read_examples(path) == [
        Example("conture_7_1", (first,), second, ratings={"overall impression": (2.0,)}),
        Example("conture_7_2", (first, second, third), last, ratings={"overall impression": (0.0,)}),
    ]
    assert conture.read_dialogues(path) == [
        Dialogue("conture_7", (first, second, third, last), ratings={"coherent": (3.0, 1.0), "error recovery": (2.0,)})
    ]


def test_a_folder_without_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    (tmp_path / "conture").mkdir()
    message = f"{tmp_path / 'conture'}: has no data.json. Type `dialeval data fetch conture`."
    with pytest.raises(MissingPrerequisite, match=f"^{re.escape(message)}$"):
        conture.read()


@pytest.mark.real_data
def test_the_published_file_has_its_published_size(data_dir: Path) -> None:
    dialogues = conture.read(data_dir / "conture" / "data.json")
    examples = [example for dialogue in dialogues for example in dialogue.responses]
    assert (len(dialogues), len(examples)) == (119, 1066)
    assert Counter(example.ratings["overall impression"] for example in examples) == {(2.0,): 501, (0.0,): 328, (1.0,): 237}
    ratings = [dialogue.whole.ratings for dialogue in dialogues]
    # Nine dialogues have two raters only, and ten answers to "error recovery" are "N/A".
    assert sum(len(own["coherent"]) for own in ratings) == 3 * 110 + 2 * 9
    assert sum(len(own["error recovery"]) for own in ratings) == 3 * 110 + 2 * 9 - 10
    assert len({example.id for example in examples}) == len(examples)
