"""An encoder, and the models over it, with random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel

from dialeval_plugin.methods.assistant.judging import AssistantConfig
from dialeval_plugin.methods.assistant.model import AssistantHead, TrainedAssistant
from dialeval_plugin.methods.causalscore.classifiers import new_classifier
from dialeval_plugin.methods.causalscore.model import CausalModel, CausalModelConfig
from dialeval_plugin.methods.general.judging import GeneralConfig
from dialeval_plugin.methods.general.mixing import CoherenceWeights, Mixing
from dialeval_plugin.methods.general.model import GeneralModel, TrainedGeneral
from dialeval_plugin.methods.slide.fusion import DistanceRange
from dialeval_plugin.methods.slide.judging import SmallModelConfig
from dialeval_plugin.methods.slide.model import SmallModel, TrainedSmallModel

from .characters import BERT_TOKENS, SMALL_BERT, spread, write_character_tokenizer


def write_tiny_encoder(folder: Path, *, max_position_embeddings: int = 256) -> Path:
    """Write a one-layer BERT over single characters as a sentence-transformers folder."""
    torch.manual_seed(0)
    base = folder / "base"
    n_tokens = write_character_tokenizer(base, [*BERT_TOKENS.values()], **BERT_TOKENS)
    config = BertConfig(vocab_size=n_tokens, max_position_embeddings=max_position_embeddings, **SMALL_BERT)
    BertModel(config).save_pretrained(base)
    encoder = SentenceTransformer(modules=[Transformer(str(base)), Pooling(16)], device="cpu")
    encoder.save_pretrained(str(folder / "encoder"), create_model_card=False)
    return folder / "encoder"


def write_tiny_slm(folder: Path, config: SmallModelConfig | None = None) -> Path:
    """Write an untrained SLM over that encoder."""
    encoder = SentenceTransformer(str(write_tiny_encoder(folder)), device="cpu")
    torch.manual_seed(1)
    model = SmallModel(encoder, config or SmallModelConfig("code", "pad", "two_class", "plain", 80, 40))
    TrainedSmallModel(model, DistanceRange(0.5, 1.5), frozenset()).save(folder / "slm")
    return folder / "slm"


def write_tiny_causal_model(folder: Path, config: CausalModelConfig | None = None) -> Path:
    """Write untrained independence classifiers over that encoder, with weights large enough that their answers differ."""
    encoder = write_tiny_encoder(folder)
    torch.manual_seed(2)
    classifiers = [new_classifier(encoder, device="cpu") for _ in range(2)]
    for classifier in classifiers:
        spread(classifier.model.parameters(), 0.7)
    CausalModel.build(config or CausalModelConfig("paper", max_tokens=128), *classifiers).save(folder / "causal")
    return folder / "causal"


def write_tiny_general(folder: Path, config: GeneralConfig | None = None) -> Path:
    """Write an untrained general evaluator over that encoder, with weights large enough that its answers differ."""
    encoder = SentenceTransformer(str(write_tiny_encoder(folder)), device="cpu")
    torch.manual_seed(3)
    model = GeneralModel(encoder, config or GeneralConfig("general", 80, 40, has_knowledge=True))
    spread((*model.head.vectors.parameters(), *model.head.words.parameters()), 0.3)
    plain = {"relevance": 0.4, "fit": 0.8, "fluency": 0.3, "specificity": 0.2, "offset": -0.1}
    mixing = Mixing(plain, {**plain, "knowledge": 0.5} if model.config.has_knowledge else None)
    TrainedGeneral(model, mixing, CoherenceWeights(0.6, 0.3, 0.1, 0.2), frozenset()).save(folder / "general")
    return folder / "general"


def write_tiny_assistant(folder: Path, config: AssistantConfig | None = None) -> Path:
    """Write an untrained evaluator of assistants over that encoder, with weights large enough that its answers differ."""
    encoder = SentenceTransformer(str(write_tiny_encoder(folder)), device="cpu")
    torch.manual_seed(4)
    head = AssistantHead(16)
    spread(head.parameters(), 0.3)
    config = config or AssistantConfig("assistant", 40, 2, 40, 3)
    TrainedAssistant(encoder, head, config, {"cut_off": 0.6}, frozenset()).save(folder / "assistant")
    return folder / "assistant"
