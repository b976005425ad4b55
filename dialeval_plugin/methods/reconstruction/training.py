"""Training a dialogue model: epochs over whole dialogues, then the weights of the epoch that was best on validation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from dialeval_plugin.training.history import HistoryRow
from dialeval_plugin.training.loop import TrainingLoop, fit_in_main_process
from dialeval_plugin.training.run import Precision, TrainingOptions, TrainingResult, TrainingRun, data_hash, seconds_of

from .data import ReconstructionCorpus, ReconstructionSources, prepare
from .model import RECONSTRUCTION_FOLDER, TrainedReconstruction
from .networks import DialogueNetwork, NetworkKind, new_network
from .objective import kl_weight, train_epoch, validation_loss
from .recipes import ReconstructionRecipe, find_recipe
from .scorer import RECONSTRUCTION_MODEL

_STAGE = "reconstruction"
FIGURES = ("training_loss", "training_kl", "training_kl_weight", "loss")
"""Of each epoch: cross-entropy and divergence in training, the divergence's weight, validation loss; in nats a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data; the recipe is "thesis" or "small"."""

    model: NetworkKind = "hred"
    recipe: str = "small"
    n_epochs: int | None = None
    precision: Precision = "float32"


def train(
    sources: ReconstructionSources,
    output: Path,
    options: ReconstructionTrainingOptions = ReconstructionTrainingOptions(),
    *,
    max_minutes: float | None = None,
    device: str | None = None,
    progress: bool = False,
    remember: bool = True,
) -> TrainingResult:
    """Train a model and write it to the folder `output`, which must not hold a finished model.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last epoch and
    ends with the same files. No epoch is begun that would end after `max_minutes` at the pace of the one before; the first
    one always runs. `remember` makes this the model that is used where none is named.
    """
    recipe = find_recipe(options.recipe, n_epochs=options.n_epochs)
    max_seconds = seconds_of(max_minutes)
    with TrainingRun.open(output, RECONSTRUCTION_FOLDER, options, progress=progress) as run:
        corpus = prepare(sources, recipe, validation_fraction=options.validation_fraction, seed=options.seed)
        run.start(recipe=asdict(recipe), data=data_hash(corpus.vocabulary.words, corpus.training, corpus.validation))
        architecture = recipe.architecture(len(corpus.vocabulary))
        network = new_network(options.model, architecture).to(device or run.device)
        fit = functools.partial(_fit, run, network, recipe, corpus, max_seconds)
        run.stage(_STAGE, network, lambda: fit_in_main_process(run, fit))
        trained = TrainedReconstruction(options.model, recipe.name, architecture, recipe.max_tokens, corpus.vocabulary, network)
        record = {"counts": corpus.counts, "best_epoch": _number(_best(run.history))}
        return run.publish(trained.save, record, remember=RECONSTRUCTION_MODEL if remember else None)


def _fit(
    run: TrainingRun, network: DialogueNetwork, recipe: ReconstructionRecipe, corpus: ReconstructionCorpus, max_seconds: float
) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate)
    n_steps = recipe.n_epochs * math.ceil(len(corpus.training) / recipe.batch_size)
    loop = TrainingLoop(run, _STAGE, network, optimizer, clip=recipe.clip, n_steps=n_steps)
    while not _is_finished(network, recipe, run.history, loop.seconds, max_seconds):
        number = len(run.history) + 1
        loop.seed(number)
        training_loss, training_kl = train_epoch(
            loop, network, recipe, corpus.training, bfloat16=run.options.precision == "bfloat16"
        )
        loss = validation_loss(network, corpus.validation)
        values = (training_loss, training_kl, kl_weight(network, recipe, loop.n_steps), loss)
        is_best = not run.history or loss < _loss(_best(run.history))
        loop.keep(
            dict(zip(FIGURES, values, strict=True)),
            epoch=float(number),
            best=loop.n_steps if is_best else _best(run.history).step,
        )
    loop.load_weights(_best(run.history).step)


def _is_finished(
    network: DialogueNetwork,
    recipe: ReconstructionRecipe,
    history: Sequence[HistoryRow],
    seconds: Sequence[float],
    max_seconds: float,
) -> bool:
    if not history:
        return False
    if len(history) >= recipe.n_epochs or sum(seconds) + seconds[-1] > max_seconds:
        return True
    # Patience begins with the full weight: while it rises, validation may well get worse.
    full = 1.0 if network.latent_size else 0.0
    since = [row for row in history if row.figures["training_kl_weight"] == full]
    return bool(since) and len(history) - max(_number(_best(history)), _number(since[0])) >= recipe.patience


def _best(history: Sequence[HistoryRow]) -> HistoryRow:
    """The epoch with the lowest loss on validation, of equal ones the first."""
    return min(history, key=_loss)


def _loss(row: HistoryRow) -> float:
    return row.figures["loss"]


def _number(row: HistoryRow) -> int:
    return round(row.epoch or 0)
