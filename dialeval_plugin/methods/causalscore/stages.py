"""Training one classifier on labelled rows: a run of sentence-transformers' CrossEncoderTrainer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np
from sentence_transformers import CrossEncoder
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from torch import Tensor, nn
from torch.nn import functional

from dialeval_plugin.training.epochs import epoch_arguments, train_epochs

from .classifiers import IndependenceClassifier
from .data import Row, classification_figures
from .recipes import Recipe
from .self_training import row_probabilities
from .texts import RowEncoder

COLUMNS = ("cause", "condition", "response")
BEST = "auroc"


class Run(NamedTuple):
    """What every stage of a run shares."""

    recipe: Recipe
    folder: Path
    """Where checkpoints go; each stage has its own folder in it."""
    seed: int
    bfloat16: bool
    progress: bool


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

    def __init__(self, texts: RowEncoder, rows: Sequence[Row]) -> None:
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


def measure_rows(classifier: IndependenceClassifier, rows: Sequence[Row]) -> dict[str, float]:
    """Return area under the ROC curve, F1 and accuracy of a classifier on labelled rows, in [0, 1].

    Raises:
        InputError: as `classification_figures`.
    """
    return classification_figures(
        row_probabilities(classifier, [row.texts for row in rows]), np.array([row.label for row in rows], dtype=np.float64)
    )


def fit(
    encoder: CrossEncoder,
    texts: RowEncoder,
    training: Sequence[Row],
    validation: Sequence[Row],
    run: Run,
    *,
    name: str,
    n_epochs: int,
) -> None:
    """Train a classifier in place; where checkpoints of this stage are found it goes on from the last.

    Args:
        encoder: the classifier's model.
        texts: how its texts are laid out in training.
        training: labelled rows.
        validation: rows that choose the best epoch.
        run: see `Run`.
        name: of the stage, which is also that of its folder.
        n_epochs: passes over the rows.
    """
    folder = run.folder / name
    encoder.model_card_data.generate_widget_examples = False
    trainer = CrossEncoderTrainer(
        model=encoder,
        args=CrossEncoderTrainingArguments(**_arguments(run, folder, n_epochs)),
        train_dataset=_dataset(training),
        loss=IndependenceLoss(encoder, texts),
        evaluator=RowEvaluator(texts, validation),
    )
    train_epochs(trainer, name, shown=run.progress)


def _dataset(rows: Sequence[Row]) -> datasets.Dataset:
    names = COLUMNS if len(rows[0].texts) == len(COLUMNS) else (COLUMNS[0], COLUMNS[2])
    columns: dict[str, list[Any]] = {name: [row.texts[place] for row in rows] for place, name in enumerate(names)}
    return datasets.Dataset.from_dict({**columns, "label": [row.label for row in rows]})


def _arguments(run: Run, folder: Path, n_epochs: int) -> dict[str, Any]:
    recipe = run.recipe
    common = epoch_arguments(
        folder,
        batch_size=recipe.batch_size,
        bfloat16=run.bfloat16,
        seed=run.seed,
        best=BEST,
        greater=True,
        progress=run.progress,
    )
    return {
        **common,
        "num_train_epochs": n_epochs,
        "learning_rate": recipe.learning_rate,
        "warmup_steps": recipe.warm_up_steps,
        "lr_scheduler_type": recipe.schedule,
        "weight_decay": 0.0,
        "load_best_model_at_end": recipe.keep_best,
    }
