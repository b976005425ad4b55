"""Which checkpoints of a host's trainer count, and which are removed (FAULTS D1)."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from dialeval_plugin.training.checkpoints import SEAL, Checkpoint, find_last, remove_broken, remove_old, seal


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


def test_no_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert find_last(tmp_path / "none") is None
    remove_broken(tmp_path / "none")


def test_the_last_is_that_of_the_highest_step(tmp_path: Path) -> None:
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
    if content is None:
        (broken / file).unlink()
    else:
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
