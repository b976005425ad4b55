"""Opening of models on torch (safetensors only, no remote code, no missing weights, on a chosen device), and embedding."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import numpy as np
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModel, PreTrainedModel

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import atomic_path

from .compact import base_of, changes, whole
from .folders import check_complete, check_weights, opening, resolve, without_bars
from .texts import CPU_TOKENS, FEATURES, check_fast, length_batches, lexical_features, padded, text_ids, token_rarity

if TYPE_CHECKING:
    # Imported lazily: its trainers import datasets, pandas and scikit-learn, which scoring does not need.
    from sentence_transformers import SentenceTransformer


GPU_TOKENS = 65_536
"""Number of tokens per forward pass on a GPU, padding included, for a model without logits of a whole vocabulary."""


def check_device(device: str | None) -> str | None:
    """Return a torch device unchanged if this machine has it; None leaves the choice until a model is opened."""
    if device is None:
        return None
    try:
        # A device that this build of torch does not support fails on first use, with errors of several kinds.
        torch.zeros(1, device=torch.device(device)).cpu()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"device {device!r}: cannot be used here ({first}). Leave the option out, or give 'cpu'.") from None
    return device


def own_gpu() -> str | None:
    """Return the GPU of this process, None if there is none; processes of `accelerate launch` take the GPUs in turn."""
    if not torch.cuda.is_available():
        return None
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


def choose_device(device: str | None) -> str:
    """Return a torch device unchanged; by default `own_gpu`, if there is one."""
    return check_device(device) or own_gpu() or "cpu"


def tokens_at_once(device: torch.device, on_gpu: int = GPU_TOKENS) -> int:
    """Return the largest number of tokens per forward pass."""
    return on_gpu if device.type == "cuda" else CPU_TOKENS


def padded_tensors(rows: Sequence[Sequence[int]], pad: int | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return `texts.padded` as tensors on a device."""
    ids, mask = map(torch.from_numpy, padded(rows, pad))
    if device.type != "cuda":
        return ids.to(device), mask.to(device)
    # From pinned memory the copy runs while the next batch is made.
    return ids.pin_memory().to(device, non_blocking=True), mask.pin_memory().to(device, non_blocking=True)


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    with atomic_path(path) as temporary:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, str(temporary))
        except SafetensorError as error:
            raise InputError(f"{path}: cannot be written ({error}). The previous file, if any, is unchanged.") from error


def load_weights(module: nn.Module, path: Path) -> None:
    """Load the weights of a safetensors file, which must have exactly those of the module."""
    try:
        tensors = load_file(str(path))
    except FileNotFoundError:
        raise ModelLoadError(f"{path}: there is no such file. Copy the model folder again.") from None
    except Exception as error:  # safetensors raises its own untyped errors on damaged files
        raise ModelLoadError(f"{path}: is damaged ({error}). Copy the model folder again.") from error
    expected = module.state_dict()
    if strange := sorted(set(tensors) - set(expected)):
        raise ModelLoadError(f"{path}: the tensor {strange[0]!r} is not the model's. Copy the model folder again.")
    for name, tensor in expected.items():
        if name not in tensors:
            raise ModelLoadError(f"{path}: the tensor {name!r} is missing. Copy the model folder again.")
        if tensors[name].shape != tensor.shape:
            raise ModelLoadError(
                f"{path}: the tensor {name!r} has shape {tuple(tensors[name].shape)}, expected {tuple(tensor.shape)}. "
                "Copy the model folder again."
            )
    module.load_state_dict(tensors)


def check_vocabulary(folder: Path, tokenizer: Sized, embedding: nn.Embedding) -> None:
    """Refuse a tokenizer with more tokens than the model has word vectors."""
    rows = embedding.weight.shape[0]
    if len(tokenizer) > rows:
        raise ModelLoadError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the embedding only {rows} rows. "
            "The tokenizer belongs to another model; copy the folder again."
        )


class LexicalFeatures(nn.Module):
    """Tables for `lexical_features`, as a module.

    The tables (`learn_rarity`, `learn_scale`) are fitted before the module's weights and stored with them.
    """

    rarity: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.register_buffer("rarity", torch.zeros(vocabulary_size))
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("deviation", torch.ones(len(FEATURES)))

    def learn_rarity(self, responses: Iterable[Sequence[int]]) -> None:
        """Fit the rarity of each token on the token ids of many responses."""
        self.rarity.copy_(torch.as_tensor(token_rarity(responses, len(self.rarity))))

    def learn_scale(self, features: Tensor) -> None:
        """Fit mean and standard deviation of each feature on training pairs, of shape (n, len(FEATURES)).

        A feature that is constant in all of them keeps its scale, since it may vary in other pairs.
        """
        self.mean.copy_(features.mean(dim=0))
        deviation = features.std(dim=0, correction=0)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))

    def features(
        self,
        contexts: Sequence[Sequence[int]],
        owners: Sequence[int] | np.ndarray,
        responses: Sequence[Sequence[int]],
        special: Collection[int],
    ) -> Tensor:
        """Return `lexical_features` as a tensor on the device of the weights."""
        rarity = self.rarity.double().cpu().numpy()
        return torch.as_tensor(lexical_features(contexts, owners, responses, rarity, special)).to(self.mean)

    def standardised(self, features: Tensor) -> Tensor:
        """Return features, of shape (..., len(FEATURES)), scaled to mean 0 and deviation 1 in training."""
        return (features - self.mean) / self.deviation


