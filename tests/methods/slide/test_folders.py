"""Model folders: unsafe, damaged, foreign and missing ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]
from safetensors.torch import load_file, save_file
from torch import Tensor

from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.methods.slide.judging import HEAD_FILE
from dialeval_plugin.methods.slide.model import TrainedSmallModel
from dialeval_plugin.models.folders import pretrained_names, resolve
from tests.refusals import refusal, refused, write_pickle
from tests.sealed import seal

ADVICE = (
    "pickled weights run code when they are read, so they are never opened. Convert them to safetensors where you trust them: "
)

LAYER = "encoder.layer.0.output.dense.weight"


@pytest.fixture
def slm(tiny_slm: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_slm, tmp_path / "slm")
    return tmp_path / "slm"


@pytest.mark.parametrize("suffix", [".bin", ".pt"])
def test_a_pickled_checkpoint_is_refused_unopened(suffix: str, slm: Path, tmp_path: Path) -> None:
    (slm / "model.safetensors").unlink()
    (slm / HEAD_FILE).unlink()
    weights = slm / f"pytorch_model{suffix}"
    write_pickle(weights, tmp_path / "trace")

    for name in (slm, weights):
        with refused(f"{weights}: {ADVICE}`safetensors.torch.save_file(state_dict, 'model.safetensors')`.", ModelLoadError):
            TrainedSmallModel.load(str(name))
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["model.safetensors", HEAD_FILE])
@pytest.mark.parametrize("place", [3, 200, -5])
def test_a_cut_weight_file_is_named(slm: Path, name: str, place: int) -> None:
    whole = (slm / name).read_bytes()
    (slm / name).write_bytes(whole[:place])
    seal(slm)
    message = refusal(TrainedSmallModel.load, str(slm), error=ModelLoadError)
    assert message.startswith(f"{slm / name}: is damaged (")
    assert message.endswith("). Copy the model folder again.")


@pytest.mark.parametrize(
    ("file", "tensor", "value", "message"),
    [
        (HEAD_FILE, "two_class.bias", None, "{file}: the tensor 'two_class.bias' is missing."),
        (HEAD_FILE, "two_class.bias", torch.zeros(3), "{file}: the tensor 'two_class.bias' has shape (3,), expected (2,)."),
        ("model.safetensors", LAYER, None, f"{{slm}}: the encoder's weights lack '{LAYER}'."),
    ],
)
def test_a_missing_or_misshapen_tensor_is_named(slm: Path, file: str, tensor: str, value: Tensor | None, message: str) -> None:
    tensors = load_file(slm / file)
    del tensors[tensor]
    save_file(tensors if value is None else {**tensors, tensor: value}, slm / file, metadata={"format": "pt"})
    seal(slm)
    with refused(f"{message.format(slm=slm, file=slm / file)} Copy the model folder again.", ModelLoadError):
        TrainedSmallModel.load(str(slm))


def test_a_tokenizer_of_another_model_is_refused(slm: Path) -> None:
    tokenizer = json.loads((slm / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {f"word{index}": 100 + index for index in range(50)}
    (slm / "tokenizer.json").write_text(json.dumps(tokenizer))
    seal(slm)
    with refused(
        f"{slm}: the tokenizer has 150 tokens, the embedding only 100 rows. "
        "The tokenizer belongs to another model; copy the folder again.",
        ModelLoadError,
    ):
        TrainedSmallModel.load(str(slm))


def test_an_encoder_alone_is_no_slm(tiny_encoder: Path) -> None:
    with refused(
        f"{tiny_encoder}: has no slm.json, so it is not a trained SLM (or its training did not end). "
        "Train one with `dialeval train slm`.",
        ModelLoadError,
    ):
        TrainedSmallModel.load(str(tiny_encoder))


def test_a_hub_that_breaks_off_is_said_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(*_: object, **__: object) -> None:
        raise HTTPError("Server disconnected without sending a response.")

    monkeypatch.setattr("huggingface_hub.snapshot_download", breaks_off)
    message = refusal(resolve, "nobody/no-such-model", error=MissingPrerequisite)
    assert message.startswith("nobody/no-such-model: is no folder here, and the model hub did not give it (HTTPError).")


def test_a_hub_model_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its variable is read when the hub's package is imported.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = refusal(resolve, "nobody/no-such-model", error=MissingPrerequisite)
    assert message.startswith("nobody/no-such-model: is no folder here, and the model hub did not give it (")
    assert message.endswith(f"bundled are {', '.join(pretrained_names())} and the encoder all-MiniLM-L6-v2.")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no such model", "is neither a folder here nor a hub id of the form owner/name. Give one of them."),
        ("./nothing", "there is no such folder. Give the folder of a trained model, or a hub id."),
    ],
)
def test_what_is_neither_a_folder_nor_a_hub_id(name: str, problem: str) -> None:
    with refused(f"{name}: {problem}", MissingPrerequisite):
        resolve(name)
