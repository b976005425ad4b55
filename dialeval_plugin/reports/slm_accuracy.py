"""SLIDE's Table 1: how well the small model tells positive from adversarial responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.data import trained_on
from dialeval_plugin.methods.slide.fusion import POSITIVE_FROM
from dialeval_plugin.methods.slide.model import SLM_FOLDER, TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SLM, SlideScorer
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.means import mean_interval, paired_difference_interval

from .tables import bounds


class Row(NamedTuple):
    """One rule's accuracies in the table."""

    rule: str
    positive: Estimate
    adversarial: Estimate
    overall: Estimate
    hits: list[float]
    """1 for each response that is classified correctly, else 0."""


def classification_rows(sets: Sequence[ResponseSet], slm: str | None = None) -> list[Row]:
    """Classify the positive and adversarial responses of `sets` by distance, by probability and by both.

    Overall accuracy is the mean over all responses. Intervals resample contexts.
    """
    folder = resolve(SLM.find(slm))
    thresholds = SLM_FOLDER.read_settings(folder)["thresholds"]
    if not thresholds:
        raise ModelLoadError(
            f"{folder}: has no thresholds, which training finds on its validation contexts. Use `dialeval train slm`."
        )
    sets = [ResponseSet(item.id, item.context, item.positive, item.adversarial) for item in sets]
    examples = [example for item in sets for example in item.examples()]
    clusters = [dialogue_key(turn.text for turn in example.context) for example in examples]
    labels = [example.ratings["appropriate"][0] == 1 for example in examples]
    scores = SlideScorer(str(folder), variant="slm").score(examples)
    rules = [
        ("SLM (distance)", "slm_distance", -thresholds["slm_distance"]),
        ("SLM (probability)", "slm_probability", thresholds["slm_probability"]),
        ("SLM (both)", "slm", thresholds["slm"]),
        (f"SLM (both, >= {POSITIVE_FROM})", "slm", POSITIVE_FROM),
    ]
    rows = []
    for rule, column, threshold in rules:
        values = scores.columns[column]
        # An unscored response is no hit: leaving it out would flatter the classifier.
        calls = [None if v is None else (v <= threshold if column == "slm_distance" else v >= threshold) for v in values]
        hits = [float(call == label) for call, label in zip(calls, labels, strict=True)]
        means = []
        for wanted in (True, False, None):
            chosen = [index for index, label in enumerate(labels) if wanted is None or label == wanted]
            means.append(mean_interval([hits[i] for i in chosen], clusters=[clusters[i] for i in chosen]))
        rows.append(Row(rule, means[0], means[1], means[2], hits))
    return rows


def classification_table(sets: Sequence[ResponseSet], slm: str | None = None) -> str:
    """Return the table as text, with the differences that the ablation asks for and the leak check."""
    rows = classification_rows(sets, slm)
    lines = [f"{'':24}{'positive':>22}{'adversarial':>22}{'overall':>22}"]
    lines += [f"{row.rule:24}{_cell(row.positive):>22}{_cell(row.adversarial):>22}{_cell(row.overall):>22}" for row in rows]
    clusters = [dialogue_key(item.context) for item in sets for _ in (*item.positive, *item.adversarial)]
    for other in rows[:2]:
        gain = paired_difference_interval(rows[2].hits, other.hits, clusters=clusters)
        lines.append(f"both - {other.rule[5:-1]}: {_cell(gain)}")
    known = TrainedSmallModel.load(SLM.find(slm)).training_contexts
    lines.append(f"{len(sets)} contexts, {len(trained_on(known, sets))} of them were in training or validation")
    return "\n".join(lines)


def _cell(mean: Estimate) -> str:
    if mean.value is None:
        return "undefined"
    low, high = (None if end is None else 100 * end for end in (mean.ci_low, mean.ci_high))
    return f"{100 * mean.value:.2f}{bounds(low, high, is_rough=mean.is_rough, decimals=1)}"
