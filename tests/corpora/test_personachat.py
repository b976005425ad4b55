"""PersonaChat in ParlAI's layout: every irregularity of its files, and what is said of one that is not in its layout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora.corpus import GroundedDialogue
from dialeval_plugin.corpora.readers import personachat
from dialeval_plugin.corpora.registry import read_dialogues, read_grounded

PUBLISHED = """\
1 your persona: i only eat kosher.
2 your persona: i've two dogs.
3 hello what are doing today ?\ti am good , i just got off work .
4 i like dogs .\twould that be your persona: line ?
1 your persona: i love disneyland.
2 hi !\thello .
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "valid.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_two_turns_a_line_and_the_persona_is_of_the_second_speaker(tmp_path: Path) -> None:
    path = write(tmp_path, PUBLISHED)
    turns = (
        Turn("hello what are doing today ?", "partner"),
        Turn("i am good , i just got off work .", "you"),
        Turn("i like dogs .", "partner"),
        Turn("would that be your persona: line ?", "you"),
    )
    first, second = personachat.read(path)
    assert first == GroundedDialogue(Dialogue("valid_00000", turns), {"you": ("i only eat kosher.", "i've two dogs.")})
    assert second.facts == {"you": ("i love disneyland.",)}
    assert second.turns == (Turn("hi !", "partner"), Turn("hello .", "you"))
    assert read_grounded(path) == [first, second]
    assert read_dialogues(path) == [first.dialogue, second.dialogue]


def test_both_personas_go_to_the_speakers_whom_they_describe(tmp_path: Path) -> None:
    text = "1 partner's persona: i ski.\n2 your persona: i bake.\n3 partner's persona: i am ten.\n4 hi\tho\n"
    (dialogue,) = read_grounded(write(tmp_path, text))
    assert dialogue.facts == {"partner": ("i ski.", "i am ten."), "you": ("i bake.",)}


def test_silence_rewards_candidates_windows_line_ends_and_files_without_personas(tmp_path: Path) -> None:
    text = "1 __SILENCE__\thi .\t\thi .|ho .\r\n2 who ?\tme .\r\n\r\n1 ho .\t \r\n"
    first, second = read_dialogues(write(tmp_path, text))
    assert first.turns == (Turn("hi .", "you"), Turn("who ?", "partner"), Turn("me .", "you"))
    assert second.turns == (Turn("ho .", "partner"),)


@pytest.mark.real_data
def test_the_published_file_has_its_published_size(data_dir: Path) -> None:
    dialogues = read_grounded(data_dir / "personachat" / "valid_self_original_no_cands.txt")
    assert len(dialogues) == len({dialogue.turns for dialogue in dialogues}) == 1000
    assert sum(len(dialogue.turns) for dialogue in dialogues) == 2 * 7801
    assert Counter(len(dialogue.facts["you"]) for dialogue in dialogues) == {4: 517, 5: 483}
    assert {tuple(dialogue.facts) for dialogue in dialogues} == {("you",)}
