"""One run of transformers' trainer: the loss of all turns' tokens, validation every epoch, the best epoch kept."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from accelerate.utils import broadcast_object_list
from torch import Tensor
from torch.nn import functional
from transformers import EarlyStoppingCallback, EvalPrediction, Trainer, TrainerCallback

from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.training.host_trainers import fit
from dialeval_plugin.training.run import TrainingRun

from .recipes import LanguageModelRecipe
from .rows import IGNORED, PadRows, RowsByLength, TokenRows


class TokenLosses(NamedTuple):
    """Negative log-likelihoods (natural log) of the rows of a batch."""

    sums: Tensor
    """Over the tokens of each row, of shape (rows,)."""
    n_tokens: Tensor
    """That were predicted in each row, of shape (rows,)."""


def token_losses(logits: Tensor, labels: Tensor) -> TokenLosses:
    """Compare each place's answer, logits (rows, places, vocabulary), with the next place's label, which may be `IGNORED`."""
    targets = labels[:, 1:]
    losses = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return TokenLosses(losses.view(targets.shape).sum(dim=1), (targets != IGNORED).sum(dim=1))


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
    """Ends training after some minutes of the main process; the host then measures and keeps what there is."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask the host to end where the time is over, of all processes at the same step."""
        (is_over,) = broadcast_object_list([time.monotonic() >= self._end])
        control.should_training_stop |= is_over


def measure(prediction: EvalPrediction) -> dict[str, float]:
    """Return the mean loss over all tokens, however they were batched, and exp of it, the perplexity."""
    sums, n_tokens = prediction.predictions
    loss = float(np.sum(sums, dtype=np.float64)) / float(np.sum(n_tokens))
    return {"loss": loss, "perplexity": math.exp(loss)}


def fit_language_model(
    opened: OpenedModel,
    objective: str,
    recipe: LanguageModelRecipe,
    training: TokenRows,
    validation: TokenRows,
    run: TrainingRun,
    *,
    max_minutes: float | None = None,
) -> None:
    """Train a model in place, to the weights of its best epoch on `validation`; after `max_minutes` it is measured and ends."""
    callbacks = [EarlyStoppingCallback(early_stopping_patience=recipe.patience)]
    settings = {
        "num_train_epochs": recipe.n_epochs,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warm_up,
        "lr_scheduler_type": "cosine",
        "weight_decay": 0.01,
        "metric_for_best_model": "perplexity",
        "greater_is_better": False,
    }
    parts = {
        "trainer": LanguageModelTrainer,
        "model": opened.model,
        "train_dataset": training,
        "eval_dataset": validation,
        "data_collator": PadRows(opened.pad),
        "compute_metrics": measure,
        "callbacks": callbacks if max_minutes is None else [*callbacks, TimeLimit(max_minutes)],
    }
    use_cache = opened.model.config.use_cache
    run.stage(objective, opened.model, lambda: fit(run, objective, settings, batch_size=recipe.batch_size, **parts))
    # The host turns it off, but not where a killed run only loads a stage that is finished: their folders would differ.
    opened.model.config.use_cache = use_cache
