"""The general evaluator's model: one encoder, linear maps that part what is said from how, and small heads on the vectors.

On disk it is a sentence-transformers folder (`SentenceTransformer(folder)` opens it) with `general_head.safetensors` and what
`ModelFolder` writes; `general.json` holds configuration, mixing and what validation gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.context_texts import MAX_RESPONSE_WINDOWS, TextEncoder
from dialeval_plugin.models.encoders import (
    Encoder,
    embed,
    freeze,
    load_encoder,
    load_trained_encoder,
    save_encoder,
    transformer_of,
    without_normalisation,
)
from dialeval_plugin.models.folders import ModelFolder, load_weights, resolve, save_weights
from dialeval_plugin.models.lexical import FEATURES, LexicalFeatures
from dialeval_plugin.models.response_parts import ResponseParts
from dialeval_plugin.models.turns import EmbeddedTurns

from .mixing import CoherenceWeights, HeadWeights, HeadWeightsWithoutFacts, Mixing
from .recipes import GeneralRecipe
from .signals import HEADS, SAYING

HEAD_FILE = "general_head.safetensors"

GeneralInput: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""Context, response and facts; context and facts may be empty."""

TOKENS_CUT = ("context_tokens_cut", "response_tokens_cut", "fact_tokens_cut")
"""What is counted of the three texts of a triple."""

RESPONSE_FEATURES = FEATURES.index("shared_rarity")
"""So many of the features, the first ones, look at the response alone."""
_FIRST_SCALE = 20.0

EXPERTS: Mapping[str, tuple[str, ...]] = {
    "relevance": ("centred cosine",),
    "fit": ("vectors", "words", "cosine"),
    "fluency": ("vectors", "words"),
    "specificity": ("vectors", "words"),
    "knowledge": ("vectors", "words"),
}
"""What each quality blends: log odds from vectors, log odds from counted words, the scaled cosine of the ranking loss, and the
cosine of context and robust part after what all contexts, or all responses, have in common is taken off."""


@dataclass(frozen=True, slots=True)
class GeneralConfig:
    """What moves a score, apart from the weights; facts are cut to the length of contexts.

    Attributes:
        max_response_tokens: of a part of a response.
        max_response_windows: parts of a response that are judged, of which a response shorter than a part has one.
        has_knowledge: whether some training corpus had facts, so that the head `knowledge` has learnt something.
    """

    recipe: str = "general"
    max_context_tokens: int = 96
    max_response_tokens: int = 64
    max_response_windows: int = 1
    has_knowledge: bool = False


def _classifier(n_inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(0.1), nn.Linear(n_inputs, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, 1))


