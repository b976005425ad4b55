"""Reports on a small model: vectors before and after disentangling, scores by class, and SLIDE's Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from dialeval_plugin.core.errors import InputError, ModelLoadError, unknown_name
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.data import trained_on
from dialeval_plugin.methods.slide.fusion import POSITIVE_FROM
from dialeval_plugin.methods.slide.judging import SLM_FOLDER
from dialeval_plugin.methods.slide.model import SmallModel, TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SLM, SlideScorer
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.means import mean_interval, paired_difference_interval

from .plots import CONTEXT, NEGATIVE, POSITIVE, Vectors

CLASSES = ("positive", "adversarial", "random")
COLUMNS = ("slm", "slm_probability", "slm_distance")


def vectors(sets: Sequence[ResponseSet], slm: str | None = None) -> tuple[Vectors, Vectors]:
    """Return vectors of contexts and responses, then of contexts and robust parts, of sets with both kinds of responses."""
    full = [item for item in sets if item.positive and item.adversarial]
    if not full:
        raise InputError("plot: no context has positive and adversarial responses. Give a file in DailyDialog++'s layout.")
    model = TrainedSmallModel.load(SLM.find(slm)).model
    owners = [number for number, item in enumerate(full) for _ in (*item.positive, *item.adversarial)]
    kinds = [kind for item in full for kind in (*[POSITIVE] * len(item.positive), *[NEGATIVE] * len(item.adversarial))]
    contexts, responses = _embed(model, full)
    with torch.inference_mode():
        parts = model.head.disentangle(contexts[torch.tensor(owners, device=contexts.device)], responses)
        # The head gives a context the same vector for every response, so the last one is as good as any.
        last_rows = {owner: row for row, owner in enumerate(owners)}.values()
        heads = torch.stack([parts.context[row] for row in last_rows])
    labels = np.array([*[CONTEXT] * len(full), *kinds])
    numbers = np.array([*range(len(full)), *owners])
    pairs = ((contexts, responses), (heads, parts.robust))
    normal, disentangled = (torch.cat(pair).double().cpu().numpy() for pair in pairs)
    return Vectors(normal, labels, numbers), Vectors(disentangled, labels, numbers)


def scores_by_class(
    sets: Sequence[ResponseSet], slm: str | None = None, columns: Sequence[str] = COLUMNS
) -> dict[str, dict[str, list[float]]]:
    """Return by column the scores of positive, adversarial and random responses; classes without scores are left out."""
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise unknown_name(f"plot: the small model has no column {unknown[0]!r}", unknown[0], COLUMNS)
    examples = [(example, name) for item in sets for example, name in zip(item.examples(), item.kinds, strict=True)]
    if not examples:
        raise InputError("plot: there is no response. Give a file in DailyDialog++'s layout.")
    scores = SlideScorer(slm, variant="slm").score([example for example, _ in examples])
    by_column: dict[str, dict[str, list[float]]] = {column: {} for column in columns}
    for column in columns:
        for (_, name), value in zip(examples, scores.columns[column], strict=True):
            if value is not None:
                by_column[column].setdefault(name, []).append(value)
    return {column: {name: classes[name] for name in CLASSES if name in classes} for column, classes in by_column.items()}


def threshold_panels(
    sets: Sequence[ResponseSet], slm: str | None = None, *, where: str
) -> tuple[dict[str, tuple[list[float], list[float]]], dict[str, float]]:
    """Return the input of `plots.threshold_figure`: positive and adversarial scores by column, and the known thresholds."""
    panels, marked, known = {}, {}, _thresholds(slm)
    for column, classes in scores_by_class(sets, slm).items():
        if not {"positive", "adversarial"} <= set(classes):
            raise InputError(f"{where}: has no positive or no adversarial responses. Give both.")
        # Lower distances fit better.
        sign, title = (-1, "minus distance") if column == "slm_distance" else (1, column)
        positive, adversarial = ([sign * value for value in classes[name]] for name in ("positive", "adversarial"))
        panels[title] = (positive, adversarial)
        if column in known:
            marked[title] = known[column]
    return panels, marked


def model_title(slm: str | None, counted: str) -> str:
    """Return the title of a plot: the name of the model, and the counts behind the plot."""
    return f"{resolve(SLM.find(slm)).name}: {counted}"


def leak_note(sets: Sequence[ResponseSet], slm: str | None = None) -> str:
    """Return the number of contexts that the model was trained or validated on, where its accuracy is too optimistic."""
    known = TrainedSmallModel.load(SLM.find(slm)).training_contexts
    return f"{len(sets)} contexts, {len(trained_on(known, sets))} of them were in training or validation"


class RuleAccuracy(NamedTuple):
    """Accuracy of a rule that classifies positive and adversarial responses by one score column of the small model."""

    name: str
    column: str
    hits: list[float]
    """1 for a correctly classified response, else 0, in the order of the responses."""
    accuracy: Mapping[str, Estimate]
    """Accuracy in [0, 1] by "positive", "adversarial" and "overall"; intervals resample contexts."""


def classify(sets: Sequence[ResponseSet], slm: str | None = None) -> tuple[list[RuleAccuracy], list[str]]:
    """Classify positive and adversarial responses by four rules; return the rules, and a key of each response's context."""
    folder, known = resolve(SLM.find(slm)), _thresholds(slm)
    if not known:
        raise ModelLoadError(
            f"{folder}: has no thresholds, which training finds on its validation contexts. Use `dialeval train slm`."
        )
    fit_or_mislead = [ResponseSet(item.id, item.context, item.positive, item.adversarial) for item in sets]
    examples = [example for item in fit_or_mislead for example in item.examples()]
    clusters = [dialogue_key(turn.text for turn in example.context) for example in examples]
    labels = [example.ratings["appropriate"][0] == 1 for example in examples]
    scores = SlideScorer(str(folder), variant="slm").score(examples)
    rules = []
    for name, column, threshold in (
        ("SLM (distance)", "slm_distance", -known["slm_distance"]),
        ("SLM (probability)", "slm_probability", known["slm_probability"]),
        ("SLM (both)", "slm", known["slm"]),
        (f"SLM (both, >= {POSITIVE_FROM})", "slm", POSITIVE_FROM),
    ):
        values = scores.columns[column]
        # An unscored response is an error: leaving it out would flatter the classifier.
        calls = [None if v is None else (v <= threshold if column == "slm_distance" else v >= threshold) for v in values]
        hits = [float(call == label) for call, label in zip(calls, labels, strict=True)]
        accuracy = {}
        for of, wanted in (("positive", True), ("adversarial", False), ("overall", None)):
            chosen = [index for index, label in enumerate(labels) if wanted is None or label == wanted]
            accuracy[of] = mean_interval([hits[i] for i in chosen], clusters=[clusters[i] for i in chosen])
        rules.append(RuleAccuracy(name, column, hits, accuracy))
    return rules, clusters


