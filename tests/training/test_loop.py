"""Steps of our own loop: what a checkpoint holds, and that of several processes one takes them (general, reconstruction)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.training.loop import TrainingLoop
from dialeval_plugin.training.run import TrainingOptions, TrainingRun
from tests.training.launched import launch
from tests.training_processes import files_of

FOLDER = ModelFolder("toy.json", dict, 1, "a toy", "nothing")


def run_steps(output: Path, until: int, look: Callable[[Path], None] = lambda _: None) -> nn.Linear:
    """Take steps with a checkpoint after every second of them, the first one the best; goes on where steps were taken."""
    with TrainingRun.open(output, FOLDER, TrainingOptions(seed=3)) as run:
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
        assert {path.name for path in folder.iterdir()} == {"checkpoint-2", "checkpoint-4", "checkpoint-6"}
        # The last one was not written to its end; its figures were.
        (folder / "checkpoint-6" / "complete.json").unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps(tmp_path / "broken", 6, stop)

    def is_as_kept(folder: Path) -> None:
        assert {path.name for path in folder.iterdir()} == {"checkpoint-2", "checkpoint-6", "checkpoint-8"}
        assert {path.suffix for path in (folder / "checkpoint-8").iterdir()} == {".json", ".safetensors"}

    resumed, whole = run_steps(tmp_path / "broken", 8, is_as_kept), run_steps(tmp_path / "whole", 8)
    assert resumed.weight.equal(whole.weight)
    # What wants no gradient is no part of a checkpoint.
    assert resumed.bias.equal(whole.bias)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["general", "reconstruction"])
def test_two_processes_end_with_the_files_of_one(command: str, tiny_encoder: Path, tmp_path: Path) -> None:
    talk = ([*item.context, item.positive[0]] for item in mini.read_response_sets("train")[:40])
    write_json_lines(tmp_path / "talk.jsonl", ({"turns": turns} for turns in talk))
    words = {
        "general": ["general", "--corpus", f"talk={tmp_path / 'talk.jsonl'}", "--backbone", tiny_encoder],
        "reconstruction": ["reconstruction", "--data", tmp_path / "talk.jsonl", "--epochs", 2],
    }[command]
    found = []
    for n_processes in (1, 2):
        output = tmp_path / "model"
        done = launch("train", *words, "--validation-fraction", 0.4, "--output", output, n_processes=n_processes)
        assert done.returncode == 0, done.stderr
        assert ("2 processes: this training takes its steps in the first one alone" in done.stderr) == (n_processes == 2)
        found.append(files_of(output))
        shutil.rmtree(output)
    assert found[0] == found[1]
