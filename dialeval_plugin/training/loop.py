"""Optimizer steps for losses that no host's trainer supports, with checkpoints and resuming after a kill.

Checkpoints are safetensors (accelerate's are pickles). No random state is stored: each step or epoch has its own seed.
"""

from __future__ import annotations

import datetime
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.models.tensors import save_weights
from dialeval_plugin.terminal import Progress

from . import checkpoints
from .checkpoints import read_history
from .run import TrainingRun

_SEED_STEP = 1_000_003
_WEIGHTS_FILE, _OPTIMIZER_FILE = "model.safetensors", "optimizer.safetensors"


class TrainingLoop:
    """The steps of one stage, including those of killed runs before it.

    Args:
        clip: largest norm of the gradient.
        n_steps: number of steps in the whole stage, for the progress bar.

    Attributes:
        n_steps: number of steps taken so far.
        seconds: duration of each part between two checkpoints.
    """

    def __init__(
        self, run: TrainingRun, stage: str, model: nn.Module, optimizer: torch.optim.Optimizer, *, clip: float, n_steps: int
    ) -> None:
        self.n_steps = 0
        self.seconds: list[float] = []
        self.optimizer = optimizer
        self._run, self._stage, self._clip = run, stage, clip
        self._folder = run.checkpoint_dir / stage
        self._weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self._resume(n_steps)
        self._bar = Progress(total=n_steps, initial=self.n_steps, disable=not run.progress, unit="step", desc=stage)
        self._begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of all parts, including the current one."""
        return sum(self.seconds) + time.monotonic() - self._begun

    def seed(self, number: int) -> None:
        """Make the next random draws depend only on the run's seed and the number of a step or epoch, counted from 1."""
        torch.manual_seed(self._run.options.seed + _SEED_STEP * number)

    def step(self, loss: Tensor) -> None:
        """Take a gradient step for a loss, which must be finite."""
        self._check(loss.item(), self.n_steps + 1)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        nn.utils.clip_grad_norm_(weights, self._clip)
        self.optimizer.step()
        self.n_steps += 1
        self._bar.update()

    def keep(self, figures: Mapping[str, float], *, epoch: float, best: int | None = None) -> None:
        """End a part: add its figures to the run's history, and write a checkpoint.

        `epoch` counts the passes over the data so far. The checkpoint of step `best`, which may be this one, is kept.
        """
        for figure in figures.values():
            self._check(figure, self.n_steps)
        now = time.monotonic()
        self.seconds.append(now - self._begun)
        self._begun = now
        self._run.report(self._stage, figures, step=self.n_steps, epoch=epoch)
        folder = self._checkpoint(self.n_steps)
        save_weights(folder / _WEIGHTS_FILE, self._weights)
        moments = {
            f"{place}.{name}": tensor
            for place, values in self.optimizer.state_dict()["state"].items()
            for name, tensor in values.items()
        }
        save_weights(folder / _OPTIMIZER_FILE, moments)
        # In the host's form, so that the same code recognises complete checkpoints.
        state = {
            "best_model_checkpoint": None if best is None else self._checkpoint(best).name,
            "stateful_callbacks": {"TrainerControl": {"args": {"should_training_stop": False}}},
            "n_steps": self.n_steps,
            "seconds": self.seconds,
        }
        write_text(folder / checkpoints.STATE_FILE, to_json(state, indent=2) + "\n")
        checkpoints.seal(folder)
        checkpoints.remove_old(self._folder)

    def load_weights(self, step: int) -> None:
        """Load the weights of an existing checkpoint into the model."""
        with torch.no_grad():
            for name, tensor in load_file(self._checkpoint(step) / _WEIGHTS_FILE).items():
                self._weights[name].copy_(tensor)

    def _resume(self, n_steps: int) -> None:
        checkpoints.remove_broken(self._folder)
        last = checkpoints.find_last(self._folder)
        if last is not None:
            state = read_json(last.folder / checkpoints.STATE_FILE)
            self.n_steps, self.seconds = state["n_steps"], state["seconds"]
            self.load_weights(self.n_steps)
            moments: dict[int, dict[str, Tensor]] = {}
            for name, tensor in load_file(last.folder / _OPTIMIZER_FILE).items():
                place, _, moment = name.partition(".")
                moments.setdefault(int(place), {})[moment] = tensor
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
            self._run.log_progress(f"{self._stage}: resuming from step {self.n_steps} of {n_steps}")
        # The figures of a part are written before its checkpoint.
        self._run.rewind(self._stage, self.n_steps)

    def _check(self, value: float, step: int) -> None:
        if not math.isfinite(value):
            raise ModelLoadError(
                f"training: a loss of step {step} is not a finite number, so the model diverged. "
                "Train again with another seed, a lower learning rate, or precision='float32'."
            )

    def _checkpoint(self, step: int) -> Path:
        return self._folder / f"checkpoint-{step}"


def take_steps(
    loop: TrainingLoop,
    losses_of: Callable[[int], Mapping[str, Tensor]],
    *,
    n_steps: int,
    steps_per_epoch: float,
    checkpoint_steps: int,
    max_seconds: float,
    warm_up: float,
) -> None:
    """Take a stage's steps until all are taken or its time is over, at least one.

    The learning rate depends on the elapsed share of the stage's steps or of its time.

    Args:
        loop: loop of the stage.
        losses_of: returns the losses to report for the number of a step, from 0; `loss` is minimised.
        n_steps: number of steps in the whole stage.
        steps_per_epoch: for the report.
        checkpoint_steps: steps between two reports of the mean losses, each with a checkpoint.
        max_seconds: time limit of the stage.
        warm_up: share of the stage in which the rate rises; it falls linearly afterwards.
    """

    def share() -> float:
        return min(1.0, max(loop.n_steps / n_steps, loop.elapsed / max_seconds))

    def rate(_: int) -> float:
        part = share()
        # With a rate of 0 a step would be wasted.
        return max(part / warm_up if part < warm_up else (1 - part) / (1 - warm_up), 1 / n_steps)

    schedule = LambdaLR(loop.optimizer, rate)
    reported: defaultdict[str, list[float]] = defaultdict(list)
    is_over = loop.n_steps > 0 and share() >= 1
    while not is_over:
        loop.seed(loop.n_steps + 1)
        losses = losses_of(loop.n_steps)
        loop.step(losses["loss"])
        schedule.step()
        for name, term in losses.items():
            reported[f"training_{name}"].append(term.item())
        is_over = share() >= 1
        if is_over or loop.n_steps % checkpoint_steps == 0:
            # Some steps do not have all terms.
            means = {name: sum(values) / len(values) for name, values in reported.items()}
            loop.keep(means, epoch=loop.n_steps / steps_per_epoch)
            reported.clear()


def fit_in_main_process(run: TrainingRun, fit: Callable[[], object]) -> None:
    """Take a loop's steps in the main process; others of `accelerate launch` wait for the stage's weights without time limit.

    In-batch negatives need the whole batch, so it is not split, and the result equals that of one process to the byte.
    """
    if run.n_processes == 1:
        fit()
        return
    run.log_progress(f"{run.n_processes} processes: this training takes its steps in the first one alone")
    # The host's own barrier times out after half an hour.
    group = torch.distributed.new_group(timeout=datetime.timedelta(days=300), backend="gloo")
    if run.is_main_process:
        fit()
    torch.distributed.barrier(group)
    run.history = read_history(run.checkpoint_dir)
