"""The general evaluator's model: one encoder, linear maps that separate content from style, and small heads on the vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models import encoders
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.runtime import Precision, RuntimeChoice
from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime
from dialeval_plugin.models.tensors import LexicalFeatures, load_weights, save_weights
from dialeval_plugin.models.texts import FEATURES, MAX_RESPONSE_WINDOWS, TextEncoder

from . import judging
from .mixing import CoherenceWeights, Mixing
from .signals import HEADS, STYLE_HEADS

_FIRST_SCALE = 20.0


def _classifier(n_inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(0.1), nn.Linear(n_inputs, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, 1))


class GeneralHead(nn.Module):
    """Linear maps, classifiers, and the weights that blend them.

    A response's vector is mapped to a robust part, which depends on the context, and a non-robust part, its style. All maps
    have full width. The maps of contexts, facts and robust parts, which are compared with each other, start from the identity:
    the pre-trained encoder already puts related texts close together. The map of the non-robust part starts at random, as in
    SLIDE: two equal maps could not be driven apart, since the cosine has no gradient there.

    Vectors and counted words have separate classifiers and losses, and are blended after training. In a joint classifier the
    words decide the easy cases, and the encoder, which learns from the rest alone, gets worse (reproduction/pretrained).
    """

    blend: nn.ParameterDict
    context_centre: Tensor
    response_centre: Tensor

    def __init__(self, hidden_size: int, vocabulary_size: int) -> None:
        super().__init__()
        self.context, self.facts, self.robust, self.non_robust = (nn.Linear(hidden_size, hidden_size) for _ in range(4))
        for layer in (self.context, self.facts, self.robust):
            nn.init.eye_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.log_scale = nn.Parameter(torch.tensor(float(np.log(_FIRST_SCALE))))
        alone, compared = (hidden_size, hidden_size // 2), (4 * hidden_size, hidden_size)
        self.vectors = nn.ModuleDict({head: _classifier(*(alone if head in STYLE_HEADS else compared)) for head in HEADS})
        self.context_words, self.fact_words = LexicalFeatures(vocabulary_size), LexicalFeatures(vocabulary_size)
        counted = {head: judging.RESPONSE_FEATURES if head in STYLE_HEADS else len(FEATURES) for head in HEADS}
        self.words = nn.ModuleDict(
            {head: nn.Sequential(nn.Linear(n, 64), nn.GELU(), nn.Linear(64, 1)) for head, n in counted.items()}
        )
        # Mean directions of contexts and of robust parts; these and the blends are fitted after training, on validation data.
        self.register_buffer("context_centre", torch.zeros(hidden_size))
        self.register_buffer("response_centre", torch.zeros(hidden_size))
        # The last number is an offset.
        self.blend = nn.ParameterDict(
            {
                name: nn.Parameter(torch.tensor([1.0 / len(experts)] * len(experts) + [0.0]), requires_grad=False)
                for name, experts in judging.EXPERTS.items()
            }
        )

    @property
    def scale(self) -> Tensor:
        """Inverse temperature of the ranking loss, kept below 100."""
        return self.log_scale.clamp(max=float(np.log(100))).exp()

    def vector_logits(self, head: str, part: Tensor, against: Tensor | None = None) -> Tensor:
        """Log odds (n,) of one of `HEADS` from vectors (n, width): the response's part, and the mapped context or facts."""
        inputs = [part] if against is None else [against, part, against * part, (against - part).abs()]
        logits: Tensor = self.vectors[head](torch.cat(inputs, dim=-1)).squeeze(-1)
        return logits

    def words_of(self, head: str) -> LexicalFeatures:
        """Return the word features of a head."""
        return self.fact_words if head == "knowledge" else self.context_words

    def word_logits(self, head: str, features: Tensor) -> Tensor:
        """Log odds of a head from counted words, of shape (n,); `features` is (n, number of features), not standardised."""
        standardised = self.words_of(head).standardised(features)
        if head in STYLE_HEADS:
            standardised = standardised[:, : judging.RESPONSE_FEATURES]
        logits: Tensor = self.words[head](standardised).squeeze(-1)
        return logits

    def centre(self, contexts: Tensor, robust: Tensor) -> None:
        """Store the mean directions of mapped contexts (n, width) and of robust parts (m, width)."""
        self.context_centre.copy_(functional.normalize(contexts, dim=-1).mean(0))
        self.response_centre.copy_(functional.normalize(robust, dim=-1).mean(0))

    def directions(self, contexts: Tensor, robust: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of contexts and of robust parts (n, width), each minus the mean direction of its kind."""
        parts = ((contexts, self.context_centre), (robust, self.response_centre))
        of_contexts, of_robust = (functional.normalize(vectors, dim=-1) - centre for vectors, centre in parts)
        return of_contexts, of_robust

    def centred_cosine(self, contexts: Tensor, robust: Tensor) -> Tensor:
        """Cosine of the `directions` of contexts and robust parts (n, width); in [-1, 1], (n,)."""
        return functional.cosine_similarity(*self.directions(contexts, robust), dim=-1)

    @property
    def functions(self) -> dict[str, tuple[int, ...]]:
        """See `Head`."""
        hidden, counted = self.context.in_features, len(FEATURES)
        return {
            "of_contexts": (hidden,),
            "of_responses": (hidden,),
            "of_pairs": (hidden, hidden, counted),
            "directions": (hidden, hidden),
            "of_facts": (hidden,),
            "of_knowledge": (hidden, hidden, counted),
        }

    def of_contexts(self, vectors: Tensor) -> tuple[Tensor]:
        """Map the encoder's vectors of contexts, (n, hidden)."""
        return (self.context(vectors),)

    def of_responses(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Map vectors of responses to their robust parts, and to log odds of `STYLE_HEADS`, (n, number of `STYLE_HEADS`)."""
        non_robust = self.non_robust(vectors)
        return self.robust(vectors), torch.stack([self.vector_logits(name, non_robust) for name in STYLE_HEADS], dim=-1)

    def of_facts(self, vectors: Tensor) -> tuple[Tensor]:
        """Map vectors of facts."""
        return (self.facts(vectors),)

    def of_pairs(self, contexts: Tensor, robust: Tensor, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Compare mapped contexts with robust parts, given features of the words, row by row.

        Returns the cosines (n,), the experts of relevance (n, 1) and of fit (n, 3), and the log odds of `STYLE_HEADS` from
        words.
        """
        cosine = functional.cosine_similarity(contexts, robust, dim=-1)
        fit = [self.vector_logits("fit", robust, contexts), self.word_logits("fit", features), self.scale * cosine]
        words = [self.word_logits(name, features) for name in STYLE_HEADS]
        return cosine, self.centred_cosine(contexts, robust)[:, None], torch.stack(fit, dim=-1), torch.stack(words, dim=-1)

    def of_knowledge(self, facts: Tensor, robust: Tensor, features: Tensor) -> tuple[Tensor]:
        """Compare mapped facts with robust parts; returns the experts of knowledge, (n, 2)."""
        experts = [self.vector_logits("knowledge", robust, facts), self.word_logits("knowledge", features)]
        return (torch.stack(experts, dim=-1),)


class GeneralModel(nn.Module):
    """An encoder with its heads."""

    def __init__(self, encoder: encoders.Encoder, config: judging.GeneralConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = config
        transformer = encoders.transformer_of(encoder)
        self.head = GeneralHead(transformer.config.hidden_size, transformer.get_input_embeddings().num_embeddings)
        longest = encoder.get_max_seq_length() or transformer.config.max_position_embeddings
        if max(config.max_context_tokens, config.max_response_tokens) > longest:
            raise InputError(
                f"general: {max(config.max_context_tokens, config.max_response_tokens)} tokens do not fit into the backbone's "
                f"{longest}. Choose another backbone, or fewer tokens."
            )
        self.texts = TextEncoder(encoder.tokenizer, "plain", config.max_context_tokens, config.max_response_tokens)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.head.log_scale.device

    def features(self, head: str, texts: Sequence[list[int]], owners: Sequence[int], of: Sequence[list[int]]) -> Tensor:
        """Features of a head's word classifier for responses `of` in the contexts or facts `texts[owners]`."""
        return self.head.words_of(head).features(texts, owners, of, self.texts.special)

    def centre(self, triples: Sequence[judging.GeneralInput]) -> None:
        """Fit the mean directions of contexts and of responses on people's responses."""
        contexts = self.texts.contexts(list(dict.fromkeys(context for context, _, _ in triples)))
        responses = self.texts.counted_responses(list(dict.fromkeys(response for _, response, _ in triples)))
        with torch.inference_mode():
            of_contexts, of_responses = (
                encoders.embed(self.encoder, [text.ids for text in texts]) for texts in (contexts, responses)
            )
            self.head.centre(self.head.context(of_contexts), self.head.robust(of_responses))

    def runtime(self, dtype: Precision = "float32") -> TorchRuntime:
        """Return a runtime for a `GeneralJudge`."""
        return TorchRuntime(self.encoder, self.head, dtype)

    def judge(self, triples: Sequence[judging.GeneralInput]) -> judging.GeneralJudgement:
        """Judge responses with the current weights, see `GeneralJudge.judge`."""
        return judging.GeneralJudge(self.runtime(), self.config).judge(triples)


def new_model(backbone: str, recipe: GeneralRecipe, *, has_knowledge: bool, device: str) -> GeneralModel:
    """Put untrained heads on an encoder."""
    config = judging.GeneralConfig(
        "general", recipe.max_context_tokens, recipe.max_response_tokens, MAX_RESPONSE_WINDOWS, has_knowledge
    )
    encoder = encoders.without_normalisation(encoders.load_encoder(backbone, device=device))
    model = GeneralModel(encoder, config).to(encoder.device)
    # Half of MiniLM's weights are word embeddings, few of which occur in these corpora, so that they would only overfit. Frozen
    # layers need not be stored.
    encoders.freeze(encoders.transformer_of(encoder), recipe.frozen)
    return model


@dataclass(frozen=True, slots=True)
class TrainedGeneral:
    """A model with the weights fitted after its training."""

    model: GeneralModel
    mixing: Mixing
    coherence: CoherenceWeights
    training_dialogues: frozenset[str]
    """Keys of its training dialogues, see `Conversation.key`."""

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder, with the record of the training in general.json, as safetensors, JSON and tokenizer files."""
        encoders.save_encoder(self.model.encoder, folder)
        save_weights(folder / judging.HEAD_FILE, self.model.head.state_dict())
        fields = {"config": asdict(self.model.config), "mixing": asdict(self.mixing), "coherence": asdict(self.coherence)}
        judging.GENERAL_FOLDER.publish(folder, fields, training, dialogues=self.training_dialogues)

    @classmethod
    def load(cls, name: str, *, device: str | None = None) -> TrainedGeneral:
        """Open a model folder or hub model, by default on a GPU; raises as `resolve` and `load_trained_encoder`."""
        folder = resolve(name)
        settings = judging.GENERAL_FOLDER.read_settings(folder)
        encoder = encoders.load_trained_encoder(folder, device=device)
        model = GeneralModel(encoder, settings["config"])
        load_weights(model.head, folder / judging.HEAD_FILE)
        return cls(
            model.to(encoder.device).eval(),
            settings["mixing"],
            settings["coherence"],
            judging.GENERAL_FOLDER.training_dialogues(folder),
        )


def load_runtime(folder: Path, choice: RuntimeChoice) -> TorchRuntime:
    """Open a torch runtime for the model in a folder; raises as `TrainedGeneral.load`."""
    return TrainedGeneral.load(str(folder), device=choice.device).model.runtime(choice.dtype)


LOSS_WEIGHTS: Mapping[str, float] = {
    "rank": 1.0,
    "fit": 1.0,
    "fluency": 0.5,
    "specificity": 0.25,
    "knowledge": 0.5,
    "separate": 0.1,
    "words": 1.0,
}
"""Weights of the terms of `objective.loss_terms`. Set by hand: most ratings depend on fit, specificity is mostly a matter of
length, and "words" shares no trained weight with another term."""


@dataclass(frozen=True, slots=True)
class GeneralRecipe:
    """Settings of training that affect the weights, in addition to data, backbone and seed.

    Attributes:
        max_pairs: largest number of responses per epoch, drawn from all corpora.
        corpus_exponent: the share of a corpus of n responses is proportional to n to this power, and at most n: 1 keeps the
            corpora's proportions, 0 gives each corpus the same share.
        n_epochs: number of passes; each draws other responses from corpora that have more.
        batch_size: responses per step, all of one corpus, so that style does not distinguish wrong texts from right ones.
        n_fit_negatives: wrong texts for the fit of each response, in addition to those of the batch.
        learning_rate: highest learning rate of the encoder.
        frozen: share of the encoder's layers, the lowest, that are frozen with its embeddings; 0 for none.
        head_learning_rate: learning rate of maps and classifiers.
        warm_up: share of the steps in which the learning rate rises; it falls linearly afterwards.
        max_context_tokens: number of tokens that are read: the last ones of a context, the first ones of a response.
        max_validation_pairs: responses for calibration, mixing and the validation figures.
        max_validation_dialogues: dialogues for the weights of coherence.
    """

    max_pairs: int = 120_000
    corpus_exponent: float = 0.5
    n_epochs: int = 1
    batch_size: int = 64
    n_fit_negatives: int = 2
    learning_rate: float = 8e-5
    frozen: float = 1 / 3
    head_learning_rate: float = 5e-4
    warm_up: float = 0.06
    max_context_tokens: int = 96
    max_response_tokens: int = 64
    max_validation_pairs: int = 2000
    max_validation_dialogues: int = 200
    loss_weights: Mapping[str, float] = field(default_factory=lambda: dict(LOSS_WEIGHTS))
