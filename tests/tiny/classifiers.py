"""GLUE classifiers with random weights: BERT and RoBERTa from their configurations, over single characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, RobertaConfig, RobertaForSequenceClassification

from .characters import BERT_TOKENS, SMALL_BERT, spread, write_character_tokenizer

WINDOW = 120


def write_classifier(
    folder: Path, labels: tuple[str, ...] = (), *, architecture: str = "bert", seed: int = 0, n_labels: int | None = None
) -> Path:
    """Write a classifier; without labels it has one output, as STS-B's, and with `n_labels` it names none."""
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1" if architecture == "bert" else "[CLS] $A [SEP] [SEP] $B [SEP]"
    frame = {"single": "[CLS] $A [SEP]", "pair": pair}
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if architecture == "bert" else ["input_ids", "attention_mask"]
    n_tokens = write_character_tokenizer(folder, [*BERT_TOKENS.values()], frame, model_input_names=inputs, **BERT_TOKENS)
    heads: dict[str, Any] = {"num_labels": n_labels or max(1, len(labels)), "pad_token_id": 0}
    if labels and n_labels is None:
        heads |= {"id2label": dict(enumerate(labels)), "label2id": {name: place for place, name in enumerate(labels)}}
    torch.manual_seed(seed)
    if architecture == "bert":
        model: Any = BertForSequenceClassification(
            BertConfig(vocab_size=n_tokens, max_position_embeddings=WINDOW, **SMALL_BERT, **heads)
        )
    else:
        # RoBERTa's positions begin after the padding index, so one of them is never used.
        model = RobertaForSequenceClassification(
            RobertaConfig(vocab_size=n_tokens, max_position_embeddings=WINDOW + 1, **SMALL_BERT, **heads)
        )
    spread(model.parameters(), 0.7)
    model.save_pretrained(folder)
    return folder
