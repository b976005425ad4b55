"""Training of a dialogue model: recipes, data without leaks, epochs, and selection of the best one on validation."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import torch

from dialeval_plugin.core.dialogue import Item, Turn, is_blank
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key, split_by_dialogue
from dialeval_plugin.models.texts import length_batches
from dialeval_plugin.training.checkpoints import HistoryRow
from dialeval_plugin.training.loop import TrainingLoop, fit_in_main_process
from dialeval_plugin.training.run import (
    Precision,
    TrainingOptions,
    TrainingResult,
    TrainingRun,
    choose_recipe,
    data_hash,
    seconds_of,
)

from .layers import Architecture, LatentNoise
from .model import RECONSTRUCTION_FOLDER, DialogueNetwork, NetworkKind, TrainedReconstruction, new_network
from .scorer import TOKENS_PER_BATCH
from .vocabulary import EncodedDialogue, Vocabulary, make_batch, words

logger = logging.getLogger(__name__)

_STAGE = "reconstruction"
FIGURES = ("training_loss", "training_kl", "training_kl_weight", "loss")
"""Figures of an epoch: training cross-entropy and divergence, the divergence's weight, validation loss; in nats per token."""
Text: TypeAlias = tuple[str, ...]
"""A dialogue's utterances, each as words joined by blanks."""


@dataclass(frozen=True, slots=True)
class ReconstructionRecipe:
    """Recipe for training a model; the defaults are the thesis'.

    Attributes:
        sizes: sizes that replace `Architecture`'s defaults.
        min_count: minimum count of a known word.
        max_utterances: utterances of a dialogue to read, from the first.
        max_tokens: tokens of an utterance to read, from the first, its end included.
        batch_size: dialogues per step.
        clip: maximum norm of the gradient.
        annealing_steps: steps in which the divergences' weight rises from 0 to 1.
        patience: epochs without a gain on validation, once the weight is 1, after which training ends.
    """

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    max_words: int = 20_000
    min_count: int = 5
    max_utterances: int = 10
    max_tokens: int = 30
    learning_rate: float = 1e-4
    batch_size: int = 80
    clip: float = 1.0
    n_epochs: int = 30
    annealing_steps: int = 25_000
    patience: int = 3


RECIPES: Mapping[str, ReconstructionRecipe] = MappingProxyType(
    {
        "thesis": ReconstructionRecipe("thesis"),
        # For one core: an epoch of DailyDialog takes two to three minutes (reproduction/reconstruction/results.md).
        "small": ReconstructionRecipe(
            "small",
            sizes={"embedding": 128, "encoder": 96, "context": 192, "decoder": 192, "latent": 32},
            max_words=5_000,
            learning_rate=1e-3,
            batch_size=16,
            n_epochs=10,
            annealing_steps=2_000,
            patience=2,
        ),
    }
)


class ReconstructionSources(NamedTuple):
    """Dialogues as turns, oldest first."""

    training: Sequence[Sequence[Turn]]
    validation: Sequence[Sequence[Turn]] = ()
    """Dialogues that select the best epoch; by default a share of the training dialogues."""
    evaluation: Sequence[Item] = ()


class ReconstructionCorpus(NamedTuple):
    """Encoded dialogues and their vocabulary."""

    training: list[EncodedDialogue]
    validation: list[EncodedDialogue]
    vocabulary: Vocabulary
    counts: dict[str, int]
    """Numbers of dialogues, and of those left out by reason."""


def prepare(
    sources: ReconstructionSources, recipe: ReconstructionRecipe, *, validation_fraction: float, seed: int
) -> ReconstructionCorpus:
    """Return encoded dialogues without short ones, duplicates and leaks, and the vocabulary of the training dialogues."""
    counts: dict[str, int] = {}
    index = LeakIndex({"evaluation": sources.evaluation})
    candidates = _select("training", sources.training, index, counts)
    held_out = _select("validation", sources.validation, index, counts) if sources.validation else None
    training, validation = split_by_dialogue(candidates, held_out, opening_key, fraction=validation_fraction, seed=seed)
    if held_out is not None:
        counts["n_training_in_validation"] = len(candidates) - len(training)
    counts |= {"n_training": len(training), "n_validation": len(validation)}
    logger.info("dialogues: %s", counts)
    vocabulary = Vocabulary.learn(
        (text.split()[: recipe.max_tokens - 1] for dialogue in training for text in dialogue[: recipe.max_utterances]),
        max_words=recipe.max_words,
        min_count=recipe.min_count,
    )

    def encode(dialogue: Text) -> EncodedDialogue:
        texts = dialogue[: recipe.max_utterances]
        return [vocabulary.encode(text, max_tokens=recipe.max_tokens).ids for text in texts]

    return ReconstructionCorpus([encode(text) for text in training], [encode(text) for text in validation], vocabulary, counts)


