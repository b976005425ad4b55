"""One random model of each family that the likelihood evaluators open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
_SMALL = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}


def _gpt2(**settings: Any) -> torch.nn.Module:
    end = SPECIAL.index("<end>")
    sizes = {"vocab_size": N_TOKENS, "n_positions": WINDOW, "n_embd": 16, "n_layer": 2, "n_head": 2, **settings}
    return GPT2LMHeadModel(GPT2Config(bos_token_id=end, eos_token_id=end, **sizes))


def _bert(**settings: Any) -> torch.nn.Module:
    return BertForNextSentencePrediction(
        BertConfig(vocab_size=N_TOKENS, max_position_embeddings=WINDOW, **{**_SMALL, **settings})
    )


def _masked_bert(**settings: Any) -> torch.nn.Module:
    return BertForMaskedLM(BertConfig(vocab_size=N_TOKENS, max_position_embeddings=WINDOW, **{**_SMALL, **settings}))


def _roberta_config(**settings: Any) -> RobertaConfig:
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "type_vocab_size": 1}
    return RobertaConfig(vocab_size=N_TOKENS, max_position_embeddings=WINDOW + 1, **{**_SMALL, **ends, **settings})


def _roberta_decoder(**settings: Any) -> torch.nn.Module:
    return RobertaForCausalLM(_roberta_config(is_decoder=True, **settings))


def _roberta_pairs(**settings: Any) -> torch.nn.Module:
    labels = {0: "other", 1: "follows"}
    return RobertaForSequenceClassification(
        _roberta_config(id2label=labels, label2id={name: number for number, name in labels.items()}, **settings)
    )


def _xlnet(**settings: Any) -> torch.nn.Module:
    return XLNetLMHeadModel(XLNetConfig(vocab_size=N_TOKENS, d_model=16, n_layer=2, n_head=2, d_inner=16, **settings))


FAMILIES: Mapping[str, Callable[..., torch.nn.Module]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "masked_bert": _masked_bert,
    "roberta_decoder": _roberta_decoder,
    "roberta_pairs": _roberta_pairs,
    "xlnet": _xlnet,
}


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
    model = FAMILIES[architecture](**settings)
    spread(model.parameters(), 0.4)
    model.save_pretrained(folder)
    return folder
