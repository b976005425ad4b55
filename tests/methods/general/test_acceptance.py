"""Acceptance, learnt from logs of chats: what a repair is, what is learnt, and the folder that comes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.conversations.record import Conversation
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.general.acceptance_training import (
    N_FOLDS,
    answered_turns,
    is_clarification_request,
    learn,
    read_logs,
)
from dialeval_plugin.methods.general.judging import Acceptance
from dialeval_plugin.methods.general.scorer import GeneralScorer
from tests.cli.running import names, run, write_rows
from tests.refusals import refusal


@pytest.mark.parametrize("text", ["What?", "huh", "I just told you that.", "That makes no sense.", "Are you a bot?"])
def test_who_asks_back_or_complains_repairs(text: str) -> None:
    assert is_clarification_request(text)


@pytest.mark.parametrize("text", ["What a nice day!", "Who is your favourite singer?", "Thanks, that helps.", "I am okay."])
def test_who_goes_on_does_not(text: str) -> None:
    assert not is_clarification_request(text)


def chat(id: str, *texts: str) -> Conversation:
    turns = tuple(Turn(text, ("user", "assistant")[place % 2]) for place, text in enumerate(texts))
    return Conversation(id, turns, tuple(range(1, len(turns) + 1)))


def chats(number: int) -> list[Conversation]:
    """In each a turn that is asked back at, one that is not, and one that nobody answers."""
    return [chat(str(n), "Hi", "blue", "What?", "red", "Nice.", "green") for n in range(number)]


def row(one: Conversation) -> dict[str, object]:
    return {"turns": [{"speaker": turn.speaker, "text": turn.text} for turn in one.turns]}


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


def test_reported_conversations_are_left_out_and_each_log_has_its_own_name(tmp_path: Path) -> None:
    said = ["Where did you find those enormous plums?", "At the market by the river, early this morning.", "Lucky you!"]
    logs = [write_rows(tmp_path / name, map(row, [chat("a", *said), *chats(2)])) for name in ("one.jsonl", "one.json.jsonl")]
    reported = {"set": [Example.from_texts(said[:1], said[1])]}
    assert len(read_logs(logs[:1], {})["one"]) == 3
    assert len(read_logs(logs[:1], reported)["one"]) == 2
    assert refusal(read_logs, logs, {}) == f"{logs[1]}: there are two logs named one. Rename one."


def test_what_was_learnt_of_another_models_vectors_is_refused() -> None:
    said = refusal(Acceptance((1.0, 2.0), 0.0, {}).log_odds, np.zeros((1, 3), dtype=np.float32), error=ModelLoadError)
    assert said.startswith("acceptance.json: has 2 weights for vectors of 3 numbers")


def test_the_command_writes_a_model_that_has_the_column_and_adds_its_log_odds(tiny_general: Path, tmp_path: Path) -> None:
    log = write_rows(tmp_path / "log.jsonl", map(row, chats(30)))
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
    by_onnx = GeneralScorer(str(taught), backend="onnx").score(examples)
    assert by_onnx.columns["acceptance"] == pytest.approx(after.columns["acceptance"], abs=1e-6)
    talk = Dialogue(
        "d", tuple(Turn(text, speaker) for text, speaker in (("Hi", "user"), ("blue", "assistant"), ("Hi", "user")))
    )
    assert GeneralScorer(str(taught), level="dialogue", device="cpu").score([talk]).columns["acceptance"] == pytest.approx(
        [blue]
    )
    # As after a command that was killed just before its end.
    assert "AUROC" in run(*command).stdout
    assert names(tmp_path) == ["log.jsonl", "taught"]
    (taught / "README.md").write_text("# Mine\n")
    assert refusal(run, *command) == f"{taught}: exists already. Choose another folder, or delete this one."
