"""The true mean of all rows from a judge's scores and some labels, and the difference of two, with intervals.

Intervals are from the jackknife over whole conversations, with quantiles of t for the number of labelled conversations minus 1;
for rates they are Wilson's, for the number of rows that gives the same standard error, and for Rogan and Gladen's estimate, a
ratio, Fieller's. See reproduction/coverage/NOTES.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import optional
from dialeval_plugin.core.scores import PrintedResult
from dialeval_plugin.statistics.bootstrap import Bootstrap, Counts, Estimate, Resampled, fieller_ends, jackknife_error
from dialeval_plugin.statistics.rows import check_choice

from .means import (
    JudgeRates,
    gain_over_random,
    judge_rates,
    mean_of_labels,
    mean_with_judge,
    predicted_mean,
    rogan_gladen,
    rogan_gladen_interval,
    rogan_gladen_parts,
    slope,
)
from .sample import DOUBTED, REFUSED, Representativeness, Sample, Sums, representativeness

if TYPE_CHECKING:
    import pandas

Method: TypeAlias = Literal["auto", "ppi", "rogan-gladen"]
Used: TypeAlias = Literal["ppi", "rogan-gladen", "labels"]
JACKKNIFE = Bootstrap(rounds=0, interval="jackknife")


class _Estimated(PrintedResult, ABC):
    """Result with several figures."""

    @property
    @abstractmethod
    def estimates(self) -> Mapping[str, Estimate]:
        """Figures with intervals, by name."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return a frame with one row per estimate: value, interval and counts."""
        rows = {name: one.to_dict() for name, one in self.estimates.items()}
        frame = optional("pandas", "to_pandas").DataFrame.from_dict(rows, orient="index").drop(columns=["name", "bootstrap"])
        return frame.rename_axis("statistic")


@dataclass(frozen=True, kw_only=True, repr=False)
class TrueMean(_Estimated):
    """True mean, or true pass rate, of all rows scored by a judge.

    Attributes:
        method: "ppi" (prediction-powered), "rogan-gladen", or "labels" if the scores are uninformative about the labels.
        is_rate: whether it is a pass rate, in [0, 1].
        mean: the estimate; its rows are the labelled ones.
        labels_only: mean of the labels without the judge, with strata weighted by their rows.
        judge: mean of the judge's scores of all rows.
        slope: weight of the judge, in labels per score; 0 if it is not used, None for Rogan and Gladen's estimate.
        sensitivity: share of passes that the judge passes; specificity: of fails that it fails. None unless pass and fail.
        effective_labels: number of labels that would give the interval without the judge; None if there is none.
        width: wanted width of the interval, by default half that of `mean`; more_labels: further labels, drawn in the same way,
            that reach it; None if no number of labels of these rows does.
        representativeness: difference of the labels from a random sample; None if the method needs no test.
        notes: remarks on the figures.
    """

    method: Used
    is_rate: bool
    mean: Estimate
    labels_only: Estimate
    judge: Estimate
    slope: float | None
    sensitivity: Estimate | None
    specificity: Estimate | None
    effective_labels: float | None
    width: float | None
    more_labels: int | None
    representativeness: Representativeness | None
    notes: tuple[str, ...] = ()

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Figures with intervals, by name."""
        named = {"true mean": self.mean, "labels only": self.labels_only, "judge": self.judge}
        rates = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        return named | {name: one for name, one in rates.items() if one is not None}

    def __str__(self) -> str:
        return "\n".join(map(str, self.estimates.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        fields = asdict(self)
        fields["representativeness"] = self.representativeness and self.representativeness._asdict()
        return fields


@dataclass(frozen=True, kw_only=True, repr=False)
class DifferenceOfTrueMeans(_Estimated):
    """True mean of B minus that of A; `n_shared` labelled conversations have rows of both."""

    a: TrueMean
    b: TrueMean
    difference: Estimate
    n_shared: int

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Figures with intervals, by name."""
        return {"A": self.a.mean, "B": self.b.mean, "difference": self.difference}

    def __str__(self) -> str:
        return "\n".join(f"{name} {one.text()}" for name, one in self.estimates.items())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        sides = {"a": self.a.to_dict(), "b": self.b.to_dict()}
        return {**sides, "difference": self.difference.to_dict(), "n_shared": self.n_shared}


