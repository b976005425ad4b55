"""Opening language models through transformers: safetensors only, no remote code, no weight left to chance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForNextSentencePrediction,
    AutoModelForSequenceClassification,
)

from .batching import tokens_at_once
from .folders import check_weights, opening, resolve
from .opening import LOCAL, check_fast, longest_input, open_transformer, text_ids

Family: TypeAlias = Literal["causal_lm", "permutation_lm", "next_sentence"]

GPU_BATCH_TOKENS = 16_384
"""Of which a vocabulary of 50,000 makes 3 GB of logits."""

_CLASSIFIER = "ForSequenceClassification"


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A language model in evaluation mode with its tokenizer."""

    family: Family
    model: Any
    tokenizer: Any
    folder: Path
    max_positions: int | None
    """Longest sequence that it takes, special tokens included; None where nothing limits it (relative positions)."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def batch_tokens(self) -> int:
        """How many tokens one forward pass may have."""
        return tokens_at_once(self.device, GPU_BATCH_TOKENS)

    @property
    def pad(self) -> int:
        """The id that fills short rows; no answer depends on it."""
        for id in (self.model.config.pad_token_id, self.tokenizer.pad_token_id):
            if id is not None:
                return int(id)
        return 0

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """Tokenise texts without special tokens; one that stands in a text is text, so no turn can forge the end of another."""
        return text_ids(self.tokenizer, texts)


def open_model(
    name: str, *, family: Family | None = None, device: str | None = None, revision: str | None = None
) -> OpenedModel:
    """Open a folder or a model of the hub, to be used as one of `family`; by default as its configuration says."""
    folder = resolve(name, revision=revision)
    check_weights(folder)
    with opening(folder, "a language model"):
        config = AutoConfig.from_pretrained(folder, **LOCAL)
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
        # What does not fit together shows in the first answer, if not before.
        model(input_ids=torch.zeros(1, 2, dtype=torch.long, device=model.device))
        return OpenedModel(chosen, model, tokenizer, folder, longest_input(model, tokenizer))


def family_of(config: Any) -> Family:
    """Return how a model is used, by its configuration: an encoder with a next-sentence or classification head judges pairs."""
    if config.model_type == "xlnet":
        return "permutation_lm"
    if getattr(config, "is_decoder", False):
        return "causal_lm"
    architectures = config.architectures or []
    is_classifier = any(name.endswith(_CLASSIFIER) for name in architectures)
    if is_classifier or type(config) in AutoModelForNextSentencePrediction._model_mapping:
        return "next_sentence"
    return "causal_lm"


def _host_class(config: Any, family: Family) -> Any:
    if family != "next_sentence":
        return AutoModelForCausalLM
    if any(name.endswith(_CLASSIFIER) for name in config.architectures or []):
        return AutoModelForSequenceClassification
    return AutoModelForNextSentencePrediction
