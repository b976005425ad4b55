"""Judgement of responses by the general evaluator, independent of the runtime.

Three qualities have no trained head: novelty (counted), acceptance (learnt from logs) and similarity with references.

A model on disk is a sentence-transformers folder (`SentenceTransformer(folder)` opens it) with `HEAD_FILE` and the files of
`ModelFolder`; `general.json` has the configuration, the mixing weights and the results of validation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.models.folders import ModelFolder, read_versioned
from dialeval_plugin.models.runtimes.runtime import Runtime, VectorArray, VectorCache, unit
from dialeval_plugin.models.texts import (
    FEATURES,
    EmbeddedTurns,
    ResponseParts,
    TextEncoder,
    TurnParts,
    lexical_features,
    numbered,
)

from .mixing import CoherenceWeights, Mixing
from .signals import STYLE_HEADS, words

NOVELTY = "novelty"
"""Column of the counted quality."""
NOVELTY_WEIGHT = 1.0
"""Log odds that a response with no new words loses in the main score. Chosen on ratings of other responses, where 0.5 to 1.5
make little difference (reproduction/general/results.md)."""
NEAR = 4
"""Number of turns before a response that are searched for its words."""


def novelty(responses: Iterable[tuple[Sequence[str], str]]) -> FloatArray:
    """Return the share of each of n responses that is new given its context, of shape (n,), in [0, 1].

    The units are distinct pairs of neighbouring words, with the beginning of the response as a word. A pair is new if none of
    the `NEAR` turns before has it. A response without words is new.

    Example:
        >>> novelty([(["I like tea."], "I like tea."), (["I like tea."], "I like green tea.")]).tolist()
        [0.0, 0.5]
    """

    # Pairs are single strings, since Python's garbage collector would traverse a hundred thousand tuples.
    @functools.cache
    def pairs_of(text: str) -> frozenset[str]:
        return frozenset(map(" ".join, pairwise(("", *words(text)))))

    @functools.cache
    def pairs_of_all(turns: tuple[str, ...]) -> frozenset[str]:
        return frozenset().union(*map(pairs_of, turns))

    shares = []
    for context, response in responses:
        own = pairs_of(response)
        shares.append(len(own - pairs_of_all(tuple(context[-NEAR:]))) / len(own) if own else 1.0)
    return np.array(shares, dtype=np.float64)


REFERENCE_SIMILARITY = "reference_similarity"
"""Column of the cosine with the nearest reference."""
REFERENCE_WEIGHT = 6.0
"""Log odds that the main score gains per unit of cosine. Chosen on DailyDialog++'s development contexts, without ratings: the
smallest weight whose area under the ROC curve is within 0.002 of the highest (reproduction/general/results.md)."""
USUAL_SIMILARITY = 0.48
"""Cosine that leaves the score unchanged: midway between that of fitting and that of misleading or random responses on the
same contexts, with one reference."""


def nearest_similarity(responses: VectorArray, references: VectorArray, owners: Sequence[int]) -> FloatArray:
    """Return the cosine of each response's vector with that of its nearest reference, (n,), in [-1, 1]; NaN without one.

    Args:
        responses: vectors, of shape (n, width).
        references: vectors of all references, of shape (m, width).
        owners: index of the response of each of the m references.
    """
    nearest: FloatArray = np.full(len(responses), np.nan)
    cosines = (unit(responses)[list(owners)] * unit(references)).sum(1).astype(np.float64)
    np.fmax.at(nearest, list(owners), cosines)
    return nearest


def reference_log_odds(similarity: FloatArray) -> FloatArray:
    """Return the term that similarities (n,) add to the main score's log odds; 0 for NaN."""
    added: FloatArray = REFERENCE_WEIGHT * (np.nan_to_num(similarity, nan=USUAL_SIMILARITY) - USUAL_SIMILARITY)
    return added


