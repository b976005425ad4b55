"""Training of the independence classifiers by Algorithm 1: first the unconditional one, then the other in self-training.

Its recipes, stages and rounds are in one folder; a killed run can resume.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import datasets
import numpy as np
from sentence_transformers import CrossEncoder
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn
from torch.nn import functional

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_choice
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.models.encoders import freeze
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.models.tensors import load_weights
from dialeval_plugin.training.host_trainers import fit
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .aggregation import dependent_turns
from .classifiers import (
    IndependenceClassifier,
    PairLayout,
    PairTruncation,
    RowEncoder,
    TurnVectors,
    VectorClassifier,
    fit_on_vectors,
    new_classifier,
)
from .data import (
    CANDIDATES,
    CausalData,
    CausalSources,
    LabelledRow,
    OtherUtterances,
    UnlabelledResponse,
    conditional_rows,
    pair_hash,
    prepare,
    strongest,
    unconditional_rows,
)
from .model import (
    CAUSAL_FOLDER,
    CausalModel,
    CausalModelConfig,
    CauseLabels,
    DependenceClassifier,
    classifier_of,
    row_probabilities,
    turn_probabilities,
)

Filter: TypeAlias = Literal["paper", "code"]

VECTORS = "vectors"
"""Recipe of classifiers over a general evaluator's vectors, which has no settings: see `classifiers.fit_on_vectors`."""
GENERAL = "general"
"""Bundled evaluator for this recipe by default."""


@dataclass(frozen=True, slots=True)
class CausalRecipe:
    """Recipe for training cross-encoders.

    Attributes:
        learning_rate: highest learning rate.
        n_epochs: epochs of the unconditional and the first conditional classifier.
        n_round_epochs: epochs of each self-training round.
        n_rounds: maximum self-training rounds.
        schedule: "linear" rises for `warm_up_steps` and falls to 0; "constant" does neither.
        keep_best: keep the epoch and round with the largest area under the ROC curve on validation, and stop after the first
            round without a gain; otherwise run all rounds and keep the last epoch.
        filter: selection of pseudo-labels, see `choose`.
        grows: keep a round's pseudo-labels in the training set; otherwise each round has the labelled set and its own.
        conditional_from: start of the conditional classifier, the "backbone" or the trained "unconditional" classifier.
        frozen: share of the lowest layers that are not trained or stored, with the embeddings; 0 for none.
        max_training_tokens: longest text in training; `max_tokens` in scoring.
    """

    name: str
    learning_rate: float = 1e-5
    batch_size: int = 16
    n_epochs: int = 10
    n_round_epochs: int = 10
    n_rounds: int = 10
    schedule: Literal["linear", "constant"] = "linear"
    warm_up_steps: int = 10
    keep_best: bool = True
    filter: Filter = "paper"
    grows: bool = True
    conditional_from: Literal["backbone", "unconditional"] = "backbone"
    frozen: float = 0.0
    layout: PairLayout = "delimited"
    truncate: PairTruncation = "utterances"
    max_training_tokens: int = 256
    max_tokens: int = 256


RECIPES: dict[str, CausalRecipe] = {
    # The paper's with fewer, larger steps, for encoders of MiniLM's size. Conditional rows are few: on DREAM's validation rows
    # the area under the curve is 0.648 after two epochs from the unconditional classifier, and 0.584 from the backbone.
    "default": CausalRecipe(
        "default",
        learning_rate=5e-5,
        n_epochs=4,
        n_round_epochs=1,
        n_rounds=3,
        conditional_from="unconditional",
        frozen=0.5,
    ),
    # Section 4.1 and Algorithm 1: Adam, 1e-5, linear decay after 10 warm-up steps, 10 epochs, batches of 16.
    "paper": CausalRecipe("paper"),
    # The published scripts: batches of 8, constant rate, the last of 3 epochs, 10 rounds of one epoch on the labelled rows and
    # the round's own pseudo-labels, the literal string, 128 tokens in training and 512 in scoring.
    "code": CausalRecipe(
        "code",
        batch_size=8,
        n_epochs=3,
        n_round_epochs=1,
        schedule="constant",
        warm_up_steps=0,
        keep_best=False,
        filter="code",
        grows=False,
        layout="literal",
        truncate="right",
        max_training_tokens=128,
        max_tokens=512,
    ),
}


