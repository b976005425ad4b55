"""Training a model end to end: one readable loop, one folder at the end. A run that was killed goes on."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors.torch import load_file
from torch import nn
from tqdm.auto import tqdm

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.corpora.identity import LEAK_RULE
from dialeval_plugin.models.folders import save_weights
from dialeval_plugin.training.run_folder import refuse_finished, report, workplace
from dialeval_plugin.version import __version__

from .batches import EncodedDialogue, batches_by_length, make_batch
from .data import Corpus, Sources, prepare
from .latent import Noise
from .model import SETTINGS_FILE, DialogueModel, Kind, TrainedReconstruction, new_model
from .recipes import Recipe, find_recipe
from .scorer import RECONSTRUCTION_MODEL, TOKENS_PER_BATCH

logger = logging.getLogger(__name__)

_PROGRESS_FILE = "progress.json"


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training run depends on, apart from its data.

    Attributes:
        model: "seq2seq", "hred", "vhred" or "vhcr".
        recipe: "thesis" or "small", see `recipes.Recipe`.
        n_epochs: in place of the recipe's.
        validation_fraction: share of the dialogues that is set aside where no validation dialogues are given.
        seed: of the split, the initial weights, the order and every draw.
    """

    model: Kind = "hred"
    recipe: str = "small"
    n_epochs: int | None = None
    validation_fraction: float = 0.1
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Epoch:
    """One line of a model's history; losses and divergences are in nats a token.

    Attributes:
        epoch: its number, from 1.
        training_loss: cross-entropy of the training responses, with words dropped and latent variables drawn.
        training_kl: divergence of posteriors and priors.
        kl_weight: of the divergence, at the epoch's end.
        validation_loss: cross-entropy of the validation responses as the scorer computes it: nothing dropped, latent variables
            at the means of their priors.
        seconds: that it took, validation included.
    """

    epoch: int
    training_loss: float
    training_kl: float
    kl_weight: float
    validation_loss: float
    seconds: float

    def learnt(self) -> dict[str, Any]:
        """What depends on data and options alone, for the model's record: a model is known by the bytes of its files."""
        return {name: value for name, value in asdict(self).items() if name != "seconds"}


class Trained(NamedTuple):
    """Where the model is and how it got there."""

    folder: Path
    record: dict[str, Any]
    """Goes into reconstruction.json as `training`: options, counts, `history` and `best_epoch`."""
    seconds: list[float]
    """That each epoch took, validation included."""


def train(
    sources: Sources,
    output: Path,
    options: TrainingOptions = TrainingOptions(),
    *,
    max_minutes: float | None = None,
    device: str | None = None,
    progress: bool = False,
    remember: bool = True,
) -> Trained:
    """Train a model and write it, with the weights of the epoch that was best on validation, to the folder `output`.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last epoch and ends
    with the same weights.

    Args:
        sources: the dialogues.
        output: a folder that does not hold a finished model.
        options: see `TrainingOptions`.
        max_minutes: no epoch is begun that would end later, at the pace of the one before; the first one always runs.
        device: a torch device; by default a GPU where there is one.
        progress: show a bar, and a line after each epoch.
        remember: make this the model that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, an option is out of its range, or the
            dialogues do not suffice.
        ModelLoadError: a loss is no finite number any more.
    """
    recipe = find_recipe(options.recipe, n_epochs=options.n_epochs)
    refuse_finished(output, SETTINGS_FILE)
    if max_minutes is not None and max_minutes <= 0:
        raise InputError(f"max_minutes: expected more than 0, got {max_minutes}.")
    corpus = prepare(sources, recipe, validation_fraction=options.validation_fraction, seed=options.seed)
    torch.manual_seed(options.seed)
    architecture = recipe.architecture(len(corpus.vocabulary))
    network = new_model(options.model, architecture).to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with workplace(output, SETTINGS_FILE, _identity(options, recipe, corpus)) as place:
        trainee = _Trainee(network, recipe, options.seed, place, progress)
        trainee.train(corpus, math.inf if max_minutes is None else 60 * max_minutes)
        record = {
            "options": asdict(options),
            "counts": corpus.counts,
            "history": [epoch.learnt() for epoch in trainee.history],
            "best_epoch": trainee.best.epoch,
            "leak_rule": LEAK_RULE,
            "version": __version__,
        }
        trained = TrainedReconstruction(options.model, recipe.name, architecture, recipe.max_tokens, corpus.vocabulary, network)
        trained.save(output, record)
    if remember:
        RECONSTRUCTION_MODEL.remember(output)
    return Trained(output, record, [epoch.seconds for epoch in trainee.history])


def _identity(options: TrainingOptions, recipe: Recipe, corpus: Corpus) -> dict[str, Any]:
    """What has to be the same for a run to go on from another's checkpoints."""
    digest = hashlib.sha256(repr((corpus.vocabulary.words, corpus.training, corpus.validation)).encode())
    return {
        "options": asdict(options),
        "recipe": to_json(asdict(recipe)),
        "data": digest.hexdigest(),
        "version": __version__,
    }


