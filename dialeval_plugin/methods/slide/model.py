"""SLIDE's small model: an encoder, a head that splits a response into robust and non-robust parts, and its calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.encoders import Encoder, embed, load_trained_encoder, save_encoder, transformer_of
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import Precision, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime
from dialeval_plugin.models.tensors import LexicalFeatures, load_weights, save_weights
from dialeval_plugin.models.texts import FEATURES, TextEncoder

from . import judging
from .fusion import DistanceRange
from .losses import RANKING_SCALE, cosine_distance

BLEND_BEFORE_FIT = (1.0, 0.5)
"""Initial weights of the log odds from vectors and from words; all others are 0."""


class SlmJudgement(NamedTuple):
    """Judgement of responses by the small model: tensors of one shape."""

    distance: Tensor
    """Cosine distance of context and robust part, in [0, 2]."""
    probability: Tensor
    """p(y = 1), in [0, 1]."""


class Disentangled(NamedTuple):
    """Vectors of contexts and responses after the head's linear map, of shape (..., width)."""

    context: Tensor
    robust: Tensor
    non_robust: Tensor


class LexicalClassifier(LexicalFeatures):
    """Two logits, adversarial and positive, from `lexical_features`."""

    def __init__(self, vocabulary_size: int, width: int = 64) -> None:
        super().__init__(vocabulary_size)
        self.layers = nn.Sequential(nn.Linear(len(FEATURES), width), nn.GELU(), nn.Linear(width, 2))

    def forward(self, features: Tensor) -> Tensor:
        """Map features of shape (..., len(FEATURES)) to logits of shape (..., 2)."""
        logits: Tensor = self.layers(self.standardised(features))
        return logits


class DisentanglingHead(nn.Module):
    """Linear map, split and classifiers on top of the encoder (equations 4, 6 and 7).

    With the split "pad" one linear map serves contexts and responses, as in the published notebooks; the first half of a
    response's vector is its non-robust part and the second half its robust part.
    """

    blend: Tensor

    def __init__(
        self,
        hidden_size: int,
        split: judging.EmbeddingSplit,
        probability_from: judging.ProbabilityFrom,
        *,
        vocabulary_size: int = 0,
    ) -> None:
        super().__init__()
        if hidden_size % 2:
            raise InputError(f"DisentanglingHead: the encoder's width {hidden_size} is odd and cannot be split into halves.")
        self.split = split
        self.probability_from = probability_from
        if split == "pad":
            self.linear = nn.Linear(hidden_size, hidden_size)
        else:
            self.robust, self.non_robust, self.context = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
            # The pre-trained encoder already puts related texts close together; a random map would undo that.
            for layer in (self.robust, self.context):
                nn.init.eye_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.three_class = nn.Linear(2 * hidden_size, 3)
        self.two_class: nn.Module = nn.Linear(2 * hidden_size, 2)
        if probability_from.startswith("interaction"):
            self.two_class = nn.Sequential(
                nn.Dropout(0.1), nn.Linear(4 * hidden_size, hidden_size), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden_size, 2)
            )
        self.lexical = LexicalClassifier(vocabulary_size) if "lexical" in probability_from else None
        if self.lexical is not None:
            # Weights of the columns of `log_odds`, and an offset; fitted on validation responses.
            others = (0.0,) * (2 if probability_from.endswith("cosine") else 1)
            self.register_buffer("blend", torch.tensor((*BLEND_BEFORE_FIT, *others)))

    def disentangle(self, context: Tensor, response: Tensor) -> Disentangled:
        """Split responses; both arguments have shape (n, hidden), each row a context and a response to it."""
        if self.split == "full_width":
            return Disentangled(self.context(context), self.robust(response), self.non_robust(response))
        non_robust, robust = self.linear(response).chunk(2, dim=-1)
        zeros = torch.zeros_like(robust)
        return Disentangled(self.linear(context), torch.cat([robust, zeros], dim=-1), torch.cat([non_robust, zeros], dim=-1))

    def two_class_logits(self, context: Tensor, robust: Tensor) -> Tensor:
        """Logits of (adversarial, positive) from disentangled vectors, of shape (n, 2)."""
        pair = [context, robust]
        if self.probability_from.startswith("interaction"):
            pair += [context * robust, (context - robust).abs()]
        logits: Tensor = self.two_class(torch.cat(pair, dim=-1))
        return logits

    def log_odds(self, context: Tensor, response: Tensor, parts: Disentangled, features: Tensor | None) -> Tensor:
        """Terms that the blend weights: log odds of a positive response from vectors and from words, of shape (n, 2).

        With the cosine of context and response, times the scale of the ranking loss that trains it, the shape is (n, 3).
        """
        if self.lexical is None:
            raise InputError("DisentanglingHead: has no lexical classifier. Choose probability_from='interaction+lexical'.")
        if features is None:
            raise InputError("DisentanglingHead: no lexical features were given. Make them with head.lexical.features.")
        both = torch.stack([self.two_class_logits(parts.context, parts.robust), self.lexical(features)], dim=-1)
        odds = both[..., 1, :] - both[..., 0, :]
        if not self.probability_from.endswith("cosine"):
            return odds
        cosine = 1 - cosine_distance(context, response)
        return torch.cat([odds, RANKING_SCALE * cosine[..., None]], dim=-1)

    def probability(self, context: Tensor, response: Tensor, parts: Disentangled, features: Tensor | None = None) -> Tensor:
        """p(y = 1) of equation 7, of shape (n,), from vectors (n, width) and the lexical classifier's features."""
        if self.lexical is not None:
            odds = self.log_odds(context, response, parts, features)
            return ((odds * self.blend[:-1]).sum(-1) + self.blend[-1]).sigmoid()
        if self.probability_from == "three_class":
            logits = self.three_class(torch.cat([parts.context, parts.robust], dim=-1))
        else:
            logits = self.two_class_logits(parts.context, parts.robust)
        probability: Tensor = logits.softmax(-1)[..., 1]
        return probability

    @property
    def functions(self) -> dict[str, tuple[int, ...]]:
        """See `Head`."""
        hidden = self.three_class.in_features // 2
        return {"forward": (hidden, hidden, *([len(FEATURES)] if self.lexical is not None else []))}

    def forward(self, context: Tensor, response: Tensor, features: Tensor | None = None) -> SlmJudgement:
        """Judge responses; the vectors have shape (n, hidden), for `features` see `probability`."""
        parts = self.disentangle(context, response)
        return SlmJudgement(cosine_distance(parts.context, parts.robust), self.probability(context, response, parts, features))

    def odds_of_pairs(self, context: Tensor, response: Tensor, features: Tensor | None = None) -> tuple[Tensor]:
        """Return `log_odds` of the encoder's vectors."""
        return (self.log_odds(context, response, self.disentangle(context, response), features),)