def _select(name: str, dialogues: Sequence[Sequence[Turn]], index: LeakIndex, counts: dict[str, int]) -> list[Text]:
    """Return dialogues without duplicates and leaks, in order, and count the others."""
    visible = [tuple(turn.text for turn in turns if not is_blank(turn.text)) for turns in dialogues]
    texts = [(tuple(" ".join(words(text)) for text in turns), turns) for turns in visible if len(turns) > 1]
    distinct = dict(texts)
    # The leak rule needs the published texts: words alone have no line breaks and speakers.
    clean = leave_out_leaks(list(distinct.items()), index, lambda item: [item[1]], f"{name} dialogues")
    counts[f"n_{name}_short"] = len(dialogues) - len(texts)
    counts[f"n_{name}_duplicates"] = len(texts) - len(distinct)
    counts[f"n_{name}_in_evaluation"] = len(distinct) - len(clean)
    return [text for text, _ in clean]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionTrainingOptions(TrainingOptions):
    """Options of a training; the recipe is "thesis" or "small"."""

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
) -> TrainingResult:
    """Train a model and write it to the folder `output`, which must not contain a finished model.

    Checkpoints are in `output/.training` until the run ends; the same call after a kill continues from the last epoch and
    gives the same files. After the first epoch, none starts that would exceed `max_minutes` if it took as long as the last.
    """
    recipe = choose_recipe(RECIPES, options.recipe, n_epochs=options.n_epochs)
    max_seconds = seconds_of(max_minutes)
    with TrainingRun.open(output, RECONSTRUCTION_FOLDER, options, progress=progress) as run:
        corpus = prepare(sources, recipe, validation_fraction=options.validation_fraction, seed=options.seed)
        run.start(recipe=asdict(recipe), data=data_hash(corpus.vocabulary.words, corpus.training, corpus.validation))
        architecture = Architecture(len(corpus.vocabulary), **recipe.sizes)
        network = new_network(options.model, architecture).to(device or run.device)
        fit = functools.partial(_fit, run, network, recipe, corpus, max_seconds)
        run.stage(_STAGE, network, lambda: fit_in_main_process(run, fit))
        trained = TrainedReconstruction(options.model, recipe.name, architecture, recipe.max_tokens, corpus.vocabulary, network)
        record = {"counts": corpus.counts, "best_epoch": _number(_best(run.history))}
        return run.publish(trained.save, record)


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
    # Patience begins with the full weight: validation may get worse while the weight rises.
    full = 1.0 if network.latent_size else 0.0
    since = [row for row in history if row.figures["training_kl_weight"] == full]
    return bool(since) and len(history) - max(_number(_best(history)), _number(since[0])) >= recipe.patience


def _best(history: Sequence[HistoryRow]) -> HistoryRow:
    return min(history, key=_loss)


def _loss(row: HistoryRow) -> float:
    return row.figures["loss"]


def _number(row: HistoryRow) -> int:
    return round(row.epoch or 0)


def train_epoch(
    loop: TrainingLoop,
    network: DialogueNetwork,
    recipe: ReconstructionRecipe,
    dialogues: Sequence[EncodedDialogue],
    *,
    bfloat16: bool,
) -> tuple[float, float]:
    """Train for one epoch and return cross-entropy and divergence in nats per token, with dropped words and sampled latents."""
    network.train()
    device = next(network.parameters()).device
    order = torch.randperm(len(dialogues)).tolist()
    total_loss, total_kl, total_tokens = 0.0, 0.0, 0
    for start in range(0, len(order), recipe.batch_size):
        batch = make_batch([dialogues[place] for place in order[start : start + recipe.batch_size]]).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            result = network(batch, LatentNoise.random(batch, network.latent_size))
        loss, kl = result.losses.sum(), result.response_kl.sum() + result.dialogue_kl.sum()
        n_tokens = int(batch.lengths[batch.responses].sum())
        loop.step((loss + kl_weight(network, recipe, loop.n_steps + 1) * kl) / n_tokens)
        total_loss, total_kl, total_tokens = total_loss + loss.item(), total_kl + kl.item(), total_tokens + n_tokens
    return total_loss / total_tokens, total_kl / total_tokens


@torch.no_grad()
def validation_loss(network: DialogueNetwork, dialogues: Sequence[EncodedDialogue]) -> float:
    """Return the cross-entropy in nats per token as in scoring: without drops, latent variables at their priors' means."""
    network.eval()
    device = next(network.parameters()).device
    total, n_tokens = 0.0, 0
    for places in length_batches([sum(map(len, dialogue)) for dialogue in dialogues], TOKENS_PER_BATCH):
        batch = make_batch([dialogues[place] for place in places]).to(device)
        total += network(batch).losses.sum().item()
        n_tokens += int(batch.lengths[batch.responses].sum())
    return total / n_tokens


def kl_weight(network: DialogueNetwork, recipe: ReconstructionRecipe, n_steps: int) -> float:
    """Return the divergence's weight, which rises from 0 to 1 so that the decoder uses latents (Bowman et al. 2016)."""
    return min(1.0, n_steps / recipe.annealing_steps) if network.latent_size else 0.0
