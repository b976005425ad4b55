"""Training of the general evaluator on several corpora, then fits on validation dialogues: calibration, mixing and coherence.

Half of the validation dialogues fit the weights, the other half gives the figures; neither has human ratings.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.terminal import Progress
from dialeval_plugin.training.loop import TrainingLoop, fit_in_main_process, take_steps
from dialeval_plugin.training.run import (
    TrainingOptions,
    TrainingResult,
    TrainingRun,
    adamw,
    check_at_least,
    data_hash,
    seconds_of,
)

from .conversations import Conversation, GeneralSources, Pair, by_corpus, split
from .judging import EXPERTS, GENERAL_FOLDER, TOKENS_CUT, GeneralInput, GeneralJudgement, triples_of_turns
from .mixing import (
    OFFSET,
    CoherenceWeights,
    HeadWeights,
    HeadWeightsWithoutFacts,
    Mixing,
    turn_statistics,
    weighted_sum,
)
from .model import GeneralModel, GeneralRecipe, TrainedGeneral, new_model
from .objective import SamplingPlan, learn_tables, loss_terms, make_step, quotas
from .signals import DIALOGUE_NEGATIVES, HEADS, NEGATIVES, QUALITIES, CorpusSignals, replaced_turn, shuffled_turns

REAL = "real"
MIXTURE = "general"
LONGEST_DIALOGUE = 12
"""Number of turns of a validation dialogue that are read."""
RELEVANCE_WEIGHT = 0.6
"""Weight of the log odds of relevance in the main score, before rescaling. Chosen on ratings of responses outside the reported
sets (reproduction/general/results.md): chatbots leave the topic more often than texts corrupted by rules do."""
_PLAIN_HEADS = HEADS[:-1]
_IRRELEVANT = ("random",)
"""Kinds of wrong texts for the calibration of relevance; many of the other kinds keep the context's topic."""
_WINDOW = 2048


class ValidationRow(NamedTuple):
    """A real response, or a wrong text in its place."""

    triple: GeneralInput
    kind: str
    """`REAL`, or one of `signals.NEGATIVES`."""
    is_fitted: bool
    """Whether its dialogue is in the half that fits the weights."""


class ValidationDialogue(NamedTuple):
    """A dialogue in its original order, or corrupted."""

    turns: tuple[str, ...]
    kind: str
    is_fitted: bool


class Fitted(NamedTuple):
    """Weights fitted on one half of the dialogues, and figures of the other half."""

    mixing: Mixing
    coherence: CoherenceWeights
    figures: dict[str, dict[str, float | None]]
    """Area under the ROC curve, in [0, 1], of each head and the mixture against each kind of wrong text; None if undefined."""
    n_rows: dict[str, int]
    """Number of validation rows by kind, in both halves."""


def _fitting_half(corpora: Mapping[str, Sequence[Pair]], seed: int) -> frozenset[str]:
    """Keys of half of the dialogues, in a seeded order, for fitting the weights; copies share a key and stay together."""
    keys = list(dict.fromkeys(pair.conversation.key for pairs in corpora.values() for pair in pairs))
    random.Random(f"{seed} halves").shuffle(keys)
    return frozenset(keys[::2])


