"""Opening of encoders (safetensors only, no remote code, clear errors), and embedding of token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModel, PreTrainedModel

from dialeval_plugin.core.errors import InputError

from .compact import base_of, changes, whole
from .folders import check_complete, check_weights, opening, resolve, without_bars
from .language_models import longest_input, open_transformer
from .tensors import check_device, check_vocabulary, own_gpu, padded_tensors, tokens_at_once
from .texts import length_batches

if TYPE_CHECKING:
    # Imported lazily: its trainers import datasets, pandas and scikit-learn, which scoring does not need.
    from sentence_transformers import SentenceTransformer

Encoder: TypeAlias = Union["SentenceTransformer", "MeanEncoder"]
"""A module that embeds texts."""


class MeanEncoder(nn.Module):
    """The encoder of a compact folder, opened without sentence-transformers: the mean of the last layer's token vectors.

    Its vectors are equal to the bit to those of `load_encoder`.
    """

    def __init__(self, folder: Path, base: Path, *, device: str | None = None) -> None:
        super().__init__()
        self.folder = folder
        self.auto_model, self.tokenizer = open_transformer(AutoModel, base, "an encoder", device=device)
        restore(self.auto_model, folder)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        place: torch.device = self.auto_model.device
        return place

    def forward(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Embed a batch, `input_ids` and `attention_mask` (n, tokens); sets `sentence_embedding`, of shape (n, hidden)."""
        vectors = self.auto_model(**features).last_hidden_state
        mask = features["attention_mask"].unsqueeze(-1).to(vectors)
        return {"sentence_embedding": (vectors * mask).sum(1) / mask.sum(1).clamp(min=1e-9)}

    def get_max_seq_length(self) -> int | None:
        """Return the largest number of tokens that it reads; None if there is no limit."""
        return longest_input(self.auto_model, self.tokenizer)


def restore(model: nn.Module, folder: Path) -> None:
    """Apply the changes in a compact folder to the original encoder, in place; raises as `changes`."""
    weights = model.state_dict()
    with torch.no_grad():
        for name, array, is_difference in changes(folder, {name: weight.shape for name, weight in weights.items()}):
            stored = torch.from_numpy(array).to(weights[name].device)
            weights[name].add_(stored) if is_difference else weights[name].copy_(stored)


def load_trained_encoder(folder: Path, *, device: str | None = None) -> Encoder:
    """Open the encoder of a trained model for scoring; raises as `load_encoder`."""
    if (base := base_of(folder)) is None:
        return load_encoder(str(folder), device=device)
    check_weights(folder)
    return MeanEncoder(folder, base, device=device)


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder as a folder of sentence-transformers."""
    whole = load_encoder(str(encoder.folder), device="cpu") if isinstance(encoder, MeanEncoder) else encoder
    with without_bars():
        whole.save_pretrained(str(folder), create_model_card=False)


def load_encoder(name: str, *, device: str | None = None) -> SentenceTransformer:
    """Open a sentence-transformers folder, a bare transformers checkpoint (mean pooling), or a hub model.

    Raises:
        ModelLoadError: the weights are pickled, damaged or incompatible with the rest, or the folder names code of its own.
        MissingPrerequisite: there is no such model, or the hub cannot be reached.
    """
    folder = resolve(name)
    stored = check_weights(folder)
    check_device(device)
    if (base := base_of(folder)) is not None:
        # Our models need vectors that are not normalised.
        encoder = without_normalisation(load_encoder(str(base), device=device))
        restore(transformer_of(encoder), folder)
        return encoder
    from sentence_transformers import SentenceTransformer

    with opening(folder, "an encoder"), whole(folder) as place:
        encoder = SentenceTransformer(
            str(place),
            device=device or own_gpu(),
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
            local_files_only=True,
        )
        transformer = getattr(encoder[0], "auto_model", None)
        if transformer is not None:
            check_complete(folder, transformer.state_dict(), stored)
            check_vocabulary(folder, encoder.tokenizer, transformer.get_input_embeddings())
        # Incompatible parts fail in the first forward pass, if not before.
        embed(encoder, [encoder.tokenizer("a")["input_ids"]])
    return encoder


def without_normalisation(encoder: SentenceTransformer) -> SentenceTransformer:
    """Remove a last module that normalises vectors: layers on top need the original norms to learn from."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    modules = [module for module in encoder if not isinstance(module, Normalize)]
    return SentenceTransformer(modules=modules, device=str(encoder.device))


def transformer_of(encoder: Encoder) -> Any:
    """Return the transformers model inside an encoder, which must have one."""
    if isinstance(encoder, MeanEncoder):
        return encoder.auto_model
    transformer = getattr(encoder[0], "auto_model", None)
    if transformer is None:
        raise InputError(
            f"encoder: its first module is {type(encoder[0]).__name__}, expected a transformer. Choose another backbone."
        )
    return transformer


def freeze(encoder: PreTrainedModel, share: float) -> None:
    """Freeze an encoder's embeddings and a share of its layers, in [0, 1], the lowest ones, rounded down."""
    if not share:
        return
    n_layers = encoder.config.num_hidden_layers
    # The list's name differs between architectures; it is the only one with a module per layer. ALBERT shares one layer.
    lists = (parts for parts in encoder.modules() if isinstance(parts, nn.ModuleList) and len(parts) == n_layers)
    layers = next(lists, nn.ModuleList())
    for part in (getattr(encoder, "embeddings", encoder.get_input_embeddings()), *layers[: int(share * n_layers)]):
        part.requires_grad_(False)


def embed(encoder: Encoder, ids: Sequence[Sequence[int]], *, kept_tokens: int | None = None) -> Tensor:
    """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given.

    Gradients flow, so that training and scoring share this function. Beyond `kept_tokens` tokens, padding included,
    activations are kept for the first batches only, at least one, and are recomputed for the others in the backward pass: the
    gradients are equal to the bit, in less memory. On a GPU a step has one batch, and nothing is recomputed.
    """

    def vectors_of(input_ids: Tensor, mask: Tensor) -> Tensor:
        vectors: Tensor = encoder({"input_ids": input_ids, "attention_mask": mask})["sentence_embedding"]
        return vectors

    whole: Tensor | None = None
    n_read = 0
    for batch in length_batches([len(row) for row in ids], tokens_at_once(encoder.device)):
        input_ids, mask = padded_tensors([ids[place] for place in batch], encoder.tokenizer.pad_token_id, encoder.device)
        n_read += input_ids.numel()
        if whole is None or kept_tokens is None or n_read <= kept_tokens:
            vectors = vectors_of(input_ids, mask)
        else:
            vectors = checkpoint(vectors_of, input_ids, mask, use_reentrant=False)
        # One array from the beginning: separate batches would fragment the memory that the next ones need.
        whole = vectors.new_empty(len(ids), vectors.shape[1]) if whole is None else whole
        whole[torch.tensor(batch, device=whole.device)] = vectors
    if whole is None:
        raise InputError("embed: there are no texts. Give one at least.")
    return whole
