"""`auto`: which evaluator judges a conversation, what its rows say, and what is not averaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import score
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.percentiles import PercentileTable, write_table
from dialeval_plugin.core.scorer import percentile_settings
from dialeval_plugin.methods.auto.scorer import AutoScorer, Opening, opening_of, register_of
from dialeval_plugin.methods.general.scorer import GeneralScorer
from tests.cli.running import run, write_rows
from tests.refusals import refused

SOCIAL = ["Hey, how was your weekend?", "Pretty good, I went hiking with my sister. You?", "I stayed in.", "Why?"]
ANSWERED = [
    "Explain how a heap differs from a stack.",
    "- **Stack**: fast, automatic memory.\n- **Heap**: dynamic allocation, for example by `malloc`.",
    "Hey, nice, thanks!",
    "You're welcome!",
]


def dialogue(texts: Sequence[str], *, first: str = "user") -> Dialogue:
    names = ("user", "assistant") if first == "user" else ("assistant", "user")
    return Dialogue("chat", tuple(Turn(text, names[place % 2]) for place, text in enumerate(texts)))


def messages(texts: Sequence[str]) -> dict[str, Any]:
    return {"messages": [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]}


@pytest.mark.parametrize(
    ("register", "texts"),
    [
        ("social", SOCIAL),
        ("social", ["hi", "Hi there! How are you doing?"]),
        ("social", ["My dog died yesterday.", "I'm so sorry to hear that. Losing a pet is very hard."]),
        ("social", ["Do you like tea?", "I do, do you?"]),
        ("social", ["", "I love that song!"]),
        ("assistant", ANSWERED),
        ("assistant", ["Hi", "Hello! How can I assist you today?"]),
        ("assistant", ["What is the capital of France?", "The capital of France is Paris."]),
        ("assistant", ["fix this: print('a'", "print('a')"]),
        ("assistant", ["Schreibe ein Gedicht.", "Der Herbst kommt,\ndie Blätter fallen."]),
    ],
)
def test_a_conversation_has_the_register_of_its_opening(register: str, texts: list[str]) -> None:
    assert register_of(dialogue(texts)) == register


def test_the_opening_is_what_all_messages_of_a_conversation_share() -> None:
    turns = dialogue(["Hi.", " ", "Hello.", "Write a poem.", "Roses are red."]).turns
    examples = [Example("0", turns[:place], turns[place]) for place in range(2, 5)]
    assert {opening_of(one) for one in examples} == {Opening("Hi.", "Hello.")}
    greeted = dialogue(["Welcome.", "Hi.", "What is it?"], first="assistant").turns
    assert [opening_of(Example("0", greeted[:place], greeted[place])) for place in (0, 2)] == [Opening("", "Welcome.")] * 2
    assert opening_of(Dialogue("empty", ())) == Opening("", "")


@pytest.fixture
def auto(tiny_general: Path, tiny_assistant: Path) -> AutoScorer:
    return AutoScorer(general=str(tiny_general), assistant=str(tiny_assistant), device="cpu")


def test_every_message_of_a_conversation_has_one_evaluator_whose_very_scores_they_are(auto: AutoScorer) -> None:
    scores = score([messages(SOCIAL), messages(ANSWERED)], auto)
    rows = list(scores.rows())
    assert [row["judged_by"] for row in rows] == ["general", "general", "assistant", "assistant"]
    for name, part in auto.parts.items():
        own = [place for place, row in enumerate(rows) if row["judged_by"] == name]
        alone = part.score([scores.items[place] for place in own])
        assert [rows[place]["auto"] for place in own] == pytest.approx(alone.values)
        others = set(auto.columns) - set(part.columns) - {"auto"}
        assert {rows[place][column] for place in own for column in others} == {None}
    assert str(scores.signature).startswith("method:auto|register:")
    for name, part in auto.parts.items():
        assert f"|{name}_model:{part.model_hash}|" in str(scores.signature)
    assert auto.explain(scores.items[3:]) == auto.parts["assistant"].explain(scores.items[3:])


def test_no_mean_is_taken_over_both(auto: AutoScorer) -> None:
    scores = score([messages(SOCIAL), messages(ANSWERED)], auto)
    general, assistant = scores.mean("general"), scores.mean("assistant")
    assert (scores.mean(), scores.mean("auto")) == (None, None)
    assert repr(scores) == f"Scores(auto: mean {general:.4f} of general, mean {assistant:.4f} of assistant, 4 of 4 scored)"


def test_a_percentile_is_among_the_scores_of_the_evaluator_that_judged(
    tiny_general: Path, tiny_assistant: Path, tmp_path: Path
) -> None:
    parts = AutoScorer(general=str(tiny_general), assistant=str(tiny_assistant), device="cpu").parts
    folders = {}
    for name, folder, quantiles in (("general", tiny_general, (-2.0, -1.0)), ("assistant", tiny_assistant, (2.0, 3.0))):
        folders[name] = tmp_path / name
        folders[name].mkdir()
        for file in folder.iterdir():
            (folders[name] / file.name).symlink_to(file)
        settings = percentile_settings(parts[name])
        write_table(folders[name], PercentileTable(name, "turn", "higher", settings, 2, {}, quantiles, {}))
    scorer = AutoScorer(**{name: str(folder) for name, folder in folders.items()})
    assert score([messages(SOCIAL), messages(ANSWERED)], scorer).columns["percentile"] == (100.0, 100.0, 0.0, 0.0)
    assert scorer.percentiles is not None
    assert scorer.percentiles.digest != GeneralScorer(str(folders["general"])).percentiles.digest  # type: ignore[union-attr]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "log.jsonl", [messages(SOCIAL), messages(ANSWERED), messages(SOCIAL)])


@pytest.fixture
def words(tiny_general: Path, tiny_assistant: Path) -> tuple[str, ...]:
    return (
        "--scorer",
        "auto",
        "--option",
        f"general={tiny_general}",
        "--option",
        f"assistant={tiny_assistant}",
        "--worst",
        "0",
    )


def test_the_summary_keeps_the_two_apart_and_so_does_a_file_of_shards(
    log: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    whole = run("score", log, *words, "--output", tmp_path / "whole.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    means = {
        name: sum(row["auto"] for row in rows if row["judged_by"] == name) / n for name, n in (("general", 4), ("assistant", 2))
    }
    said = [
        "auto: 6 of 6 scored, by scorers that have no common scale:",
        f"  judged by general: mean {means['general']:.4f}, 4 scored",
        f"  judged by assistant: mean {means['assistant']:.4f}, 2 scored",
    ]
    assert whole.stdout.splitlines()[:3] == said
    assert whole.stdout.splitlines()[3].startswith("auto#")
    for number in (1, 2):
        run("score", log, *words, "--output", tmp_path / f"{number}.jsonl", "--shard", f"{number}/2")
    merged = run("merge", tmp_path / "merged.csv", tmp_path / "1.jsonl", tmp_path / "2.jsonl")
    assert merged.stdout.splitlines()[:3] == said
    header, first, *_ = (tmp_path / "merged.csv").read_text().splitlines()
    assert dict(zip(header.split(","), first.split(","), strict=True))["judged_by"] == "general"


def test_what_would_average_both_is_refused_with_the_way_out(log: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    with refused(
        "--fail-under: auto has no mean, since its scorers have no common scale. Name one of them: general or assistant."
    ):
        run("score", log, *words, "--fail-under", "0.5")
    scores = tmp_path / "scores.jsonl"
    run("score", log, *words, "--output", scores)
    with refused(f"{scores}: scores of general and assistant have no common scale. Choose one with --column general."):
        run("compare", scores, scores)
    assert run("compare", scores, scores, "--column", "general").exit_code == 0


def test_two_scorers_are_refused_with_the_way_out(log: Path) -> None:
    with refused(
        "--scorer: is given 2 times, general, assistant. Run the command once for each, with its own "
        "--output, or name auto, which chooses general or assistant for each conversation."
    ):
        run("score", log, "--scorer", "general", "--scorer", "assistant")