def validation_rows(corpora: Mapping[str, Sequence[Pair]], *, max_pairs: int, seed: int) -> list[ValidationRow]:
    """Draw at most `max_pairs` pairs, the same number per corpus, each with one wrong text of every kind that exists for it."""
    rows: list[ValidationRow] = []
    kinds = [kind for head in _PLAIN_HEADS for kind in NEGATIVES[head]]
    fitting = _fitting_half(corpora, seed)
    for corpus, pairs in corpora.items():
        signals = CorpusSignals(pairs)
        order = random.Random(f"{seed} {corpus}").sample(range(len(pairs)), min(len(pairs), max(1, max_pairs // len(corpora))))
        for number in order:
            pair = pairs[number]
            generator = random.Random(f"{seed} {corpus} {number}")
            is_fitted = pair.conversation.key in fitting
            rows.append(ValidationRow((pair.context, pair.response, pair.facts), REAL, is_fitted))
            for kind, text in signals.drawn(kinds, pair, generator):
                rows.append(ValidationRow((pair.context, text, pair.facts), kind, is_fitted))
            if (facts := signals.other_facts(pair, generator)) is not None:
                rows.append(ValidationRow((pair.context, pair.response, facts), "other_facts", is_fitted))
    return rows


def validation_dialogues(
    conversations: Sequence[Conversation], corpora: Mapping[str, Sequence[Pair]], *, max_dialogues: int, seed: int
) -> list[ValidationDialogue]:
    """Draw dialogues of at least four turns, each in its order and corrupted in both ways, with turns from `corpora`."""
    long = [item for item in conversations if len(item.turns) >= 4]
    generator = random.Random(f"{seed} dialogues")
    signals = {corpus: CorpusSignals(pairs) for corpus, pairs in corpora.items()}
    fitting = _fitting_half(corpora, seed)
    dialogues: list[ValidationDialogue] = []
    for item in generator.sample(long, min(max_dialogues, len(long))):
        turns = item.turns[:LONGEST_DIALOGUE]
        other = signals[item.corpus].other_response(item, generator)
        spoiled = (shuffled_turns(turns, generator), None if other is None else replaced_turn(turns, generator, other))
        fitted = item.key in fitting
        dialogues.append(ValidationDialogue(turns, REAL, fitted))
        for kind, changed in zip(DIALOGUE_NEGATIVES, spoiled, strict=True):
            if changed is not None:
                dialogues.append(ValidationDialogue(changed, kind, fitted))
    return dialogues


def equal_mixture(kinds: np.ndarray) -> FloatArray:
    """Return a weight for each row: all wrong kinds together weigh as much as the real rows, and all wrong kinds the same."""
    is_real = kinds == REAL
    weights: FloatArray = np.ones(len(kinds))
    wrong, counts = np.unique(kinds[~is_real], return_counts=True)
    for kind, count in zip(wrong, counts, strict=True):
        weights[kinds == kind] = is_real.sum() / (len(wrong) * count)
    return weights


def fit_weights(columns: Mapping[str, FloatArray], kinds: np.ndarray, start: Mapping[str, float]) -> dict[str, float]:
    """Fit a logistic regression of real rows against an equal mixture of wrong ones; return weights by column, and offset."""
    table = np.column_stack([*(columns[name] for name in start), np.ones(len(kinds))])
    begin, labels = np.array([*start.values(), 0.0]), (kinds == REAL).astype(np.float64)
    weights = logistic_regression(table, labels, start=begin, row_weights=equal_mixture(kinds))
    return dict(zip((*start, OFFSET), map(float, weights), strict=True))


def fit_on_validation(
    model: GeneralModel, conversations: Sequence[Conversation], recipe: GeneralRecipe, seed: int, *, progress: bool = False
) -> Fitted:
    """Run `fit` on rows and dialogues drawn from conversations."""
    pairs = by_corpus(conversations)
    return fit(
        model,
        validation_rows(pairs, max_pairs=recipe.max_validation_pairs, seed=seed),
        validation_dialogues(conversations, pairs, max_dialogues=recipe.max_validation_dialogues, seed=seed),
        progress=progress,
    )


def fit(
    model: GeneralModel,
    rows: Sequence[ValidationRow],
    dialogues: Sequence[ValidationDialogue],
    *,
    progress: bool = False,
) -> Fitted:
    """Calibrate the model in place and fit the weights of mixing and coherence.

    - Each quality's experts are blended by a logistic regression of real responses against an equal mixture of its kinds of
      wrong texts. The log odds thus assume even chances.
    - The qualities are mixed, see `fit_mixing`.
    - Coherence is a logistic regression of original against corrupted dialogues on mean, lowest and last fit of their turns.
    """
    kinds = np.array([row.kind for row in rows])
    fitted = np.array([row.is_fitted for row in rows], dtype=bool)
    for half in (fitted, ~fitted):
        if not (kinds[half] == REAL).any() or not (kinds[half] != REAL).any():
            raise InputError(
                f"validation: {len(kinds)} rows cannot be halved by their dialogues, one half to fit weights and one to "
                "measure. Give more validation dialogues."
            )
    model.centre([row.triple for row in rows if row.kind == REAL and row.is_fitted])
    judged = judge(model, [row.triple for row in rows], progress=progress)
    log_odds = {
        name: _calibrated(model, name, judged.experts[name], kinds, fitted & np.isin(kinds, (REAL, *wrong)))
        for name, wrong in {"relevance": _IRRELEVANT, **NEGATIVES}.items()
    }
    mixing = fit_mixing(log_odds, kinds, fitted)
    figures = {head: areas(values, kinds, ~fitted) for head, values in log_odds.items()}
    figures["cosine"] = areas(judged.cosine, kinds, ~fitted)
    figures[MIXTURE] = areas(mixing.log_odds(log_odds), kinds, ~fitted)
    coherence, of_dialogues = _fit_coherence(model, dialogues)
    figures["coherence"] = of_dialogues
    counts = {kind: int((kinds == kind).sum()) for kind in (REAL, *(kind for group in NEGATIVES.values() for kind in group))}
    return Fitted(mixing, coherence, figures, counts)


def judge(model: GeneralModel, triples: Sequence[GeneralInput], *, progress: bool = False) -> GeneralJudgement:
    """Judge any number of triples, in windows that bound memory."""
    starts = Progress(range(0, len(triples), _WINDOW), "validation", unit="window", disable=not progress)
    parts = [model.judge(triples[start : start + _WINDOW]) for start in starts]
    return GeneralJudgement(
        {name: np.concatenate([part.experts[name] for part in parts]) for name in QUALITIES},
        {name: np.concatenate([part.log_odds[name] for part in parts]) for name in QUALITIES},
        np.concatenate([part.cosine for part in parts]),
        np.concatenate([part.novelty for part in parts]),
        {name: np.concatenate([part.tokens_cut[name] for part in parts]) for name in TOKENS_CUT},
    )


def _calibrated(model: GeneralModel, name: str, experts: FloatArray, kinds: np.ndarray, chosen: np.ndarray) -> FloatArray:
    """Fit the blend of a quality's experts on the chosen rows, if they have both classes, and return its log odds."""
    used = chosen & ~np.isnan(experts).any(axis=1)
    blend = model.head.blend[name]
    if len(set(kinds[used] == REAL)) == 2:
        names = EXPERTS[name]
        columns = dict(zip(names, experts[used].T, strict=True))
        weights = fit_weights(columns, kinds[used], dict.fromkeys(names, 1 / len(names)))
        with torch.no_grad():
            blend.copy_(torch.tensor(list(weights.values())))
    weights = blend.double().cpu().numpy()
    log_odds: FloatArray = experts @ weights[:-1] + weights[-1]
    return log_odds


def fit_mixing(
    log_odds: Mapping[str, FloatArray], kinds: np.ndarray, fitted: np.ndarray, qualities: Sequence[str] = QUALITIES
) -> Mixing:
    """Fit the weights of the main score on the `fitted` rows: real responses against an equal mixture of all wrong texts.

    The heads' weights come from a logistic regression. `RELEVANCE_WEIGHT` is added to them, and a second regression rescales
    all weights, so that the score remains a probability.

    Log odds are of shape (n,) by quality, NaN in `knowledge` for responses without facts; `kinds` as in `ValidationRow`.
    """
    rows_with_facts = fitted & ~np.isnan(log_odds["knowledge"])
    has_wrong_facts = "knowledge" in qualities and bool((kinds[rows_with_facts] == "other_facts").any())

    def weights(heads: Sequence[str], rows: np.ndarray) -> dict[str, float]:
        of_rows = {name: values[rows] for name, values in log_odds.items()}
        start = dict.fromkeys(heads, 1 / len(heads))
        of_heads = fit_weights({head: of_rows[head] for head in heads}, kinds[rows], start)
        if "relevance" not in qualities:
            return of_heads
        of_heads = {"relevance": RELEVANCE_WEIGHT, **of_heads}
        scale = fit_weights({MIXTURE: weighted_sum(of_rows, of_heads)}, kinds[rows], {MIXTURE: 1.0})
        scaled = {name: scale[MIXTURE] * weight for name, weight in of_heads.items()}
        return {**scaled, OFFSET: scaled[OFFSET] + scale[OFFSET]}

    plain = [head for head in _PLAIN_HEADS if head in qualities]
    with_facts = [*plain, "knowledge"]
    without = cast("HeadWeightsWithoutFacts", weights(plain, fitted & (kinds != "other_facts")))
    return Mixing(without, cast("HeadWeights", weights(with_facts, rows_with_facts)) if has_wrong_facts else None)


def _fit_coherence(
    model: GeneralModel, dialogues: Sequence[ValidationDialogue]
) -> tuple[CoherenceWeights, dict[str, float | None]]:
    """Fit the weights of coherence; without validation dialogues it is the mean of the turns' fit."""
    start = {"mean": 1.0, "lowest": 0.0, "last": 0.0}
    fitted = np.array([row.is_fitted for row in dialogues], dtype=bool)
    kinds = np.array([row.kind for row in dialogues])
    if not fitted.any():
        return CoherenceWeights(**start, offset=0.0), dict.fromkeys(DIALOGUE_NEGATIVES)
    triples, starts = triples_of_turns([row.turns for row in dialogues])
    columns = turn_statistics(np.split(judge(model, triples).log_odds["fit"], starts))
    weights = fit_weights({name: values[fitted] for name, values in columns.items()}, kinds[fitted], start)
    judged = weighted_sum(columns, weights)
    return CoherenceWeights(**weights), {
        kind: _area(judged[~fitted & (kinds == REAL)], judged[~fitted & (kinds == kind)]) for kind in DIALOGUE_NEGATIVES
    }


def areas(values: FloatArray, kinds: np.ndarray, rows: np.ndarray) -> dict[str, float | None]:
    """Return the area under the ROC curve of real responses against each kind of wrong text, in [0, 1]; None without any.

    Only `values` of `rows` count; they are higher for real responses, and NaN if missing.
    """
    rows = rows & ~np.isnan(values)
    real = values[rows & (kinds == REAL)]
    wrong = {kind: values[rows & (kinds == kind)] for group in NEGATIVES.values() for kind in group}
    return {kind: _area(real, of_kind) for kind, of_kind in wrong.items()}


def _area(real: FloatArray, wrong: FloatArray) -> float | None:
    """Probability that a real value is higher than a wrong one, ties counted as half; None if either side is empty."""
    if not len(real) or not len(wrong):
        return None
    return float(roc_auc_score([1] * len(real) + [0] * len(wrong), np.concatenate([real, wrong])))


_STAGE = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralTrainingOptions(TrainingOptions):
    """Options of a training, in addition to its data.

    Attributes:
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        validation_fraction: share of each corpus' dialogues that is set aside if no validation dialogues are given.
        max_minutes: time limit of the steps, without the fits after them; the learning rate falls accordingly. A run with a
        limit
            is not repeatable to the byte.
        checkpoint_steps: number of steps between checkpoints, each with a report of the losses.
    """

    backbone: str = PACKAGED_ENCODER
    recipe: GeneralRecipe = field(default_factory=GeneralRecipe)
    validation_fraction: float = 0.05
    max_minutes: float | None = None
    checkpoint_steps: int = 100


def train(
    sources: GeneralSources,
    output: Path,
    options: GeneralTrainingOptions = GeneralTrainingOptions(),
    *,
    left_out: Mapping[str, int] | None = None,
    device: str | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Train a general evaluator and write it to the folder `output`, which must not hold a finished model.

    `output/.training` holds the checkpoints until the run ends; after a kill, the same call resumes from the last one.
    `left_out` is recorded: the number of dialogues of each corpus that were left out because they are reported on.
    """
    recipe = options.recipe
    check_at_least(2, max_pairs=recipe.max_pairs, batch_size=recipe.batch_size)
    check_at_least(1, epochs=recipe.n_epochs, checkpoint_steps=options.checkpoint_steps)
    max_seconds = seconds_of(options.max_minutes)
    with TrainingRun.open(output, GENERAL_FOLDER, options, progress=progress) as run:
        run.log_progress("collecting the responses of the corpora")
        splits = split(sources, fraction=options.validation_fraction, seed=options.seed)
        corpora = by_corpus(splits.training)
        run.start(data=data_hash(splits.training, splits.validation))
        has_knowledge = any(pair.facts for pairs in corpora.values() for pair in pairs)
        model = new_model(options.backbone, recipe, has_knowledge=has_knowledge, device=device or run.device)
        fit = functools.partial(_fit, run, model, options, corpora, max_seconds)
        run.stage(_STAGE, model, lambda: fit_in_main_process(run, fit))
        beyond = "" if options.max_minutes is None else f"; the {options.max_minutes:g} minutes were for the steps"
        run.log_progress(f"fitting calibration, mixing and coherence on {len(splits.validation)} validation dialogues{beyond}")
        fitted = fit_on_validation(model, splits.validation, recipe, options.seed, progress=run.progress)
        sizes = {name: len(pairs) for name, pairs in corpora.items()}
        record = {
            "backbone_hash": content_hash(resolve(options.backbone)),
            "counts": {
                "training_dialogues": dict(Counter(item.corpus for item in splits.training)),
                "validation_dialogues": dict(Counter(item.corpus for item in splits.validation)),
                "training_pairs": sizes,
                "pairs_per_epoch": quotas(sizes, max_pairs=recipe.max_pairs, exponent=recipe.corpus_exponent),
                "steps": run.history[-1].step,
                "left_out_as_leaks": dict(left_out or {}),
            },
            "validation": {"auroc": fitted.figures, "rows": fitted.n_rows},
        }
        known = frozenset(item.key for item in (*splits.training, *splits.validation))
        trained = TrainedGeneral(model, fitted.mixing, fitted.coherence, known)
        learnt = [(pair.context, pair.response) for pairs in corpora.values() for pair in pairs]
        return run.publish(trained.save, record, learnt=learnt)


def _fit(
    run: TrainingRun,
    model: GeneralModel,
    options: GeneralTrainingOptions,
    corpora: Mapping[str, Sequence[Pair]],
    max_seconds: float,
) -> None:
    recipe, bfloat16 = options.recipe, run.options.precision == "bfloat16"
    plan = SamplingPlan(corpora, recipe, options.seed, progress=run.progress)
    learn_tables(model, plan, corpora, progress=run.progress)
    optimizer = adamw((model.encoder, recipe.learning_rate), (model.head, recipe.head_learning_rate))
    loop = TrainingLoop(run, _STAGE, model, optimizer, clip=1.0, n_steps=plan.n_steps)

    def losses_of(number: int) -> dict[str, Tensor]:
        losses = loss_terms(model, make_step(model, plan.rows(number)), bfloat16=bfloat16)
        return {"loss": torch.stack([recipe.loss_weights[name] * term for name, term in losses.items()]).sum(), **losses}

    take_steps(
        loop,
        losses_of,
        n_steps=plan.n_steps,
        steps_per_epoch=plan.steps_per_epoch,
        checkpoint_steps=options.checkpoint_steps,
        max_seconds=max_seconds,
        warm_up=recipe.warm_up,
    )