class GeneralHead(nn.Module):
    """Linear maps, classifiers, and the weights that blend them.

    A response's vector is parted into a robust part, what fits the context, and a non-robust one, how it is said. All maps have
    full width. Those of contexts, facts and robust parts, which are compared with each other, start from the identity: the
    encoder was pre-trained to have what belongs together close by, and a random map would undo that. That of the non-robust
    part starts at random, as in SLIDE: two equal maps could not be driven apart, since a cosine has no slope there.

    Vectors and counted words are classified apart, each with a loss of its own, and blended after training. In one classifier
    the words settle what is easy and the encoder learns from the rest alone, which makes it worse (docs/slm_recipes.md).
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
        self.vectors = nn.ModuleDict({head: _classifier(*(alone if head in SAYING else compared)) for head in HEADS})
        self.context_words, self.fact_words = LexicalFeatures(vocabulary_size), LexicalFeatures(vocabulary_size)
        counted = {head: RESPONSE_FEATURES if head in SAYING else len(FEATURES) for head in HEADS}
        self.words = nn.ModuleDict(
            {head: nn.Sequential(nn.Linear(n, 64), nn.GELU(), nn.Linear(64, 1)) for head, n in counted.items()}
        )
        # Mean directions of contexts and of robust parts. They and the blends are fitted after training, on validation.
        self.register_buffer("context_centre", torch.zeros(hidden_size))
        self.register_buffer("response_centre", torch.zeros(hidden_size))
        # The last number is an offset.
        self.blend = nn.ParameterDict(
            {
                name: nn.Parameter(torch.tensor([1.0 / len(experts)] * len(experts) + [0.0]), requires_grad=False)
                for name, experts in EXPERTS.items()
            }
        )

    @property
    def scale(self) -> Tensor:
        """Inverse temperature of the ranking loss, kept below 100."""
        return self.log_scale.clamp(max=float(np.log(100))).exp()

    def vector_logits(self, head: str, part: Tensor, against: Tensor | None = None) -> Tensor:
        """Log odds (n,) of one of `HEADS` by vectors (n, width): the part that it reads; context or facts after their map."""
        inputs = [part] if against is None else [against, part, against * part, (against - part).abs()]
        logits: Tensor = self.vectors[head](torch.cat(inputs, dim=-1)).squeeze(-1)
        return logits

    def words_of(self, head: str) -> LexicalFeatures:
        """The tables of the words that a head counts."""
        return self.fact_words if head == "knowledge" else self.context_words

    def word_logits(self, head: str, features: Tensor) -> Tensor:
        """Log odds of a head by counted words, of shape (n,); `features` is (n, number of features), not standardised."""
        shown = self.words_of(head).standardised(features)
        if head in SAYING:
            shown = shown[:, :RESPONSE_FEATURES]
        logits: Tensor = self.words[head](shown).squeeze(-1)
        return logits

    def centre(self, contexts: Tensor, robust: Tensor) -> None:
        """Keep the mean directions of contexts (n, width) after their map and of robust parts (m, width)."""
        self.context_centre.copy_(functional.normalize(contexts, dim=-1).mean(0))
        self.response_centre.copy_(functional.normalize(robust, dim=-1).mean(0))

    def directions(self, contexts: Tensor, robust: Tensor) -> tuple[Tensor, Tensor]:
        """Directions of contexts and of robust parts (n, width), each less the mean direction of its kind."""
        parts = ((contexts, self.context_centre), (robust, self.response_centre))
        of_contexts, of_robust = (functional.normalize(vectors, dim=-1) - centre for vectors, centre in parts)
        return of_contexts, of_robust

    def centred_cosine(self, contexts: Tensor, robust: Tensor) -> Tensor:
        """Cosine of the `directions` of contexts and robust parts (n, width); in [-1, 1], (n,)."""
        return functional.cosine_similarity(*self.directions(contexts, robust), dim=-1)

    def blended(self, quality: str, experts: Tensor) -> Tensor:
        """Calibrated log odds of a quality, of shape (n,), from those of its experts, (n, number of experts)."""
        weights: Tensor = self.blend[quality]
        return experts @ weights[:-1] + weights[-1]


class GeneralJudgement(NamedTuple):
    """What the model says of n triples."""

    experts: dict[str, np.ndarray]
    """What is blended to log odds, by quality, of shape (n, number of its experts), means over a response's parts; NaN where a
    triple has no facts."""
    log_odds: dict[str, np.ndarray]
    """The same blended, of shape (n,): the mean of the parts' mean and of the worst part's."""
    cosine: np.ndarray
    """Of context and robust part, in [-1, 1], of shape (n,), the mean over a response's parts."""
    tokens_cut: dict[str, np.ndarray]
    """By `TOKENS_CUT`: how many of the context's oldest tokens, of those at the response's end and of the facts' first ones did
    not fit."""