def true_mean(
    sample: Sample, *, method: Method = "auto", width: float | None = None, confidence: float = 0.95, seed: int = 0
) -> TrueMean:
    """Return the true mean of all rows of a sample.

    Args:
        sample: the judge's scores of all rows and labels of some.
        method: "ppi", the default of "auto", needs labels that are a random sample of the rows, or of each stratum;
            "rogan-gladen" assumes that the judge is right as often on other rows, whichever were labelled.
        width: wanted width of the interval; by default half of the present one.
        confidence: confidence of the intervals.
        seed: for the random samples that the labels are compared with.

    Raises:
        InputError: the labels are not a random sample; or, for Rogan and Gladen's estimate, scores or labels are not pass and
            fail, the judge is not better than chance, or the labels were drawn by its scores.
    """
    check_choice("estimate", "method", method, get_args(Method))
    if width is not None and not width > 0:
        raise InputError(f"estimate: the width of an interval is {width!r}. Give a number above 0.")
    bootstrap = replace(JACKKNIFE, confidence=confidence)
    quantile = bootstrap.quantile(max(2, sample.n_labelled_clusters))
    rates = _rates(sample, method)
    likeness = None if method == "rogan-gladen" else _checked_likeness(sample, seed)
    whole = Sums.of(sample.sums.sum(axis=0, keepdims=True))
    used = "rogan-gladen" if method == "rogan-gladen" else _ppi_or_labels(sample, quantile)
    weight = float(slope(whole)[0]) if used == "ppi" else 0.0
    resampled = _resampled(sample, used)
    error, error_of_labels = jackknife_error(resampled), jackknife_error(_resampled(sample, "labels"))
    mean = _estimate("true mean", resampled.value, error, sample, bootstrap)
    left = jackknife_error(sample.resampled(lambda sums: predicted_mean(sums, whole, weight)))
    if used == "rogan-gladen":
        assert rates is not None  # noqa: S101 - `_rates` has raised otherwise
        ends = _rogan_gladen_ends(sample, rates, quantile)
        mean = _with_interval(mean, "true mean", rogan_gladen(rates.passed, rates.sensitivity, rates.specificity), ends)
        left = math.sqrt(rates.passed * (1 - rates.passed) / rates.n_passed) / (rates.sensitivity + rates.specificity - 1)
    gain = gain_over_random(whole, weight) if sample.is_by_score else (error_of_labels / error) ** 2 if error else math.nan
    wanted = width if width is not None else None if mean.ci_low is None or mean.ci_high is None else _width(mean) / 2
    return TrueMean(
        method=used,
        is_rate=sample.is_rate,
        mean=mean,
        labels_only=_estimate("labels only", _resampled(sample, "labels").value, error_of_labels, sample, bootstrap),
        judge=_judge_mean(sample, bootstrap),
        slope=None if used == "rogan-gladen" else weight,
        sensitivity=rates
        and _with_interval(mean, "sensitivity", rates.sensitivity, wilson(rates.sensitivity, rates.n_sensitivity, quantile)),
        specificity=rates
        and _with_interval(mean, "specificity", rates.specificity, wilson(rates.specificity, rates.n_specificity, quantile)),
        effective_labels=sample.n_labels * gain if math.isfinite(gain) and mean.ci_low is not None else None,
        width=wanted,
        more_labels=None if wanted is None else _more_labels(sample, mean, error, left, wanted),
        representativeness=likeness,
        notes=tuple(_notes(sample, used, method, likeness)),
    )


