"""`dialeval train` of the general evaluator, its mixing and the independence classifiers, on small files and a tiny encoder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scores import IN_SCOPE
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from tests.cli.running import run, write_rows
from tests.refusals import refused


def write_dialogues(path: Path, number: int = 24) -> Path:
    things = ["harbour", "violin", "glacier", "orchid", "kettle", "quarry"]
    rows = []
    for place in range(number):
        thing = things[place % 6]
        seen = f"This is dialogue number {place} about the old {thing} we both saw."
        praised = f"Indeed, number {place}, the {thing} was a lovely sight for everybody there."
        rows.append(
            {"turns": [seen, praised, "Shall we go and look at it again?", f"Yes, tomorrow at {place} in the morning."]}
        )
    return write_rows(path, rows)


def write_reported(path: Path) -> Path:
    """A rated set whose context is cut from the corpus' eighth dialogue, spelt otherwise."""
    context = [
        "this is dialogue number 7 about the old violin we both saw",
        "Indeed , number 7 , the violin was a lovely sight for everybody there .",
    ]
    return write_rows(path, [{"context": context, "response": "No, thanks."}])


def assert_scope(name: str, folder: Path) -> None:
    """A model of somebody's own says what is beyond what it has learnt, as the bundled ones do."""
    items = [Example.from_texts(["How?"], "So."), Example.from_texts(["How?"], "这是一个很好的问题。")]
    assert load_scorer(name, model=str(folder)).score(items).columns[IN_SCOPE] == (1.0, 0.0)


def test_it_trains_keeps_reported_dialogues_out_and_shows_validation(tiny_encoder: Path, tmp_path: Path) -> None:
    corpus, reported = write_dialogues(tmp_path / "talk.jsonl"), write_reported(tmp_path / "rated.jsonl")
    done = run(
        *("train", "general", "--output", tmp_path / "general", "--backbone", tiny_encoder),
        *("--corpus", f"toy={corpus}", "--corpus", f"toy={write_dialogues(tmp_path / 'more.jsonl', 30)}"),
        *("--evaluation", reported, "--validation-fraction", 0.4, "--epochs", 1, "--max-pairs", 30),
        *("--precision", "float32"),
    )
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    settings = json.loads((tmp_path / "general" / "general.json").read_text())
    counts = settings["training"]["counts"]
    # Both files have the reported dialogue, and the second has all of the first.
    assert counts["left_out_as_leaks"] == {"toy": 2}
    assert sum((counts["training_dialogues"]["toy"], counts["validation_dialogues"]["toy"])) == 24 + 30 - 2
    assert counts["pairs_per_epoch"] == {"toy": 30}
    assert shown[0] == f"{tmp_path / 'general'}: 1 steps; dialogues and responses by corpus:"
    assert shown[1].split()[:3] == ["toy", str(counts["training_dialogues"]["toy"]), "dialogues"]
    assert shown[1].endswith("30 an epoch, 2 dialogues left out as reported")
    columns = ["relevance", "fit", "fluency", "specificity", "knowledge", "cosine", "general"]
    assert [line.split()[0] for line in shown[5:12]] == columns
    assert shown[12].startswith("coherence of whole dialogues: shuffled_turns ")
    assert_scope("general", tmp_path / "general")


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("general",), "Missing option '--corpus'"),
        (("slm",), "Missing option '--data'"),
        (("slm", "--data", "x", "--recipe", "general"), "Invalid value for '--recipe'"),
        (("slm", "--data", "x", "--corpus", "y"), "No such option: --corpus"),
    ],
)
def test_the_two_commands_have_options_of_their_own(words: tuple[str, ...], wrong: str, tmp_path: Path) -> None:
    done = run("train", *words, "--output", tmp_path / "general")
    assert done.exit_code == 2
    assert wrong in done.stderr


def write_answers(folder: Path) -> list[str | Path]:
    """Write what an evaluator of assistants learns from, and return the options that name it."""
    things = ["harbour", "violin", "glacier", "orchid", "kettle", "quarry"]
    said = ["I do not know.", "Wash it with soap and warm water, then dry it. It takes an hour, and nothing breaks."]
    rows = {
        "preferences": [
            {
                "context": [f"How do I clean a {things[n % 6]}, number {n}?"],
                "response": said[k],
                "score": 2 * k,
                "group": str(n),
            }
            for n in range(30)
            for k in range(2)
        ],
        "answers": [
            {
                "context": [f"Tell me about the {things[n % 6]} of street number {n}, please."],
                "response": f"Number {n} has an old {things[n % 6]}. It was built long ago. Many people go to see it.",
            }
            for n in range(30)
        ],
        "requests": [{"context": [f"Is the {things[n % 6]} {n} good?"], "asked_refusal": n % 2} for n in range(20)],
    }
    return [word for name in rows for word in (f"--{name}", write_rows(folder / f"{name}.jsonl", rows[name]))]


