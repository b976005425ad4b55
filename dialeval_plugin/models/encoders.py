"""Opening encoders (safetensors only, never remote code, clear words where one is missing) and embedding token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor

from dialeval_plugin.core.errors import InputError

from .batching import length_batches, padded, tokens_at_once
from .compact import base_of, restore
from .folders import check_complete, check_device, check_vocabulary, check_weights, opening, resolve


def load_encoder(name: str, *, device: str | None = None, revision: str | None = None) -> SentenceTransformer:
    """Open a sentence-transformers folder, a bare transformers checkpoint (mean pooling), or a model of the hub.

    Raises:
        ModelLoadError: the weights are pickled, damaged, or do not fit the rest, or the folder names code of its own.
        MissingPrerequisite: there is no such model, or the hub cannot be reached.
    """
    folder = resolve(name, revision=revision)
    stored = check_weights(folder)
    check_device(device)
    if (base := base_of(folder)) is not None:
        # A model of ours reads vectors at their natural scale.
        encoder = without_normalisation(load_encoder(str(base), device=device))
        restore(transformer_of(encoder), folder)
        return encoder
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
    """Return the transformers model inside an encoder, which must have one."""
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
    places: list[int] = []
    embedded = []
    for batch in length_batches([len(row) for row in ids], tokens_at_once(encoder.device)):
        places += batch
        input_ids, mask = padded([ids[place] for place in batch], encoder.tokenizer.pad_token_id, encoder.device)
        embedded.append(encoder({"input_ids": input_ids, "attention_mask": mask})["sentence_embedding"])
    whole = torch.cat(embedded)
    return whole[torch.tensor(places).argsort().to(whole.device)]
