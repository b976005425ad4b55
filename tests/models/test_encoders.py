"""Weights that training leaves as they are, and the memory that it keeps for the gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AlbertConfig, AutoModel, BertConfig, DistilBertConfig, RobertaConfig

from dialeval_plugin.models import encoders
from dialeval_plugin.models.encoders import embed, freeze, load_encoder, transformer_of
from dialeval_plugin.models.tensors import choose_device

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.mark.parametrize(
    ("config", "lower"),
    [
        (BertConfig(**SIZES), ("embeddings.", "encoder.layer.0.")),
        (RobertaConfig(**SIZES), ("embeddings.", "encoder.layer.0.")),
        (
            DistilBertConfig(vocab_size=50, dim=32, n_layers=3, n_heads=4, hidden_dim=48),
            ("embeddings.", "transformer.layer.0."),
        ),
        # Its layers share their weights, none is the lowest.
        (AlbertConfig(**SIZES, embedding_size=16), ("embeddings.",)),
    ],
    ids=["bert", "roberta", "distilbert", "albert"],
)
def test_the_lower_half_of_an_encoder_is_kept_from_training(
    config: BertConfig | RobertaConfig | DistilBertConfig | AlbertConfig, lower: tuple[str, ...]
) -> None:
    encoder = AutoModel.from_config(config)
    freeze(encoder, 0.0)
    assert all(weight.requires_grad for weight in encoder.parameters())
    freeze(encoder, 0.5)
    for name, weight in encoder.named_parameters():
        assert weight.requires_grad != name.startswith(lower), name


def gradients(
    encoder: encoders.Encoder, ids: list[list[int]], kept_tokens: int | None, *, bfloat16: bool
) -> tuple[list[Tensor], int]:
    """Gradients of all weights of a loss on texts' vectors, and how many bytes autograd held before they were asked for."""
    encoder.zero_grad()
    torch.manual_seed(3)
    held = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal held
        held += tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            vectors = embed(encoder, ids, kept_tokens=kept_tokens)
        loss = (vectors.float() ** 2).sum()
    loss.backward()
    return [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None], held


@pytest.mark.parametrize("bfloat16", [False, True], ids=["float32", "bfloat16"])
def test_what_is_computed_again_gives_the_same_gradients_from_less_memory(
    bfloat16: bool, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "tokens_at_once", lambda device: 32)
    encoder = load_encoder(str(tiny_encoder), device="cpu").train()
    config = transformer_of(encoder).config
    assert config.hidden_dropout_prob > 0, "what is drawn is drawn again"
    ids = [[5 + (row + place) % 20 for place in range(2 + row % 7)] for row in range(40)]
    whole, held = gradients(encoder, ids, None, bfloat16=bfloat16)
    again, held_again = gradients(encoder, ids, 64, bfloat16=bfloat16)
    assert len(again) == len(whole) > 0
    assert all(one.equal(other) for one, other in zip(again, whole, strict=True))
    assert held_again < held / 2
    _, held_of_one_batch = gradients(encoder, ids, 1, bfloat16=bfloat16)
    assert 0 < held_of_one_batch < held_again, "the first batch is kept, however few tokens are asked for"


@pytest.mark.parametrize(("variables", "device"), [({}, "cuda:0"), ({"LOCAL_RANK": "3"}, "cuda:1")])
def test_processes_take_the_gpus_in_turn(variables: dict[str, str], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert choose_device(None) == device
    assert choose_device("cpu") == "cpu"
