"""One random model of each family that the likelihood evaluators open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaConfig,
    RobertaForCausalLM,
    RobertaForSequenceClassification,
    XLNetConfig,
    XLNetLMHeadModel,
)

from .characters import CHARACTERS, spread, write_character_tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<end>", "<eod>")
N_TOKENS = len(SPECIAL) + len(CHARACTERS)
WINDOW = 96
_WIDTHS = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
_BERT = {"max_position_embeddings": WINDOW, **_WIDTHS}
_TOKENS = {"type_vocab_size": 1, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
_ROBERTA = {"max_position_embeddings": WINDOW + 1, **_WIDTHS, **_TOKENS}
_LABELS = {"id2label": {0: "other", 1: "follows"}, "label2id": {"other": 0, "follows": 1}}
_END = SPECIAL.index("<end>")
_GPT2 = {"n_positions": WINDOW, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": _END, "eos_token_id": _END}

FAMILIES: Mapping[str, tuple[type[Any], type[Any], Mapping[str, Any]]] = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, _GPT2),
    "bert": (BertForNextSentencePrediction, BertConfig, _BERT),
    "masked_bert": (BertForMaskedLM, BertConfig, _BERT),
    "roberta_decoder": (RobertaForCausalLM, RobertaConfig, {**_ROBERTA, "is_decoder": True}),
    "roberta_pairs": (RobertaForSequenceClassification, RobertaConfig, {**_ROBERTA, **_LABELS}),
    "xlnet": (XLNetLMHeadModel, XLNetConfig, {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 16}),
}
"""A model's class, its configuration's, and the settings that make it small."""


def write_likelihood_model(folder: Path, architecture: str, **settings: Any) -> Path:
    """Write a model with weights large enough that its answers differ, and its tokenizer."""
    frame, ends = None, {"eos_token": "<end>", "bos_token": "<end>"}
    if architecture != "gpt2":
        ends = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
        frame = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"}
    if architecture == "roberta_decoder":
        ends |= {"eos_token": "[SEP]", "bos_token": "[CLS]"}
    write_character_tokenizer(
        folder, SPECIAL, frame, pad_token=SPECIAL[0], unk_token=SPECIAL[1], additional_special_tokens=["<eod>"], **ends
    )
    torch.manual_seed(3)
    host_class, configuration, small = FAMILIES[architecture]
    model = host_class(configuration(**{"vocab_size": N_TOKENS, **small, **settings}))
    spread(model.parameters(), 0.4)
    model.save_pretrained(folder)
    return folder