class GeneralModel(nn.Module):
    """The encoder with its heads."""

    def __init__(self, encoder: Encoder, config: GeneralConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = config
        transformer = transformer_of(encoder)
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
        """Where the weights are."""
        return self.head.log_scale.device

    def features(self, head: str, texts: Sequence[list[int]], owners: Sequence[int], of: Sequence[list[int]]) -> Tensor:
        """What a head's word classifier reads of responses `of` in the contexts or facts `texts[owners]`."""
        return self.head.words_of(head).features(texts, owners, of, self.texts.special)

    def centre(self, triples: Sequence[GeneralInput]) -> None:
        """Learn from people's responses what all contexts, and all responses, have in common."""
        contexts = self.texts.contexts(list(dict.fromkeys(context for context, _, _ in triples)))
        responses = self.texts.counted_responses(list(dict.fromkeys(response for _, response, _ in triples)))
        with torch.inference_mode():
            of_contexts, of_responses = (embed(self.encoder, [text.ids for text in texts]) for texts in (contexts, responses))
            self.head.centre(self.head.context(of_contexts), self.head.robust(of_responses))

    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Embed turns, each as the only one of a context and as a response, of which the first part is read."""
        contexts, responses = self.texts.contexts([(text,) for text in texts]), self.texts.counted_responses(texts)
        # Of a short turn both are the same tokens.
        ids = [tuple(text.ids) for text in (*contexts, *responses)]
        distinct = _numbered(ids)
        with torch.inference_mode():
            vectors = embed(self.encoder, list(map(list, distinct)))[[distinct[row] for row in ids]]
            of_contexts, of_responses = torch.split(vectors, len(texts))
            directions = self.head.directions(self.head.context(of_contexts), self.head.robust(of_responses))
            as_context, as_response = (functional.normalize(found, dim=-1).cpu().numpy() for found in directions)
        return EmbeddedTurns(
            as_context,
            as_response,
            np.array([len(response.ids) for response in responses], dtype=np.float64),
            np.array([bool(context.n_cut or response.n_cut) for context, response in zip(contexts, responses, strict=True)]),
        )

    def judge(self, triples: Sequence[GeneralInput]) -> GeneralJudgement:
        """Judge responses; each distinct context, part of a response and fact set is embedded once, in one pass.

        Each part of a long response is judged after the whole context.
        """
        contexts, responses = (_numbered([triple[place] for triple in triples]) for place in range(2))
        facts = _numbered([triple[2] for triple in triples if triple[2]])
        read_contexts, read_facts = self.texts.contexts(list(contexts)), self.texts.contexts(list(facts))
        windows = self.texts.response_windows(list(responses), self.config.max_response_windows)
        of_triples = [(contexts[context], responses[response], facts.get(fact, -1)) for context, response, fact in triples]
        parts = ResponseParts.of(windows, [response for _, response, _ in of_triples])
        owners = (of_triples[owner] for owner in parts.owners)
        rows = [(context, place, fact) for (context, _, fact), place in zip(owners, parts.places, strict=True)]
        ids = ([text.ids for text in read_contexts], parts.ids, [text.ids for text in read_facts])
        with torch.inference_mode():
            experts, cosine = self._experts(ids, rows)
            log_odds = {head: _to_array(self.head.blended(head, values)) for head, values in experts.items()}
        cut = ([text.n_cut for text in texts] for texts in (read_contexts, windows, read_facts))
        columns = zip(TOKENS_CUT, cut, zip(*of_triples, strict=True), strict=True)
        return GeneralJudgement(
            {head: parts.mean(_to_array(values)) for head, values in experts.items()},
            {head: parts.judged(values) for head, values in log_odds.items()},
            parts.mean(_to_array(cosine)),
            {name: np.array([counts[row] if row >= 0 else 0 for row in places]) for name, counts, places in columns},
        )

    def _experts(
        self, ids: Sequence[list[list[int]]], rows: Sequence[tuple[int, int, int]]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """What is blended, by quality, and the cosines, of rows of a context, a response and facts, -1 for none."""
        head = self.head
        context_ids, response_ids, fact_ids = ids
        vectors = embed(self.encoder, [*context_ids, *response_ids, *fact_ids])
        contexts, distinct, facts = torch.split(vectors, [len(texts) for texts in ids])
        # Each distinct text goes through the maps once, as it did through the encoder, and so does a pair of them through the
        # heads: where facts alone differ, what does not read them has the same value to the bit.
        pairs = _numbered([(context, part) for context, part, _ in rows])
        of_pair = torch.tensor([pairs[context, part] for context, part, _ in rows])
        of_context, of_response = (torch.tensor(column) for column in zip(*pairs, strict=True))
        of_facts = torch.tensor([fact for _, _, fact in rows])
        contexts = head.context(contexts)[of_context]
        robust, non_robust = head.robust(distinct)[of_response], head.non_robust(distinct)
        responses = [response_ids[place] for _, place in pairs]
        features = self.features("fit", context_ids, of_context.tolist(), responses)
        cosine = functional.cosine_similarity(contexts, robust, dim=-1)
        fit = [head.vector_logits("fit", robust, contexts), head.word_logits("fit", features), head.scale * cosine]
        experts = {"relevance": head.centred_cosine(contexts, robust)[:, None], "fit": torch.stack(fit, dim=-1)}
        for name in SAYING:
            by_vectors = head.vector_logits(name, non_robust)[of_response]
            experts[name] = torch.stack([by_vectors, head.word_logits(name, features)], dim=-1)
        experts, cosine = {name: values[of_pair] for name, values in experts.items()}, cosine[of_pair]
        experts["knowledge"] = torch.full((len(rows), 2), torch.nan, device=vectors.device)
        told = (of_facts >= 0).nonzero().flatten()
        if self.config.has_knowledge and len(told):
            judged = of_pair[told]
            owners, texts = of_facts[told].tolist(), [responses[place] for place in judged.tolist()]
            shared = self.features("knowledge", fact_ids, owners, texts)
            by_vectors = head.vector_logits("knowledge", robust[judged], head.facts(facts)[of_facts[told]])
            both = [by_vectors, head.word_logits("knowledge", shared)]
            experts["knowledge"][told] = torch.stack(both, dim=-1)
        return experts, cosine


def triples_of_turns(dialogues: Sequence[Sequence[str]]) -> tuple[list[GeneralInput], np.ndarray]:
    """Every turn from the second on after those before it, and where the turns of each dialogue but the first begin."""
    triples: list[GeneralInput] = [
        (tuple(turns[:place]), turns[place], ()) for turns in dialogues for place in range(1, len(turns))
    ]
    return triples, np.cumsum([len(turns) - 1 for turns in dialogues])[:-1]


def _numbered(texts: Sequence[Any]) -> dict[Any, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _to_array(values: Tensor) -> np.ndarray:
    array: np.ndarray = values.double().cpu().numpy()
    return array


def new_model(backbone: str, recipe: GeneralRecipe, *, has_knowledge: bool, device: str) -> GeneralModel:
    """Put untrained heads on an encoder."""
    config = GeneralConfig(
        "general", recipe.max_context_tokens, recipe.max_response_tokens, MAX_RESPONSE_WINDOWS, has_knowledge
    )
    encoder = without_normalisation(load_encoder(backbone, device=device))
    model = GeneralModel(encoder, config).to(encoder.device)
    # Half of MiniLM's weights are word embeddings, of which these corpora touch few: they would only overfit. What lies above
    # them and stays the same need not be stored.
    freeze(transformer_of(encoder), recipe.frozen)
    return model


class _Mixing(TypedDict):
    """As `Mixing`."""

    plain: HeadWeightsWithoutFacts
    with_facts: HeadWeights | None


class _Settings(TypedDict):
    """The fields of general.json that move a number."""

    config: GeneralConfig
    mixing: _Mixing
    coherence: CoherenceWeights


GENERAL_FOLDER = ModelFolder("general.json", _Settings, 3, "a trained general evaluator", "dialeval train general")


@dataclass(frozen=True, slots=True)
class TrainedGeneral:
    """A model with what was fitted after its training."""

    model: GeneralModel
    mixing: Mixing
    coherence: CoherenceWeights
    training_dialogues: frozenset[str]
    """Keys of the dialogues that it was trained on, see `Conversation.key`."""

    def save(self, folder: Path, training: Mapping[str, Any] | None = None) -> None:
        """Write the folder, with the record of the training in general.json: safetensors, JSON and the tokenizer's texts."""
        save_encoder(self.model.encoder, folder)
        save_weights(folder / HEAD_FILE, self.model.head.state_dict())
        fields = {"config": asdict(self.model.config), "mixing": asdict(self.mixing), "coherence": asdict(self.coherence)}
        GENERAL_FOLDER.publish(folder, fields, training, dialogues=self.training_dialogues)

    @classmethod
    def load(cls, name: str, *, device: str | None = None, revision: str | None = None) -> TrainedGeneral:
        """Open a model folder or a model of the hub, by default on a GPU where there is one.

        Raises:
            ModelLoadError: the folder is damaged, unsafe or no general evaluator; the message names the file.
            MissingPrerequisite: the model is neither a folder nor to be had from the hub.
        """
        folder = resolve(name, revision=revision)
        settings = GENERAL_FOLDER.read_settings(folder)
        encoder = load_trained_encoder(folder, device=device)
        model = GeneralModel(encoder, settings["config"])
        load_weights(model.head, folder / HEAD_FILE)
        return cls(
            model.to(encoder.device).eval(),
            Mixing(**settings["mixing"]),
            settings["coherence"],
            GENERAL_FOLDER.training_dialogues(folder),
        )
