"""SLIDE's small model: an encoder, a head that splits a response into robust and non-robust parts, and its calibration.

On disk it is a sentence-transformers folder (`SentenceTransformer(folder)` opens it) with `slm_head.safetensors` and what
`ModelFolder` writes; `slm.json` holds configuration and calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.models import folders as model_folders
from dialeval_plugin.models.context_texts import TextEncoder, TextFormat
from dialeval_plugin.models.encoders import Encoder, embed, load_trained_encoder, save_encoder, transformer_of
from dialeval_plugin.models.lexical import FEATURES, LexicalFeatures
from dialeval_plugin.models.response_parts import ResponseParts

from .fusion import DistanceRange
from .losses import RANKING_SCALE, cosine_distance

EmbeddingSplit: TypeAlias = Literal["pad", "full_width"]
ProbabilityFrom: TypeAlias = Literal[
    "two_class", "three_class", "interaction", "interaction+lexical", "interaction+lexical+cosine"
]

HEAD_FILE = "slm_head.safetensors"
BLEND_BEFORE_FIT = (1.0, 0.5)
"""Weights of the vectors' log odds and of the words' before they are fitted; all others are 0."""


@dataclass(frozen=True, slots=True)
class SmallModelConfig:
    """What moves a score of the small model, apart from its weights; texts are read as `TextEncoder` does.

    Attributes:
        split: "pad" halves the response's vector and compares the robust half, padded with zeros, with the whole context
            vector (the notebooks); "full_width" gives each part, and the context, a linear map of the whole vector.
        probability_from: which head gives s_p: "two_class" (the notebooks' separate head), "three_class" (equation 4's),
            "interaction" (two classes from both vectors, their product and their difference), "interaction+lexical"
            (its log odds blended with those of `LexicalClassifier`), or "interaction+lexical+cosine" (and with the cosine of
            the encoder's vectors, which knows best what belongs to another context).
        max_response_tokens: of a part of a response.
        max_response_windows: parts of a response that are judged, of which a response shorter than a part has one.
    """

    recipe: str
    split: EmbeddingSplit
    probability_from: ProbabilityFrom
    text_format: TextFormat = "plain"
    max_context_tokens: int = 160
    max_response_tokens: int = 64
    max_response_windows: int = 1


class SlmJudgement(NamedTuple):
    """What the small model says of responses: tensors of one shape."""

    distance: Tensor
    """Cosine distance of context and robust part, in [0, 2]."""
    probability: Tensor
    """p(y = 1), in [0, 1]."""


class PairJudgement(NamedTuple):
    """The same for (context, response) pairs, as arrays of shape (n,)."""

    distance: np.ndarray
    probability: np.ndarray
    context_tokens_cut: np.ndarray
    """How many of the context's oldest tokens did not fit."""
    response_tokens_cut: np.ndarray
    """How many tokens at the response's end did not fit."""


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
        self, hidden_size: int, split: EmbeddingSplit, probability_from: ProbabilityFrom, *, vocabulary_size: int = 0
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
            # The encoder was pre-trained to have what belongs together close by; a random map would undo that.
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
            # Of the columns of `log_odds`, and an offset; fitted on validation responses.
            others = (0.0,) * (2 if probability_from.endswith("cosine") else 1)
            self.register_buffer("blend", torch.tensor((*BLEND_BEFORE_FIT, *others)))

    def disentangle(self, context: Tensor, response: Tensor) -> Disentangled:
        """Split responses; both arguments have shape (n, hidden), row by row a context and a response to it."""
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
        """What the blend weighs: log odds of a positive response by the vectors and by the words, of shape (n, 2).

        With the cosine of context and response, times the scale of the ranking loss that trains it, it is (n, 3).
        """
        if self.lexical is None:
            raise InputError("DisentanglingHead: has no lexical classifier. Choose probability_from='interaction+lexical'.")
        if features is None:
            raise InputError("DisentanglingHead: no lexical features were given. Make them with SmallModel.lexical_features.")
        both = torch.stack([self.two_class_logits(parts.context, parts.robust), self.lexical(features)], dim=-1)
        odds = both[..., 1, :] - both[..., 0, :]
        if not self.probability_from.endswith("cosine"):
            return odds
        cosine = 1 - cosine_distance(context, response)
        return torch.cat([odds, RANKING_SCALE * cosine[..., None]], dim=-1)

    def probability(self, context: Tensor, response: Tensor, parts: Disentangled, features: Tensor | None = None) -> Tensor:
        """p(y = 1) of equation 7, of shape (n,), from vectors (n, width) and what the lexical classifier reads."""
        if self.lexical is not None:
            odds = self.log_odds(context, response, parts, features)
            return ((odds * self.blend[:-1]).sum(-1) + self.blend[-1]).sigmoid()
        if self.probability_from == "three_class":
            logits = self.three_class(torch.cat([parts.context, parts.robust], dim=-1))
        else:
            logits = self.two_class_logits(parts.context, parts.robust)
        probability: Tensor = logits.softmax(-1)[..., 1]
        return probability

    def forward(self, context: Tensor, response: Tensor, features: Tensor | None = None) -> SlmJudgement:
        """Judge responses; the vectors have shape (n, hidden), for `features` see `probability`."""
        parts = self.disentangle(context, response)
        return SlmJudgement(cosine_distance(parts.context, parts.robust), self.probability(context, response, parts, features))


class SmallModel(nn.Module):
    """The encoder with its head."""

    def __init__(self, encoder: Encoder, config: SmallModelConfig) -> None:
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

    def lexical_features(
        self, contexts: Sequence[list[int]], owners: Sequence[int], responses: Sequence[list[int]]
    ) -> Tensor | None:
        """What the lexical classifier reads of responses, given as token ids, in their contexts; None where there is none."""
        if self.head.lexical is None:
            return None
        return self.head.lexical.features(contexts, owners, responses, self.texts.special)

    def judge(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> PairJudgement:
        """Judge (context, response) pairs; each distinct text is embedded once.

        Distance and probability of a response in several parts: see `ResponseParts.judged`, the worst distance being the
        greatest.
        """
        with torch.inference_mode():
            read = self._read(pairs)
            judgement = self.head(read.contexts, read.responses, read.features)
        return PairJudgement(
            -read.parts.judged(-judgement.distance.double().cpu().numpy()),
            read.parts.judged(judgement.probability.double().cpu().numpy()),
            read.context_tokens_cut,
            read.response_tokens_cut,
        )

    def log_odds(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> np.ndarray:
        """What the blend weighs of each response, see `DisentanglingHead.log_odds`."""
        with torch.inference_mode():
            read = self._read(pairs)
            parts = self.head.disentangle(read.contexts, read.responses)
            odds: np.ndarray = self.head.log_odds(read.contexts, read.responses, parts, read.features).double().cpu().numpy()
        return read.parts.mean(odds)

    def _read(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> _ReadPairs:
        contexts = {context: row for row, context in enumerate(dict.fromkeys(context for context, _ in pairs))}
        responses = {response: row for row, response in enumerate(dict.fromkeys(response for _, response in pairs))}
        encoded = self.texts.contexts(list(contexts))
        windows = self.texts.response_windows(list(responses), self.config.max_response_windows)
        context_rows, response_rows = [contexts[context] for context, _ in pairs], [responses[found] for _, found in pairs]
        parts = ResponseParts.of(windows, response_rows)
        context_ids = [text.ids for text in encoded]
        # One pass for both: short contexts and long responses share batches.
        vectors = self.embed([*context_ids, *parts.ids])
        owners = [context_rows[owner] for owner in parts.owners]
        return _ReadPairs(
            vectors[owners],
            vectors[[len(context_ids) + place for place in parts.places]],
            self.lexical_features(context_ids, owners, [parts.ids[place] for place in parts.places]),
            parts,
            np.array([encoded[row].n_cut for row in context_rows]),
            np.array([windows[row].n_cut for row in response_rows]),
        )


class _ReadPairs(NamedTuple):
    """Vectors and features of pairs, a row for each part of a response."""

    contexts: Tensor
    responses: Tensor
    features: Tensor | None
    parts: ResponseParts
    context_tokens_cut: np.ndarray
    response_tokens_cut: np.ndarray


@dataclass(frozen=True, slots=True)
class TrainedSmallModel:
    """A model with what training learnt beside the weights."""

    model: SmallModel
    distance_range: DistanceRange
    training_contexts: frozenset[str]
    """Keys of the contexts that it was trained on, see `identity.dialogue_key`."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """By variant, from which value on a response counts as positive; empty where none was learnt."""

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder; nothing but safetensors, JSON and the tokenizer's text files."""
        save_encoder(self.model.encoder, folder)
        model_folders.save_weights(folder / HEAD_FILE, self.model.head.state_dict())
        fields = {
            "config": asdict(self.model.config),
            "d_min": self.distance_range.low,
            "d_max": self.distance_range.high,
            "thresholds": dict(self.thresholds),
        }
        SLM_FOLDER.publish(folder, fields, training, dialogues=self.training_contexts)

    @classmethod
    def load(cls, name: str, *, device: str | None = None, revision: str | None = None) -> TrainedSmallModel:
        """Open a model folder or a model of the hub, by default on a GPU where there is one.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or not an SLM; the message names the file.
            MissingPrerequisite: the model is neither a folder nor to be had from the hub.
        """
        folder = model_folders.resolve(name, revision=revision)
        settings = SLM_FOLDER.read_settings(folder)
        encoder = load_trained_encoder(folder, device=device)
        model = SmallModel(encoder, settings["config"])
        model_folders.load_weights(model.head, folder / HEAD_FILE)
        try:
            distance_range = DistanceRange(settings["d_min"], settings["d_max"])
        except InputError as error:
            raise ModelLoadError(f"{folder / SLM_FOLDER.settings_file}: {error}") from None
        known = SLM_FOLDER.training_dialogues(folder)
        return cls(model.to(encoder.device).eval(), distance_range, known, settings["thresholds"])


class _Fields(TypedDict):
    """The fields of slm.json that move a number."""

    config: SmallModelConfig
    d_min: float
    d_max: float
    thresholds: dict[str, float]


SLM_FOLDER = model_folders.ModelFolder("slm.json", _Fields, 3, "a trained SLM", "dialeval train slm")