Family: TypeAlias = Literal["causal_lm", "permutation_lm", "next_sentence"]

GPU_BATCH_TOKENS = 16_384
"""Number of tokens per batch on a GPU; with a vocabulary of 50,000 their logits take 3 GB."""

LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Arguments with which the hosts open everything in a folder."""

_CLASSIFIER = "ForSequenceClassification"


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A language model in evaluation mode with its tokenizer."""

    family: Family
    model: Any
    tokenizer: Any
    folder: Path
    max_positions: int | None
    """Longest input in tokens, special tokens included; None if there is no limit (relative positions)."""

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        device: torch.device = self.model.device
        return device

    @property
    def batch_tokens(self) -> int:
        """Largest number of tokens per forward pass."""
        return tokens_at_once(self.device, GPU_BATCH_TOKENS)

    @property
    def pad(self) -> int:
        """Id of the padding; no result depends on it."""
        for id in (self.model.config.pad_token_id, self.tokenizer.pad_token_id):
            if id is not None:
                return int(id)
        return 0

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """Tokenise texts without special tokens; those in a text are read as text, so that no turn imitates another's end."""
        return text_ids(self.tokenizer, texts)


def open_model(
    name: str, *, family: Family | None = None, device: str | None = None, revision: str | None = None
) -> OpenedModel:
    """Open a folder or hub model as one of `family`, by default the family of its configuration."""
    folder = resolve(name, revision=revision)
    check_weights(folder)
    with opening(folder, "a language model"):
        config = transformers.AutoConfig.from_pretrained(folder, **LOCAL)
        chosen = family or family_of(config)
    model, tokenizer = open_transformer(
        _host_class(config, chosen),
        folder,
        "a language model",
        device=device,
        lacking=f", or choose another family than {chosen}",
        config=config,
    )
    check_fast(folder, tokenizer)
    with opening(folder, "a language model"), torch.inference_mode():
        # Incompatible parts fail in the first forward pass, if not before.
        model(input_ids=torch.zeros(1, 2, dtype=torch.long, device=model.device))
        return OpenedModel(chosen, model, tokenizer, folder, longest_input(model, tokenizer))


def family_of(config: Any) -> Family:
    """Return a model's family from its configuration; encoders with a next-sentence or classification head judge pairs."""
    if config.model_type == "xlnet":
        return "permutation_lm"
    if getattr(config, "is_decoder", False):
        return "causal_lm"
    architectures = config.architectures or []
    is_classifier = any(name.endswith(_CLASSIFIER) for name in architectures)
    if is_classifier or type(config) in transformers.AutoModelForNextSentencePrediction._model_mapping:
        return "next_sentence"
    return "causal_lm"


def _host_class(config: Any, family: Family) -> Any:
    if family != "next_sentence":
        return transformers.AutoModelForCausalLM
    if any(name.endswith(_CLASSIFIER) for name in config.architectures or []):
        return transformers.AutoModelForSequenceClassification
    return transformers.AutoModelForNextSentencePrediction


def open_transformer(
    host_class: Any, folder: Path, what: str, *, device: str | None = None, lacking: str = "", **options: Any
) -> tuple[Any, Any]:
    """Open a model in evaluation mode and its tokenizer.

    Args:
        host_class: class of transformers, for example `AutoModelForCausalLM`.
        folder: result of `folders.resolve`.
        what: kind of model, with its article, for messages.
        device: by default a GPU if there is one.
        lacking: advice for missing weights, in addition to copying the folder again.
        **options: options of the host.
    """
    check_weights(folder)
    place = choose_device(device)
    with opening(folder, what), whole(folder) as copy:
        tokenizer = transformers.AutoTokenizer.from_pretrained(copy, **LOCAL)
        model, report = host_class.from_pretrained(
            copy, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **LOCAL, **options
        )
    # The host would fill missing weights with random numbers and go on.
    if missing := sorted(report["missing_keys"]):
        raise ModelLoadError(
            f"{folder}: as {what} its weights lack {missing[0]!r}, which would be random. Copy the folder again{lacking}."
        )
    check_vocabulary(folder, tokenizer, model.get_input_embeddings())
    return model.to(place).eval(), tokenizer


def longest_input(model: Any, tokenizer: Any) -> int | None:
    """Return a model's largest number of input tokens, by its configuration, its position table and its tokenizer."""
    limits = []
    configured = getattr(model.config, "max_position_embeddings", None)
    if isinstance(configured, int) and configured > 0:
        limits.append(configured - _position_offset(model))
    # A tokenizer saved without a limit has an astronomic one.
    if tokenizer.model_max_length < 10**9:
        limits.append(int(tokenizer.model_max_length))
    return min(limits) if limits else None


def _position_offset(model: Any) -> int:
    """Number of unused rows at the beginning of RoBERTa's position table, which starts after the padding's index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.padding_idx) + 1
    return 0


def check_window(scorer: str, max_tokens: int, limit: int | None) -> int:
    """Return a user's window; raise an error if it is longer than the model's, `limit`."""
    if limit is not None and max_tokens > limit:
        raise InputError(f"{scorer}: max_tokens is {max_tokens}, but the model takes {limit} at most. Give less.")
    return max_tokens


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, *, prefix_space: bool = True
) -> transformers.PreTrainedTokenizerFast:
    """Train a byte-level BPE, which gives every text tokens; its only special token is the end of text."""
    end = "<|endoftext|>"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, bos_token=end, pad_token=end)


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
