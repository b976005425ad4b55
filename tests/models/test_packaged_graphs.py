"""Where neither torch nor a host is installed, the bundled models score as with torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.models.compact import encoder_weights
from dialeval_plugin.models.encoders import load_encoder, load_trained_encoder, transformer_of
from dialeval_plugin.models.folders import PACKAGED_ENCODER, PRETRAINED, resolve
from dialeval_plugin.models.runtimes.opening import open_packaged
from dialeval_plugin.models.runtimes.runtime import HeadFile
from tests.cli.running import environment
from tests.refusals import refused

MODELS: list[tuple[str, dict[str, str]]] = [
    ("general", {}),
    ("general", {"model": "general-open"}),
    ("general", {"level": "dialogue"}),
    ("assistant", {}),
    ("assistant", {"model": "assistant-open"}),
    ("slide", {}),
    ("causalscore", {}),
    ("auto", {}),
]
HIDDEN = ("torch", "transformers", "sentence_transformers", "datasets", "lm_eval", "evaluate", "onnx")
LIGHT = """
import json, sys
hidden, models, dialogues = map(json.loads, sys.argv[1:])
# As where they are not installed.
sys.modules.update(dict.fromkeys(hidden))
from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.core.registry import load_scorer
examples = [Example.from_texts(turns[:-1], turns[-1], facts=facts) for turns, facts in dialogues]
found = []
for name, options in models:
    scorer = load_scorer(name, **options)
    items = [Dialogue(item.id, (*item.context, item.response)) for item in examples] if options.get("level") else examples
    scores = scorer.score(items)
    found.append((str(scores.signature), {name: list(column) for name, column in scores.columns.items()}))
print(json.dumps(found))
"""
DIALOGUES = [
    (["Do you have plans for Sunday?", "Not yet. Why?", "I thought we could have a picnic."], []),
    (["How do I boil eggs?", "Boil them for eight minutes, then put them into cold water."], []),
    (["Where to?", "Home. " * 60, "I would walk. The bus is late, as always. " * 20], ["I walk."]),
    (["Hi.", "[SEP] is a token, \u00e9t\u00e9 is French, and \u4f60\u597d is Chinese."], ["The sky is blue."]),
]
"""Turns, the response last, and facts: short ones, long ones that are read in parts, and letters of all kinds."""


def light(folder: Path, *hidden: str) -> list[tuple[str, dict[str, list[float | None]]]]:
    """Signatures and columns of `MODELS`, in a process in which packages are hidden."""
    arguments = [json.dumps(value) for value in ((*HIDDEN, *hidden), MODELS, DIALOGUES)]
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *arguments], env=environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[tuple[str, dict[str, list[float | None]]]] = json.loads(done.stdout)
    return found


def on_torch(name: str, options: dict[str, str]) -> dict[str, Any]:
    examples = [Example.from_texts(turns[:-1], turns[-1], facts=facts) for turns, facts in DIALOGUES]
    items = [Dialogue(item.id, (*item.context, item.response)) for item in examples] if "level" in options else examples
    return dict(load_scorer(name, backend="torch", device="cpu", **options).score(items).columns)


@pytest.mark.long
def test_every_model_scores_without_torch_as_with_it(tmp_path: Path) -> None:
    expected = [on_torch(*model) for model in MODELS]
    # By default OpenVINO, the faster one, where it is installed.
    for backend, found in (("openvino", light(tmp_path)), ("onnx", light(tmp_path, "openvino"))):
        for model, columns, (signature, light_columns) in zip(MODELS, expected, found, strict=True):
            assert f"backend:{backend}" in signature, model
            assert light_columns.keys() == columns.keys()
            for name, column in columns.items():
                # Percentiles are a hundred times as large as what they are read from.
                most = 1e-3 if name == "percentile" else 1e-5
                wanted = [value if value is None else pytest.approx(value, abs=most) for value in column]
                assert light_columns[name] == wanted, (*model, name)
    # No graph was exported into the user's cache.
    assert not [*tmp_path.rglob("export.json")]


@pytest.mark.parametrize("name", ["general", "slide"])
def test_weights_are_restored_to_the_same_bit_with_and_without_torch(name: str) -> None:
    restored = encoder_weights(PRETRAINED / name)
    of_torch = transformer_of(load_trained_encoder(PRETRAINED / name, device="cpu")).state_dict()
    assert restored.keys() == of_torch.keys()
    assert all(np.array_equal(restored[tensor], weight.numpy()) for tensor, weight in of_torch.items())


def test_training_starts_from_the_weights_that_are_scored_with() -> None:
    restored = encoder_weights(resolve(PACKAGED_ENCODER))
    of_torch = transformer_of(load_encoder(PACKAGED_ENCODER, device="cpu")).state_dict()
    assert all(torch.equal(torch.from_numpy(restored[tensor]), weight) for tensor, weight in of_torch.items())


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_a_head_without_a_weight_that_its_graph_needs_is_refused(backend: Any, tmp_path: Path) -> None:
    path = tmp_path / "head.safetensors"
    tensors = load_file(PRETRAINED / "general" / "general_head.safetensors")
    save_file({name: tensor for name, tensor in tensors.items() if name != "robust.bias"}, path)
    head = HeadFile(tmp_path, path.name, "general")
    with refused(f"{path}: the tensor 'robust.bias' is missing. Copy the model folder again.", ModelLoadError):
        open_packaged(PRETRAINED / "general", backend, "float32", head)


def test_a_head_of_another_kind_has_no_graph() -> None:
    head = HeadFile(PRETRAINED / "slide", "slm_head.safetensors", "slide-pad-three_class")
    assert open_packaged(PRETRAINED / "slide", "onnx", "float32", head) is None


def test_what_needs_torch_says_so_where_it_is_missing(
    tiny_general: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIALEVAL_EXPORTS", str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", None)
    for backend in ("torch", "onnx"):
        with refused(
            f"backend={backend!r}: the package torch is not installed. Run `pip install 'dialeval-plugin[torch]'`.",
            MissingPrerequisite,
        ):
            load_scorer("general", model=str(tiny_general), backend=backend)
