"""Which checkpoints of a host's trainer count, which are removed (FAULTS D1), and what those of our own loop hold."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.training.checkpoints import SEAL, Checkpoint, find_last, remove_broken, remove_old, seal
from dialeval_plugin.training.loop import TrainingLoop
from dialeval_plugin.training.run import TrainingOptions, TrainingRun


def write(folder: Path, step: int, best: int | None = None, *, is_end: bool = False, sealed: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    (path / "1_Pooling").mkdir(parents=True)
    (path / "1_Pooling" / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"weights" * step)
    state = {
        "best_model_checkpoint": None if best is None else f"elsewhere/checkpoint-{best}",
        "stateful_callbacks": {"TrainerControl": {"args": {"should_training_stop": is_end}}},
    }
    (path / "trainer_state.json").write_text(json.dumps(state))
    if sealed:
        seal(path)
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_last_is_that_of_the_highest_step(tmp_path: Path) -> None:
    assert find_last(tmp_path / "none") is None
    remove_broken(tmp_path / "none")
    for step in (9, 10, 100):
        write(tmp_path, step, 9, is_end=step == 100)
    assert find_last(tmp_path) == Checkpoint(tmp_path / "checkpoint-100", 100, "checkpoint-9", is_end=True)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *((name, None) for name in (SEAL, "trainer_state.json", "1_Pooling/config.json")),
        *(("model.safetensors", "weight"), (SEAL, '{"model'), ("optimizer.pt", "")),
    ],
)
def test_a_broken_checkpoint_is_left_out_and_removed(
    file: str, content: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of it is missing (None), cut, or one too many."""
    write(tmp_path, 1)
    broken = write(tmp_path, 2)
    (broken / file).unlink(missing_ok=True)
    if content is not None:
        (broken / file).write_text(content)
    assert find_last(tmp_path) == Checkpoint(tmp_path / "checkpoint-1", 1, None, is_end=False)
    with caplog.at_level(logging.WARNING):
        remove_broken(tmp_path)
    assert names(tmp_path) == {"checkpoint-1"}
    assert caplog.messages == [f"{broken}: was not written to its end and is left out"]


def test_without_its_best_epoch_a_checkpoint_is_of_no_use(tmp_path: Path) -> None:
    """The host would go on, and end with the weights of the last epoch."""
    write(tmp_path, 1, 1)
    write(tmp_path, 2, 2, sealed=False)
    write(tmp_path, 3, 2)
    assert find_last(tmp_path) == Checkpoint(tmp_path / "checkpoint-1", 1, "checkpoint-1", is_end=False)
    remove_broken(tmp_path)
    assert names(tmp_path) == {"checkpoint-1"}


def test_two_are_kept_with_the_best_of_both(tmp_path: Path) -> None:
    for step, best in ((1, 1), (2, 2), (3, 2), (4, 2), (5, 5)):
        write(tmp_path, step, best)
        remove_old(tmp_path)
    assert names(tmp_path) == {"checkpoint-2", "checkpoint-4", "checkpoint-5"}
    write(tmp_path, 6, 5)
    write(tmp_path, 7, 5, sealed=False)
    remove_old(tmp_path)
    # One that is not sealed yet is neither counted nor removed.
    assert names(tmp_path) == {"checkpoint-5", "checkpoint-6", "checkpoint-7"}


def run_steps(output: Path, until: int, look: Callable[[Path], None] = lambda _: None) -> nn.Linear:
    """Take steps with a checkpoint after every second of them, the first one the best; goes on where steps were taken."""
    with TrainingRun.open(output, ModelFolder("toy.json", dict, 1, "a toy", "nothing"), TrainingOptions(seed=3)) as run:
        run.start()
        model = nn.Linear(2, 1)
        model.bias.requires_grad_(False)
        loop = TrainingLoop(run, "toy", model, torch.optim.Adam([model.weight], lr=0.1), clip=1.0, n_steps=until)
        while loop.n_steps < until:
            loop.seed(loop.n_steps + 1)
            loop.step(model(torch.randn(4, 2)).square().mean())
            if loop.n_steps % 2 == 0:
                loop.keep({"training_loss": float(loop.n_steps)}, epoch=loop.n_steps / 4, best=2)
        look(run.checkpoint_dir / "toy")
        assert [row.step for row in run.history] == list(range(2, until + 1, 2))
        assert len(loop.seconds) == until // 2
        assert loop.elapsed >= sum(loop.seconds)
    return model


def test_a_run_goes_on_with_weights_optimizer_and_figures_of_its_last_whole_checkpoint(tmp_path: Path) -> None:
    def stop(folder: Path) -> None:
        assert names(folder) == {"checkpoint-2", "checkpoint-4", "checkpoint-6"}
        # The last one was not written to its end; its figures were.
        (folder / "checkpoint-6" / "complete.json").unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps(tmp_path / "broken", 6, stop)

    def is_as_kept(folder: Path) -> None:
        assert names(folder) == {"checkpoint-2", "checkpoint-6", "checkpoint-8"}
        assert {path.suffix for path in (folder / "checkpoint-8").iterdir()} == {".json", ".safetensors"}

    resumed, whole = run_steps(tmp_path / "broken", 8, is_as_kept), run_steps(tmp_path / "whole", 8)
    assert resumed.weight.equal(whole.weight)
    # What wants no gradient is no part of a checkpoint.
    assert resumed.bias.equal(whole.bias)
