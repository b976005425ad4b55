"""Training one classifier on labelled rows: a run of sentence-transformers' CrossEncoderTrainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np
from sentence_transformers import CrossEncoder
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn
from torch.nn import functional

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.training.host_trainers import fit
from dialeval_plugin.training.run import TrainingRun

from .aggregation import FloatArray
from .classifiers import IndependenceClassifier, RowEncoder, row_probabilities
from .data import LabelledRow
from .recipes import CausalRecipe

COLUMNS = ("cause", "condition", "response")
BEST = "auroc"


class IndependenceLoss(nn.Module):
    """Cross-entropy of the two labels, on texts that are laid out as scoring lays them out."""

    def __init__(self, model: CrossEncoder, texts: RowEncoder) -> None:
        super().__init__()
        self.model = model
        self._texts = texts

    def forward(
        self, inputs: Sequence[Sequence[str]], labels: Tensor, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the mean loss of a batch; `inputs` has one list a column."""
        n_rows, n_columns = len(inputs[0]), len(inputs)
        flat = [text for row in zip(*inputs, strict=True) for text in row]
        rows = self._texts.rows(flat, np.arange(n_rows * n_columns).reshape(n_rows, n_columns))
        ids = [self._texts.encode(rows, number) for number in range(n_rows)]
        logits = IndependenceClassifier(self.model, self._texts).logits(ids)
        return functional.cross_entropy(logits.float(), labels.to(logits.device))


class RowEvaluator(BaseEvaluator):  # type: ignore[misc] # the host is not typed
    """Measures a classifier on validation rows after each epoch."""

    def __init__(self, texts: RowEncoder, rows: Sequence[LabelledRow]) -> None:
        super().__init__()
        self.primary_metric = BEST
        self._texts = texts
        self._rows = rows

    def __call__(
        self, model: CrossEncoder, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the figures of `measure_rows`."""
        was_training = model.training
        figures = measure_rows(IndependenceClassifier(model, self._texts), self._rows)
        model.train(was_training)
        return figures


def measure_rows(classifier: IndependenceClassifier, rows: Sequence[LabelledRow]) -> dict[str, float]:
    """Return area under the ROC curve, F1 and accuracy of a classifier on labelled rows, in [0, 1]."""
    return classification_figures(
        row_probabilities(classifier, [row.texts for row in rows]), np.array([row.label for row in rows], dtype=np.float64)
    )


def classification_figures(probabilities: FloatArray, labels: FloatArray) -> dict[str, float]:
    """Return area under the ROC curve, F1 of label 1 and accuracy, the last two at p > 0.5; all in [0, 1]."""
    if not np.isfinite(probabilities).all():
        raise InputError(
            "classifier: gives probabilities that are not finite, so its training diverged. Train again with a lower rate."
        )
    is_positive = labels == 1
    n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
    if not n_positive or not n_negative:
        raise InputError(
            f"validation data: {n_positive} positive and {n_negative} negative rows, at least one of each is needed. "
            "Add a file."
        )
    said = probabilities > 0.5
    return {
        "auroc": float(roc_auc_score(is_positive, probabilities)),
        "f1": float(f1_score(is_positive, said)),
        "accuracy": float((said == is_positive).mean()),
    }


def train_stage(
    encoder: CrossEncoder,
    name: str,
    n_epochs: int,
    rows: Sequence[LabelledRow],
    validation: Sequence[LabelledRow],
    recipe: CausalRecipe,
    run: TrainingRun,
) -> None:
    """Train a classifier in place on labelled rows; `validation` chooses the epoch where the recipe keeps the best one."""
    encoder.model_card_data.generate_widget_examples = False
    texts = RowEncoder(encoder.tokenizer, recipe.layout, recipe.truncate, recipe.max_training_tokens)
    settings = {
        "num_train_epochs": n_epochs,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warm_up_steps,
        "lr_scheduler_type": recipe.schedule,
        "load_best_model_at_end": recipe.keep_best,
        "metric_for_best_model": BEST,
    }
    parts = {
        "trainer": CrossEncoderTrainer,
        "arguments": CrossEncoderTrainingArguments,
        "model": encoder,
        "train_dataset": _dataset(rows),
        "loss": IndependenceLoss(encoder, texts),
        "evaluator": RowEvaluator(texts, validation),
    }
    run.stage(name, encoder, lambda: fit(run, name, settings, batch_size=recipe.batch_size, **parts))


def _dataset(rows: Sequence[LabelledRow]) -> datasets.Dataset:
    names = COLUMNS if len(rows[0].texts) == len(COLUMNS) else (COLUMNS[0], COLUMNS[2])
    columns: dict[str, list[Any]] = {name: [row.texts[place] for row in rows] for place, name in enumerate(names)}
    return datasets.Dataset.from_dict({**columns, "label": [row.label for row in rows]})