def classification_table(sets: Sequence[ResponseSet], slm: str | None = None) -> str:
    """Return a table of the rules of `classify` in per cent, their differences in the ablation, and the leak check."""
    rules, clusters = classify(sets, slm)
    lines = [f"{'':24}{'positive':>22}{'adversarial':>22}{'overall':>22}"]
    for rule in rules:
        lines.append(f"{rule.name:24}" + "".join(f"{_cell(accuracy):>22}" for accuracy in rule.accuracy.values()))
    for name, of_one in zip(("distance", "probability"), rules[:2], strict=True):
        lines.append(f"both - {name}: {_cell(paired_difference_interval(rules[2].hits, of_one.hits, clusters=clusters))}")
    return "\n".join([*lines, leak_note(sets, slm)])


def _cell(mean: Estimate) -> str:
    value, low, high = (None if figure is None else 100 * figure for figure in (mean.value, mean.ci_low, mean.ci_high))
    return interval_text(value, low, high, 2, bound_decimals=1, is_rough=mean.is_rough)


def _thresholds(slm: str | None) -> Mapping[str, float]:
    """Return thresholds from training by column; the distance threshold is negated."""
    return dict(SLM_FOLDER.read_settings(resolve(SLM.find(slm)))["thresholds"])


def _embed(model: SmallModel, sets: Sequence[ResponseSet]) -> tuple[torch.Tensor, torch.Tensor]:
    texts = [text for item in sets for text in (*item.positive, *item.adversarial)]
    ids = [context.ids for context in model.texts.contexts([item.context for item in sets])]
    with torch.inference_mode():
        embedded = model.embed([*ids, *model.texts.responses(texts)])
    return embedded[: len(sets)], embedded[len(sets) :]