@dataclass
class _Trainee:
    """A network in training, and what it has behind it."""

    network: nn.Module
    recipe: Recipe
    seed: int
    folder: Path
    progress: bool
    history: list[Epoch] = field(default_factory=list)
    n_steps: int = 0

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=self.recipe.learning_rate)
        self.device = next(self.network.parameters()).device

    @property
    def model(self) -> DialogueModel:
        return cast("DialogueModel", self.network)

    @property
    def best(self) -> Epoch:
        """The epoch with the lowest loss on validation, of equal ones the first."""
        return min(self.history, key=lambda epoch: epoch.validation_loss)

    @property
    def kl_weight(self) -> float:
        """Rises from 0 to 1 (Bowman et al. 2016): at first a latent variable costs nothing, so that the decoder uses it."""
        return min(1.0, self.n_steps / self.recipe.annealing_steps) if self.model.latent_size else 0.0

    def train(self, corpus: Corpus, max_seconds: float) -> None:
        """Go through the epochs that are left, then take the weights of the best one."""
        self._resume()
        while not self._is_finished(max_seconds):
            number = len(self.history) + 1
            # Each epoch has its own seed, so that a resumed run needs no generator's state.
            torch.manual_seed(self.seed + 1_000_003 * number)
            started = time.monotonic()
            loss, kl = self._pass(corpus.training, number)
            validation = self.measure(corpus.validation)
            if not math.isfinite(loss + kl + validation):
                raise ModelLoadError(
                    f"training: a loss of epoch {number} is not a finite number, so the model diverged. "
                    "Train again with another seed or recipe."
                )
            seconds = time.monotonic() - started
            self.history.append(Epoch(number, loss, kl, self.kl_weight, validation, seconds))
            self._save()
            self._report()
        self._load_weights(self.best.epoch)

    def _is_finished(self, max_seconds: float) -> bool:
        if not self.history:
            return False
        last = self.history[-1]
        used = sum(epoch.seconds for epoch in self.history)
        return last.epoch >= self.recipe.n_epochs or self._is_stuck() or used + last.seconds > max_seconds

    def _is_stuck(self) -> bool:
        """Whether validation has not gained for too long; while the divergences' weight rises it may well get worse."""
        final = 1.0 if self.model.latent_size else 0.0
        waited_from = [epoch.epoch for epoch in self.history if epoch.kl_weight == final]
        return bool(waited_from) and self.history[-1].epoch - max(self.best.epoch, waited_from[0]) >= self.recipe.patience

    def _pass(self, dialogues: Sequence[EncodedDialogue], number: int) -> tuple[float, float]:
        """One epoch; returns cross-entropy and divergence a token."""
        self.network.train()
        order = torch.randperm(len(dialogues)).tolist()
        starts = range(0, len(order), self.recipe.batch_size)
        total_loss, total_kl, total_tokens = 0.0, 0.0, 0
        bar = tqdm(starts, disable=None if self.progress else True, unit="step", desc=f"epoch {number}", leave=False)
        for start in bar:
            chosen = order[start : start + self.recipe.batch_size]
            batch = make_batch([dialogues[place] for place in chosen]).to(self.device)
            found = self.model(batch, Noise.random(batch, self.model.latent_size))
            loss, kl = found.losses.sum(), found.response_kl.sum() + found.dialogue_kl.sum()
            n_tokens = int(batch.lengths[batch.responses].sum())
            self.n_steps += 1
            self.optimizer.zero_grad()
            ((loss + self.kl_weight * kl) / n_tokens).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
            self.optimizer.step()
            total_loss, total_kl, total_tokens = total_loss + loss.item(), total_kl + kl.item(), total_tokens + n_tokens
        return total_loss / total_tokens, total_kl / total_tokens

    @torch.no_grad()
    def measure(self, dialogues: Sequence[EncodedDialogue]) -> float:
        """Cross-entropy a token, as the scorer computes it."""
        self.network.eval()
        total, n_tokens = 0.0, 0
        for places in batches_by_length(dialogues, TOKENS_PER_BATCH):
            batch = make_batch([dialogues[place] for place in places]).to(self.device)
            total += self.model(batch).losses.sum().item()
            n_tokens += int(batch.lengths[batch.responses].sum())
        return total / n_tokens

    def _save(self) -> None:
        """Keep the epoch; what is there counts from the moment that progress.json names it."""
        state = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for place, values in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{place}.{name}": tensor for name, tensor in values.items()}
        save_weights(self._checkpoint(self.history[-1].epoch), state)
        progress = {"n_steps": self.n_steps, "history": [asdict(epoch) for epoch in self.history]}
        write_text(self.folder / _PROGRESS_FILE, to_json(progress, indent=2) + "\n")
        needed = {self._checkpoint(epoch.epoch) for epoch in (self.best, self.history[-1])}
        for path in self.folder.glob("epoch_*.safetensors"):
            if path not in needed:
                path.unlink()

    def _resume(self) -> None:
        if not (self.folder / _PROGRESS_FILE).exists():
            return
        progress = read_json(self.folder / _PROGRESS_FILE)
        self.n_steps = progress["n_steps"]
        self.history = [Epoch(**epoch) for epoch in progress["history"]]
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in self._load_weights(self.history[-1].epoch).items():
            place, _, moment = name.partition(".")
            moments.setdefault(int(place), {})[moment] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        last = f"epoch {self.history[-1].epoch} of {self.recipe.n_epochs}"
        report(f"reconstruction: going on from {last}", shown=self.progress)

    def _load_weights(self, epoch: int) -> dict[str, torch.Tensor]:
        """Give the network the weights of an epoch; returns the optimizer's tensors."""
        parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "optimizer": {}}
        for name, tensor in load_file(str(self._checkpoint(epoch))).items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self.network.load_state_dict(parts["network"])
        return parts["optimizer"]

    def _checkpoint(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:04d}.safetensors"

    def _report(self) -> None:
        last = self.history[-1]
        line = (
            f"epoch {last.epoch} of {self.recipe.n_epochs}: training loss {last.training_loss:.4f}, "
            f"KL {last.training_kl:.4f} (weight {last.kl_weight:.2f}), validation loss {last.validation_loss:.4f}, "
            f"{last.seconds:.0f} s"
        )
        report(line, shown=self.progress)
