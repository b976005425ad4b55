"""The scorer `glue_proxy`: GLUE classifiers' outputs, alone or combined into one score by a trained regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.core.signature import SignatureValue, text_hash
from dialeval_plugin.models.folders import DefaultModel

from .indicators import IndicatorModels
from .regression import ProxyModel
from .tasks import DEFAULT_CHOICES, Entailment, IndicatorSettings, LabelNames, Models, Truncate, read_choices, subset, task_of

COMBINED = "glue_proxy"
REGRESSION = DefaultModel(
    "glue_proxy",
    "DIALEVAL_GLUE_PROXY",
    advice="glue_proxy: no regression is named. Train one with `dialeval train proxy --data FILE --output proxy.json`, or pass "
    "regression='proxy.json', or set DIALEVAL_GLUE_PROXY; or choose a single indicator, for example variant='cola'.",
)


@dataclass(frozen=True)
class GlueProxyOptions:
    """Options of `GlueProxyScorer`."""

    regression: str | None = None
    _: KW_ONLY
    variant: str = COMBINED
    features: str | None = None
    models: Models = None
    labels: LabelNames = None
    entailment: Entailment | None = None
    absent_fact: str | None = None
    truncate: Truncate | None = None
    device: str | None = None


class GlueProxyScorer(Scorer):
    """Proxy indicators (Nedelchev et al. 2021): quality of a response, predicted from classifiers that were trained on GLUE.

    Columns: the variant's own; every indicator, `cola` and `sst` of the response, `mrpc`, `qnli`, `qqp`, `rte` and `stsb` of
    context and response, the latter five with `fact_` of facts and response; `n_cut`, number of truncated texts. An indicator
    is the probability in [0, 1] of "acceptable", "positive", "equivalent", "duplicate" or "entailment", and for `stsb` a
    similarity of about 0 to 5.

    Args:
        regression: file made by `dialeval train proxy`; by default that of DIALEVAL_GLUE_PROXY.
        variant: "glue_proxy" is the prediction of the regression, about 0 to 1 on the scale of the ratings that it was fitted
            on; the name of an indicator is that indicator alone, without a regression.
        features: columns of other indicators if the variant is one indicator: "all", "single", "context" or "fact". A
            regression has its own.
        models: folder or hub id (`id@revision`) of the classifier of each task, instead of the regression's or the published
            ones; also as a text such as `rte=FOLDER;cola=FOLDER`.
        labels: names of the classes of each classifier whose config.json has none; also as a text such as
            `rte=entailment/not_entailment`.
        entailment: label of QNLI and RTE whose probability is used. A regression has its own, and its own
            `absent_fact` and `truncate`.
        absent_fact: text for missing facts, `_nofact` in the published numbers; none leaves their columns empty.
        truncate: end at which long texts are truncated; "right", as in the published code, drops the newest turns.

    Raises:
        InputError: an option belongs to the regression.
        MissingPrerequisite: there is no regression or a classifier is not there.
        ModelLoadError: a classifier is damaged, unsafe, or not the one that the regression was fitted on.
    """

    name = "glue_proxy"
    needs = ("trained regression", "hub models")
    citation = bibtex("nedelchev-etal-2021-proxy")
    window = 256

    @with_options(GlueProxyOptions)
    def __init__(self, options: GlueProxyOptions) -> None:
        self.variant = variant = options.variant
        self.trained = None
        readings: dict[str, Any] = {
            name: value for name in ("entailment", "absent_fact", "truncate") if (value := getattr(options, name)) is not None
        }
        if variant == COMBINED:
            path = Path(REGRESSION.find(options.regression)).expanduser()
            self.trained = _load(path, {"features": options.features, **readings}, options.models, options.labels)
            settings = self.trained.settings
        else:
            if options.regression is not None:
                raise InputError(
                    f"glue_proxy: a regression was given, but the variant {variant!r} needs none. Leave one of them out."
                )
            task_of(variant)
            columns = (variant, *(subset(options.features) if options.features is not None else ()))
            choices = read_choices(options.models, options.labels)
            settings = IndicatorSettings(tuple(dict.fromkeys(columns)), choices, **readings)
        self.indicators = IndicatorModels(settings, device=options.device)
        if self.trained is not None:
            _check_hashes(self.trained, self.indicators)
        self.range = (0.0, 5.0) if variant.endswith("stsb") else (0.0, 1.0)
        self.columns = tuple(dict.fromkeys((variant, *settings.features, "n_cut")))
        lost = f"texts are longer than a classifier's window and were cut ({settings.truncate})"
        self.truncation_columns = {"n_cut": lost}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, variant, regression, classifiers, their labels, and truncation."""
        settings = self.indicators.settings
        hashes = self.indicators.hashes
        trained = self.trained
        return {
            "method": "glue_proxy",
            "variant": self.variant,
            "regression": None if trained is None else text_hash(repr(trained.regression), trained.quality),
            "quality": None if trained is None else trained.quality,
            "features": "+".join(settings.features),
            "models": text_hash(*(f"{task} {hashes[task]} {settings.classifiers[task].labels}" for task in settings.tasks)),
            "entailment": settings.entailment,
            "absent_fact": settings.absent_fact,
            "truncation": settings.truncate,
            "speakers": "none",
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score responses; each classifier reads the texts of all together."""
        examples = cast("Sequence[Example]", items)
        result = self.indicators.indicate(examples)
        return [
            self._row({name: column[place] for name, column in result.columns.items()}, n_cut)
            for place, n_cut in enumerate(result.n_cut)
        ]

    def _row(self, indicators: Mapping[str, float | Unscored], n_cut: int) -> Row:
        needed = [self.variant] if self.trained is None else list(self.trained.regression.names)
        for name in needed:
            value = indicators[name]
            if isinstance(value, Unscored):
                return value
            if not math.isfinite(value):
                return Unscored(Reason.NON_FINITE, f"{name} is {value}")
        columns: dict[str, float | None] = {
            # A row has a score even if an indicator that is not needed is missing or not finite.
            name: None if isinstance(value, Unscored) or not math.isfinite(value) else value
            for name, value in indicators.items()
        }
        if self.trained is not None:
            table = np.array([[cast("float", indicators[name]) for name in needed]])
            columns[COMBINED] = float(self.trained.regression.predict(table)[0])
        return {**columns, "n_cut": float(n_cut)}


def _load(path: Path, options: Mapping[str, object], models: Models, labels: LabelNames) -> ProxyModel:
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"glue_proxy: {name} is {value!r}, but a regression has its own. Leave it out, or train another one."
            )
    trained = ProxyModel.load(path)
    choices = read_choices(models, labels, {**DEFAULT_CHOICES, **trained.settings.classifiers})
    return replace(trained, settings=replace(trained.settings, classifiers=choices))


def _check_hashes(trained: ProxyModel, indicators: IndicatorModels) -> None:
    if not trained.hashes:
        return
    for task, hash in indicators.hashes.items():
        if hash != trained.hashes.get(task):
            raise InputError(
                f"glue_proxy: the classifier {indicators.settings.classifiers[task].model!r} of {task} is not the one that the "
                "regression was fitted on. Give that one under models, or train again."
            )
