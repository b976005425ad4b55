"""The life of a training run: what it refuses, what it goes on with, and what it leaves (FAULTS D1, D9, D22, D28)."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.models.tensors import save_weights
from dialeval_plugin.training import host_trainers
from dialeval_plugin.training.checkpoints import HistoryRow, read_history
from dialeval_plugin.training.run import TrainingOptions, TrainingRun, data_hash
from tests.refusals import refused
from tests.training_processes import files_of


class Fields(TypedDict):
    """No field moves a number."""


FOLDER = ModelFolder("slm.json", Fields, 1, "a trained toy", "train toy")


def open_run(folder: Path, *, seed: int = 13, progress: bool = False) -> Any:
    return TrainingRun.open(folder, FOLDER, TrainingOptions(seed=seed, precision="float32"), progress=progress)


@contextlib.contextmanager
def interrupted(folder: Path, *, progress: bool = False) -> Iterator[TrainingRun]:
    """A run that has begun and is interrupted where the block ends."""
    with contextlib.suppress(KeyboardInterrupt), open_run(folder, progress=progress) as run:
        run.start()
        yield run
        raise KeyboardInterrupt


def new_model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(2, 2)


def train(folder: Path, *, die_in: str = "", data: int = 2) -> None:
    """Two stages with a report each."""
    with open_run(folder) as run:
        run.start(data=data_hash([1, data]))
        model = new_model()
        for step, name in enumerate(("first", "second"), start=1):

            def fit(name: str = name, step: int = step) -> None:
                if name == die_in:
                    raise KeyboardInterrupt
                with torch.no_grad():
                    model.weight += torch.rand(2, 2)
                run.report(name, {"loss": model.weight[0, 0].item()}, step=step, epoch=1.0, n_epochs=1)

            run.stage(name, model, fit)

        def save(output: Path, training: dict[str, Any]) -> None:
            save_weights(output / "model.safetensors", model.state_dict())
            FOLDER.publish(output, {}, training, dialogues=["b", "a"])

        result = run.publish(save, {"counts": {"n": 2}})
        assert result.record["counts"] == {"n": 2}
        assert result.history == run.history


@pytest.mark.parametrize("stage", ["first", "second"])
def test_an_interrupted_run_goes_on_to_the_same_files(tmp_path: Path, stage: str) -> None:
    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", die_in=stage)
    assert (tmp_path / "broken" / ".training" / "first.safetensors").exists() == (stage == "second")
    train(tmp_path / "broken")
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")
    files = {"history.json", "manifest.json", "model.safetensors", "slm.json", "training_dialogues.json"}
    assert set(files_of(tmp_path / "whole")) == files
    settings = FOLDER.read_settings(tmp_path / "whole")
    assert settings["training"]["options"] == {"validation_fraction": 0.1, "seed": 13, "precision": "float32"}
    assert FOLDER.training_dialogues(tmp_path / "whole") == {"a", "b"}
    assert [(row.stage, row.step) for row in read_history(tmp_path / "whole")] == [("first", 1), ("second", 2)]


def test_a_folder_is_gone_on_with_begun_anew_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        train(folder, die_in="first")
    # Nothing was learnt yet.
    with pytest.raises(KeyboardInterrupt):
        train(folder, die_in="second", data=3)
    with pytest.raises(InputError, match="holds an unfinished run with other data"):
        train(folder)
    train(folder, data=3)
    before = files_of(folder)
    (folder / ".training").mkdir()
    with pytest.raises(InputError, match="holds a trained model already"):
        train(folder, data=3)
    assert files_of(folder) == before
    assert not (folder / ".training").exists()


def test_a_further_process_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "model", die_in="second")
    before = files_of(tmp_path / "model")
    further = SimpleNamespace(device="cpu", is_main_process=False, num_processes=2, wait_for_everyone=lambda: None)
    monkeypatch.setattr("dialeval_plugin.training.run.PartialState", lambda **_: further)
    with open_run(tmp_path / "model", progress=True) as run:
        run.start(data="")
        model = new_model()
        run.stage("first", model, pytest.fail)
        run.report("second", {"loss": 1.0}, step=2)
        run.publish(pytest.fail, {})
    assert not run.progress
    assert files_of(tmp_path / "model") == before


def test_a_run_that_wrote_nothing_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few"), open_run(tmp_path / "model"):
        raise InputError("too few")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"), "No space left on device"),
        (RuntimeError("[enforce fail at inline_container.cc:672] unexpected pos 64 vs 0"), "a file was cut short"),
        (OSError(errno.ENOENT, "No such file"), None),
        (RuntimeError("shapes cannot be multiplied"), None),
    ],
)
def test_a_full_disk_is_said_in_a_line(tmp_path: Path, error: Exception, reason: str | None) -> None:
    expected = type(error) if reason is None else InputError
    with pytest.raises(expected) as raised, open_run(tmp_path / "model"):
        raise error
    said = (
        f"{tmp_path / 'model'}: cannot be written ({reason}). What is finished is kept; repeat the command when there is room."
    )
    assert raised.value is error if reason is None else str(raised.value) == said


def test_what_is_kept_is_made_once(tmp_path: Path) -> None:
    made = iter([[1, 2], [3, 4]])
    for _ in range(2):
        with interrupted(tmp_path / "model") as run:
            assert run.compute_once("pseudo", lambda: next(made)) == [1, 2]


def test_reports_after_the_checkpoint_that_a_stage_goes_on_from_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with interrupted(tmp_path / "model", progress=True) as run:
        run.report("rank", {"loss": 0.5}, step=9, epoch=3, n_epochs=3)
        for step in (4, 8, 11):
            run.report("joint", {"loss": math.nan, "auroc": step}, step=step)
    stored = json.loads((tmp_path / "model" / ".training" / "history.json").read_text())
    assert stored[1] == {"stage": "joint", "epoch": None, "step": 4, "figures": {"loss": None, "auroc": 4.0}}
    assert capsys.readouterr().err.split("\n")[:2] == ["rank, epoch 3 of 3: loss 0.5", "joint, step 4: loss nan, auroc 4"]
    with caplog.at_level(logging.INFO), open_run(tmp_path / "model") as run:
        run.start()
        run.rewind("joint", 4)
        run.report("joint", {"loss": 1.0}, step=9)
    assert math.isnan(run.history[1].figures["loss"])
    assert [replace(row, figures={**row.figures, "loss": 1.0}) for row in run.history] == [
        HistoryRow("rank", 3.0, 9, {"loss": 1.0}),
        HistoryRow("joint", None, 4, {"loss": 1.0, "auroc": 4.0}),
        HistoryRow("joint", None, 9, {"loss": 1.0}),
    ]
    assert caplog.messages[-1] == "joint, step 9: loss 1"


def test_a_damaged_history_is_said(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text(json.dumps([{"stage": "joint", "epoch": 1.0, "step": "12", "figures": {}}]))
    with refused(f"{tmp_path / 'history.json'}: 0.step: input should be a valid integer. Copy the folder again."):
        read_history(tmp_path)


@pytest.mark.parametrize(("bfloat16", "taken"), [(True, "bfloat16"), (False, "float32")])
def test_auto_takes_bfloat16_where_there_are_instructions_for_it(
    monkeypatch: pytest.MonkeyPatch, bfloat16: bool, taken: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bfloat16)
    assert TrainingOptions(precision="auto").resolved().precision == taken
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: bfloat16)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert TrainingOptions(precision="auto").resolved().precision == taken
    assert TrainingOptions(precision="bfloat16").resolved().precision == "bfloat16"


@pytest.mark.parametrize(("own", "kept"), [(None, "64"), ("512", "512")])
def test_what_is_compiled_is_kept_for_few_shapes_unless_somebody_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, kept: str
) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    # Set first, so that what the run sets is undone.
    monkeypatch.setenv(name, own or "")
    if own is None:
        monkeypatch.delenv(name)
    with open_run(tmp_path / "model"):
        assert os.environ[name] == kept


def test_weights_that_lie_in_one_piece_of_memory_are_kept_as_they_are(tmp_path: Path) -> None:
    """So lie tied weights, and those of a recurrent layer on a GPU."""
    memory = torch.arange(10.0)
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    for layer, start in ((model[0], 0), (model[1], 4)):
        layer.weight = nn.Parameter(memory[start : start + 4].view(2, 2))
    model[2].weight = model[0].weight
    with open_run(tmp_path / "model") as run:
        run.start()
        run.stage("first", model, lambda: memory.add_(1.0))
        assert [layer.weight.flatten().tolist() for layer in model] == [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]]
        assert model[2].weight is model[0].weight


def test_a_resumed_run_keeps_the_precision_of_the_machine_that_began_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same command was refused on a machine without the instructions, with the advice to repeat it."""
    for fast in ("bfloat16", "float32"):
        monkeypatch.setattr("dialeval_plugin.training.run._fast_precision", lambda fast=fast: fast)
        with contextlib.suppress(KeyboardInterrupt), TrainingRun.open(tmp_path / "model", FOLDER, TrainingOptions()) as run:
            run.start()
            run.stage("first", new_model(), lambda: None)
            assert run.options.precision == "bfloat16"
            raise KeyboardInterrupt
    with (
        refused(
            f"{tmp_path / 'model' / '.training'}: holds an unfinished run with other options. "
            "Repeat that run's command to finish it, or delete the folder to start anew."
        ),
        open_run(tmp_path / "model") as run,
    ):
        run.start()


def test_a_batch_that_the_processes_cannot_share_is_refused(tmp_path: Path) -> None:
    """Three processes had 18 of a recipe's 20 rows in each step."""
    run: Any = SimpleNamespace(n_processes=3, checkpoint_dir=tmp_path, is_main_process=True)
    with refused("training: 3 processes cannot share a batch of 20. Start a number that divides it."):
        host_trainers.fit(run, "one", {}, batch_size=20)
    assert not list(tmp_path.iterdir())
