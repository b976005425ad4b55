"""Training on the embedded corpus: falling losses, interruptions, leaks, early ends, the command, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.registry import read_dialogues
from dialeval_plugin.methods.reconstruction import training
from dialeval_plugin.methods.reconstruction.model import NetworkKind, TrainedReconstruction
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from dialeval_plugin.methods.reconstruction.training import (
    FIGURES,
    ReconstructionRecipe,
    ReconstructionSources,
    ReconstructionTrainingOptions,
    prepare,
    train,
)
from dialeval_plugin.training import checkpoints, loop
from dialeval_plugin.training.checkpoints import read_history
from dialeval_plugin.training.run import TrainingResult, choose_recipe
from tests.refusals import refusal
from tests.tiny.reconstruction import KINDS
from tests.training_processes import files_of

TINY = ReconstructionRecipe(
    "tiny",
    sizes={"embedding": 16, "encoder": 12, "context": 16, "decoder": 24, "latent": 4},
    min_count=2,
    learning_rate=1e-2,
    batch_size=4,
    n_epochs=3,
    annealing_steps=20,
)


def dialogues(split: Any, number: int) -> list[tuple[Turn, ...]]:
    return [tuple(Turn(text) for text in (*item.context, item.positive[0])) for item in mini.read_response_sets(split)[:number]]


SOURCES = ReconstructionSources(dialogues("train", 40), dialogues("validation", 12))


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "RECIPES", {**training.RECIPES, "small": TINY, "tiny": TINY})


def options(kind: NetworkKind = "vhcr", **changes: Any) -> ReconstructionTrainingOptions:
    return ReconstructionTrainingOptions(model=kind, recipe="tiny", **changes)


def run(folder: Path, kind: NetworkKind = "vhcr", sources: ReconstructionSources = SOURCES, **changes: Any) -> TrainingResult:
    return train(sources, folder, options(kind, **changes), device="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_training_lowers_the_validation_loss_and_keeps_the_best_epoch(kind: NetworkKind, tmp_path: Path) -> None:
    trained = run(tmp_path / "model", kind)

    stored = json.loads((tmp_path / "model" / "reconstruction.json").read_text())
    assert stored["training"] == trained.record
    assert (stored["model"], stored["recipe"], stored["max_tokens"]) == (kind, "tiny", 30)
    assert read_history(tmp_path / "model") == trained.history
    steps = [(row.stage, row.epoch, row.step) for row in trained.history]
    assert steps == [("reconstruction", 1.0, 10), ("reconstruction", 2.0, 20), ("reconstruction", 3.0, 30)]
    first, *_, last = (row.figures for row in trained.history)
    assert tuple(first) == FIGURES
    assert last["loss"] < first["loss"]
    assert last["training_loss"] < first["training_loss"]
    has_latents = kind in ("vhred", "vhcr")
    weights = [row.figures["training_kl_weight"] for row in trained.history]
    assert weights == ([0.5, 1.0, 1.0] if has_latents else [0.0] * 3)
    assert all((row.figures["training_kl"] > 0) == has_latents for row in trained.history)
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {"history.json", "manifest.json", "model.safetensors", "reconstruction.json", "vocabulary.json"}
    best = min(trained.history, key=lambda row: row.figures["loss"])
    assert trained.record["best_epoch"] == best.epoch
    scorer = DialogueReconstructionScorer(str(tmp_path / "model"), device="cpu")
    rows = list(scorer.score([Dialogue(str(n), turns) for n, turns in enumerate(SOURCES.validation)]).rows())
    loss = sum(row["loss_sum"] for row in rows) / sum(row["n_tokens"] for row in rows)
    assert loss == pytest.approx(best.figures["loss"], rel=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.rand(3)  # what was drawn before does not matter
        run(tmp_path / name, n_epochs=1, seed=seed)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("owner", "name", "call", "last"),
    [(training, "validation_loss", 2, 1), (checkpoints, "seal", 3, 2), (TrainedReconstruction, "save", 1, None)],
    ids=["in an epoch", "before a checkpoint is whole", "after the last epoch"],
)
def test_a_training_that_stops_goes_on_to_the_same_files(
    owner: Any, name: str, call: int, last: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(tmp_path / "whole")
    with stopped_at(owner, name, call):
        run(tmp_path / "broken")
    assert not (tmp_path / "broken" / "reconstruction.json").exists()
    capsys.readouterr()
    assert train(SOURCES, tmp_path / "broken", options(), device="cpu", progress=True)[1:] == whole[1:]
    said = [line.strip() for line in capsys.readouterr().err.splitlines() if "resuming" in line]
    steps = [] if last is None else [f"reconstruction: resuming from step {10 * last} of 30"]
    assert said == [f"{tmp_path / 'broken' / '.training'}: resuming an unfinished run", *steps]
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")


@contextmanager
def stopped_at(owner: Any, name: str, call: int) -> Iterator[None]:
    """Interrupt the block in what is called so many times."""
    original, calls = getattr(owner, name), itertools.count(1)

    def interrupted(*args: Any) -> Any:
        if next(calls) == call:
            raise KeyboardInterrupt
        return original(*args)

    with patch.object(owner, name, interrupted), pytest.raises(KeyboardInterrupt):
        yield


def test_other_data_or_options_do_not_go_on_with_a_run(tmp_path: Path) -> None:
    with stopped_at(TrainedReconstruction, "save", 1):
        run(tmp_path / "model", n_epochs=1)
    others = ReconstructionSources(SOURCES.training[1:], SOURCES.validation)
    for sources, seed, differing in ((SOURCES, 2, "options"), (others, 13, "data")):
        with pytest.raises(InputError, match=f"holds an unfinished run with other {differing}"):
            run(tmp_path / "model", sources=sources, n_epochs=1, seed=seed)


def test_training_ends_early_without_gain_once_the_weight_is_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([3.0, 4.0, 5.0, 2.0, 2.5, 2.6, 2.7])
    monkeypatch.setattr(training, "validation_loss", lambda *args: next(losses))
    slow = replace(TINY, batch_size=20, n_epochs=30, annealing_steps=6, patience=2)
    monkeypatch.setattr(training, "RECIPES", {"tiny": slow})
    trained = run(tmp_path / "model")
    assert [row.figures["loss"] for row in trained.history] == [3.0, 4.0, 5.0, 2.0, 2.5, 2.6]
    weights = [row.figures["training_kl_weight"] for row in trained.history]
    assert weights == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1])
    assert trained.record["best_epoch"] == 4


@pytest.mark.parametrize("step", [2, 10], ids=["in a step", "on validation"])
def test_a_model_that_diverges_is_not_kept(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if step == 2:
        monkeypatch.setattr(training, "RECIPES", {"tiny": replace(TINY, learning_rate=1e30)})
    else:
        monkeypatch.setattr(training, "validation_loss", lambda *args: math.nan)
    assert refusal(run, tmp_path / "model", error=ModelLoadError) == (
        f"training: a loss of step {step} is not a finite number, so the model diverged. "
        "Train again with another seed, a lower learning rate, or precision='float32'."
    )
    assert not (tmp_path / "model" / "reconstruction.json").exists()


def test_the_time_that_is_left_is_not_overdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 50))
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(clock))
    trained = train(SOURCES, tmp_path / "model", options("hred", n_epochs=30), max_minutes=2, device="cpu")
    assert len(trained.history) == 2


def test_bfloat16_is_taken_where_it_is_asked_for(tmp_path: Path) -> None:
    weights = []
    for precision in ("float32", "bfloat16"):
        trained = run(tmp_path / precision, n_epochs=1, precision=precision)
        assert trained.history[0].figures["loss"] == pytest.approx(trained.history[0].figures["training_loss"], rel=0.5)
        weights.append(files_of(trained.folder)["model.safetensors"])
    assert weights[0] != weights[1]


COUNTS = (
    *("n_training_short", "n_training_duplicates", "n_training_in_evaluation"),
    *("n_validation_short", "n_validation_duplicates", "n_validation_in_evaluation"),
    *("n_training_in_validation", "n_training", "n_validation"),
)


def test_duplicates_and_leaks_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    def turns(text: str) -> tuple[Turn, ...]:
        return tuple(map(Turn, text.split("|")))

    sources = ReconstructionSources(
        [*map(turns, ("Hi .|Hello .|How are you ?|Fine .", "Hi.|Hello.|How are you?|Fine.", "hi| ||\n", "Where ?|Here .|Now ?",
                      "Who ?|Me .|Why ?|No idea .", "Yes ?|No ."))],
        [turns("WHERE?|Here.|Now?|Later."), turns("Yes?|No.|Maybe.")],
        [Dialogue("a", turns("Who?|Me.|Why?")), Dialogue("b", turns("Yes?|No.|Maybe."))],
    )  # fmt: skip
    with caplog.at_level("WARNING"):
        corpus = prepare(sources, ReconstructionRecipe("tiny", min_count=1), validation_fraction=0.1, seed=1)
    assert corpus.counts == dict(zip(COUNTS, (1, 1, 1, 0, 0, 1, 1, 2, 1), strict=True))
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "1 of 4 training dialogues are in the evaluation data too",
        "1 of 2 validation dialogues are in the evaluation data too",
        "1 of 3 training dialogues open like a validation dialogue and are left out",
    ]
    # The vocabulary is that of the two training dialogues that are left.
    assert set(corpus.vocabulary.words) == {"hi", ".", "hello", "how", "are", "you", "?", "fine", "yes", "no"}


@pytest.mark.real_data
def test_dailydialogs_duplicates_and_overlaps_are_found(data_dir: Path) -> None:
    files = [data_dir / "dailydialog" / name / f"dialogues_{name}.txt" for name in ("train", "validation", "test")]
    read = [read_dialogues(path) for path in files]
    training_dialogues, validation = ([dialogue.turns for dialogue in found] for found in read[:2])
    sources = ReconstructionSources(training_dialogues, validation, read[2])
    corpus = prepare(sources, training.RECIPES["small"], validation_fraction=0.1, seed=13)
    assert corpus.counts == dict(zip(COUNTS, (0, 775, 307, 0, 6, 20, 160, 9876, 974), strict=True))


def test_only_the_first_utterances_and_tokens_are_trained_on() -> None:
    long = tuple(Turn(f"word{place} " * 40) for place in range(14))
    sources = ReconstructionSources([long], SOURCES.validation[:1])
    corpus = prepare(sources, ReconstructionRecipe("tiny"), validation_fraction=0.1, seed=1)
    assert [len(utterance) for utterance in corpus.training[0]] == [30] * 10
    assert corpus.vocabulary.words == tuple(f"word{place}" for place in range(10))


def test_without_validation_dialogues_some_are_set_aside_by_the_seed() -> None:
    halves = [prepare(ReconstructionSources(SOURCES.training), TINY, validation_fraction=0.25, seed=seed) for seed in (1, 1, 2)]
    assert [half.counts["n_validation"] for half in halves] == [10, 10, 10]
    assert halves[0].validation == halves[1].validation != halves[2].validation


def test_the_recipes() -> None:
    thesis = training.Architecture(20_004, **training.RECIPES["thesis"].sizes)
    assert astuple(thesis) == (20_004, 500, 1000, 1000, 1000, 100, 0.2, 0.25, 0.25)
    assert choose_recipe(training.RECIPES, "small", n_epochs=2).n_epochs == 2


TOO_FEW = (
    "training data: {} dialogues to train on and {} to validate on are left, at least 1 of each is needed. Give more dialogues."
)


@pytest.mark.parametrize(
    ("sources", "options", "problem"),
    [
        (SOURCES, {"model": "lstm"}, f"training: model is 'lstm'. Give one of {', '.join(KINDS)}."),
        (SOURCES, {"recipe": "paper"}, "training: recipe is 'paper'. Give one of thesis, small, tiny."),
        (SOURCES, {"n_epochs": 0}, "n_epochs: expected a positive number, got 0."),
        (ReconstructionSources(SOURCES.training), {"validation_fraction": 1.0},
         "validation_fraction: expected a number between 0 and 1, got 1.0."),
        (ReconstructionSources([], SOURCES.validation), {}, TOO_FEW.format(0, 12)),
        (ReconstructionSources(SOURCES.training[:1]), {}, TOO_FEW.format(1, 0)),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_said(
    sources: ReconstructionSources, options: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    assert refusal(train, sources, tmp_path / "model", ReconstructionTrainingOptions(**options)) == problem
    assert not (tmp_path / "model" / "reconstruction.json").exists()


def test_no_time_is_none(tmp_path: Path) -> None:
    said = refusal(train, SOURCES, tmp_path / "model", options(), max_minutes=0)
    assert said == "max_minutes: expected more than 0, got 0."


def command(tmp_path: Path, *words: object, **sources: Any) -> list[str]:
    """Run the command on dialogues by option, and return what it prints."""
    for name, found in sources.items():
        path = tmp_path / f"dialogues_{name}.txt"
        lines = ("".join(f"{' '.join(turn.text.split())} __eou__ " for turn in turns) + "\n" for turns in found)
        path.write_text("".join(lines), encoding="utf-8")
        words = (*words, f"--{name}", path)
    common = ("--device", "cpu", "--output", tmp_path / "model")
    result = CliRunner().invoke(app, list(map(str, ("train", "reconstruction", *common, *words))))
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_the_command_trains_and_reports_every_epoch(tmp_path: Path) -> None:
    sources = {"data": SOURCES.training, "validation": SOURCES.validation, "evaluation": SOURCES.training[:2]}
    lines = command(tmp_path, "--model", "vhred", "--epochs", 2, **sources)
    best = json.loads((tmp_path / "model" / "reconstruction.json").read_text())["training"]["best_epoch"]
    assert lines[0] == f"{tmp_path / 'model'}: vhred trained on 38 dialogues, validated on 12, best epoch {best}"
    assert "left out: 2 training dialogues are in the evaluation data or begin like it" in lines
    assert [line.split()[0] for line in lines[-3:]] == ["epoch", "1", "2"]
    assert lines[-3].split("  ")[-1].strip() == "validation loss"
