"""Sequence-to-sequence models with random weights, of one layer each."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration, T5Tokenizer

from .characters import CHARACTERS, write_character_tokenizer

SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
BART_WINDOW = 400
"""Positions of the tiny BART."""


def write_tiny_bart(folder: Path) -> Path:
    """Write a BART over single characters."""
    n_tokens = write_character_tokenizer(folder, [*SPECIAL.values()], {"single": "<s> $A </s>"}, **SPECIAL)
    torch.manual_seed(3)
    widths = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    depths = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    config = BartConfig(vocab_size=n_tokens, max_position_embeddings=BART_WINDOW, init_std=0.5, **widths, **depths, **ends)
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


def write_tiny_t5(folder: Path) -> Path:
    """Write a T5 whose pieces are single characters, "Yes" and "No"."""
    pieces = ["▁", "▁Yes", "▁No", *(character for character in CHARACTERS if character != " ")]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((piece, -1.0) for piece in pieces)]
    T5Tokenizer(vocab=vocabulary, extra_ids=0).save_pretrained(folder)
    torch.manual_seed(4)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
    ends = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    config = T5Config(vocab_size=len(vocabulary), initializer_factor=3.0, **sizes, **ends)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