def test_an_evaluator_of_assistants_is_trained_and_scores(tiny_encoder: Path, tmp_path: Path) -> None:
    reported = {"context": ["tell me about the harbour of street number 6 , please"], "response": "It is big."}
    done = run(
        *("train", "assistant", *write_answers(tmp_path), "--output", tmp_path / "model", "--backbone", tiny_encoder),
        *("--evaluation", write_rows(tmp_path / "rated.jsonl", [reported])),
        *("--steps", 2, "--validation-fraction", 0.4, "--precision", "float32"),
    )
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    assert shown[0] == f"{tmp_path / 'model'}: 2 steps; on validation:"
    assert {line.split()[0] for line in shown[1:]} >= {"helpfulness", "cut_off", "insult"}
    counts = json.loads((tmp_path / "model" / "assistant.json").read_text())["training"]["counts"]
    assert sum(part["known_answers"] for part in counts.values()) == 29
    assert_scope("assistant", tmp_path / "model")


def test_mixing_is_fitted_on_rated_sets_and_refuses_to_score_them(tiny_general: Path, tmp_path: Path) -> None:
    examples = mini.read_examples("train")[:60]
    rows = [
        {
            "dialogue_id": example.id,
            "model": example.system,
            "context": "\n".join(turn.text for turn in example.context),
            "response": example.response.text,
            "annotations": {"overall": [example.ratings[mini.QUALITY][0] + 1]},
        }
        for example in examples
    ]
    (tmp_path / "other_eval.json").write_text(json.dumps(rows))
    done = run(
        *("train", "mixing", "--model", tiny_general, "--device", "cpu", "--output", tmp_path / "mixing.json"),
        *("--data", "mini", "--data", f"{tmp_path / 'other_eval.json'}:overall"),
    )
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    other = str(tmp_path / "other_eval.json")
    assert shown[0] == f"{tmp_path / 'mixing.json'}: fitted on mini (fits), {other} (overall)"
    assert [line.split()[0] for line in shown[1:]] == ["without", "(nothing)", "mini", other]
    assert set(json.loads((tmp_path / "mixing.json").read_text())["responses"]) == {"mini", other}

    line = {"context": [turn.text for turn in examples[0].context], "response": examples[0].response.text}
    write_rows(tmp_path / "in.jsonl", [line])
    score = ["score", tmp_path / "in.jsonl", "--scorer", "general"]
    score += ["--option", f"model={tiny_general}", "--option", f"mixing={tmp_path / 'mixing.json'}"]
    with pytest.raises(InputError, match=re.escape(f"which is in its set {other!r}")):
        run(*score, "--output", tmp_path / "seen.jsonl")
    assert run(*score, "--output", tmp_path / "unseen.jsonl", "--option", f"leave_out={other}").exit_code == 0


def test_a_quality_that_nobody_rated_is_refused(tiny_general: Path, tmp_path: Path) -> None:
    with refused("--data mini: has no response that is rated in 'charm'. Name another quality or set."):
        run("train", "mixing", "--model", tiny_general, "--output", tmp_path / "m.json", "--data", "mini:charm")


def causes(path: Path, split: Any, first: int, last: int) -> Path:
    rows = [
        {
            "history": [*(f"{'AB'[place % 2]}: {text[:40]}" for place, text in enumerate(item.context)), ""],
            "response": item.positive[0][:40],
            "entities": [item.context[-1][:40]],
        }
        for item in mini.read_response_sets(split)[first:last]
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.mark.long
def test_train_and_score_with_an_explanation(tiny_encoder: Path, tmp_path: Path) -> None:
    training, validation = causes(tmp_path / "a.json", "train", 0, 8), causes(tmp_path / "b.json", "validation", 0, 6)
    unlabelled = causes(tmp_path / "c.json", "train", 6, 14)
    evaluation = causes(tmp_path / "d.json", "test", 0, 4)
    model = tmp_path / "model"
    shown = run(
        *("train", "independence", "--data", training, "--validation", validation, "--output", model),
        *("--unlabelled", unlabelled, "--evaluation", evaluation, "--backbone", tiny_encoder),
        *("--epochs", "1", "--rounds", "1", "--round-epochs", "1", "--max-tokens", "128", "--learning-rate", "0.001"),
    ).stdout
    assert f"{model}: trained on 8 responses, validated on 6, best round 0\n" in shown
    rows = [line.split() for line in shown.splitlines() if "validation" in line or "evaluation" in line]
    assert [row[0] for row in rows[-4:]] == ["unconditional", "unconditional", "round", "round"]

    lines = write_rows(tmp_path / "in.jsonl", [{"id": "q", "context": ["Do you like tea?", "Why?"], "response": "I do."}])
    shown = run(
        "score", lines, "--output", tmp_path / "out.jsonl", "--scorer", "causalscore", "--option", f"model={model}", "--explain"
    ).stdout
    scorer = CausalScorer(str(model))
    items = read_items(lines)
    (explanation,) = scorer.explain(items)
    assert "".join(f"      {line}\n" for line in explanation.split("\n")) in shown
    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert row["causalscore"] == scorer.score(items).values[0]


def test_a_scorer_that_cannot_explain_says_so_first(tmp_path: Path) -> None:
    lines = write_rows(tmp_path / "in.jsonl", [{"context": ["a"], "response": "b"}])
    score = ("score", lines, "--output", tmp_path / "out.jsonl", "--scorer", "response_length", "--explain")
    with refused("response_length: has nothing to explain. Leave --explain out."):
        run(*score)
    with refused("--explain: explains the worst responses, and --worst 0 prints none. Leave one of them out."):
        run(*score, "--worst", "0")
    assert not (tmp_path / "out.jsonl").exists()
