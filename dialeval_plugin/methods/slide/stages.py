"""The recipes `paper`, `code` and `default`, and their stages, each one run of sentence-transformers' or transformers' trainer.

The trainers provide progress bars, validation after every epoch, the best checkpoint, and resuming from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import datasets
import numpy as np
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss, TripletDistanceMetric, TripletLoss
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset
from transformers import EvalPrediction, TrainerCallback

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.models.tensors import padded_tensors
from dialeval_plugin.models.texts import MAX_RESPONSE_WINDOWS, TextEncoder
from dialeval_plugin.training.host_trainers import fit
from dialeval_plugin.training.run import TrainingRun, adamw, check_at_least

from . import losses
from .data import FITS, MISLEADS, UNRELATED, LabelledResponses, MixedSets, Splits, all_labelled
from .judging import SmallModelConfig
from .model import LexicalClassifier, SmallModel

StageKind: TypeAlias = Literal["contrast", "disentangle", "classify", "lexical", "rank", "joint"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One training stage.

    Attributes:
        kind: "contrast" trains the encoder on triples; "disentangle" the head on frozen vectors; "classify" the two-class
            layer on frozen robust parts; "lexical" the lexical classifier alone; "rank" the encoder on contexts that have
            positive responses only; "joint" encoder and head together, on both kinds of contexts.
        learning_rate: learning rate of the encoder, or of the head if the encoder is frozen.
        batch_size: triples, vectors or contexts per step.
        head_learning_rate: learning rate of the head if both are trained.
        warm_up: share of the steps in which the learning rate rises; it falls linearly afterwards.
    """

    kind: StageKind
    n_epochs: int
    learning_rate: float
    batch_size: int
    head_learning_rate: float = 0.0
    warm_up: float = 0.06


@dataclass(frozen=True, slots=True)
class SlideRecipe:
    """Construction and training of a small model.

    Attributes:
        terms: "paper" for the terms of equations 1-5, "code" for those of the published notebooks.
        stages: in order; each starts from the best epoch of the previous one.
        unrelated: use random negatives too. They extend the range of distances, and the thresholds accept
            `training.ACCEPTED` of the positive responses instead of balancing these against adversarial ones.
    """

    config: SmallModelConfig
    terms: Literal["paper", "code"]
    stages: tuple[Stage, ...]
    unrelated: bool = False

    def with_epochs(self, n_epochs: int | None) -> SlideRecipe:
        """Return this recipe with `n_epochs` in every stage."""
        if n_epochs is None:
            return self
        check_at_least(1, epochs=n_epochs)
        return replace(self, stages=tuple(replace(stage, n_epochs=n_epochs) for stage in self.stages))


RECIPES: dict[str, SlideRecipe] = {
    # Equations 1-5: triplet hinge on cosine distance, s_p from the classifier of equation 4. The paper does not name the
    # optimiser; learning rate and batch size are those of DRE and the notebooks.
    "paper": SlideRecipe(
        config=SmallModelConfig("paper", split="pad", probability_from="three_class"),
        terms="paper",
        stages=(
            Stage("contrast", n_epochs=10, learning_rate=2e-5, batch_size=32),
            Stage("disentangle", n_epochs=30, learning_rate=1e-3, batch_size=1024),
        ),
    ),
    # The published notebooks: ranking loss, doubled special tokens, a separate two-class layer on frozen robust parts.
    "code": SlideRecipe(
        config=SmallModelConfig(
            "code",
            split="pad",
            probability_from="two_class",
            text_format="doubled",
            max_context_tokens=256,
            max_response_tokens=128,
        ),
        terms="code",
        stages=(
            Stage("contrast", n_epochs=10, learning_rate=2e-5, batch_size=32),
            Stage("disentangle", n_epochs=30, learning_rate=2e-5, batch_size=32),
            Stage("classify", n_epochs=30, learning_rate=1e-5, batch_size=1024),
        ),
    ),
    # Our own, chosen on validation contexts (reproduction/pretrained): first relevance, from contexts with positives only, then
    # everything together.
    "default": SlideRecipe(
        config=SmallModelConfig(
            "default",
            split="full_width",
            probability_from="interaction+lexical+cosine",
            max_response_windows=MAX_RESPONSE_WINDOWS,
        ),
        terms="paper",
        stages=(
            Stage("lexical", n_epochs=30, learning_rate=3e-3, batch_size=256),
            Stage("rank", n_epochs=2, learning_rate=8e-5, batch_size=64, head_learning_rate=5e-4),
            Stage("joint", n_epochs=3, learning_rate=8e-5, batch_size=20, head_learning_rate=5e-4),
        ),
        unrelated=True,
    ),
}


