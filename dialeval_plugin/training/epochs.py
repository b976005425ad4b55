"""What the runs of the hosts' trainers have in common: each epoch is measured, kept and reported, and a killed run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from . import checkpoints
from .run_folder import report

_FIGURES = ("loss", "perplexity", "accuracy_positive", "accuracy_adversarial", "accuracy", "auroc", "triplet_accuracy")


class _QuietBars(ProgressCallback):  # type: ignore[misc]
    """The host's bars without its dictionaries, which it writes to stdout."""

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        pass


class _EpochLine(TrainerCallback):  # type: ignore[misc]
    def __init__(self, stage: str, *, shown: bool) -> None:
        self._stage = stage
        self._shown = shown

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step and state.is_world_process_zero:
            report(f"{self._stage}: going on from step {state.global_step} of {state.max_steps}", shown=self._shown)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        metrics = kwargs.get("metrics", {})
        figures = {name: metrics[f"eval_{name}"] for name in _FIGURES if f"eval_{name}" in metrics}
        line = f"{self._stage}, epoch {round(state.epoch)} of {round(args.num_train_epochs)}: " + ", ".join(
            f"{name} {value:.4g}" for name, value in figures.items()
        )
        report(line, shown=self._shown)


class _WholeCheckpoints(TrainerCallback):  # type: ignore[misc]
    """Seals checkpoints that are written to their end, and removes the oldest once a newer one is sealed.

    The host's own limit would remove a checkpoint before anybody knows that the next one is whole.
    """

    def __init__(self, best: str | None) -> None:
        self._best = best

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # The host stores the path that it had then and drops one that is not there: relative to another folder, or moved since.
        if self._best is not None:
            state.best_model_checkpoint = str(Path(args.output_dir) / self._best)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Every process has written its generator's state.
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(args.output_dir)
            checkpoints.seal(folder / f"checkpoint-{state.global_step}")
            checkpoints.remove_old(folder)


def epoch_arguments(
    folder: Path, *, batch_size: int, bfloat16: bool, seed: int, best: str, greater: bool, progress: bool
) -> dict[str, Any]:
    """Return the arguments of a host's trainer that do not depend on the recipe.

    Args:
        folder: where its checkpoints go, see `checkpoints`.
        batch_size: examples a step, in training and in validation.
        bfloat16: precision of the forward passes of training.
        seed: of the order of the examples and of dropout.
        best: the validation figure of the epoch that is kept.
        greater: whether more of it is better.
        progress: show the host's bars.
    """
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": batch_size,
        "per_device_eval_batch_size": batch_size,
        "bf16": bfloat16,
        "use_cpu": not torch.cuda.is_available(),
        "seed": seed,
        "data_seed": seed,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "logging_strategy": "epoch",
        # An early stop counts the epochs without gain, those before a kill too.
        "restore_callback_states_from_checkpoint": True,
        "load_best_model_at_end": True,
        "metric_for_best_model": best,
        "greater_is_better": greater,
        "disable_tqdm": not progress,
        "report_to": "none",
    }


def train_epochs(trainer: Trainer, stage: str, *, shown: bool) -> None:
    """Train; where whole checkpoints lie in the trainer's folder, go on from the last.

    Args:
        trainer: a host's.
        stage: its name, for the reports.
        shown: whether bars and a line after each epoch are to be seen; the log has the lines otherwise.
    """
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if shown:
        trainer.add_callback(_QuietBars())
    trainer.add_callback(_EpochLine(stage, shown=shown))
    folder, processes = Path(trainer.args.output_dir), PartialState()
    if processes.is_main_process:
        checkpoints.remove_broken(folder)
    processes.wait_for_everyone()
    last = checkpoints.find_last(folder)
    trainer.add_callback(_WholeCheckpoints(None if last is None else last.best))
    if last is not None and last.is_end:
        # An early end is none to the host: without this it would train on for one more epoch.
        trainer.args.max_steps = last.step
    trainer.train(resume_from_checkpoint=None if last is None else str(last.folder))
    # In bfloat16 the trainer leaves its autocast around the model's forward pass, which would go on in scoring.
    trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