ACCEPTANCE = "acceptance"
"""Column of the quality learnt from logs of chats instead of training."""
ACCEPTANCE_FILE = "acceptance.json"
"""File in a model's folder."""
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A linear function of a response's vector.

    Attributes:
        weights: for the vector at unit length, of shape (width,).
        offset: added to the sum.
        training: record: turns by log, seed, and the area under the ROC curve on held-out conversations.
    """

    weights: tuple[float, ...] = field(repr=False)
    offset: float
    training: Mapping[str, Any] = field(repr=False)

    def log_odds(self, vectors: VectorArray) -> FloatArray:
        """Return log odds (n,) that responses are accepted, from the encoder's vectors (n, width); even chances on average.

        Raises:
            ModelLoadError: the weights were learnt from vectors of another width.
        """
        if vectors.shape[1] != len(self.weights):
            raise ModelLoadError(
                f"{ACCEPTANCE_FILE}: has {len(self.weights)} weights for vectors of {vectors.shape[1]} numbers, so it is of "
                "another model. Copy the model folder again, or run `dialeval train acceptance`."
            )
        log_odds: FloatArray = unit(vectors).astype(np.float64) @ np.array(self.weights) + self.offset
        return log_odds

    def save(self, folder: Path) -> None:
        """Write a JSON file into a model's folder."""
        write_text(folder / ACCEPTANCE_FILE, to_json({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Acceptance | None:
        """Read a file that `save` wrote; None if there is none."""
        path = folder / ACCEPTANCE_FILE
        if not path.exists():
            return None
        read_versioned(path, FORMAT_VERSION, kind="a model with acceptance", command="dialeval train acceptance")
        return checked_model_file(path, cls)


HEAD_FILE = "general_head.safetensors"

GeneralInput: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""Context, response and facts; context and facts may be empty."""

TOKENS_CUT = ("context_tokens_cut", "response_tokens_cut", "fact_tokens_cut")
"""Columns that count the unread tokens of the three texts of a triple."""

RESPONSE_FEATURES = FEATURES.index("shared_rarity")
"""Number of features, the first ones, that depend on the response alone."""

EXPERTS: Mapping[str, tuple[str, ...]] = {
    "relevance": ("centred cosine",),
    "fit": ("vectors", "words", "cosine"),
    "fluency": ("vectors", "words"),
    "specificity": ("vectors", "words"),
    "knowledge": ("vectors", "words"),
}
"""Experts that each quality blends: log odds from vectors, log odds from counted words, the scaled cosine of the ranking loss,
and the cosine of context and robust part after subtraction of the mean direction of all contexts, or of all responses."""


@dataclass(frozen=True, slots=True)
class GeneralConfig:
    """Settings that affect a score, in addition to the weights; facts are truncated to the length of contexts.

    Attributes:
        max_response_tokens: length of a part of a response.
        max_response_windows: largest number of parts of a response that are judged; a short response has one part.
        has_knowledge: whether a training corpus had facts, so that the head `knowledge` is trained.
    """

    recipe: str = "general"
    max_context_tokens: int = 96
    max_response_tokens: int = 64
    max_response_windows: int = 1
    has_knowledge: bool = False


class GeneralJudgement(NamedTuple):
    """The model's judgement of n triples."""

    experts: dict[str, np.ndarray]
    """Experts by quality, of shape (n, number of experts): log odds or cosines, means over a response's parts; NaN without
    facts."""
    log_odds: dict[str, np.ndarray]
    """Blended log odds, of shape (n,): the mean of the parts' mean and the worst part; with `ACCEPTANCE` if it was learnt."""
    cosine: np.ndarray
    """Cosine of context and robust part, in [-1, 1], of shape (n,), the mean over a response's parts."""
    novelty: np.ndarray
    """Share of the response that does not repeat recent turns, in [0, 1], of shape (n,)."""
    tokens_cut: dict[str, np.ndarray]
    """Numbers of tokens not read, by `TOKENS_CUT`: the context's oldest, the response's last and the facts' first."""


class GeneralJudge:
    """Tokenises texts, embeds them with a runtime, and compares them.

    Args:
        runtime: encoder and `GeneralHead`.
        config: settings of the model.
        acceptance: the function learnt from logs, if any.
    """

    def __init__(self, runtime: Runtime, config: GeneralConfig, acceptance: Acceptance | None = None) -> None:
        self.config = config
        self.runtime = runtime
        self.acceptance = acceptance
        self.texts = TextEncoder(runtime.tokenizer, "plain", config.max_context_tokens, config.max_response_tokens)
        self.contexts = VectorCache(runtime)

    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Embed turns, each both as the only turn of a context and as a response, of which the first part is read."""
        contexts, responses = self.texts.contexts([(text,) for text in texts]), self.texts.counted_responses(texts)
        # A short turn has the same tokens in both roles.
        ids = [tuple(text.ids) for text in (*contexts, *responses)]
        distinct = numbered(ids)
        vectors = self.runtime.embed(list(distinct))[[distinct[row] for row in ids]]
        of_contexts, of_responses = np.split(vectors, [len(texts)])
        (mapped,) = self.runtime.run("of_contexts", of_contexts)
        robust, _ = self.runtime.run("of_responses", of_responses)
        as_context, as_response = map(unit, self.runtime.run("directions", mapped, robust))
        return EmbeddedTurns(
            as_context,
            as_response,
            np.array([len(response.ids) for response in responses], dtype=np.float64),
            np.array([bool(context.n_cut or response.n_cut) for context, response in zip(contexts, responses, strict=True)]),
        )

    def embedded_responses(self, texts: Sequence[str]) -> VectorArray:
        """Return the encoder's vectors of the responses' first parts, (n, width)."""
        return self.runtime.embed([response.ids for response in self.texts.counted_responses(texts)])

    def judge(self, triples: Sequence[GeneralInput]) -> GeneralJudgement:
        """Judge responses; each distinct context, part of a response and fact set is embedded once, in one pass.

        Each part of a long response is judged given the whole context. If the last turn of a context is too long, only that
        turn is read, in parts, and the response is judged given the part that it fits best.
        """
        parted = [self.texts.parts_of_turn(context[-1]) if context else TurnParts([""], 0) for context, _, _ in triples]
        if all(len(parts.texts) == 1 for parts in parted):
            return self._judge(triples)
        rows = [
            (context if len(parts.texts) == 1 else (part,), response, facts)
            for (context, response, facts), parts in zip(triples, parted, strict=True)
            for part in parts.texts
        ]
        judgement, sizes = self._judge(rows), [len(parts.texts) for parts in parted]
        fits = np.split(judgement.log_odds["fit"] + judgement.log_odds["relevance"], np.cumsum(sizes)[:-1])
        best = np.cumsum([0, *sizes[:-1]]) + [int(np.argmax(of_parts)) for of_parts in fits]
        n_cut = judgement.tokens_cut[TOKENS_CUT[0]][best].tolist()
        unread = np.array(list(map(self._n_unread, triples, parted, n_cut)))
        return GeneralJudgement(
            {name: values[best] for name, values in judgement.experts.items()},
            {name: values[best] for name, values in judgement.log_odds.items()},
            judgement.cosine[best],
            novelty((context, response) for context, response, _ in triples),
            {**{name: values[best] for name, values in judgement.tokens_cut.items()}, TOKENS_CUT[0]: unread},
        )

    def _n_unread(self, triple: GeneralInput, parted: TurnParts, n_cut: int) -> int:
        """Number of tokens of a context that are not read; `n_cut` if its last turn is not split into parts."""
        if len(parted.texts) == 1:
            return n_cut
        (before,) = self.texts.contexts([triple[0][:-1]])
        return parted.n_cut + before.n_cut + len(before.ids) - 1

    def _judge(self, triples: Sequence[GeneralInput]) -> GeneralJudgement:
        """Judge triples whose last turns are not too long."""
        contexts, responses = (numbered([triple[place] for triple in triples]) for place in range(2))
        facts = numbered([triple[2] for triple in triples if triple[2]])
        read_contexts, read_facts = self.texts.contexts(list(contexts)), self.texts.contexts(list(facts))
        windows = self.texts.response_windows(list(responses), self.config.max_response_windows)
        of_triples = [(contexts[context], responses[response], facts.get(fact, -1)) for context, response, fact in triples]
        parts = ResponseParts.of(windows, [response for _, response, _ in of_triples])
        owners = (of_triples[owner] for owner in parts.owners)
        rows = [(context, place, fact) for (context, _, fact), place in zip(owners, parts.places, strict=True)]
        ids = ([text.ids for text in read_contexts], parts.ids, [text.ids for text in read_facts])
        experts, cosine, accepted = self._experts(ids, rows)
        cut = ([text.n_cut for text in texts] for texts in (read_contexts, windows, read_facts))
        columns = zip(TOKENS_CUT, cut, zip(*of_triples, strict=True), strict=True)
        log_odds = {head: self._blended(head, values) for head, values in experts.items()}
        if accepted is not None:
            log_odds[ACCEPTANCE] = accepted
        return GeneralJudgement(
            {head: parts.mean(values.astype(np.float64)) for head, values in experts.items()},
            {name: parts.judged(values) for name, values in log_odds.items()},
            parts.mean(cosine.astype(np.float64)),
            novelty((context, response) for context, response, _ in triples),
            {name: np.array([counts[row] if row >= 0 else 0 for row in places]) for name, counts, places in columns},
        )

    def _experts(
        self, ids: Sequence[list[list[int]]], rows: Sequence[tuple[int, int, int]]
    ) -> tuple[dict[str, VectorArray], VectorArray, FloatArray | None]:
        """Experts by quality, cosines, and log odds of acceptance of rows of a context, a response and facts (-1 for none)."""
        run = self.runtime.run
        context_ids, response_ids, fact_ids = ids
        of_distinct_contexts, others = self.contexts.embed(context_ids, [*response_ids, *fact_ids])
        distinct, facts = np.split(others, [len(response_ids)])
        # Each distinct text is mapped once, and each distinct pair is compared once: for rows that differ in their facts
        # alone, all values that do not depend on facts are equal to the bit.
        pairs = numbered([(context, part) for context, part, _ in rows])
        of_pair = np.array([pairs[context, part] for context, part, _ in rows])
        of_context, of_response = np.array(list(pairs)).T
        of_facts = np.array([fact for _, _, fact in rows])
        (contexts,) = run("of_contexts", of_distinct_contexts)
        robust, saying = run("of_responses", distinct)
        robust = robust[of_response]
        responses = [response_ids[place] for place in of_response]
        features = self._features("context_words", context_ids, of_context, responses)
        cosine, relevance, fit, words = run("of_pairs", contexts[of_context], robust, features)
        experts = {"relevance": relevance, "fit": fit}
        for place, name in enumerate(STYLE_HEADS):
            experts[name] = np.stack([saying[of_response, place], words[:, place]], axis=1)
        experts, cosine = {name: values[of_pair] for name, values in experts.items()}, cosine[of_pair]
        experts["knowledge"] = np.full((len(rows), 2), np.nan, dtype=np.float32)
        with_facts = np.flatnonzero(of_facts >= 0)
        if self.config.has_knowledge and len(with_facts):
            judged = of_pair[with_facts]
            shared = self._features("fact_words", fact_ids, of_facts[with_facts], [responses[place] for place in judged])
            (mapped,) = run("of_facts", facts)
            (experts["knowledge"][with_facts],) = run("of_knowledge", mapped[of_facts[with_facts]], robust[judged], shared)
        accepted = None if self.acceptance is None else self.acceptance.log_odds(distinct)[of_response][of_pair]
        return experts, cosine, accepted

    def _features(self, table: str, texts: Sequence[list[int]], owners: IntArray, of: Sequence[list[int]]) -> FloatArray:
        """Features of the word classifier for responses `of` in the contexts or facts `texts[owners]`."""
        rarity = self.runtime.table(f"{table}.rarity").astype(np.float64)
        return lexical_features(texts, owners, of, rarity, self.texts.special)

    def _blended(self, quality: str, experts: VectorArray) -> FloatArray:
        """Calibrated log odds of a quality, of shape (n,), from its experts, (n, number of experts)."""
        weights = self.runtime.table(f"blend.{quality}")
        blended: FloatArray = (experts @ weights[:-1] + weights[-1]).astype(np.float64)
        return blended


def triples_of_turns(dialogues: Sequence[Sequence[str]]) -> tuple[list[GeneralInput], np.ndarray]:
    """Return each turn from the second on with the turns before it, and the index where each dialogue but the first begins."""
    triples: list[GeneralInput] = [
        (tuple(turns[:place]), turns[place], ()) for turns in dialogues for place in range(1, len(turns))
    ]
    return triples, np.cumsum([len(turns) - 1 for turns in dialogues])[:-1]


class _Settings(TypedDict):
    """Fields of general.json that affect a score."""

    config: GeneralConfig
    mixing: Mixing
    coherence: CoherenceWeights


GENERAL_FOLDER = ModelFolder("general.json", _Settings, 3, "a trained general evaluator", "dialeval train general")
