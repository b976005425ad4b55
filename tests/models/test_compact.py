"""Compact model folders: what is stored of a trained encoder, and that it is read back to the same weights everywhere."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import read_json
from dialeval_plugin.core.signature import file_hashes
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.causalscore.model import CausalModel
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.methods.general.judging import GeneralConfig
from dialeval_plugin.methods.general.mixing import CoherenceWeights, Mixing
from dialeval_plugin.methods.general.model import GeneralModel, TrainedGeneral
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.models import compact
from dialeval_plugin.models.encoders import (
    MeanEncoder,
    embed,
    load_encoder,
    load_trained_encoder,
    restore,
    transformer_of,
    without_normalisation,
)
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.language_models import open_model
from reproduction.pretrained import packing
from tests.refusals import refused
from tests.tiny.likelihood import write_likelihood_model
from tests.tiny.models import write_tiny_causal_model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A general evaluator over the packaged encoder whose layers moved about as far as a training moves them."""
    torch.manual_seed(5)
    encoder = without_normalisation(load_encoder(PACKAGED_ENCODER, device="cpu"))
    model = GeneralModel(encoder, GeneralConfig("general", 96, 64, has_knowledge=True))
    with torch.no_grad():
        for name, weight in transformer_of(encoder).named_parameters():
            if "word_embeddings" not in name and "pooler" not in name:
                weight.add_(torch.randn_like(weight) * 1e-3)
    folder = tmp_path_factory.mktemp("trained") / "general"
    weights = {"relevance": 0.4, "fit": 0.8, "fluency": 0.3, "specificity": 0.2, "offset": -0.1}
    mixing = Mixing(weights, {**weights, "knowledge": 0.5})  # type: ignore[arg-type]
    TrainedGeneral(model, mixing, CoherenceWeights(0.6, 0.3, 0.1, 0.2), frozenset({"a"})).save(folder)
    return folder


@pytest.fixture(scope="module")
def packed(trained: Path) -> Path:
    """It packed, 4 bits a weight."""
    target = trained.parent / "packed"
    packing.pack_model(trained, target, base=PACKAGED_ENCODER)
    return target


@pytest.fixture(scope="module")
def finer(trained: Path) -> Path:
    """It packed, 6 bits a weight."""
    target = trained.parent / "finer"
    packing.pack_model(trained, target, base=PACKAGED_ENCODER, bits=6)
    return target


def scores(folder: Path) -> Any:
    return GeneralScorer(str(folder), device="cpu").score(mini.read_examples("test")[:12])


@pytest.mark.long
def test_a_packed_model_is_small_and_scores_as_before(trained: Path, packed: Path, finer: Path) -> None:
    sizes = [sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for folder in (trained, finer, packed)]
    assert sizes[0] > 90e6
    assert sizes[1] < 13e6
    assert sizes[2] < 10e6
    full = scores(trained)
    for folder, most in ((packed, 0.01), (finer, 0.002)):
        small = scores(folder)
        for name, column in full.columns.items():
            pairs = [pair for pair in zip(column, small.columns[name], strict=True) if None not in pair]
            assert [one for one, _ in pairs] == pytest.approx([other for _, other in pairs], abs=most), (name, most)


@pytest.mark.parametrize(("bits", "largest"), [(4, 7), (6, 31)])
def test_few_weights_of_a_row_are_cut_and_the_others_off_by_half_a_step(
    trained: Path, packed: Path, finer: Path, bits: int, largest: int
) -> None:
    folder = packed if bits == 4 else finer
    whole = load_file(str(trained / compact.WEIGHTS_FILE))
    start = {name: torch.from_numpy(weight) for name, weight in compact.encoder_weights(resolve(PACKAGED_ENCODER)).items()}
    restored = transformer_of(load_encoder(str(folder), device="cpu")).state_dict()
    stored = load_file(str(folder / compact.DELTA_FILE))
    assert not [name for name in stored if "word_embeddings" in name or "pooler" in name]
    for name, weight in whole.items():
        if name + ":scales" in stored:
            change, step = weight - start[name], stored[name + ":scales"][:, None]
            off = (restored[name] - weight).abs() > 0.5001 * step + 1e-7
            assert off.float().mean() < 0.05, name
            assert (change.abs()[off] > largest * step.expand_as(change)[off]).all(), name
        else:
            assert torch.equal(restored[name], weight), name


