"""Dialogue models with random weights, small enough for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dialeval_plugin.methods.reconstruction.layers import Architecture
from dialeval_plugin.methods.reconstruction.model import DialogueNetwork, NetworkKind, TrainedReconstruction, new_network
from dialeval_plugin.methods.reconstruction.vocabulary import Vocabulary

KINDS: tuple[NetworkKind, ...] = ("seq2seq", "hred", "vhred", "vhcr")
WORDS = ("do", "you", "like", "jazz", "i", ".", "?", ",", "the", "station", "is", "where", "hi", "there", "not", "how")
SIZES = {"embedding": 6, "encoder": 5, "context": 7, "decoder": 8, "latent": 3}


def tiny_network(kind: NetworkKind, *, seed: int = 0, **drops: float) -> DialogueNetwork:
    """A model in evaluation mode whose losses differ clearly from word to word."""
    torch.manual_seed(seed)
    network = new_network(kind, Architecture(4 + len(WORDS), **SIZES, **drops)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.5)
    return network


def write_tiny_model(
    folder: Path, kind: NetworkKind, *, seed: int = 0, max_tokens: int = 30, training: Mapping[str, Any] | None = None
) -> Path:
    """Write a model's folder and return it."""
    network = tiny_network(kind, seed=seed)
    architecture = Architecture(4 + len(WORDS), **SIZES)
    TrainedReconstruction(kind, "tiny", architecture, max_tokens, Vocabulary(WORDS), network).save(folder, training or {})
    return folder
