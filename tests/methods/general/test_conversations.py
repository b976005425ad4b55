"""Conversations, their pairs, what is set aside, and which of them a step reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.identity import LeakIndex
from dialeval_plugin.methods.general.conversations import Conversation, Pair, by_corpus, conversation, read_conversations
from dialeval_plugin.methods.general.model import GeneralRecipe
from dialeval_plugin.methods.general.objective import SamplingPlan, quotas
from dialeval_plugin.methods.general.signals import NEGATIVES
from tests.refusals import refused


def numbered(corpus: str, number: int, n_turns: int = 5) -> Conversation:
    return Conversation(corpus, tuple(f"{corpus} dialogue {number} has turn {turn} of many words" for turn in range(n_turns)))


def test_blank_turns_are_left_out_with_their_facts() -> None:
    found = conversation("toy", ["Hi  there.", " ", "Hello."], [("a",), ("b",), ("c",)], ["", "Bye."])
    assert found is not None
    assert (found.turns, found.facts, found.misleading) == (("Hi there.", "Hello."), (("a",), ("c",)), ("Bye.",))
    assert conversation("toy", ["Hi.", "\u200b"]) is None


def test_facts_of_some_turns_only_are_refused() -> None:
    with refused("toy: a dialogue has 2 turns and 1 lists of facts. Give one for each turn."):
        conversation("toy", ["Hi.", "Hello."], [("a",)])


def test_copies_of_a_dialogue_share_a_key_and_give_each_pair_once() -> None:
    whole, part = (Conversation("a", (*turns, "Three.", "Four.")) for turns in (("One.", "Two."), ("one .", "TWO.")))
    assert whole.key == part.key
    other = Conversation("a", ("One.", "Two.", "Three.", "Five."), misleading=("Six.",))
    pairs = by_corpus([whole, other])["a"]
    assert [pair.response for pair in pairs] == ["Two.", "Three.", "Four.", "Five."]
    assert pairs[-1] == Pair(other, 3)


def test_dailydialog_pp_gives_each_positive_response_and_what_was_written_to_mislead(tmp_path: Path) -> None:
    source = mini.folder() / "dailydialog_pp.jsonl"
    first = mini.read_response_sets()[0]
    found = read_conversations([f"written={source}"], LeakIndex({}), {})
    assert {item.corpus for item in found} == {"written"}
    assert [item.turns for item in found[: len(first.positive)]] == [(*first.context, text) for text in first.positive]
    assert found[0].misleading == first.adversarial


def test_facts_belong_to_the_speaker_whom_they_describe(tmp_path: Path) -> None:
    lines = [
        "1 your persona: i sail.",
        "2 partner's persona: i knit.",
        "3 hello there.\thi, do you sail?",
        "4 i knit a lot.\tnice.",
    ]
    (tmp_path / "persona.txt").write_text("\n".join(lines) + "\n")
    (found,) = read_conversations([str(tmp_path / "persona.txt")], LeakIndex({}), {})
    assert found.corpus == "persona"
    assert found.turns == ("hello there.", "hi, do you sail?", "i knit a lot.", "nice.")
    assert found.facts == (("i knit.",), ("i sail.",), ("i knit.",), ("i sail.",))


def test_dialogues_with_a_chatbot_teach_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def dialogue(number: int, kind: str) -> dict[str, object]:
        return {
            "dialogId": number,
            "users": [{"id": "Alice", "userType": "Human"}, {"id": "Bob", "userType": kind}],
            "thread": [{"userId": user, "text": f"{user} says {number}."} for user in ("Alice", "Bob")],
            "evaluation": [{"userId": user, "quality": 0, "breadth": 0, "engagement": 0} for user in ("Alice", "Bob")],
        }

    path = tmp_path / "logs.json"
    path.write_text(json.dumps([dialogue(1, "Human"), dialogue(2, "Bot")]))
    (found,) = read_conversations([f"convai={path}"], LeakIndex({}), {})
    assert found.turns == ("Alice says 1.", "Bob says 1.")
    assert caplog.messages == [f"convai={path}: 1 of 2 dialogues are with a chatbot and are left out"]


def test_a_small_corpus_has_more_than_its_share_and_never_more_than_all() -> None:
    assert quotas({"large": 90_000, "small": 900}, max_pairs=1100, exponent=0.5) == {"large": 1000, "small": 100}
    assert quotas({"large": 90_000, "small": 50}, max_pairs=1100, exponent=0.5) == {"large": 1074, "small": 25}
    assert quotas({"large": 90_000, "small": 90}, max_pairs=50_000, exponent=0.5) == {"large": 49_910, "small": 90}
    assert quotas({"a": 30, "b": 40}, max_pairs=1000, exponent=0.5) == {"a": 30, "b": 40}
    assert quotas({"a": 30, "b": 10}, max_pairs=20, exponent=1.0) == {"a": 15, "b": 5}


def plan(seed: int = 1, **changes: object) -> SamplingPlan:
    corpora = by_corpus(numbered(corpus, number) for corpus in ("x", "y") for number in range(30))
    return SamplingPlan(corpora, GeneralRecipe(**{"batch_size": 8, "n_epochs": 2, "max_pairs": 100, **changes}), seed)  # type: ignore[arg-type]


def test_every_step_reads_one_corpus_and_an_epoch_its_quota() -> None:
    whole = plan()
    steps = [whole.rows(step) for step in range(whole.n_steps)]
    assert whole.quotas == {"x": 50, "y": 50}
    assert all(len({row.pair.conversation.corpus for row in rows}) == 1 for rows in steps)
    assert sum(map(len, steps)) == 200
    read = [{(row.pair.context, row.pair.response) for row in rows} for rows in steps]
    first, second = (set().union(*part) for part in (read[: whole.steps_per_epoch], read[whole.steps_per_epoch :]))
    assert len(first) == 100
    # The second epoch goes on with what the first had no room for.
    assert len(first | second) == 200


def test_rows_depend_on_seed_and_place_alone() -> None:
    forwards, backwards = plan(), plan()
    steps = list(range(forwards.n_steps))
    ahead = [forwards.rows(step) for step in steps]
    assert [backwards.rows(step) for step in reversed(steps)] == ahead[::-1]
    assert [plan(seed=2).rows(step) for step in steps] != ahead


def test_a_row_has_two_other_texts_and_one_badly_said() -> None:
    rows = [row for step in range(5) for row in plan().rows(step)]
    head_of = {kind: head for head, kinds in NEGATIVES.items() for kind in kinds} | {"insulting": "insulting"}
    assert {tuple(head_of[kind] for kind, _ in row.negatives) for row in rows} == {
        ("fit", "fit", "fluency"),
        ("fit", "fit", "specificity"),
        ("fit", "fit", "insulting"),
    }
    assert all(len({kind for kind, _ in row.negatives}) == 3 for row in rows)
