"""Topical-Chat: every irregularity of its files, and what is said of one that is not in its layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora.registry import read_dialogues


def write(folder: Path, value: Any) -> Path:
    path = folder / "valid_freq.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def message(text: str, agent: str, **fields: Any) -> dict[str, Any]:
    return {"message": text, "agent": agent, "sentiment": "Neutral", "knowledge_source": ["FS1"], **fields}


def conversation(*content: dict[str, Any]) -> dict[str, Any]:
    return {"article_url": "https://example.org", "config": "B", "content": list(content), "conversation_rating": {}}


def test_agents_are_the_speakers_and_no_rating_is_looked_at(tmp_path: Path) -> None:
    content = [
        message("Do you like football? ", "agent_1", turn_rating="Good"),
        message("I do.\nYou?", "agent_2", turn_rating=""),
        message(" ", "agent_1", turn_rating=None),
    ]
    path = write(tmp_path, {"t_a": conversation(*content), "t_b": conversation(message("Hi.", "agent_2"))})
    assert read_dialogues(path) == [
        Dialogue("t_a", (Turn("Do you like football?", "agent_1"), Turn("I do.\nYou?", "agent_2"))),
        Dialogue("t_b", (Turn("Hi.", "agent_2"),)),
    ]


@pytest.mark.real_data
def test_the_published_file_has_its_published_size(data_dir: Path) -> None:
    dialogues = read_dialogues(data_dir / "topical_chat" / "valid_freq.json")
    assert len(dialogues) == len({dialogue.turns for dialogue in dialogues}) == 539
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    assert len(turns) == 11681
    assert {turn.speaker for turn in turns} == {"agent_1", "agent_2"}
    assert sum("\n" in turn.text for turn in turns) > 0
