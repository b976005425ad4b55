"""Whole dialogues as unlabelled text: which layout a file has, and DREAM, ESConv and DailyDialog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora.readers import convai, dream, esconv
from dialeval_plugin.corpora.registry import read_dialogues
from tests.convai_files import convai1_rows, convai2_rows


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_dream_has_turns_with_speakers_and_questions_that_are_left_out(tmp_path: Path) -> None:
    rows = [
        [["M: Hi.", "Mrs. Smith:He,s late.", "No one speaks.", " "], [{"question": "Who?"}], "1-1"],
        [["W: 10:15."], [], "1-1"],
    ]
    assert read_dialogues(write(tmp_path / "train.json", rows)) == [
        Dialogue("1-1", (Turn("Hi.", "M"), Turn("He,s late.", "Mrs. Smith"), Turn("No one speaks."))),
        Dialogue("1-1#2", (Turn("10:15.", "W"),)),
    ]


def test_esconv_has_no_ids_and_survey_scores_that_are_left_out(tmp_path: Path) -> None:
    line = {
        "survey_score": {"seeker": {"empathy": "4"}, "supporter": {}},
        "dialog": [
            {"text": "Hi ", "speaker": "sys", "strategy": "Question"},
            {"text": "", "speaker": "usr"},
            {"text": "Hi", "speaker": "usr"},
            {"text": "Well", "speaker": "usr"},
        ],
    }
    assert read_dialogues(write(tmp_path / "valid.txt", json.dumps(line) + "\n")) == [
        Dialogue("valid_00000", (Turn("Hi", "supporter"), Turn("Hi", "seeker"), Turn("Well", "seeker")))
    ]


def test_dailydialog_has_an_end_of_utterance_after_each_and_no_speakers(tmp_path: Path) -> None:
    text = "I ’ m late . __eou__ Why ? __eou__ __eou__\n\nHi . __eou__ Hi . __eou__ \n"
    assert read_dialogues(write(tmp_path / "dialogues_train.txt", text)) == [
        Dialogue("dialogues_train_00000", (Turn("I ’ m late ."), Turn("Why ?"))),
        Dialogue("dialogues_train_00001", (Turn("Hi ."), Turn("Hi ."))),
    ]


def test_contexts_with_their_responses_and_our_own_lines(tmp_path: Path) -> None:
    pairs = [{"history": ["W: Hi.", ""], "response": "M: Hello.", "entities": []}]
    assert read_dialogues(write(tmp_path / "x_response_cause_train.json", pairs)) == [
        Dialogue("x_train_00000", (Turn("Hi.", "W"), Turn("Hello.", "M")))
    ]
    ours = write(tmp_path / "mine.jsonl", '{"turns": ["Hi.", "", "Hello."]}\n')
    assert read_dialogues(ours) == [Dialogue("mine_00000", (Turn("Hi."), Turn("Hello.")))]


def test_contexts_with_their_first_positive_response(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "context": ["Am I late ?", " "],
        "positive_responses": ["No.", "Yes."],
        "random_negative_responses": ["Tea?"],
    }
    only = {"dialog_id": "b", "context": ["Hi."], "positive_responses": []}
    path = write(tmp_path / "dev.json", "\n".join(map(json.dumps, (row, only))))
    assert read_dialogues(path) == [Dialogue("7", (Turn("Am I late ?"), Turn("No."))), Dialogue("b", (Turn("Hi."),))]


def test_logs_of_convai_lose_ratings_blank_turns_and_empty_dialogues(tmp_path: Path) -> None:
    first, empty, last = convai1_rows(3)
    first["thread"][0]["text"] = " "
    empty["thread"] = []
    assert read_dialogues(write(tmp_path / "data_train.json", [first, empty, last])) == [
        Dialogue("-1000", (Turn("Hello, do you like tea? (0)", "Bob"),), "Bot"),
        Dialogue(
            "-1002",
            (
                Turn("Hi there. (2)", "Alice"),
                Turn("Hello, do you like tea? (2)", "Bob"),
                Turn("I do. (2)", "Alice"),
                Turn("And cake? (2)", "Bob"),
            ),
            "Human",
        ),
    ]
    (dialogue,) = read_dialogues(write(tmp_path / "export.json", convai2_rows(1)))
    assert dialogue == Dialogue(
        "0x0", (Turn("Hi there. (0)", "participant1"), Turn("Hello, do you like tea? (0)", "participant2"))
    )


@pytest.mark.real_data
def test_the_published_files_have_their_published_sizes(data_dir: Path) -> None:
    sizes = {name: len(dream.read(data_dir / "dream" / f"{name}.json")) for name in ("train", "dev", "test")}
    assert sizes == {"train": 3869, "dev": 1288, "test": 1287}
    sizes = {name: len(esconv.read(data_dir / "esconv" / f"{name}.txt")) for name in ("train", "valid", "test")}
    assert sizes == {"train": 910, "valid": 195, "test": 195}
    sizes = {}
    for name in ("train", "validation", "test"):
        dialogues = read_dialogues(data_dir / "dailydialog" / name / f"dialogues_{name}.txt")
        sizes[name] = (len(dialogues), len({dialogue.turns for dialogue in dialogues}))
    assert sizes == {"train": (11118, 10549), "validation": (1000, 995), "test": (1000, 996)}
    sizes = {}
    for name in ("dev.json", "data_with_contexts_and_positive_responses_only.json"):
        sizes[name] = len(read_dialogues(data_dir / "dailydialog_pp" / name))
    assert sizes == {"dev.json": 1028, "data_with_contexts_and_positive_responses_only.json": 7641}


@pytest.mark.real_data
def test_the_logs_of_convai_have_their_published_sizes(data_dir: Path) -> None:
    # 119 of ConvAI1's 2,778 threads are empty, and in the threads 216 texts are blank.
    files = [data_dir / "convai1" / name for name in convai.CONVAI1_FILES]
    rated = convai.read_convai1(files)
    dialogues = [dialogue for path in files for dialogue in read_dialogues(path)]
    assert (len(rated), len(dialogues)) == (2778, 2778 - 119)
    n_turns = [sum(len(dialogue.turns) for dialogue in some) for some in (rated, dialogues)]
    assert n_turns[0] - n_turns[1] == 216
    sizes = {path.stem: len(read_dialogues(path)) for path in sorted((data_dir / "convai2").glob("*.json"))}
    assert sizes == {
        "data_intermediate": 291,
        "data_volunteers": 1111,
        "export_2018-07-04_train": 427,
        "export_2018-07-05_train": 438,
        "export_2018-07-06_train": 723,
        "export_2018-07-07_train": 1417,
    }