class SmallModel(nn.Module):
    """An encoder with its head."""

    def __init__(self, encoder: Encoder, config: judging.SmallModelConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = config
        self.head = DisentanglingHead(
            self.transformer.config.hidden_size,
            config.split,
            config.probability_from,
            vocabulary_size=self.transformer.get_input_embeddings().num_embeddings,
        )
        longest = encoder.get_max_seq_length() or self.transformer.config.max_position_embeddings
        if max(config.max_context_tokens, config.max_response_tokens) > longest:
            raise InputError(
                f"recipe {config.recipe!r}: {config.max_context_tokens} tokens of context do not fit into the backbone's "
                f"{longest}. Choose another backbone or recipe."
            )
        self.texts = TextEncoder(encoder.tokenizer, config.text_format, config.max_context_tokens, config.max_response_tokens)

    @property
    def transformer(self) -> Any:
        """The transformers model inside the encoder."""
        return transformer_of(self.encoder)

    def embed(self, ids: Sequence[list[int]]) -> Tensor:
        """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given."""
        return embed(self.encoder, ids)

    def runtime(self, dtype: Precision = "float32") -> TorchRuntime:
        """Return a runtime for a `SmallModelJudge`."""
        return TorchRuntime(self.encoder, self.head, dtype)

    def judge(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> judging.PairJudgement:
        """Judge (context, response) pairs with the current weights, see `SmallModelJudge.judge`."""
        return judging.SmallModelJudge(self.runtime(), self.config).judge(pairs)

    def log_odds(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> np.ndarray:
        """Return the terms that the blend weights for each response, see `DisentanglingHead.log_odds`."""
        return judging.SmallModelJudge(self.runtime(), self.config).log_odds(pairs)


@dataclass(frozen=True, slots=True)
class TrainedSmallModel:
    """A model with the numbers fitted after its training."""

    model: SmallModel
    distance_range: DistanceRange
    training_contexts: frozenset[str]
    """Keys of its training contexts, see `identity.dialogue_key`."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Lowest positive value by variant; empty if none was learnt."""

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder, as safetensors, JSON and tokenizer files."""
        save_encoder(self.model.encoder, folder)
        save_weights(folder / judging.HEAD_FILE, self.model.head.state_dict())
        fields = {
            "config": asdict(self.model.config),
            "d_min": self.distance_range.low,
            "d_max": self.distance_range.high,
            "thresholds": dict(self.thresholds),
        }
        judging.SLM_FOLDER.publish(folder, fields, training, dialogues=self.training_contexts)

    @classmethod
    def load(cls, name: str, *, device: str | None = None) -> TrainedSmallModel:
        """Open a model folder or hub model, by default on a GPU; raises as `resolve` and `load_trained_encoder`."""
        folder = resolve(name)
        settings = judging.SLM_FOLDER.read_settings(folder)
        encoder = load_trained_encoder(folder, device=device)
        model = SmallModel(encoder, settings["config"])
        load_weights(model.head, folder / judging.HEAD_FILE)
        known = judging.SLM_FOLDER.training_dialogues(folder)
        return cls(model.to(encoder.device).eval(), judging.distance_range(folder, settings), known, settings["thresholds"])


def load_runtime(folder: Path, choice: RuntimeChoice) -> TorchRuntime:
    """Open a torch runtime for the model in a folder; raises as `TrainedSmallModel.load`."""
    return TrainedSmallModel.load(str(folder), device=choice.device).model.runtime(choice.dtype)
