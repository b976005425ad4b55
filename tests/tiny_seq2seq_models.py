"""Sequence-to-sequence models with random weights; real architectures, real files."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

CHARACTERS = tuple(chr(code) for code in range(32, 127))
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
BART_WINDOW = 400
"""Positions of the tiny BART."""


def write_tiny_bart(folder: Path) -> Path:
    """Write a BART of one layer each over single characters."""
    words = (*SPECIAL.values(), *CHARACTERS)
    ids = {word: number for number, word in enumerate(words)}
    letters = Tokenizer(WordLevel(ids, unk_token=SPECIAL["unk_token"]))
    letters.pre_tokenizer = Split("", "isolated")
    letters.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    PreTrainedTokenizerFast(tokenizer_object=letters, **SPECIAL).save_pretrained(folder)
    torch.manual_seed(3)
    config = BartConfig(
        vocab_size=len(words),
        max_position_embeddings=BART_WINDOW,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        init_std=0.5,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


def write_tiny_t5(folder: Path) -> Path:
    """Write a T5 of one layer each whose pieces are single characters, "Yes" and "No"."""
    pieces = ["▁", "▁Yes", "▁No", *(character for character in CHARACTERS if character != " ")]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((piece, -1.0) for piece in pieces)]
    T5Tokenizer(vocab=vocabulary, extra_ids=0).save_pretrained(folder)
    torch.manual_seed(4)
    config = T5Config(
        vocab_size=len(vocabulary),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_decoder_layers=1,
        num_heads=2,
        initializer_factor=3.0,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
