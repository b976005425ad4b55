"""What the plots of a small model show: its vectors before and after disentangling, and its scores by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.methods.slide.data import trained_on
from dialeval_plugin.methods.slide.model import SLM_FOLDER, SmallModel, TrainedSmallModel
from dialeval_plugin.methods.slide.scorer import SLM, SlideScorer
from dialeval_plugin.models.folders import resolve

from .plots import CONTEXT, NEGATIVE, POSITIVE, Vectors

CLASSES = ("positive", "adversarial", "random")
COLUMNS = ("slm", "slm_probability", "slm_distance")


def vectors(sets: Sequence[ResponseSet], slm: str | None = None) -> tuple[Vectors, Vectors]:
    """Return the encoder's vectors of contexts and responses, and those of contexts and robust parts.

    Sets without adversarial responses are left out.
    """
    full = [item for item in sets if item.positive and item.adversarial]
    if not full:
        raise InputError("plot: no context has positive and adversarial responses. Give a file in DailyDialog++'s layout.")
    model = TrainedSmallModel.load(SLM.find(slm)).model
    owners = [number for number, item in enumerate(full) for _ in (*item.positive, *item.adversarial)]
    kinds = [kind for item in full for kind in (*[POSITIVE] * len(item.positive), *[NEGATIVE] * len(item.adversarial))]
    contexts, responses = _embed(model, full)
    with torch.inference_mode():
        parts = model.head.disentangle(contexts[torch.tensor(owners, device=contexts.device)], responses)
        # The head treats a context alike beside whichever response; the last of them stands for all.
        heads = torch.stack([parts.context[last] for last in _last_rows(owners)])
    labels = np.array([*[CONTEXT] * len(full), *kinds])
    numbers = np.array([*range(len(full)), *owners])
    pairs = ((contexts, responses), (heads, parts.robust))
    normal, disentangled = (torch.cat(pair).double().cpu().numpy() for pair in pairs)
    return Vectors(normal, labels, numbers), Vectors(disentangled, labels, numbers)


def class_scores(sets: Sequence[ResponseSet], column: str, slm: str | None = None) -> dict[str, list[float]]:
    """Return the small model's scores of positive, adversarial and random responses; a class without any is left out."""
    return scores_by_class(sets, slm, (column,))[column]


def scores_by_class(
    sets: Sequence[ResponseSet], slm: str | None = None, columns: Sequence[str] = COLUMNS
) -> dict[str, dict[str, list[float]]]:
    """Return the same for several columns, from one run of the model."""
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise InputError(f"plot: the small model has no column {unknown[0]!r}. Choose one of {', '.join(COLUMNS)}.")
    examples = [(example, name) for item in sets for example, name in zip(item.examples(), _classes(item), strict=True)]
    if not examples:
        raise InputError("plot: there is no response. Give a file in DailyDialog++'s layout.")
    scores = SlideScorer(slm, variant="slm").score([example for example, _ in examples])
    found: dict[str, dict[str, list[float]]] = {column: {} for column in columns}
    for column in columns:
        for (_, name), value in zip(examples, scores.columns[column], strict=True):
            if value is not None:
                found[column].setdefault(name, []).append(value)
    return {column: {name: classes[name] for name in CLASSES if name in classes} for column, classes in found.items()}


def thresholds(slm: str | None = None) -> Mapping[str, float]:
    """Return the thresholds that training found, by column; that of the distance is turned round, as its scores are."""
    return dict(SLM_FOLDER.read_settings(resolve(SLM.find(slm)))["thresholds"])


def threshold_panels(
    sets: Sequence[ResponseSet], slm: str | None = None, *, where: str
) -> tuple[dict[str, tuple[list[float], list[float]]], dict[str, float]]:
    """Return what `plots.threshold_figure` draws: positive and adversarial scores by column, and the known thresholds."""
    panels, marked, known = {}, {}, thresholds(slm)
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


def leak_note(sets: Sequence[ResponseSet], slm: str | None = None) -> str:
    """Say how many contexts the model knows from its training: on those it looks better than it is."""
    known = TrainedSmallModel.load(SLM.find(slm)).training_contexts
    return f"{len(sets)} contexts, {len(trained_on(known, sets))} of them were in training or validation"


def _classes(item: ResponseSet) -> list[str]:
    kinds = (("positive", item.positive), ("random", item.random), ("adversarial", item.adversarial))
    return [name for name, responses in kinds for _ in responses]


def _embed(model: SmallModel, sets: Sequence[ResponseSet]) -> tuple[torch.Tensor, torch.Tensor]:
    texts = [text for item in sets for text in (*item.positive, *item.adversarial)]
    ids = [context.ids for context in model.texts.contexts([item.context for item in sets])]
    with torch.inference_mode():
        embedded = model.embed([*ids, *model.texts.responses(texts)])
    return embedded[: len(sets)], embedded[len(sets) :]


def _last_rows(owners: Sequence[int]) -> list[int]:
    return list({owner: row for row, owner in enumerate(owners)}.values())
