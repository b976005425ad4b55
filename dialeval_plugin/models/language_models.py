"""Opening of models through transformers: safetensors only, no remote code, no missing weights, on a chosen device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dialeval_plugin.core.errors import InputError, ModelLoadError

from .compact import whole
from .folders import check_weights, opening, resolve
from .tensors import check_vocabulary, choose_device, tokens_at_once
from .texts import check_fast, text_ids

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
