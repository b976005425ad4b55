"""The scorer `dialogue_likelihood`: the probability of a dialogue's turns, or one response, by a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import ModelOptions, check_choice, with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer, read_percentiles
from dialeval_plugin.core.scores import BLANK_RESPONSE, TOO_FEW_TURNS, Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.causal import Context, Layout, MaxTokens
from dialeval_plugin.models.folders import model_identity
from dialeval_plugin.models.language_models import Family, open_model
from dialeval_plugin.models.texts import turns_to_read, unread

from .aggregation import DIALOGUE_REDUCTIONS, TURN_REDUCTIONS, dialogue_log_scores, is_product, reported
from .default_model import LANGUAGE_MODEL
from .evaluators import Alignment, CausalEvaluator, EvaluatedTurns, Evaluator, NextSentenceEvaluator, PermutationEvaluator

Probability: TypeAlias = Literal["token", "max"]


@dataclass(frozen=True, kw_only=True)
class LikelihoodOptions(ModelOptions):
    """Options of `DialogueLikelihoodScorer`."""

    level: Level = "dialogue"
    family: Family | None = None
    context: Context | None = None
    layout: Layout | None = None
    alignment: Alignment = "correct"
    probability: Probability = "token"
    aggregation: str | None = None
    max_tokens: MaxTokens | None = None
    next_label: int | str | None = None


class DialogueLikelihoodScorer(Scorer):
    """Probability that a language model assigns to the turns of a dialogue, each given the turns before it.

    The first turn is not scored, and turns without a visible character are left out. Speakers' names are not read. A column is
    named after its aggregation: `sum_of_means` is equation 5.4, `max_sum_of_means` equation 5.11; products are natural logs,
    such as `log_product_of_products`. `n_turns` and `n_tokens` count scored turns and tokens: sums grow with them, so they are
    the baseline that a sum has to beat. `n_cut` counts turns with a truncated context.

    Args:
        model: folder or hub id of a causal language model (GPT-2, DialoGPT), XLNet, or BERT; by default that of
            DIALEVAL_LANGUAGE_MODEL, else the bundled one.
        level: "dialogue" scores a whole dialogue, "turn" one response after its context.
        family: kind of model: "causal_lm", "permutation_lm" or "next_sentence"; by default read from the model's configuration.
        context: turns that the model reads before a turn: "full" (default) for all, "pair" for the last one only; next-sentence
            prediction always reads pairs.
        layout: how turns are joined: "separated" ends each with the end-of-text token, "plain" has no separator; for causal
            language models only.
        alignment: token that a prediction is compared with: "correct" the next one, "published" the same one, as in the thesis'
            code; for causal language models only.
        probability: "token" uses the probability of the actual token, "max" of the most likely token in its place (equation
            5.11).
        aggregation: how probabilities of tokens become one score: at turn level mean, sum, product or geometric_mean,
            at dialogue level two of them, as sum_of_means; a wrong name is refused with all that there are.
        max_tokens: maximum number of tokens read at once; by default the model's, 1024 at most.
        next_label: label of the classifier for "this turn follows", its number or name; only for a classifier of pairs.

    Raises:
        InputError: does not go with the model.
        MissingPrerequisite: there is no model.
        ModelLoadError: the model is damaged, unsafe, or of another kind.
    """

    name: ClassVar[str] = "dialogue_likelihood"
    needs = ("language model",)
    packaged_model = "language-model"
    levels = ("turn", "dialogue")
    level: Level = "dialogue"
    range = (0.0, math.inf)
    citation: ClassVar[str] = bibtex("nedelchev2020language")
    window = 256

    unscorable = staticmethod(unread)

    @with_options(LikelihoodOptions)
    def __init__(self, options: LikelihoodOptions) -> None:
        self.options = options
        self.level = options.level
        self._aggregations = tuple(DIALOGUE_REDUCTIONS if self.level == "dialogue" else TURN_REDUCTIONS)
        self.aggregation = options.aggregation or self._aggregations[0]
        check_choice(self.name, "aggregation", self.aggregation, self._aggregations)
        opened = open_model(
            LANGUAGE_MODEL.find(options.model), family=options.family, device=options.device, revision=options.revision
        )
        self.family = opened.family
        self.context: Context = options.context or ("pair" if self.family == "next_sentence" else "full")
        self.layout = options.layout or ("separated" if self.family == "causal_lm" else None)
        self._refuse_unused()
        self.model_hash = model_identity(opened.folder)
        self.evaluator: Evaluator
        if opened.family == "next_sentence":
            self.evaluator = NextSentenceEvaluator(opened, options.next_label, options.max_tokens)
        elif opened.family == "permutation_lm":
            self.evaluator = PermutationEvaluator(opened, self.context, options.max_tokens)
        else:
            layout = self.layout or "separated"
            self.evaluator = CausalEvaluator(opened, self.context, layout, options.alignment, options.max_tokens)
        self.range = _range(self.aggregation)
        kinds: tuple[Probability, ...] = ("token",) if self.family == "next_sentence" else ("token", "max")
        names = [_column(aggregation, kind) for kind in kinds for aggregation in self._aggregations]
        main = _column(self.aggregation, options.probability)
        self.columns = tuple(dict.fromkeys([main, *names, "n_turns", "n_tokens", "n_cut"]))
        lost = f"a turn with its context is longer than {self.evaluator.max_tokens} tokens; the beginning was not read"
        self.truncation_columns = {"n_cut": lost}
        self.percentiles, self.scope = read_percentiles(self, opened.folder), Scope.read(opened.folder)

    def _refuse_unused(self) -> None:
        options, is_pair, is_causal = self.options, self.family == "next_sentence", self.family == "causal_lm"
        for option, is_given, message in (
            ("context", is_pair and self.context == "full", "reads pairs of turns"),
            ("layout", not is_causal and self.layout is not None, "has one layout"),
            ("alignment", not is_causal and options.alignment == "published", "has no published misalignment"),
            ("probability", is_pair and options.probability == "max", "has one probability a turn"),
            ("next_label", not is_pair and options.next_label is not None, "has no labels"),
        ):
            if is_given:
                raise InputError(f"dialogue_likelihood: {self.family} {message}. Leave the option {option} out.")

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, model, handling of dialogues, and aggregation of probabilities."""
        return {
            "method": self.name,
            "family": self.family,
            "model": self.model_hash,
            "context": self.context,
            "layout": self.layout,
            "alignment": self.options.alignment if self.family == "causal_lm" else None,
            "probability": self.options.probability,
            "aggregation": self.aggregation,
            "next_label": getattr(self.evaluator, "next_label", None),
            "speakers": "none",
            "window": self.evaluator.max_tokens,
            "truncation": "left",
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score dialogues; those of one window share batches."""
        judged = self.evaluator.judge([turns_to_read(item) for item in items], last_only=self.level == "turn")
        return [self._row(turns) for turns in judged]

    def _row(self, judged: EvaluatedTurns) -> Row:
        if isinstance(judged, Unscored):
            return judged
        if not judged:
            return BLANK_RESPONSE if self.level == "turn" else TOO_FEW_TURNS
        for turn in judged:
            if not (np.isfinite(turn.log_probabilities).all() and np.isfinite(turn.log_maxima).all()):
                return Unscored(Reason.NON_FINITE, "the log probability of a token is not finite")
        columns: dict[str, float | None] = {
            "n_turns": float(len(judged)),
            "n_tokens": float(sum(len(turn.log_probabilities) for turn in judged)),
            "n_cut": float(sum(turn.is_cut for turn in judged)),
        }
        kinds: dict[Probability, list[FloatArray]] = {
            "token": [turn.log_probabilities for turn in judged],
            "max": [turn.log_maxima for turn in judged],
        }
        for kind, turns in kinds.items():
            if self.level == "turn":
                log_scores = {aggregation: reduction(turns[-1]) for aggregation, reduction in TURN_REDUCTIONS.items()}
            else:
                log_scores = dialogue_log_scores(turns)
            for aggregation, log_score in log_scores.items():
                columns[_column(aggregation, kind)] = reported(log_score, aggregation)
        return {name: columns[name] for name in self.columns}


def _column(aggregation: str, probability: Probability) -> str:
    name = f"log_{aggregation}" if is_product(aggregation) else aggregation
    return name if probability == "token" else f"max_{name}"


def _range(aggregation: str) -> tuple[float, float]:
    if aggregation in ("mean", "mean_of_means", "geometric_mean"):
        return 0.0, 1.0
    if aggregation == "product_of_sums":
        return -math.inf, math.inf
    return (-math.inf, 0.0) if is_product(aggregation) else (0.0, math.inf)