RANKED_FITS, RANKED_WRONG, NO_RESPONSE = -1, -2, -100
"""Labels of a ranked row's responses, and of the padding of rows that have fewer responses than others."""
DISENTANGLING_WEIGHT, RANKING_WEIGHT = 0.5, 1.0
"""Weights in `JointObjective`, where the cross-entropy has weight 1."""
RANKED_PER_SET = 4
"""Number of positives-only contexts per context with adversarial responses in the joint stage."""


class JointObjective(nn.Module):
    """Joint loss of encoder and head.

    It is the sum of
    - the cross-entropy of the two-class head on the robust part, which gives s_p;
    - equation 5's terms on pairs of a positive and a negative response to one context; equation 1 compares the context with the
      robust parts, so that it trains the distance used in scoring;
    - for contexts with positive responses only, the ranking loss of the encoder's vectors. It preserves the encoder's knowledge
      of which response belongs to which context: adversarial responses also differ from positive ones in style, and the
      cross-entropy alone soon uses nothing else.
    """

    def __init__(self, model: SmallModel) -> None:
        super().__init__()
        self.model = model

    def collate(self, rows: Sequence[LabelledResponses]) -> dict[str, Any]:
        """Encode the rows' texts; the responses of all rows form one list, labelled rows before ranked ones."""
        rows = sorted(rows, key=lambda row: row.ranked)
        responses = [response for row in rows for response in row.responses]
        pairs, start = [], 0
        for row in rows:
            places = range(start, start + len(row.responses))
            positive, *negatives = (
                [place for place, other in zip(places, row.labels, strict=True) if other == label]
                for label in (FITS, MISLEADS, UNRELATED)
            )
            pairs += [] if row.ranked else [pair for other in negatives for pair in zip(positive, other, strict=False)]
            start = places.stop
        context_ids = [context.ids for context in self.model.texts.contexts([row.context for row in rows])]
        response_ids = self.model.texts.responses(responses)
        owners = [number for number, row in enumerate(rows) for _ in row.responses]
        as_ranked = {FITS: RANKED_FITS}
        labels = [[as_ranked.get(label, RANKED_WRONG) for label in row.labels] if row.ranked else row.labels for row in rows]
        return {
            "context_ids": context_ids,
            "response_ids": response_ids,
            "owners": torch.tensor(owners),
            "pairs": torch.tensor(pairs, dtype=torch.long).reshape(-1, 2),
            # One line per row: the trainer counts lines.
            "labels": nn.utils.rnn.pad_sequence(list(map(torch.tensor, labels)), batch_first=True, padding_value=NO_RESPONSE),
        }

    def forward(
        self, context_ids: list[list[int]], response_ids: list[list[int]], owners: Tensor, pairs: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """Return the loss and, as `logits`, probability and distance of every response, (rows, responses per row, 2)."""
        head = self.model.head
        sizes = (labels != NO_RESPONSE).sum(-1).tolist()
        labels = labels[labels != NO_RESPONSE]
        # One pass for all texts: short contexts and long responses share batches.
        vectors = self.model.embed([*context_ids, *response_ids])
        contexts, responses = vectors[: len(context_ids)][owners], vectors[len(context_ids) :]
        whole = head.disentangle(contexts, responses)
        logits = head.two_class_logits(whole.context, whole.robust).float()
        loss = logits.sum() * 0  # keeps every parameter in the graph of a batch that has ranked rows only
        if len(pairs):
            judged_alone = labels >= 0
            loss = loss + functional.cross_entropy(logits[judged_alone], (labels[judged_alone] == FITS).long())
            positive, negative = pairs.unbind(-1)
            parts = losses.EmbeddingParts(
                whole.robust[positive], whole.non_robust[positive], whole.robust[negative], whole.non_robust[negative]
            )
            paired = whole.context[positive]
            terms = losses.paper_terms(
                losses.ResponseTriple(paired, parts.positive_robust, parts.adversarial_robust), paired, parts, head.three_class
            )
            loss = loss + DISENTANGLING_WEIGHT * torch.stack(list(terms.values())).sum()
        fitting, wrong = labels == RANKED_FITS, labels == RANKED_WRONG
        if fitting.any():
            loss = loss + RANKING_WEIGHT * losses.ranking_loss(
                contexts[fitting], responses[fitting], responses[wrong], owners=owners[fitting]
            )
        judged = torch.stack([logits.softmax(-1)[:, 1], losses.cosine_distance(whole.context, whole.robust).float()], dim=-1)
        return {"loss": loss, "logits": nn.utils.rnn.pad_sequence(list(torch.split(judged, sizes)), batch_first=True)}


@dataclass(frozen=True, slots=True)
class TripleCollator:
    """Makes batches of (context, positive, negative) for sentence-transformers' losses, encoded as in scoring."""

    texts: TextEncoder
    valid_label_columns: tuple[str, ...] = ()
    """Read by the trainer: triples have no labels."""

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Return token ids and attention masks of the three columns."""
        columns = {
            "context": [context.ids for context in self.texts.contexts([row["context"] for row in rows])],
            "positive": self.texts.responses([row["positive"] for row in rows]),
            "negative": self.texts.responses([row["negative"] for row in rows]),
        }
        inputs = {}
        for name, ids in columns.items():
            tensors = padded_tensors(ids, self.texts.tokenizer.pad_token_id, torch.device("cpu"))
            inputs[f"{name}_input_ids"], inputs[f"{name}_attention_mask"] = tensors
        return inputs


class LexicalObjective(nn.Module):
    """Cross-entropy of the lexical classifier alone."""

    def __init__(self, classifier: LexicalClassifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, features: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the loss and, as `logits`, the probability, (batch, 1)."""
        logits = self.classifier(features)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits.softmax(-1)[:, 1:]}


