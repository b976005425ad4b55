"""What the runs of the hosts' trainers have in common: each epoch is measured, kept and reported, and a killed run goes on."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

logger = logging.getLogger(__name__)

_FIGURES = ("loss", "perplexity", "accuracy_positive", "accuracy_adversarial", "accuracy", "auroc", "triplet_accuracy")


class _QuietBars(ProgressCallback):  # type: ignore[misc]
    """The host's bars without its dictionaries, which it writes to stdout."""

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        pass


class _EpochLine(TrainerCallback):  # type: ignore[misc]
    def __init__(self, stage: str, *, shown: bool) -> None:
        self._stage = stage
        self._shown = shown

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        metrics = kwargs.get("metrics", {})
        figures = {name: metrics[f"eval_{name}"] for name in _FIGURES if f"eval_{name}" in metrics}
        line = f"{self._stage}, epoch {round(state.epoch)} of {round(args.num_train_epochs)}: " + ", ".join(
            f"{name} {value:.4g}" for name, value in figures.items()
        )
        if self._shown:
            tqdm.write(line, file=sys.stderr)
        else:
            logger.info(line)


def epoch_arguments(
    folder: Path, *, batch_size: int, bfloat16: bool, seed: int, best: str, greater: bool, progress: bool
) -> dict[str, Any]:
    """Return the arguments of a host's trainer that do not depend on the recipe.

    Args:
        folder: where its checkpoints go; the last one stays.
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
        "save_total_limit": 1,
        "load_best_model_at_end": True,
        "metric_for_best_model": best,
        "greater_is_better": greater,
        "disable_tqdm": not progress,
        "report_to": "none",
    }


def train_epochs(trainer: Trainer, stage: str, *, shown: bool) -> None:
    """Train; where checkpoints lie in the trainer's folder, go on from the last.

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
    folder = trainer.args.output_dir
    checkpoint = get_last_checkpoint(folder) if Path(folder).is_dir() else None
    if checkpoint is not None:
        logger.info("%s: going on from %s", stage, checkpoint)
    trainer.train(resume_from_checkpoint=checkpoint)
    # In bfloat16 the trainer leaves its autocast around the model's forward pass, which would go on in scoring.
    trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
