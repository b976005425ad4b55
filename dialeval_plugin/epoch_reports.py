"""What a person sees of a training stage: the host's progress bars and, after each epoch, one line of figures on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tqdm.auto import tqdm
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

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


def report_epochs(trainer: Trainer, stage: str, *, shown: bool) -> None:
    """Replace what the host's trainer prints.

    Args:
        trainer: before it trains.
        stage: its name.
        shown: whether bars and lines are to be seen; the log has the lines otherwise.
    """
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if shown:
        trainer.add_callback(_QuietBars())
    trainer.add_callback(_EpochLine(stage, shown=shown))
