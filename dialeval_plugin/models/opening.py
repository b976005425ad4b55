"""Opening models through transformers: safetensors only, no remote code, no weight left to chance, and on which device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from dialeval_plugin.core.errors import InputError, ModelLoadError

from .folders import check_device, check_vocabulary, check_weights, opening

LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""How everything of a folder is opened by the hosts."""


def choose_device(device: str | None) -> str:
    """Return a torch device as it was given; by default a GPU where there is one."""
    return check_device(device) or ("cuda" if torch.cuda.is_available() else "cpu")


def open_transformer(
    host_class: Any, folder: Path, what: str, *, device: str | None = None, lacking: str = "", **options: Any
) -> tuple[Any, Any]:
    """Open a model in evaluation mode and its tokenizer.

    Args:
        host_class: of transformers, for example `AutoModelForCausalLM`.
        folder: as `folders.resolve` gives it.
        what: it is opened as, with its article, for messages.
        device: by default a GPU where there is one.
        lacking: advice where weights are missing, beside copying the folder again.
        **options: of the host.
    """
    check_weights(folder)
    place = choose_device(device)
    with opening(folder, what):
        tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
        model, report = host_class.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **LOCAL, **options
        )
    # The host fills what is missing with random numbers and goes on.
    if missing := sorted(report["missing_keys"]):
        raise ModelLoadError(
            f"{folder}: as {what} its weights lack {missing[0]!r}, which would be random. Copy the folder again{lacking}."
        )
    check_vocabulary(folder, tokenizer, model.get_input_embeddings())
    return model.to(place).eval(), tokenizer


def longest_input(model: Any, tokenizer: Any) -> int | None:
    """Return how many tokens a model takes at once: what its configuration, its position table and its tokenizer allow."""
    limits = []
    configured = getattr(model.config, "max_position_embeddings", None)
    if isinstance(configured, int) and configured > 0:
        limits.append(configured - _position_offset(model))
    # A tokenizer that was saved without a limit states an astronomic one.
    if tokenizer.model_max_length < 10**9:
        limits.append(int(tokenizer.model_max_length))
    return min(limits) if limits else None


def _position_offset(model: Any) -> int:
    """RoBERTa counts positions from the one after the padding's, so the first rows of its table are never used."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.padding_idx) + 1
    return 0


def check_fast(where: Path | str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot read special tokens in a text as letters: one that is not fast."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelLoadError(
            f"{where}: only fast tokenizers (tokenizer.json) are supported. Convert it with transformers' AutoTokenizer."
        )


def text_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Tokenise texts without special tokens; one that stands in a text is text, so no turn can forge the end of another."""
    if not texts:
        return []
    ids: list[list[int]] = tokenizer(texts, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    return ids


def check_window(scorer: str, max_tokens: int, limit: int | None) -> int:
    """Return a window that a user asks for; it may not be longer than the model's, `limit`."""
    if limit is not None and max_tokens > limit:
        raise InputError(f"{scorer}: max_tokens is {max_tokens}, but the model takes {limit} at most. Give less.")
    return max_tokens