@pytest.mark.long
def test_scoring_opens_it_without_sentence_transformers_and_embeds_the_same_to_the_bit(packed: Path) -> None:
    encoder, whole = load_trained_encoder(packed, device="cpu"), load_encoder(str(packed), device="cpu")
    assert isinstance(encoder, MeanEncoder)
    ids = [encoder.tokenizer(item.response.text)["input_ids"] for item in mini.read_examples("test")[:40]]
    with torch.inference_mode():
        assert torch.equal(embed(encoder, ids), embed(whole, ids))
    code = f"""
import sys
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
load_scorer("general", model={str(packed)!r}, device="cpu").score(mini.read_examples("test")[:2])
assert not {{"sentence_transformers", "datasets", "pandas", "sklearn"}} & set(sys.modules), sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_packing_twice_gives_the_same_bytes(trained: Path, packed: Path, tmp_path: Path) -> None:
    packing.pack_model(trained, tmp_path / "again", base=PACKAGED_ENCODER)
    assert file_hashes(tmp_path / "again") == file_hashes(packed)
    assert read_json(packed / "general.json")["weights"] == file_hashes(packed, "*.safetensors")
    # safetensors makes its files private.
    assert {path.stat().st_mode & 0o777 for path in packed.rglob("*.safetensors")} == {0o644}
    with refused(f"{packed}: exists already. Choose another folder, or delete this one."):
        packing.pack_model(trained, packed, base=PACKAGED_ENCODER)


def test_classifiers_are_packed_too_and_language_models_halved(tmp_path: Path) -> None:
    folder = write_tiny_causal_model(tmp_path)
    encoder = tmp_path / "encoder"
    packing.pack_model(folder, tmp_path / "packed", base=str(encoder))
    assert sorted(path.name for path in (tmp_path / "packed").rglob("*.safetensors")) == [compact.DELTA_FILE] * 2
    items = mini.read_examples("test")[:6]
    whole, small = (CausalScorer(str(path), device="cpu").score(items) for path in (folder, tmp_path / "packed"))
    # Matrices of a tiny model are too small to be rounded.
    assert small.values == pytest.approx(whole.values, abs=1e-6)
    assert CausalModel.load(str(tmp_path / "packed")).training_dialogues == frozenset()

    gpt = write_likelihood_model(tmp_path / "gpt", "gpt2")
    packing.pack_model(gpt, tmp_path / "half", base=str(encoder))
    whole_gpt, half = (open_model(str(path), device="cpu").model.state_dict() for path in (gpt, tmp_path / "half"))
    assert {weight.dtype for weight in half.values()} == {torch.float32}
    assert all(torch.allclose(half[name], weight, rtol=1e-3) for name, weight in whole_gpt.items())


@given(
    st.integers(8, 11).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(-1e3, 1e3, width=32, allow_subnormal=False), min_size=width, max_size=width),
            min_size=1,
            max_size=4,
        )
    )
)
def test_a_row_comes_back_no_further_off_than_with_the_scale_of_its_largest_number(rows: list[list[float]]) -> None:
    matrix = torch.tensor(rows)
    n_rows, n_columns = matrix.shape
    for bits in range(2, 9):
        most = 2 ** (bits - 1) - 1
        stored, scales = packing._packed(matrix, bits)
        assert (stored.dtype, stored.shape) == (torch.uint8, (n_rows, math.ceil(n_columns * bits / 8)))
        numbers = compact._unpacked(stored.numpy(), matrix.shape)
        assert numbers is not None
        back = torch.from_numpy(numbers) * scales[:, None]
        largest = matrix.abs().amax(1, keepdim=True)
        plain = packing._rounded(matrix, largest[:, 0] / most, bits) * (largest / most)
        errors = [(found - matrix).double().square().sum(1) for found in (back, plain)]
        # Of the smallest numbers there are the step is one that float32 rounds.
        assert (errors[0] <= errors[1] * 1.0001 + 1e-37).all()
        assert (scales <= largest[:, 0] / most).all()
        assert (scales >= largest[:, 0] / (2 * most) * 0.9999).all()


def test_what_does_not_belong_together_is_refused(packed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(packed, broken)
    delta = broken / compact.DELTA_FILE
    stored = load_file(str(delta))

    def store(tensors: dict[str, Tensor], header: str | None) -> None:
        save_file(tensors, str(delta), metadata={"encoder": header} if header else None)

    store(stored, None)
    with refused(f"{delta}: does not name its encoder. Copy the model folder again.", ModelLoadError):
        compact.base_of(broken)
    store(stored, f'{{"base": "{PACKAGED_ENCODER}", "sha256": "0"}}')
    with refused(
        f"{delta}: belongs to other weights than those of the encoder {PACKAGED_ENCODER!r} in {resolve(PACKAGED_ENCODER)}. "
        "Install the encoder again, or copy the model folder again.",
        ModelLoadError,
    ):
        compact.base_of(broken)
    encoder = transformer_of(load_encoder(PACKAGED_ENCODER, device="cpu"))
    for name, tensor in (("strange", torch.zeros(2)), ("pooler.dense.weight", torch.zeros(384, 3))):
        store({name: tensor}, None)
        with refused(f"{delta}: the tensor {name!r} does not fit the encoder. Copy the model folder again.", ModelLoadError):
            restore(encoder, broken)
    for name, n_rows, n_bytes in (
        ("pooler.dense.weight", 384, 384 + 1),
        ("pooler.dense.weight", 384, 384 // 8),
        ("pooler.dense.weight", 383, 384),
        ("pooler.dense.bias", 384, 384),
    ):
        store({name: torch.zeros(n_rows, n_bytes, dtype=torch.uint8), f"{name}:scales": torch.zeros(n_rows)}, None)
        with refused(f"{delta}: the tensor {name!r} does not fit the encoder. Copy the model folder again.", ModelLoadError):
            restore(encoder, broken)
    with pytest.raises(InputError):
        packing.pack_model(packed, tmp_path, base=PACKAGED_ENCODER)
    with refused("bits: expected 2 to 8, got 9.", InputError):
        packing.pack_model(packed, tmp_path / "other", base=PACKAGED_ENCODER, bits=9)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_weights_that_are_on_a_gpu_take_what_the_folder_holds(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On torch's stand-in of a GPU, which computes no numbers, but refuses to mix its tensors with a processor's."""
    shapes = {name: weight.shape for name, weight in transformer_of(load_encoder(PACKAGED_ENCODER)).state_dict().items()}
    stored = [found for found in compact._read(packed / compact.DELTA_FILE) if found[2] is not None]
    monkeypatch.setattr(compact, "_read", lambda path: stored)
    with FakeTensorMode(allow_non_fake_inputs=True):
        weights = {name: torch.empty(shape, device="cuda") for name, shape in shapes.items()}
        restore(SimpleNamespace(state_dict=lambda: weights), packed)  # type: ignore[arg-type]
