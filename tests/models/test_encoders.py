"""What training leaves as it is."""

from __future__ import annotations

import pytest
from transformers import AlbertConfig, AutoModel, BertConfig, DistilBertConfig, RobertaConfig

from dialeval_plugin.models.encoders import freeze

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.mark.parametrize(
    ("config", "lower"),
    [
        (BertConfig(**SIZES), ("embeddings.", "encoder.layer.0.")),
        (RobertaConfig(**SIZES), ("embeddings.", "encoder.layer.0.")),
        (
            DistilBertConfig(vocab_size=50, dim=32, n_layers=3, n_heads=4, hidden_dim=48),
            ("embeddings.", "transformer.layer.0."),
        ),
        # Its layers share their weights, none is the lowest.
        (AlbertConfig(**SIZES, embedding_size=16), ("embeddings.",)),
    ],
    ids=["bert", "roberta", "distilbert", "albert"],
)
def test_the_lower_half_of_an_encoder_is_kept_from_training(
    config: BertConfig | RobertaConfig | DistilBertConfig | AlbertConfig, lower: tuple[str, ...]
) -> None:
    encoder = AutoModel.from_config(config)
    freeze(encoder, 0.0)
    assert all(weight.requires_grad for weight in encoder.parameters())
    freeze(encoder, 0.5)
    for name, weight in encoder.named_parameters():
        assert weight.requires_grad != name.startswith(lower), name
