"""Acceptance, learnt from logs of chats: what a repair is, what is learnt, and the folder that comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.corpora.conversations import Conversation
from dialeval_plugin.methods.general.acceptance import Acceptance
from dialeval_plugin.methods.general.repairs import N_FOLDS, answered_turns, is_repair, learn
from dialeval_plugin.methods.general.scorer import GeneralScorer
from tests.cli.running import run
from tests.refusals import refusal


@pytest.mark.parametrize("text", ["What?", "huh", "I just told you that.", "That makes no sense.", "Are you a bot?"])
def test_who_asks_back_or_complains_repairs(text: str) -> None:
    assert is_repair(text)


@pytest.mark.parametrize("text", ["What a nice day!", "Who is your favourite singer?", "Thanks, that helps.", "I am okay."])
def test_who_goes_on_does_not(text: str) -> None:
    assert not is_repair(text)


def chat(id: str, *texts: str) -> Conversation:
    turns = tuple(Turn(text, ("user", "assistant")[place % 2]) for place, text in enumerate(texts))
    return Conversation(id, turns, tuple(range(1, len(turns) + 1)))


def chats(number: int) -> list[Conversation]:
    """In each a turn that is asked back at, one that is not, and one that nobody answers."""
    return [chat(str(n), "Hi", "blue", "What?", "red", "Nice.", "green") for n in range(number)]


def test_turns_that_a_user_answers_count_and_no_others() -> None:
    found = answered_turns("log", [chat("a", "Hi", "blue", " ", "red", "What?", "green")])
    assert [(one.response, one.is_accepted, one.conversation) for one in found] == [("red", False, "log a")]


def test_it_learns_which_vectors_are_asked_back_at() -> None:
    places = {"blue": [1.0, 0.0, 1.0], "red": [0.0, 1.0, 1.0]}
    learnt = learn({"log": chats(40)}, lambda texts: np.array([places[text] for text in texts], dtype=np.float32))
    blue, red = learnt.log_odds(np.array([places["blue"], places["red"]], dtype=np.float32))
    assert blue < 0 < red
    assert learnt.training["turns"] == {"log": {"answered": 80, "repairs": 40}}
    assert learnt.training["auroc"] == 1


def test_too_few_repairs_teach_nothing() -> None:
    said = refusal(learn, {"log": chats(2)}, lambda texts: np.zeros((len(texts), 3), dtype=np.float32))
    assert said.startswith("log: of 4 turns of an assistant that a user answers, 2 in 2 conversations got an answer that asks")
    assert f"in {N_FOLDS} conversations" in said


def test_the_command_writes_a_model_that_has_the_column_and_adds_its_log_odds(tiny_general: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"turns": [{"speaker": turn.speaker, "text": turn.text} for turn in one.turns]} for one in chats(30)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    taught = tmp_path / "taught"
    command = ("train", "acceptance", "--model", tiny_general, "--data", log, "--output", taught, "--device", "cpu")
    assert "AUROC" in run(*command).stdout
    examples = [Example.from_texts(["Hi"], text, id=text) for text in ("blue", "red")]
    before, after = (GeneralScorer(str(folder), device="cpu").score(examples) for folder in (tiny_general, taught))
    assert "acceptance" not in before.columns
    blue, red = after.columns["acceptance"]
    assert blue is not None
    assert red is not None
    assert blue < red
    for place in range(2):
        odds = [np.log(scores.values[place] / (1 - scores.values[place])) for scores in (before, after)]
        accepted = after.columns["acceptance"][place]
        assert accepted is not None
        assert odds[1] - odds[0] == pytest.approx(np.log(accepted / (1 - accepted)), abs=1e-6)
    assert Acceptance.load(tiny_general) is None
    assert f"{taught}: exists already" in refusal(run, *command)
