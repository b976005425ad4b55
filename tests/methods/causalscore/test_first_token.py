"""The shortened last layer: the same logits from real architectures, and the model left as it was."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedModel,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from dialeval_plugin.methods.causalscore.first_token import first_token_only

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


def bert() -> PreTrainedModel:
    return BertForSequenceClassification(BertConfig(**SIZES))


def roberta() -> PreTrainedModel:
    return RobertaForSequenceClassification(RobertaConfig(**SIZES, max_position_embeddings=64))


def distilbert() -> PreTrainedModel:
    return DistilBertForSequenceClassification(DistilBertConfig(vocab_size=50, dim=32, n_layers=2, n_heads=4, hidden_dim=48))


def batch(*, is_padded: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.ones(5, 12, dtype=torch.long)
    if is_padded:
        mask[1, 7:] = 0
        mask[3, 3:] = 0
    return {"input_ids": torch.randint(3, 50, (5, 12), generator=generator), "attention_mask": mask}


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("make", [bert, roberta, distilbert])
def test_logits_stay_the_same(make, is_padded: bool) -> None:
    torch.manual_seed(0)
    model = make().eval()
    features = batch(is_padded=is_padded)
    with torch.inference_mode():
        plain = model(**features).logits
        with first_token_only(model):
            shortened = model(**features).logits
    assert torch.allclose(plain, shortened, atol=1e-6)
    assert plain.std() > 0


@pytest.mark.parametrize("make", [bert, roberta])
def test_the_last_layer_sees_one_query_only(make) -> None:
    model = make().eval()
    widths = []
    model.base_model.encoder.layer[-1].intermediate.register_forward_hook(
        lambda _module, args, _output: widths.append(args[0].shape[1])
    )
    with torch.inference_mode(), first_token_only(model):
        model(**batch(is_padded=True))
    assert widths == [1]


def test_the_model_is_whole_again_after_an_error() -> None:
    model = bert()
    names = list(model.state_dict())
    with pytest.raises(RuntimeError, match="stop"), first_token_only(model):
        raise RuntimeError("stop")
    assert list(model.state_dict()) == names


def test_other_attention_runs_as_ever() -> None:
    config = BertConfig(**SIZES)
    config._attn_implementation = "eager"
    model = BertForSequenceClassification(config).eval()
    last = model.base_model.encoder.layer[-1]
    with first_token_only(model):
        assert model.base_model.encoder.layer[-1] is last


def test_a_model_without_an_encoder_runs_as_ever() -> None:
    model = SimpleNamespace(base_model=SimpleNamespace())
    with first_token_only(model):
        assert vars(model) == {"base_model": SimpleNamespace()}
