"""Training of the general evaluator on several corpora, followed by fits on validation dialogues."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
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

from .calibration import fit_on_validation
from .conversations import GeneralSources, Pair, by_corpus, split
from .judging import GENERAL_FOLDER
from .model import GeneralModel, GeneralRecipe, TrainedGeneral, new_model
from .objective import SamplingPlan, learn_tables, loss_terms, make_step, quotas

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
