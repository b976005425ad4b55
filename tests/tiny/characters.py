"""Parts of most tiny models: a tokenizer over single characters, and weights whose answers differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

CHARACTERS = tuple(chr(code) for code in range(32, 127))
BERT_TOKENS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
SMALL_BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def write_character_tokenizer(
    folder: Path, special: Sequence[str], frame: Mapping[str, str] | None = None, **settings: Any
) -> int:
    """Write a tokenizer of the special tokens and the printable characters; return how many tokens it has.

    `frame` has the templates `single` and `pair` of what stands around texts; `settings` are the tokenizer's own.
    """
    ids = {word: number for number, word in enumerate((*special, *CHARACTERS))}
    letters = Tokenizer(WordLevel(ids, unk_token=settings["unk_token"]))
    letters.pre_tokenizer = Split("", "isolated")
    if frame is not None:
        around = [(word, ids[word]) for word in special if any(word in template.split() for template in frame.values())]
        letters.post_processor = TemplateProcessing(**frame, special_tokens=around)
    PreTrainedTokenizerFast(tokenizer_object=letters, **settings).save_pretrained(folder)
    return len(ids)


def spread(weights: Iterable[torch.Tensor], std: float) -> None:
    """Draw weights anew, large enough that the answers of a model differ."""
    for weight in weights:
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=std)