def difference_of_true_means(a: Sample, b: Sample, *, method: Method = "auto") -> DifferenceOfTrueMeans:
    """Return the true mean of B minus that of A, for samples whose labels have one scale; raises as `true_mean`."""
    means = [true_mean(one, method=method) for one in (a, b)]
    places = {name: place for place, name in enumerate(dict.fromkeys([*a.cluster_names, *b.cluster_names]))}
    sides = []
    for one, mean in zip((a, b), means, strict=True):
        resampled = _resampled(one, mean.method)
        at = (
            np.ones(len(one.cluster_names)),
            ([places[name] for name in one.cluster_names], np.arange(len(one.cluster_names))),
        )
        spread = sparse.csr_array(at, shape=(len(places), len(one.cluster_names))) @ sparse.csr_array(resampled.sums)
        sides.append(resampled._replace(sums=spread))
    difference = sides[1] - sides[0]
    n_clusters = min(a.n_labelled_clusters, b.n_labelled_clusters)
    n_scored, n_unscored = a.n_labels + b.n_labels, a.n_unscored + b.n_unscored
    n_total = len(a.scores) + len(b.scores) + n_unscored
    interval = JACKKNIFE.around("difference", difference.value, jackknife_error(difference), n_clusters)
    counts = Counts(n_total, n_scored, n_clusters, n_unscored, n_total - n_scored - n_unscored)
    estimate = JACKKNIFE.estimate("difference", difference.value, interval, counts)
    labelled = [{one.cluster_names[code] for code in np.unique(one.clusters[one.is_labelled])} for one in (a, b)]
    return DifferenceOfTrueMeans(a=means[0], b=means[1], difference=estimate, n_shared=len(labelled[0] & labelled[1]))


