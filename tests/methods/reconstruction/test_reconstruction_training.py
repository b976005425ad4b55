"""Training on the embedded corpus: falling losses, kills, leaks, early ends, the command, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.registry import read_dialogues
from dialeval_plugin.methods.reconstruction import recipes, training
from dialeval_plugin.methods.reconstruction.data import Sources, prepare
from dialeval_plugin.methods.reconstruction.model import Kind, TrainedReconstruction
from dialeval_plugin.methods.reconstruction.recipes import Recipe, find_recipe
from dialeval_plugin.methods.reconstruction.scorer import RECONSTRUCTION_MODEL, DialogueReconstructionScorer
from dialeval_plugin.methods.reconstruction.training import TrainingOptions, train
from tests.tiny_reconstruction_models import KINDS

TINY = Recipe(
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


SOURCES = Sources(dialogues("train", 40), dialogues("validation", 12))


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(recipes, "RECIPES", {**recipes.RECIPES, "tiny": TINY})


def options(kind: Kind = "vhcr", **changes: Any) -> TrainingOptions:
    return TrainingOptions(kind, "tiny", **changes)


@pytest.mark.parametrize("kind", KINDS)
def test_training_lowers_the_validation_loss_and_keeps_the_best_epoch(kind: Kind, tmp_path: Path) -> None:
    trained = train(SOURCES, tmp_path / "model", options(kind), device="cpu")

    stored = json.loads((tmp_path / "model" / "reconstruction.json").read_text())
    assert stored["training"] == trained.record
    assert (stored["model"], stored["recipe"], stored["max_tokens"]) == (kind, "tiny", 30)
    history = trained.record["history"]
    assert [epoch["epoch"] for epoch in history] == [1, 2, 3]
    assert history[-1]["validation_loss"] < history[0]["validation_loss"]
    assert history[-1]["training_loss"] < history[0]["training_loss"]
    has_latents = kind in ("vhred", "vhcr")
    assert [epoch["kl_weight"] for epoch in history] == ([0.5, 1.0, 1.0] if has_latents else [0.0] * 3)
    assert all((epoch["training_kl"] > 0) == has_latents for epoch in history)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "model.safetensors",
        "reconstruction.json",
        "vocabulary.json",
    ]
    best = min(history, key=lambda epoch: epoch["validation_loss"])
    assert trained.record["best_epoch"] == best["epoch"]
    assert RECONSTRUCTION_MODEL.find(None) == str((tmp_path / "model").resolve())
    scorer = DialogueReconstructionScorer(device="cpu")
    rows = list(scorer.score([Dialogue(str(n), turns) for n, turns in enumerate(SOURCES.validation)]).rows())
    loss = sum(row["loss_sum"] for row in rows) / sum(row["n_tokens"] for row in rows)
    assert loss == pytest.approx(best["validation_loss"], rel=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.rand(3)  # what was drawn before does not matter
        train(SOURCES, tmp_path / name, options(n_epochs=1, seed=seed), device="cpu")
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("broken", ["in an epoch", "before progress is written", "after the last epoch"])
def test_a_training_that_stops_goes_on_to_the_same_weights(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(SOURCES, tmp_path / "whole", options(), device="cpu")

    with monkeypatch.context() as patch:
        places = {
            "in an epoch": (training._Trainee, "measure", 2),
            "before progress is written": (training, "write_text", 3),
            "after the last epoch": (TrainedReconstruction, "save", 1),
        }
        owner, name, call = places[broken]
        original, calls = getattr(owner, name), [0]

        def fail(*args: Any) -> Any:
            calls[0] += 1
            if calls[0] == call:
                raise KeyboardInterrupt
            return original(*args)

        patch.setattr(owner, name, fail)
        with pytest.raises(KeyboardInterrupt):
            train(SOURCES, tmp_path / "broken", options(), device="cpu")
    assert not (tmp_path / "broken" / "reconstruction.json").exists()
    capsys.readouterr()
    resumed = train(SOURCES, tmp_path / "broken", options(), device="cpu", progress=True)

    said = [line for line in capsys.readouterr().err.splitlines() if "going on" in line]
    last = {"in an epoch": 1, "before progress is written": 2, "after the last epoch": 3}[broken]
    assert [line.strip() for line in said] == [f"reconstruction: going on from epoch {last} of 3"]
    assert resumed.record == whole.record
    for name in ("model.safetensors", "vocabulary.json", "reconstruction.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


KILLED = """
import sys
from pathlib import Path
from tests.methods.reconstruction.test_reconstruction_training import SOURCES, TINY, TrainingOptions, recipes, train
recipes.RECIPES = {"tiny": TINY}
train(SOURCES, Path(sys.argv[1]), TrainingOptions("vhcr", "tiny", 400), device="cpu", remember=False)
"""


def test_a_training_that_is_killed_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "RECIPES", {"tiny": TINY})
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": str(torch.get_num_threads())}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "killed")], env=environment, cwd=root)
    checkpoint = tmp_path / "killed" / ".training" / "progress.json"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    n_done = len(json.loads(checkpoint.read_text())["history"])
    # The killed run was asked for many epochs, so that it could not end first; both others get two more than it had.
    claim = tmp_path / "killed" / ".training" / "run.json"
    identity = json.loads(claim.read_text())
    identity["options"]["n_epochs"] = n_done + 2
    identity["recipe"] = identity["recipe"].replace('"n_epochs": 400', f'"n_epochs": {n_done + 2}')
    claim.write_text(json.dumps(identity))
    for name in ("killed", "whole"):
        train(SOURCES, tmp_path / name, options(n_epochs=n_done + 2), device="cpu")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("killed", "whole")]
    assert weights[0] == weights[1]


def test_other_data_or_options_do_not_go_on_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainedReconstruction, "save", fail)
    with pytest.raises(KeyboardInterrupt):
        train(SOURCES, tmp_path / "model", options(n_epochs=1), device="cpu")
    for sources, chosen, differing in (
        (SOURCES, options(n_epochs=1, seed=2), "options"),
        (Sources(SOURCES.training[1:], SOURCES.validation), options(n_epochs=1), "data"),
    ):
        with pytest.raises(InputError) as error:
            train(sources, tmp_path / "model", chosen, device="cpu")
        assert str(error.value) == (
            f"{tmp_path / 'model' / '.training'}: holds an unfinished run with other {differing}. "
            "Repeat that run's command to finish it, or delete the folder to start anew."
        )


def test_training_ends_early_without_gain_once_the_weight_is_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([3.0, 4.0, 5.0, 2.0, 2.5, 2.6, 2.7])
    monkeypatch.setattr(training._Trainee, "measure", lambda *args: next(losses))
    slow = Recipe("tiny", sizes=TINY.sizes, batch_size=20, n_epochs=30, annealing_steps=6, patience=2)
    monkeypatch.setattr(recipes, "RECIPES", {"tiny": slow})
    record = train(SOURCES, tmp_path / "model", options(), device="cpu").record
    assert [epoch["validation_loss"] for epoch in record["history"]] == [3.0, 4.0, 5.0, 2.0, 2.5, 2.6]
    assert [epoch["kl_weight"] for epoch in record["history"]] == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1])
    assert record["best_epoch"] == 4


def test_a_model_that_diverges_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training._Trainee, "measure", lambda *args: float("nan"))
    with pytest.raises(ModelLoadError) as error:
        train(SOURCES, tmp_path / "model", options(), device="cpu")
    assert str(error.value) == (
        "training: a loss of epoch 1 is not a finite number, so the model diverged. Train again with another seed or recipe."
    )
    assert not (tmp_path / "model" / "reconstruction.json").exists()


def test_the_time_that_is_left_is_not_overdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 50))
    monkeypatch.setattr(training.time, "monotonic", lambda: next(clock))
    trained = train(SOURCES, tmp_path / "model", options("hred", n_epochs=30), max_minutes=2, device="cpu")
    assert trained.seconds == [50, 50]
    assert set(trained.record["history"][0]) == {"epoch", "training_loss", "training_kl", "kl_weight", "validation_loss"}


def test_duplicates_and_leaks_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    def turns(*texts: str) -> tuple[Turn, ...]:
        return tuple(map(Turn, texts))

    plain = turns("Hi .", "Hello .", "How are you ?", "Fine .")
    training_dialogues = [
        plain,
        turns("Hi.", "Hello.", "How are you?", "Fine."),
        turns("hi", " ", "", "\n"),
        turns("Where ?", "Here .", "Now ?"),
        turns("Who ?", "Me .", "Why ?", "No idea ."),
        turns("Yes ?", "No ."),
    ]
    sources = Sources(
        training_dialogues,
        [turns("WHERE?", "Here.", "Now?", "Later."), turns("Yes?", "No.", "Maybe.")],
        [Dialogue("a", turns("Who?", "Me.", "Why?")), Dialogue("b", turns("Yes?", "No.", "Maybe."))],
    )
    with caplog.at_level("WARNING"):
        corpus = prepare(sources, Recipe("tiny", min_count=1), validation_fraction=0.1, seed=1)
    assert corpus.counts == {
        "n_training_short": 1,
        "n_training_duplicates": 1,
        "n_training_in_evaluation": 1,
        "n_validation_short": 0,
        "n_validation_duplicates": 0,
        "n_validation_in_evaluation": 1,
        "n_training_in_validation": 1,
        "n_training": 2,
        "n_validation": 1,
    }
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
    sources = Sources(training_dialogues, validation, read[2])
    corpus = prepare(sources, find_recipe("small"), validation_fraction=0.1, seed=13)
    assert corpus.counts == {
        "n_training_short": 0,
        "n_training_duplicates": 775,
        "n_training_in_evaluation": 307,
        "n_validation_short": 0,
        "n_validation_duplicates": 6,
        "n_validation_in_evaluation": 20,
        "n_training_in_validation": 160,
        "n_training": 9876,
        "n_validation": 974,
    }


def test_only_the_first_utterances_and_tokens_are_trained_on() -> None:
    long = tuple(Turn(f"word{place} " * 40) for place in range(14))
    corpus = prepare(Sources([long], [SOURCES.validation[0]]), Recipe("tiny"), validation_fraction=0.1, seed=1)
    assert [len(utterance) for utterance in corpus.training[0]] == [30] * 10
    assert corpus.vocabulary.words == tuple(f"word{place}" for place in range(10))


def test_without_validation_dialogues_some_are_set_aside_by_the_seed() -> None:
    halves = [prepare(Sources(SOURCES.training), TINY, validation_fraction=0.25, seed=seed) for seed in (1, 1, 2)]
    assert [half.counts["n_validation"] for half in halves] == [10, 10, 10]
    assert halves[0].validation == halves[1].validation != halves[2].validation


def test_the_recipes() -> None:
    thesis = find_recipe("thesis").architecture(20_004)
    assert (thesis.embedding, thesis.encoder, thesis.context, thesis.decoder, thesis.latent) == (500, 1000, 1000, 1000, 100)
    assert (thesis.dropout, thesis.word_drop, thesis.sentence_drop) == (0.2, 0.25, 0.25)
    assert find_recipe("small", n_epochs=2).n_epochs == 2


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda path: train(SOURCES, path, options("lstm")), "model: there is no 'lstm'. Choose one of {kinds}."),  # type: ignore[arg-type]
        (
            lambda path: train(SOURCES, path, TrainingOptions("hred", "paper")),
            "recipe: there is no 'paper'. Choose one of thesis, small, tiny.",
        ),
        (lambda path: train(SOURCES, path, options(n_epochs=0)), "epochs: expected at least 1, got 0."),
        (lambda path: train(SOURCES, path, options(), max_minutes=0), "max_minutes: expected more than 0, got 0."),
        (
            lambda path: train(Sources(SOURCES.training), path, options(validation_fraction=1.0)),
            "validation_fraction: expected a number between 0 and 1, got 1.0.",
        ),
        (
            lambda path: train(Sources([], SOURCES.validation), path, options()),
            "training data: 0 dialogues to train on and 12 to validate on are left, at least 1 of each is needed. "
            "Give more dialogues.",
        ),
        (
            lambda path: train(Sources(SOURCES.training[:1]), path, options()),
            "training data: 1 dialogues to train on and 0 to validate on are left, at least 1 of each is needed. "
            "Give more dialogues.",
        ),
    ],
)
def test_what_cannot_be_trained_is_said(call: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        call(tmp_path / "model")
    assert str(error.value) == problem.format(kinds=", ".join(KINDS))
    assert not (tmp_path / "model" / "reconstruction.json").exists()


def test_a_finished_model_is_not_trained_over(tmp_path: Path) -> None:
    (tmp_path / "reconstruction.json").write_text("{}")
    with pytest.raises(InputError) as error:
        train(SOURCES, tmp_path, options())
    assert str(error.value) == f"{tmp_path}: holds a trained model already. Choose another folder, or delete this one."


def test_the_command_trains_and_reports_every_epoch(tmp_path: Path) -> None:
    files = []
    for name, found in (("train", SOURCES.training), ("validation", SOURCES.validation), ("test", SOURCES.training[:2])):
        files.append(tmp_path / f"dialogues_{name}.txt")
        lines = ("".join(f"{' '.join(turn.text.split())} __eou__ " for turn in turns) for turns in found)
        files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    paths = [
        part for option, path in zip(("--data", "--validation", "--evaluation"), files, strict=True) for part in (option, path)
    ]
    chosen = ["--model", "vhred", "--recipe", "tiny", "--epochs", "2", "--device", "cpu", "--output", tmp_path / "model"]
    result = CliRunner().invoke(app, list(map(str, ["train", "reconstruction", *paths, *chosen])))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    best = json.loads((tmp_path / "model" / "reconstruction.json").read_text())["training"]["best_epoch"]
    assert lines[0] == f"{tmp_path / 'model'}: vhred trained on 38 dialogues, validated on 12, best epoch {best}"
    assert "left out: 2 training dialogues are in the evaluation data or begin like it" in lines
    assert [line.split()[0] for line in lines[-3:]] == ["epoch", "1", "2"]
    assert lines[-3].split("  ")[-1] == "seconds"


def test_a_home_that_cannot_be_written_costs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS D27: the model was trained, and then `last_reconstruction: cannot be written` ended the command with 2."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "share"))
    file = tmp_path / "dialogues_train.txt"
    lines = ("".join(f"{' '.join(turn.text.split())} __eou__ " for turn in turns) for turns in SOURCES.training)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    chosen = ["--recipe", "tiny", "--epochs", "1", "--device", "cpu", "--output", tmp_path / "model"]
    result = CliRunner().invoke(app, list(map(str, ["train", "reconstruction", "--data", file, *chosen])))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model" / "reconstruction.json").exists()


def test_a_model_that_cannot_be_remembered_is_named_in_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    RECONSTRUCTION_MODEL.remember(tmp_path / "model")
    assert caplog.messages == [
        f"{tmp_path / 'model'} is not remembered as the last trained model, so name it where it is used: "
        f"{tmp_path / 'file' / 'dialeval' / 'last_reconstruction'}: cannot be written (Not a directory). Choose another place."
    ]
