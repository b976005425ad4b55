"""Judgement of responses by SLIDE's small model, independent of the runtime.

A model on disk is a sentence-transformers folder (`SentenceTransformer(folder)` opens it) with `HEAD_FILE` and the files of
`ModelFolder`; `slm.json` has configuration and calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.models.runtimes.runtime import Runtime, VectorCache
from dialeval_plugin.models.texts import ResponseParts, TextEncoder, TextFormat, lexical_features

from .fusion import DistanceRange

EmbeddingSplit: TypeAlias = Literal["pad", "full_width"]
ProbabilityFrom: TypeAlias = Literal[
    "two_class", "three_class", "interaction", "interaction+lexical", "interaction+lexical+cosine"
]

HEAD_FILE = "slm_head.safetensors"


@dataclass(frozen=True, slots=True)
class SmallModelConfig:
    """Settings that affect a score of the small model, in addition to its weights; `TextEncoder` describes the tokenisation.

    Attributes:
        split: "pad" halves the response's vector and compares the robust half, padded with zeros, with the whole context
            vector (the notebooks); "full_width" gives each part, and the context, a linear map of the whole vector.
        probability_from: head that gives s_p: "two_class" (the notebooks' separate head), "three_class" (equation 4's),
            "interaction" (two classes from both vectors, their product and their difference), "interaction+lexical" (its log
            odds blended with those of `LexicalClassifier`), or "interaction+lexical+cosine" (also with the cosine of the
            encoder's vectors, which best recognises responses of other contexts).
        max_response_tokens: length of a part of a response.
        max_response_windows: largest number of parts of a response that are judged; a short response has one part.
    """

    recipe: str
    split: EmbeddingSplit
    probability_from: ProbabilityFrom
    text_format: TextFormat = "plain"
    max_context_tokens: int = 160
    max_response_tokens: int = 64
    max_response_windows: int = 1


class PairJudgement(NamedTuple):
    """Judgement of (context, response) pairs, as arrays of shape (n,)."""

    distance: np.ndarray
    probability: np.ndarray
    context_tokens_cut: np.ndarray
    """Number of the context's oldest tokens that were not read."""
    response_tokens_cut: np.ndarray
    """Number of the response's last tokens that were not read."""


class SmallModelJudge:
    """Tokenises texts, embeds them with a runtime, and compares them.

    Args:
        runtime: encoder and `DisentanglingHead`.
        config: settings of the model.
    """

    def __init__(self, runtime: Runtime, config: SmallModelConfig) -> None:
        self.config = config
        self.runtime = runtime
        self.texts = TextEncoder(runtime.tokenizer, config.text_format, config.max_context_tokens, config.max_response_tokens)
        self.contexts = VectorCache(runtime)

    def judge(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> PairJudgement:
        """Judge (context, response) pairs; each distinct text is embedded once.

        For a response in several parts see `ResponseParts.judged`; its worst distance is the greatest.
        """
        read = self._read(pairs)
        distance, probability = (array.astype(np.float64) for array in self.runtime.run("forward", *read.inputs))
        return PairJudgement(
            -read.parts.judged(-distance), read.parts.judged(probability), read.context_tokens_cut, read.response_tokens_cut
        )

    def log_odds(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> np.ndarray:
        """Return the terms that the blend weights for each response, see `DisentanglingHead.log_odds`."""
        read = self._read(pairs)
        (odds,) = self.runtime.run("odds_of_pairs", *read.inputs)
        return read.parts.mean(odds.astype(np.float64))

    def _read(self, pairs: Sequence[tuple[tuple[str, ...], str]]) -> _ReadPairs:
        contexts = {context: row for row, context in enumerate(dict.fromkeys(context for context, _ in pairs))}
        responses = {response: row for row, response in enumerate(dict.fromkeys(response for _, response in pairs))}
        encoded = self.texts.contexts(list(contexts))
        windows = self.texts.response_windows(list(responses), self.config.max_response_windows)
        context_rows, response_rows = [contexts[context] for context, _ in pairs], [responses[found] for _, found in pairs]
        parts = ResponseParts.of(windows, response_rows)
        context_ids = [text.ids for text in encoded]
        # One pass for both: short contexts and long responses share batches.
        of_contexts, of_responses = self.contexts.embed(context_ids, parts.ids)
        owners = [context_rows[owner] for owner in parts.owners]
        inputs: list[np.ndarray] = [of_contexts[owners], of_responses[parts.places]]
        if "lexical" in self.config.probability_from:
            rarity = self.runtime.table("lexical.rarity").astype(np.float64)
            read = [parts.ids[place] for place in parts.places]
            inputs.append(lexical_features(context_ids, owners, read, rarity, self.texts.special))
        return _ReadPairs(
            inputs,
            parts,
            np.array([encoded[row].n_cut for row in context_rows]),
            np.array([windows[row].n_cut for row in response_rows]),
        )


class _ReadPairs(NamedTuple):
    """The head's input for pairs, one row per part of a response: vectors, and word features if it uses them."""

    inputs: list[np.ndarray]
    parts: ResponseParts
    context_tokens_cut: np.ndarray
    response_tokens_cut: np.ndarray


class _Fields(TypedDict):
    """Fields of slm.json that affect a score."""

    config: SmallModelConfig
    d_min: float
    d_max: float
    thresholds: dict[str, float]


SLM_FOLDER = ModelFolder("slm.json", _Fields, 3, "a trained SLM", "dialeval train slm")


def distance_range(folder: Path, settings: Mapping[str, Any]) -> DistanceRange:
    """Return the extremes of distances from the settings of a model's folder."""
    try:
        return DistanceRange(settings["d_min"], settings["d_max"])
    except InputError as error:
        raise ModelLoadError(f"{folder / SLM_FOLDER.settings_file}: {error}") from None
