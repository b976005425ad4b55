"""Opening encoders (safetensors only, never remote code, clear words where one is missing) and embedding token ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor

from dialeval_plugin.core.errors import InputError

from .folders import check_complete, check_device, check_vocabulary, check_weights, opening, resolve

TOKENS_PER_BATCH = 1024
"""Tokens of one forward pass, padding included: enough to fill a processor, few enough for its cache and for memory."""


def load_encoder(name: str, *, device: str | None = None, revision: str | None = None) -> SentenceTransformer:
    """Open a sentence-transformers folder, a bare transformers checkpoint (mean pooling), or a model of the hub.

    Raises:
        InputError: there is no such device.
        ModelLoadError: the weights are pickled, damaged, or do not fit the configuration or the tokenizer, or the folder names
            code of its own.
        MissingPrerequisite: see `resolve`.
    """
    folder = resolve(name, revision=revision)
    stored = check_weights(folder)
    check_device(device)
    with opening(folder, "an encoder"):
        encoder = SentenceTransformer(
            str(folder), device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True}, local_files_only=True
        )
        transformer = getattr(encoder[0], "auto_model", None)
        if transformer is not None:
            check_complete(folder, transformer.state_dict(), stored)
            check_vocabulary(folder, encoder.tokenizer, transformer.get_input_embeddings())
        # What does not fit together shows in the first answer, if not before.
        embed(encoder, [encoder.tokenizer("a")["input_ids"]])
    return encoder


def without_normalisation(encoder: SentenceTransformer) -> SentenceTransformer:
    """Leave out a last module that scales vectors to length 1: layers on top need their natural scale to learn from."""
    modules = [module for module in encoder if not isinstance(module, Normalize)]
    return SentenceTransformer(modules=modules, device=str(encoder.device))


def transformer_of(encoder: SentenceTransformer) -> Any:
    """Return the transformers model inside an encoder.

    Raises:
        InputError: it has none.
    """
    transformer = getattr(encoder[0], "auto_model", None)
    if transformer is None:
        raise InputError(
            f"encoder: its first module is {type(encoder[0]).__name__}, expected a transformer. Choose another backbone."
        )
    return transformer


def embed(encoder: SentenceTransformer, ids: Sequence[list[int]]) -> Tensor:
    """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given.

    Gradients flow, so that training and scoring share it.
    """
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    embedded = [_forward(encoder, [ids[index] for index in batch]) for batch in _batches(order, ids)]
    place = torch.empty(len(order), dtype=torch.long)
    place[torch.tensor(order)] = torch.arange(len(order))
    whole = torch.cat(embedded)
    return whole[place.to(whole.device)]


def _forward(encoder: SentenceTransformer, ids: Sequence[list[int]]) -> Tensor:
    length = max(map(len, ids))
    pad = encoder.tokenizer.pad_token_id or 0
    features = {
        "input_ids": torch.tensor([[*row, *[pad] * (length - len(row))] for row in ids], device=encoder.device),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in ids], device=encoder.device),
    }
    embedding: Tensor = encoder(features)["sentence_embedding"]
    return embedding


def _batches(order: Sequence[int], ids: Sequence[list[int]]) -> Iterator[list[int]]:
    """Cut indices, sorted by length, into batches of at most TOKENS_PER_BATCH tokens."""
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * len(ids[index]) > TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