COLUMNS = ("cause", "condition", "response")
BEST = "auroc"
CONFIDENCE = 0.9
"""Pseudo-labels need a higher probability (section 3.2)."""
CODE_CANDIDATES, CODE_LEAST = 5, 3
"""The published filter searches the last five turns for causes, and uses a response with at least three."""


class IndependenceLoss(nn.Module):
    """Cross-entropy of the two labels, on texts in the layout used in scoring."""

    def __init__(self, model: CrossEncoder, texts: RowEncoder) -> None:
        super().__init__()
        self.model = model
        self._texts = texts

    def forward(
        self, inputs: Sequence[Sequence[str]], labels: Tensor, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the mean loss of a batch; `inputs` has one list per column."""
        n_rows, n_columns = len(inputs[0]), len(inputs)
        flat = [text for row in zip(*inputs, strict=True) for text in row]
        rows = self._texts.rows(flat, np.arange(n_rows * n_columns).reshape(n_rows, n_columns))
        ids = [self._texts.encode(rows, number) for number in range(n_rows)]
        logits = IndependenceClassifier(self.model, self._texts).logits(ids)
        return functional.cross_entropy(logits.float(), labels.to(logits.device))


class RowEvaluator(BaseEvaluator):  # type: ignore[misc] # the host is not typed
    """Figures of a classifier on validation rows after each epoch."""

    def __init__(self, texts: RowEncoder, rows: Sequence[LabelledRow]) -> None:
        super().__init__()
        self.primary_metric = BEST
        self._texts = texts
        self._rows = rows

    def __call__(
        self, model: CrossEncoder, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the figures of `measure_rows` in per cent, as all histories have them."""
        was_training = model.training
        figures = measure_rows(IndependenceClassifier(model, self._texts), self._rows)
        model.train(was_training)
        return {name: 100 * value for name, value in figures.items()}


def measure_rows(classifier: DependenceClassifier, rows: Sequence[LabelledRow]) -> dict[str, float]:
    """Return `classification_figures` of a classifier on labelled rows."""
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
    predicted = probabilities > 0.5
    return {
        "auroc": float(roc_auc_score(is_positive, probabilities)),
        "f1": float(f1_score(is_positive, predicted)),
        "accuracy": float((predicted == is_positive).mean()),
    }


def figures(
    classifier: DependenceClassifier, validation: Sequence[LabelledRow], evaluation: Sequence[LabelledRow]
) -> dict[str, dict[str, float]]:
    """Return the figures of `measure_rows` by set; evaluation only if it has rows."""
    measured = {"validation": measure_rows(classifier, validation)}
    return {**measured, "evaluation": measure_rows(classifier, evaluation)} if evaluation else measured


def unconditional_sets(data: CausalData, *, seed: int) -> tuple[list[LabelledRow], ...]:
    """Return the rows of the unconditional classifier for training, validation and evaluation."""
    return tuple(unconditional_rows(pairs, OtherUtterances(pairs), seed=seed) if pairs else [] for pairs in data[:3])


def conditional_sets(
    data: CausalData, unconditional: DependenceClassifier, *, labels: CauseLabels, seed: int
) -> tuple[list[LabelledRow], ...]:
    """Return the rows of the conditional classifier for training, validation and evaluation."""

    def rows(pairs: Sequence[CausePair]) -> list[LabelledRow]:
        contexts = [([turn.text for turn in pair.context], pair.response.text) for pair in pairs]
        chances = turn_probabilities(unconditional, contexts)
        return conditional_rows(pairs, chances, OtherUtterances(pairs), labels=labels, seed=seed)

    return tuple(rows(pairs) if pairs else [] for pairs in data[:3])


def train_stage(
    encoder: CrossEncoder,
    name: str,
    n_epochs: int,
    rows: Sequence[LabelledRow],
    validation: Sequence[LabelledRow],
    recipe: CausalRecipe,
    run: TrainingRun,
) -> None:
    """Train a classifier in place with CrossEncoderTrainer; `validation` selects the epoch if the recipe keeps the best one."""
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


class Pool(NamedTuple):
    """Unlabelled responses and the unconditional probabilities of each turn of their contexts."""

    responses: list[UnlabelledResponse]
    probabilities: list[FloatArray]


class CauseCandidate(NamedTuple):
    """A pair of turns for the conditional classifier."""

    response: int
    """Number of the response in the pool."""
    cause: int
    condition: int


def choose(
    pool: Pool, classifier: IndependenceClassifier, others: OtherUtterances, *, filter: Filter, seed: int
) -> list[LabelledRow]:
    """Return pseudo-labelled rows (candidate cause, condition, response), with equal numbers of both labels.

    Filter "paper": a cause is c_{t-2} or c_{t-3}, dependent, with p > 0.9 given the most probable other dependent turn.
    Filter "code": a cause is one of the last five turns, dependent, with p > 0.5 given each other dependent turn, and a
    response needs at least three causes. A negative has the same condition and response, and as the cause a turn that is not
    dependent, or an utterance of another dialogue if all are.
    """
    candidates = [
        candidate
        for number, chances in enumerate(pool.probabilities)
        for candidate in (_paper_candidates(number, chances) if filter == "paper" else _code_candidates(number, chances))
    ]
    if not candidates:
        return []
    chances = row_probabilities(classifier, [_texts(pool, candidate) for candidate in candidates])
    sure = [candidate for candidate, chance in zip(candidates, chances, strict=True) if chance > CONFIDENCE]
    chosen = sure if filter == "paper" else _qualified(candidates, chances)
    rows = []
    for candidate in chosen:
        generator = random.Random(f"{seed} pseudo {candidate}")
        cause, condition, response = _texts(pool, candidate)
        rows += [
            LabelledRow((cause, condition, response), 1),
            LabelledRow((_innocent(pool, candidate, others, generator), condition, response), 0),
        ]
    return rows


def _texts(pool: Pool, candidate: CauseCandidate) -> tuple[str, str, str]:
    item = pool.responses[candidate.response]
    return item.context[candidate.cause], item.context[candidate.condition], item.response


def _paper_candidates(number: int, chances: FloatArray) -> list[CauseCandidate]:
    dependent = dependent_turns(chances).tolist()
    candidates = []
    for distance in CANDIDATES:
        cause = len(chances) - distance
        conditions = [place for place in dependent if place != cause]
        if cause in dependent and conditions:
            candidates.append(CauseCandidate(number, cause, strongest(conditions, chances)))
    return candidates


def _code_candidates(number: int, chances: FloatArray) -> list[CauseCandidate]:
    dependent: IntArray = dependent_turns(chances)
    if len(dependent) < CODE_LEAST:
        return []
    causes = dependent[dependent >= len(chances) - CODE_CANDIDATES].tolist()
    return [CauseCandidate(number, cause, place) for cause in causes for place in dependent.tolist() if place != cause]


def _qualified(candidates: Sequence[CauseCandidate], chances: FloatArray) -> list[CauseCandidate]:
    """Return the most probable row of each cause that has p > 0.5 on all conditions."""
    by_cause: dict[tuple[int, int], list[tuple[float, CauseCandidate]]] = {}
    for candidate, chance in zip(candidates, chances.tolist(), strict=True):
        by_cause.setdefault((candidate.response, candidate.cause), []).append((chance, candidate))
    holding = {key: max(rows)[1] for key, rows in by_cause.items() if min(rows)[0] > 0.5}
    counts = Counter(response for response, _ in holding)
    return [candidate for candidate in holding.values() if counts[candidate.response] >= CODE_LEAST]


def _innocent(pool: Pool, candidate: CauseCandidate, others: OtherUtterances, generator: random.Random) -> str:
    item, chances = pool.responses[candidate.response], pool.probabilities[candidate.response]
    choices = [place for place in range(len(chances)) if chances[place] <= 0.5]
    return item.context[generator.choice(choices)] if choices else others.draw(item.dialogue, generator)


def train_unconditional(
    run: TrainingRun, recipe: CausalRecipe, data: CausalData, config: CausalModelConfig, encoder: CrossEncoder
) -> dict[str, Any]:
    """Train the unconditional classifier in place and return the number of rows and the figures."""
    rows, validation, evaluation = unconditional_sets(data, seed=run.options.seed)
    train_stage(encoder, "unconditional", recipe.n_epochs, rows, validation, recipe, run)
    return {"n_rows": len(rows), **figures(classifier_of(encoder, config), validation, evaluation)}


def train_conditional(
    run: TrainingRun,
    recipe: CausalRecipe,
    data: CausalData,
    config: CausalModelConfig,
    encoder: CrossEncoder,
    unconditional: IndependenceClassifier,
) -> tuple[list[dict[str, Any]], int]:
    """Train the conditional classifier in place by Algorithm 1.

    Return the figures of all rounds, 0 with the labelled rows only, and the number of the round whose weights are kept.
    """

    def best() -> int:
        if not recipe.keep_best:
            return len(rounds) - 1
        return max(range(len(rounds)), key=lambda number: rounds[number]["validation"][BEST])

    others = OtherUtterances(data.training)
    labelled, validation, evaluation = conditional_sets(data, unconditional, labels=config.labels, seed=run.options.seed)
    if recipe.conditional_from == "unconditional":
        encoder.load_state_dict(unconditional.encoder.state_dict())
    pool = None
    if recipe.n_rounds and data.unlabelled:
        exchanges = [(item.context, item.response) for item in data.unlabelled]
        pool = Pool(data.unlabelled, turn_probabilities(unconditional, exchanges))
    rounds: list[dict[str, Any]] = []
    fresh: list[LabelledRow] = []
    rows, n_epochs = labelled, recipe.n_epochs
    while True:
        train_stage(encoder, f"round_{len(rounds)}", n_epochs, rows, validation, recipe, run)
        classifier = classifier_of(encoder, config)
        measured = figures(classifier, validation, evaluation)
        rounds.append({"round": len(rounds), "n_rows": len(rows), "n_pseudo": len(fresh), **measured})
        if pool is None or len(rounds) > recipe.n_rounds or best() < len(rounds) - 1:
            break
        # A round continues from the weights of the last one. Its pseudo-labels are stored for a resumed run.
        make = partial(choose, pool, classifier, others, filter=recipe.filter, seed=run.options.seed + len(rounds))
        chosen = run.compute_once(f"round_{len(rounds)}_pseudo", make)
        known = set(rows) if recipe.grows else set()
        fresh = [row for texts, label in chosen if (row := LabelledRow(tuple(texts), label)) not in known]
        if not fresh:
            break
        rows, n_epochs = [*(rows if recipe.grows else labelled), *fresh], recipe.n_round_epochs
    load_weights(encoder, run.stage_weights(f"round_{best()}"))
    return rounds, best()


@dataclass(frozen=True, slots=True)
class CausalTrainingOptions(TrainingOptions):
    """Options of a training.

    Attributes:
        recipe: "vectors", "default", "paper" or "code".
        backbone: a transformers checkpoint, a sentence-transformers folder, or a hub id; with the recipe "vectors" a general
            evaluator.
        n_epochs: replaces the recipe's, like the next four options; not for the recipe "vectors".
        max_unlabelled: maximum size of the sample of unlabelled responses for self-training; None for all.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    labels: CauseLabels = "annotated"
    n_epochs: int | None = None
    n_round_epochs: int | None = None
    n_rounds: int | None = None
    learning_rate: float | None = None
    max_tokens: int | None = None
    max_unlabelled: int | None = None

    def find_recipe(self) -> CausalRecipe | None:
        """Return the recipe with the numbers of these options; None for the recipe "vectors", which has none."""
        names = ("n_epochs", "n_round_epochs", "n_rounds", "learning_rate", "max_tokens")
        numbers = {name: getattr(self, name) for name in names}
        check_choice("training", "recipe", self.recipe, (VECTORS, *RECIPES))
        if self.recipe != VECTORS:
            return choose_recipe(
                RECIPES, self.recipe, may_be_zero=("n_rounds",), max_training_tokens=self.max_tokens, **numbers
            )
        numbers["max_unlabelled"] = self.max_unlabelled
        if options := [name for name, value in numbers.items() if value is not None]:
            raise InputError(f"{options[0]}: is about cross-encoders, and the recipe {VECTORS!r} has none. Leave it out.")
        return None


def train(
    sources: CausalSources,
    output: Path,
    options: CausalTrainingOptions = CausalTrainingOptions(),
    *,
    progress: bool = False,
) -> TrainingResult:
    """Train both classifiers and write them to the folder `output`, which must not contain a finished model.

    Evaluation dialogues are left out of the other data and counted. Without unlabelled dialogues there is no self-training.
    """
    recipe = options.find_recipe()
    if recipe is None and sources.unlabelled:
        raise InputError(f"unlabelled: the recipe {VECTORS!r} has no self-training. Leave the unlabelled dialogues out.")
    with TrainingRun.open(output, CAUSAL_FOLDER, options, progress=progress) as run:
        data = prepare(
            sources, validation_fraction=options.validation_fraction, max_unlabelled=options.max_unlabelled, seed=options.seed
        )
        pairs = ((pair.context, pair.response, pair.causes) for part in data[:3] for pair in part)
        run.start(recipe=None if recipe is None else asdict(recipe), data=data_hash(pairs, data.unlabelled))

        backbone = resolve(options.backbone)
        trained, record = (
            _vectors(run, backbone, data, options.labels)
            if recipe is None
            else _cross_encoders(run, backbone, data, recipe, options.labels)
        )
        return run.publish(trained.save, {"backbone_hash": content_hash(backbone), "counts": data.counts, **record})


def _cross_encoders(
    run: TrainingRun, backbone: Path, data: CausalData, recipe: CausalRecipe, labels: CauseLabels
) -> tuple[CausalModel, dict[str, Any]]:
    config = CausalModelConfig(recipe.name, labels, recipe.layout, recipe.truncate, recipe.max_tokens)
    unconditional, conditional = (new_classifier(backbone, device=run.device) for _ in range(2))
    for classifier in (unconditional, conditional):
        freeze(classifier.model.base_model, recipe.frozen)
    measured = train_unconditional(run, recipe, data, config, unconditional)
    rounds, best = train_conditional(run, recipe, data, config, conditional, classifier_of(unconditional, config))
    record = {"unconditional": measured, "rounds": rounds, "best_round": best}
    return CausalModel.build(config, unconditional, conditional, _known(data)), record


def _vectors(run: TrainingRun, backbone: Path, data: CausalData, labels: CauseLabels) -> tuple[CausalModel, dict[str, Any]]:
    # Their few weights gain nothing from self-training.
    seed, vectors = run.options.seed, TurnVectors(backbone, RuntimeChoice(device=run.device))
    rows, validation, evaluation = unconditional_sets(data, seed=seed)
    unconditional = _fitted(vectors, rows)
    measured = {"n_rows": len(rows), **figures(unconditional, validation, evaluation)}
    rows, validation, evaluation = conditional_sets(data, unconditional, labels=labels, seed=seed)
    conditional = _fitted(vectors, rows)
    only = {"round": 0, "n_rows": len(rows), "n_pseudo": 0, **figures(conditional, validation, evaluation)}
    trained = CausalModel(CausalModelConfig(VECTORS, labels), unconditional, conditional, _known(data))
    return trained, {"unconditional": measured, "rounds": [only], "best_round": 0}


def _fitted(vectors: TurnVectors, rows: Sequence[LabelledRow]) -> VectorClassifier:
    return fit_on_vectors(vectors, [row.texts for row in rows], [row.label for row in rows])


def _known(data: CausalData) -> frozenset[str]:
    return frozenset(map(pair_hash, (*data.training, *data.validation))) | {item.dialogue for item in data.unlabelled}