class VectorTriples(Dataset[dict[str, Tensor]]):
    """Triples of vectors of the frozen encoder, as indices into two tables."""

    def __init__(self, contexts: Tensor, responses: Tensor, triples: Sequence[tuple[int, int, int]]) -> None:
        self._contexts, self._responses, self._triples = contexts, responses, triples

    def __len__(self) -> int:
        return len(self._triples)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        context, positive, adversarial = self._triples[index]
        return {
            "context": self._contexts[context],
            "positive": self._responses[positive],
            "adversarial": self._responses[adversarial],
            "labels": torch.tensor([1, 0]),
        }


class HeadObjective(nn.Module):
    """Loss of the head on frozen vectors: the disentangling terms, or the two-class layer alone."""

    def __init__(self, model: SmallModel, recipe: SlideRecipe, kind: str) -> None:
        super().__init__()
        self.head = model.head
        self.terms = recipe.terms
        self.kind = kind
        for name, parameter in self.head.named_parameters():
            parameter.requires_grad_(name.startswith("two_class") == (kind == "classify"))

    def forward(self, context: Tensor, positive: Tensor, adversarial: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return the loss and, as `logits`, probability and distance of both responses, (batch, 2, 2)."""
        good, bad = self.head.disentangle(context, positive), self.head.disentangle(context, adversarial)
        if self.kind == "classify":
            pair = torch.stack([self.head.two_class_logits(side.context, side.robust) for side in (good, bad)], dim=1)
            loss = functional.cross_entropy(pair.flatten(0, 1), labels.flatten())
        else:
            parts = losses.EmbeddingParts(good.robust, good.non_robust, bad.robust, bad.non_robust)
            whole = losses.ResponseTriple(*(self.head.linear(side) for side in (context, positive, adversarial)))
            make_terms: Callable[..., dict[str, Tensor]] = losses.code_terms if self.terms == "code" else losses.paper_terms
            terms = make_terms(whole, good.context, parts, self.head.three_class)
            loss = torch.stack(list(terms.values())).sum()
        judged = [self.head(context, side) for side in (positive, adversarial)]
        logits = torch.stack([torch.stack([side.probability, side.distance], dim=-1) for side in judged], dim=1)
        return {"loss": loss, "logits": logits}


class _EpochOfData(TrainerCallback):  # type: ignore[misc]
    """Sets the epoch of the data, also after a resume."""

    def __init__(self, sets: MixedSets) -> None:
        self._sets = sets

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._sets.epoch = round(state.epoch or 0)


def measure(prediction: EvalPrediction) -> dict[str, float]:
    """Accuracy at p >= 0.5 of each kind of response, and area under the ROC curve against all wrong ones, in per cent.

    `accuracy` is the mean of the accuracies on positive and adversarial responses. If there are distances, also the triplet
    accuracy: how often a positive response is nearer than an adversarial one to the same context (DRE, figure 3).
    """
    probability, label = prediction.predictions[..., 0], prediction.label_ids
    positive, adversarial, unrelated = (probability[label == kind] for kind in (FITS, MISLEADS, UNRELATED))
    accuracies = float(np.mean(positive >= 0.5)), float(np.mean(adversarial < 0.5))
    is_response = label >= 0
    figures = {
        "accuracy_positive": 100 * accuracies[0],
        "accuracy_adversarial": 100 * accuracies[1],
        "accuracy": 50 * sum(accuracies),
        "auroc": 100 * float(roc_auc_score(label[is_response] == FITS, probability[is_response])),
    }
    if len(unrelated):
        figures["accuracy_random"] = 100 * float(np.mean(unrelated < 0.5))
    if prediction.predictions.shape[-1] > 1:
        # Rows are contexts, columns are responses.
        distance = prediction.predictions[..., 1]
        is_pair = (label == FITS)[:, :, None] & (label == MISLEADS)[:, None, :]
        is_nearer = distance[:, :, None] < distance[:, None, :]
        figures["triplet_accuracy"] = 100 * float(np.mean(is_nearer[is_pair]))
    return figures


def train_stage(model: SmallModel, stage: Stage, recipe: SlideRecipe, run: TrainingRun, splits: Splits) -> None:
    """Train one stage of a recipe in place; the model has the weights of the best validation epoch afterwards."""
    match stage.kind:
        case "contrast":
            parts = _contrast(model, recipe, splits)
        case "lexical":
            parts = _lexical(model, recipe, splits)
        case "rank" | "joint":
            parts = _joint(model, stage, splits, seed=run.options.seed)
        case "disentangle" | "classify":
            parts = _head(model, stage, recipe, splits)
    settings = {
        "num_train_epochs": stage.n_epochs,
        "learning_rate": stage.learning_rate,
        "warmup_steps": stage.warm_up,
        "metric_for_best_model": "auroc" if stage.kind in ("classify", "lexical", "joint") else "loss",
    }
    fit(run, stage.kind, settings, batch_size=stage.batch_size, **parts)
    model.requires_grad_(True)


def _contrast(model: SmallModel, recipe: SlideRecipe, splits: Splits) -> dict[str, Any]:
    """Trainer arguments for the encoder on (context, positive, negative) triples."""
    triples = [(list(item.context), p, a) for item in splits.training for p in item.positive for a in item.adversarial]
    # One triple per context. The paper and the notebooks train on all pairs, although the ranking loss then uses positives of
    # one context as each other's negatives; the choice of the best epoch should not suffer from this too.
    held_out = [(list(item.context), item.positive[0], item.adversarial[0]) for item in splits.validation]

    def rows(triples: Sequence[tuple[list[str], str, str]]) -> datasets.Dataset:
        context, positive, negative = zip(*triples, strict=True)
        return datasets.Dataset.from_dict({"context": context, "positive": positive, "negative": negative})

    # The initial encoder is opened by sentence-transformers.
    encoder = cast("SentenceTransformer", model.encoder)
    encoder.model_card_data.generate_widget_examples = False
    if recipe.terms == "code":
        loss: nn.Module = MultipleNegativesRankingLoss(encoder, scale=losses.RANKING_SCALE)
    else:
        loss = TripletLoss(encoder, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=losses.MARGIN)
    return {
        "trainer": SentenceTransformerTrainer,
        "arguments": SentenceTransformerTrainingArguments,
        "model": encoder,
        "train_dataset": rows(triples),
        "eval_dataset": rows(held_out),
        "loss": loss,
        "data_collator": TripleCollator(model.texts),
    }


def _head(model: SmallModel, stage: Stage, recipe: SlideRecipe, splits: Splits) -> dict[str, Any]:
    """Trainer arguments for the head, or its two-class layer, on vectors of the frozen encoder."""
    return {
        "model": HeadObjective(model, recipe, stage.kind),
        "train_dataset": _frozen_triples(model, splits.training),
        "eval_dataset": _frozen_triples(model, splits.validation),
        "compute_metrics": measure,
    }


def _lexical(model: SmallModel, recipe: SlideRecipe, splits: Splits) -> dict[str, Any]:
    """Trainer arguments for the lexical classifier alone.

    It is blended with the vectors at the end. In joint training, counted words decide many responses, from which the encoder
    then learns little, and it gets worse.
    """
    classifier = model.head.lexical
    if classifier is None:
        raise InputError(f"recipe {recipe.config.recipe!r}: the stage lexical needs a model with a lexical classifier.")
    special = model.texts.special
    positive = model.texts.responses([text for item in splits.training for text in item.positive])
    classifier.learn_rarity([[token for token in ids if token not in special] for ids in positive])
    labelled = _lexical_rows(model, classifier, splits.training)
    classifier.learn_scale(torch.stack([row["features"] for row in labelled]))
    return {
        "model": LexicalObjective(classifier),
        "train_dataset": labelled,
        "eval_dataset": _lexical_rows(model, classifier, splits.validation),
        "compute_metrics": measure,
    }


def _joint(model: SmallModel, stage: Stage, splits: Splits, *, seed: int) -> dict[str, Any]:
    """Trainer arguments for encoder and head on labelled and ranked responses, or for the encoder alone on ranked ones."""
    ranks_only = stage.kind == "rank"
    held_out = [
        LabelledResponses(item.context, (item.positive[0], item.adversarial[0]), (FITS, MISLEADS), ranked=True)
        if ranks_only
        else all_labelled(item, item.random)
        for item in splits.validation
    ]
    objective = JointObjective(model)
    sets = MixedSets(splits.training, ranked_per_set=RANKED_PER_SET, seed=seed)
    # Half of MiniLM's weights are word embeddings, few of which occur in a small corpus: they would only overfit.
    model.transformer.get_input_embeddings().requires_grad_(False)
    if model.head.lexical is not None:
        model.head.lexical.requires_grad_(False)  # takes no part in the loss
    return {
        "model": objective,
        "train_dataset": sets,
        "eval_dataset": held_out,
        "data_collator": objective.collate,
        # The head is untrained if responses are only ranked.
        "compute_metrics": None if ranks_only else measure,
        "callbacks": [_EpochOfData(sets)],
        "optimizers": (adamw((model.encoder, stage.learning_rate), (model.head, stage.head_learning_rate)), None),
    }


def _lexical_rows(model: SmallModel, classifier: LexicalClassifier, sets: Sequence[ResponseSet]) -> list[dict[str, Tensor]]:
    rows = [all_labelled(item) for item in sets if item.adversarial]
    contexts = [context.ids for context in model.texts.contexts([row.context for row in rows])]
    responses = model.texts.responses([text for row in rows for text in row.responses])
    owners = [number for number, row in enumerate(rows) for _ in row.responses]
    features = classifier.features(contexts, owners, responses, model.texts.special).cpu()
    labels = torch.tensor([label for row in rows for label in row.labels])
    return [{"features": found, "labels": label} for found, label in zip(features, labels, strict=True)]


def _frozen_triples(model: SmallModel, sets: Sequence[ResponseSet]) -> VectorTriples:
    full = [item for item in sets if item.adversarial]
    model.eval()
    with torch.no_grad():
        contexts = model.embed([context.ids for context in model.texts.contexts([item.context for item in full])])
        responses = model.embed(model.texts.responses([text for item in full for text in (*item.positive, *item.adversarial)]))
    triples, start = [], 0
    for number, item in enumerate(full):
        split, end = start + len(item.positive), start + len(item.positive) + len(item.adversarial)
        triples += [(number, p, a) for p in range(start, split) for a in range(split, end)]
        start = end
    return VectorTriples(contexts.cpu(), responses.cpu(), triples)
