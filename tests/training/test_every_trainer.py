"""Properties of every trainer: kills, full disks, second processes, corrected commands (FAULTS D1, D9, D22, D28; R47, R62)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.locks import sole_process
from dialeval_plugin.version import __version__
from tests.training_processes import Ended, TrainingProcesses, files_of, training_processes

pytestmark = pytest.mark.long

TRAINERS = ("slm", "assistant", "general", "independence", "language_model", "language_model_early_end", "reconstruction")
FINISHED = "holds a trained model already. Choose another folder, or delete this one."

WRONG_BACKBONE: dict[str, dict[str, Any]] = {
    "slm": {},
    "assistant": {},
    "general": {},
    "independence": {},
    "language_model": {"sizes": None},
}
"""The trainers of a backbone, each with the options that do not go with the name of one."""

Unbroken = Callable[[str], tuple[Path, int]]
"""Gives the folder of a trainer's unbroken run, and how often it changed something in it."""
Slow = Callable[[str], Path]
"""Gives the folder of a trainer's run by a clock that is seven times as fast, after one that was refused."""


@pytest.fixture(scope="module")
def processes(tiny_encoder: Path) -> Iterator[TrainingProcesses]:
    with training_processes(tiny_encoder) as found:
        yield found


@pytest.fixture(scope="module")
def unbroken(processes: TrainingProcesses, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    found: dict[str, tuple[Path, int]] = {}

    def run(name: str) -> tuple[Path, int]:
        if name not in found:
            folder = tmp_path_factory.mktemp(name) / "whole"
            ended = processes.run(name, folder)
            assert (ended.status, ended.said) == (0, "")
            found[name] = folder, ended.n_events
        return found[name]

    return run


@pytest.fixture(scope="module")
def slow(processes: TrainingProcesses, tmp_path_factory: pytest.TempPathFactory) -> Slow:
    found: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in found:
            folder = tmp_path_factory.mktemp(name) / "model"
            if name in WRONG_BACKBONE:
                changes = {"backbone": "./no-such-folder", **WRONG_BACKBONE[name]}
                refused = processes.run(name, folder, changes=changes)
                assert refused.status == 2
                assert refused.said.startswith("./no-such-folder: there is no such folder.")
            ended = processes.run(name, folder, pace=7.0)
            assert (ended.status, ended.said) == (0, "")
            found[name] = folder
        return found[name]

    return run


# Each place of the twenty once a week; here one of each trainer's, early or late.
KILLED = {
    "slm": {3, 11},
    "assistant": {11},
    "general": {3},
    "independence": {11},
    "language_model": {3},
    "language_model_early_end": {11},
}
KILLED |= {"reconstruction": {11}}


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.exhaustive] * (seed not in seeds))
        for name, seeds in KILLED.items()
        for seed in range(20)
    ],
)
def test_a_kill_in_a_write_ends_with_the_same_files(
    name: str, seed: int, unbroken: Unbroken, processes: TrainingProcesses, tmp_path: Path
) -> None:
    """FAULTS D1: a kill while a checkpoint was written left a training that never went on."""
    folder, n_events = unbroken(name)
    # A twentieth of the changes is each seed's; all but the last of them are the checkpoints'.
    place = (seed + random.Random(f"{name} {seed}").random()) / 20
    killed = processes.run(name, tmp_path / "killed", kill_at=int(place * n_events), seed=seed)
    assert killed.status == -9, killed.said
    again = processes.run(name, tmp_path / "killed")
    assert (again.status, again.said) in [(0, ""), (2, f"{tmp_path / 'killed'}: {FINISHED}")]
    assert files_of(tmp_path / "killed") == files_of(folder)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_full_disk_is_said_in_a_line_and_training_goes_on(
    name: str, unbroken: Unbroken, processes: TrainingProcesses, tmp_path: Path
) -> None:
    """FAULTS D1: the hosts' writers raise errors that are none of the system's, which came out as tracebacks."""
    folder, _ = unbroken(name)
    sizes = sorted(path.stat().st_size for path in folder.rglob("*.safetensors"))
    full = processes.run(name, tmp_path / "full", largest_file=sizes[-1] // 2)
    assert full.status == 2, full.said
    assert full.said.startswith(str(tmp_path / "full"))
    assert "cannot be written (" in full.said
    assert "\n" not in full.said
    again = processes.run(name, tmp_path / "full")
    assert (again.status, again.said) == (0, "")
    assert files_of(tmp_path / "full") == files_of(folder)


@pytest.mark.parametrize("name", TRAINERS)
def test_a_folder_that_another_process_is_at_work_in_is_refused(
    name: str, processes: TrainingProcesses, tmp_path: Path
) -> None:
    """FAULTS D9, R62: two trainings into one folder ended with a wrong model and exit code 0."""
    place = tmp_path / "model" / ".training"
    said = f"{place}: another process is at work on this run. Wait until it ends, or choose another output."
    with sole_process(place):
        assert processes.run(name, tmp_path / "model") == Ended(2, said, 0)
    assert files_of(tmp_path / "model") == {}


@pytest.mark.parametrize("name", TRAINERS)
def test_a_finished_model_is_not_overwritten(name: str, unbroken: Unbroken, processes: TrainingProcesses) -> None:
    folder, _ = unbroken(name)
    before = files_of(folder)
    assert processes.run(name, folder)[:2] == (2, f"{folder}: {FINISHED}")
    assert files_of(folder) == before


@pytest.mark.parametrize("name", TRAINERS)
def test_an_unfinished_run_with_other_options_is_refused(name: str, processes: TrainingProcesses, tmp_path: Path) -> None:
    place = tmp_path / "model" / ".training"
    place.mkdir(parents=True)
    (place / "run.json").write_text(json.dumps({"options": {}, "recipe": {}, "data": "", "version": __version__}))
    (place / "finished.safetensors").touch()
    status, said, _ = processes.run(name, tmp_path / "model")
    advice = "Repeat that run's command to finish it, or delete the folder to start anew."
    assert status == 2
    assert said.replace("options and recipe and", "options and") == (
        f"{place}: holds an unfinished run with other options and data. {advice}"
    )


@pytest.mark.parametrize("name", TRAINERS)
def test_a_training_holds_its_folder_until_it_ends(name: str, processes: TrainingProcesses, tmp_path: Path) -> None:
    """FAULTS D9: a run that was killed has let go of its folder, though the lock's file is still there."""
    killed = processes.run(name, tmp_path / "model", kill_at=20)
    assert killed.status == -9, killed.said
    assert (tmp_path / "model" / ".training.lock").exists()
    with sole_process(tmp_path / "model" / ".training"):
        pass


@pytest.mark.parametrize("name", WRONG_BACKBONE)
def test_a_corrected_command_starts_anew(name: str, unbroken: Unbroken, slow: Slow) -> None:
    """FAULTS D22: the right backbone was refused because of the wrong one before it."""
    assert files_of(slow(name)) == files_of(unbroken(name)[0])


@pytest.mark.parametrize("name", TRAINERS)
def test_no_file_holds_how_long_it_took(name: str, unbroken: Unbroken, slow: Slow) -> None:
    """FAULTS D28: the seconds in reconstruction.json made two models of the same weights."""
    assert files_of(slow(name)) == files_of(unbroken(name)[0])