def wilson(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval for a rate of `n` rows; `n` may be a fraction."""
    squared = quantile**2
    centre = (n * rate + squared / 2) / (n + squared)
    half = quantile * math.sqrt(n * rate * (1 - rate) + squared / 4) / (n + squared)
    return max(0.0, centre - half), min(1.0, centre + half)


def _resampled(sample: Sample, used: Used) -> Resampled:
    statistics: dict[str, Callable[[Sums], FloatArray]] = {
        "ppi": mean_with_judge,
        "labels": mean_of_labels,
        "rogan-gladen": lambda sums: np.divide(*rogan_gladen_parts(sums, sample.centre)),
    }
    return sample.resampled(statistics[used])


def _rogan_gladen_ends(sample: Sample, rates: JudgeRates, quantile: float) -> tuple[float, float]:
    """Return Fieller's interval, over conversations; that of Lee et al. if the judge was right on all labelled passes or fails.

    Raises InputError if the judge is not better than chance.
    """
    parts = [sample.resampled(lambda sums, part=part: rogan_gladen_parts(sums, sample.centre)[part]) for part in (0, 1)]  # type: ignore[misc]
    ends, informedness = fieller_ends(parts[0], parts[1], quantile), parts[1].value
    half = quantile * jackknife_error(parts[1])
    basis = f"[{informedness - half:.2f}, {informedness + half:.2f}]"
    if ends is not None and {rates.sensitivity, rates.specificity} & {0.0, 1.0}:
        ends = rogan_gladen_interval(rates, quantile)
        basis = f"among {rates.n_sensitivity:.0f} passes and {rates.n_specificity:.0f} fails"
    if ends is None or informedness <= 0:
        raise InputError(
            f"estimate: the judge tells pass from fail no better than chance: TPR + TNR - 1 is {informedness:.2f} {basis}. "
            "Label more rows, or use --method ppi, which needs no good judge."
        )
    return max(0.0, ends[0]), min(1.0, ends[1])


def _rates(sample: Sample, method: Method) -> JudgeRates | None:
    if method != "rogan-gladen":
        # Other estimates show the rates too if possible; labels drawn by the judge's verdict would bias them.
        is_binary = sample.is_rate and not sample.is_by_score and bool(np.isin(sample.scores, (0, 1)).all())
        is_mixed = 0 < sample.labels[sample.is_labelled].sum() < sample.n_labels
        return judge_rates(sample) if is_binary and is_mixed else None
    if sample.is_by_score:
        raise InputError(
            "estimate: the labels were drawn by the judge's scores, so TPR and TNR among them are others. Use --method ppi."
        )
    return judge_rates(sample)


def _checked_likeness(sample: Sample, seed: int) -> Representativeness | None:
    likeness = representativeness(sample, seed=seed)
    if likeness is not None and likeness.p_value < REFUSED:
        raise InputError(
            f"estimate: the labels are no random sample of the rows: the judge's mean is {likeness.labelled:.3g} on labelled "
            f"rows and {likeness.all:.3g} on all, and random samples are as unlike in {100 * likeness.p_value:.1f} % of cases. "
            "Where labels were chosen by the judge's scores, weight them by --strata scores; where the judge is right as often "
            "elsewhere, use --method rogan-gladen; else label a random sample, which `dialeval label` draws."
        )
    return likeness


def _ppi_or_labels(sample: Sample, quantile: float) -> Used:
    """Return "ppi" if the scores are significantly informative about the labels or the strata are by score, else "labels"."""
    resampled = sample.resampled(slope)
    tells = abs(resampled.value) > quantile * jackknife_error(resampled)
    return "ppi" if tells or (sample.is_by_score and sample.n_strata > 1) else "labels"


def _estimate(name: str, value: float, error: float, sample: Sample, bootstrap: Bootstrap) -> Estimate:
    n_clusters, n_total = sample.n_labelled_clusters, len(sample.scores) + sample.n_unscored
    if sample.is_rate:
        value = min(1.0, max(0.0, value))
    # Equal labels have no error; Wilson's interval for as many rows as conversations is then wide enough.
    n = value * (1 - value) / error**2 if error else 0.0
    interval = bootstrap.around(name, value, error or float(sample.is_rate), n_clusters)
    if sample.is_rate and interval.ci_low is not None:
        low, high = wilson(value, n or n_clusters, bootstrap.quantile(n_clusters))
        interval = interval._replace(ci_low=low, ci_high=high)
    counts = Counts(n_total, sample.n_labels, n_clusters, sample.n_unscored, len(sample.scores) - sample.n_labels)
    return bootstrap.estimate(name, value, interval, counts)


def _with_interval(like: Estimate, name: str, value: float, ends: tuple[float, float]) -> Estimate:
    low, high = (None, None) if like.ci_low is None else ends
    return replace(like, name=name, value=value, ci_low=low, ci_high=high)


def _judge_mean(sample: Sample, bootstrap: Bootstrap) -> Estimate:
    n, n_clusters = len(sample.scores), len(sample.cluster_names)
    counts = Counts(n + sample.n_unscored, n, n_clusters, sample.n_unscored)
    mean = sample.resampled(lambda sums: sums.scores_all.sum(axis=1) / sums.n_all.sum(axis=1))._replace(shift=sample.centre)
    return bootstrap.estimates({"judge": (sample.centre, mean)}, counts)["judge"]


def _width(mean: Estimate) -> float:
    return float(mean.ci_high or 0) - float(mean.ci_low or 0)


def _more_labels(sample: Sample, mean: Estimate, error: float, left: float, wanted: float) -> int | None:
    """Return the number of labels to add for that width: the error from labels falls with their number, the rest stays."""
    if mean.ci_low is None or not error:
        return None
    of_labels = max(error**2 - left**2, 0.0)
    below = error**2 * (wanted / _width(mean)) ** 2 - left**2
    if below <= 0:
        return None
    more = math.ceil(sample.n_labels * (of_labels / below - 1))
    return max(more, 0) if sample.n_labels + more <= len(sample.scores) else None


def _notes(sample: Sample, used: Used, method: Method, likeness: Representativeness | None) -> list[str]:
    notes = []
    if used == "labels":
        notes.append("The judge says nothing of the labels beyond chance, so the mean is of the labels alone.")
    if used == "rogan-gladen":
        notes.append("This takes the judge to be right as often on the other rows as on the labelled ones.")
    if likeness is not None and likeness.p_value < DOUBTED:
        notes.append(
            f"The labels may be no random sample: the judge's mean is {likeness.labelled:.3g} on labelled rows and "
            f"{likeness.all:.3g} on all; random samples are as unlike in {100 * likeness.p_value:.1f} % of cases."
        )
    if sample.n_unscored:
        labelled = f" {sample.n_unscored_labels} of them are labelled." if sample.n_unscored_labels else ""
        notes.append(f"{sample.n_unscored} rows have no score and are left out of all figures.{labelled}")
    return notes
