"""One run of transformers' trainer: the loss of all turns' tokens, validation every epoch, the best epoch kept."""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch.nn import functional
from transformers import EarlyStoppingCallback, EvalPrediction, Trainer, TrainerCallback, TrainingArguments

from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.training.epochs import epoch_arguments, train_epochs

from .recipes import Recipe
from .rows import IGNORED, PadRows, RowsByLength, TokenRows

logger = logging.getLogger(__name__)

BEST = "perplexity"


class TokenLosses(NamedTuple):
    """Negative log-likelihoods (natural log) of the rows of a batch."""

    sums: Tensor
    """Over the tokens of each row, of shape (rows,)."""
    n_tokens: Tensor
    """That were predicted in each row, of shape (rows,)."""


def token_losses(logits: Tensor, labels: Tensor) -> TokenLosses:
    """Compare each place's answer with the next place's label.

    Args:
        logits: of shape (rows, places, vocabulary).
        labels: token ids of shape (rows, places), `IGNORED` where there is nothing to predict.
    """
    targets = labels[:, 1:]
    losses = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return TokenLosses(losses.view(targets.shape).sum(dim=1), (targets != IGNORED).sum(dim=1))


class Epoch(NamedTuple):
    """What one epoch, or the part of one before the time was over, came to."""

    epoch: float
    training_loss: float
    """Mean over batches, natural log."""
    validation_loss: float
    """Mean over tokens, natural log."""
    perplexity: float
    """exp of the validation loss."""


class Run(NamedTuple):
    """How one model is trained."""

    recipe: Recipe
    folder: Path
    """Where checkpoints go."""
    seed: int
    bf16: bool
    max_minutes: float | None
    """After which training ends with the epoch's measurement, or None for no limit."""
    progress: bool


class LanguageModelTrainer(Trainer):  # type: ignore[misc] # the host is not typed
    """The host's trainer with rows sorted by length, and with losses that do not depend on how rows are batched."""

    def _get_train_sampler(self, train_dataset: TokenRows | None = None) -> RowsByLength:
        rows = self.train_dataset if train_dataset is None else train_dataset
        return RowsByLength([len(block) for block in rows.blocks], self.args.train_batch_size, self.args.seed)

    def compute_loss(
        self, model: Any, inputs: dict[str, Tensor], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the mean loss of a batch's tokens, and on request the rows' own sums."""
        found = token_losses(model(input_ids=inputs["input_ids"], use_cache=False).logits, inputs["labels"])
        loss = found.sums.sum() / found.n_tokens.sum()
        return (loss, {"loss": loss, **found._asdict()}) if return_outputs else loss


class TimeLimit(TrainerCallback):  # type: ignore[misc]
    """Ends training after some minutes of this process; the host then measures and keeps what there is."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask the host to end where the time is over."""
        if time.monotonic() >= self._end:
            control.should_training_stop = True


def measure(prediction: EvalPrediction) -> dict[str, float]:
    """Return the perplexity: exp of the mean loss over all tokens, however they were batched."""
    sums, n_tokens = prediction.predictions
    return {BEST: math.exp(float(np.sum(sums, dtype=np.float64)) / float(np.sum(n_tokens)))}


def fit(opened: OpenedModel, name: str, training: TokenRows, validation: TokenRows, run: Run) -> list[Epoch]:
    """Train a model in place, to the weights of its best epoch; where checkpoints are found it goes on from the last.

    Args:
        opened: the model.
        name: of the objective, for the reports.
        training: rows to learn from.
        validation: rows that choose the best epoch.
        run: see `Run`.
    """
    trainer = LanguageModelTrainer(
        model=opened.model,
        args=TrainingArguments(**_arguments(run)),
        train_dataset=training,
        eval_dataset=validation,
        data_collator=PadRows(opened.pad),
        compute_metrics=measure,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=run.recipe.patience)],
    )
    if run.max_minutes is not None:
        trainer.add_callback(TimeLimit(run.max_minutes))
    opened.model.train()
    train_epochs(trainer, name, shown=run.progress)
    opened.model.eval()
    return _history(trainer.state.log_history)


def _history(log: list[dict[str, Any]]) -> list[Epoch]:
    training = [entry["loss"] for entry in log if "loss" in entry]
    measured = [entry for entry in log if f"eval_{BEST}" in entry]
    return [
        Epoch(entry["epoch"], loss, math.log(entry[f"eval_{BEST}"]), entry[f"eval_{BEST}"])
        for entry, loss in zip(measured, training, strict=True)
    ]


def _arguments(run: Run) -> dict[str, Any]:
    recipe = run.recipe
    common = epoch_arguments(
        run.folder,
        batch_size=recipe.batch_size,
        bfloat16=run.bf16,
        seed=run.seed,
        best=BEST,
        greater=False,
        progress=run.progress,
    )
    return {
        **common,
        "num_train_epochs": recipe.n_epochs,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warm_up,
        "lr_scheduler_type": "cosine",
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
        "remove_unused_columns": False,
    }
