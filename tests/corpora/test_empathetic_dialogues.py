"""EmpatheticDialogues: every irregularity of its files, and what is said of one that is not in its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora.corpus import GroundedDialogue
from dialeval_plugin.corpora.registry import read_dialogues, read_grounded

HEADER = "Dialog_ID,Type,Actor,Text\n"
FIRST = "hit:1_conv:2,situation,none,My car caught fire\nhit:1_conv:2,utterance,speaker,My car caught fire!\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "afraid.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_situation_is_a_fact_of_the_speaker_and_no_turn(tmp_path: Path) -> None:
    rest = (
        'hit:1_conv:2,utterance,listener,"Oh, what did you ""do""?"\n'
        "hit:1_conv:2,utterance,speaker,\n"
        "hit:3_conv:4,situation,none,An exam\n"
        "hit:3_conv:4,utterance,speaker,I failed .\n"
    )
    path = write(tmp_path, HEADER + FIRST + rest)
    turns = (Turn("My car caught fire!", "speaker"), Turn('Oh, what did you "do"?', "listener"))
    assert read_grounded(path) == [
        GroundedDialogue(Dialogue("hit:1_conv:2", turns), {"speaker": ("My car caught fire",)}),
        GroundedDialogue(Dialogue("hit:3_conv:4", (Turn("I failed .", "speaker"),)), {"speaker": ("An exam",)}),
    ]
    assert [dialogue.id for dialogue in read_dialogues(path)] == ["hit:1_conv:2", "hit:3_conv:4"]


def test_a_conversation_that_comes_again_later_gets_an_id_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + FIRST + FIRST.replace("1_", "5_") + FIRST)
    assert [dialogue.id for dialogue in read_dialogues(path)] == ["hit:1_conv:2", "hit:5_conv:2", "hit:1_conv:2#2"]


@pytest.mark.real_data
def test_the_published_files_have_their_published_sizes(data_dir: Path) -> None:
    files = sorted((data_dir / "empathetic_dialogues").glob("*.csv"))
    dialogues = {path.stem: read_grounded(path) for path in files}
    assert {name: len(found) for name, found in dialogues.items()} == {
        "afraid": 797,
        "angry": 863,
        "annoyed": 876,
        "anticipating": 754,
        "anxious": 773,
        "apprehensive": 608,
        "ashamed": 628,
        "caring": 683,
    }
    everything = [dialogue for found in dialogues.values() for dialogue in found]
    assert len(everything) == len({dialogue.dialogue.id for dialogue in everything}) == 5982
    assert all(len(dialogue.facts["speaker"]) == 1 and len(dialogue.turns) >= 2 for dialogue in everything)
    assert not any("_comma_" in turn.text for dialogue in everything for turn in dialogue.turns)
