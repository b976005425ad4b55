"""Questions of a passport, and the finding on each: a verdict, a sentence that explains it, and its figures.

`Evaluated` has an evaluator's scores with human labels, from which findings are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json
from dialeval_plugin.labels.scores import on_scale
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, ScoreTable
from dialeval_plugin.results.agreement import agreement_of
from dialeval_plugin.statistics.annotators.alternative_annotator_test import (
    FEW_RATERS,
    MIN_ROWS,
    PASSING_RATE,
    alternative_annotator_test,
)
from dialeval_plugin.statistics.annotators.raters import MIN_RATERS, InPlaceOfRaters, by_place, in_place_of_raters
from dialeval_plugin.statistics.annotators.reliability import disattenuated_correlation, intraclass_correlation
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    NO_RESAMPLES,
    UNIFORM,
    Bootstrap,
    Computed,
    Counts,
    Estimate,
    Resampled,
)
from dialeval_plugin.statistics.categories import evaluator_cells, label_counts, label_statistics, people_cells
from dialeval_plugin.statistics.correlation import correlations, covariate_bias, level_correlations
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.estimation.sample import Sample
from dialeval_plugin.statistics.estimation.true_mean import true_mean
from dialeval_plugin.statistics.levels import RatingTable, ScoredRatings
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.rows import canonical_rows, cluster_codes
from dialeval_plugin.statistics.significance import Measure, detectable_difference, difference_intervals

Verdict: TypeAlias = Literal["yes", "no", "cannot tell", "not tested"]
Answer: TypeAlias = tuple[Verdict, str] | tuple[Verdict, str, tuple[Estimate, ...]]
AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)

MARGIN = 0.05
"""An evaluator agrees as well as a person if it is shown to be worse by less than this margin."""
STEADY = 0.9
"""Reliability above which repeated runs are steady ("excellent" in Koo and Li 2016)."""
MOVED = 0.2
"""Small shift in standard deviations (Cohen 1988); smaller effects of a change do not matter."""
SMALL = 0.1
"""Small correlation (Cohen 1988); smaller preferences and differences do not matter."""


class BiasEffect(TypedDict):
    """Effect of one change on the scores, as a share of their standard deviation between answers."""

    test: str
    change: str
    shift: Estimate


class BiasFile(TypedDict):
    """Fields of a bias report that a passport reads."""

    signature: str
    effects: list[BiasEffect]


def read_bias(paths: Sequence[str | Path], signatures: Sequence[str | None]) -> dict[str, list[BiasEffect]]:
    """Return the effects by signature; raises InputError if a report is malformed or belongs to none of the evaluators."""
    effects: dict[str, list[BiasEffect]] = {}
    for path in map(Path, paths):
        advice = "Give what `dialeval bias --output FILE.json` wrote."
        report = checked(read_json(path), BiasFile, str(path), advice=advice)
        if report["signature"] not in signatures:
            raise InputError(
                f"{path}: is of {report['signature']}, which none of the results is of. Run `dialeval bias` with the scorer "
                "and the options that gave the results."
            )
        effects.setdefault(report["signature"], []).extend(report["effects"])
    return effects


class LabelledRows(NamedTuple):
    """Labels of an evaluator and of people, row by row; `counts` are the numbers of people who gave each label."""

    said: FloatArray
    counts: FloatArray
    clusters: IntArray
    of: Counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluated:
    """An evaluator's scores with human labels.

    `runs` have the same rows; the first is used where one is needed. `whole` is the first run on all rows, labelled or not.
    `bias` has the effects reported by `dialeval bias`.
    """

    runs: Sequence[JudgedLabels]
    whole: ScoreTable
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
    bias: Sequence[BiasEffect] = ()

    @property
    def judged(self) -> JudgedLabels:
        """First run."""
        return self.runs[0]

    @property
    def labels(self) -> LabelTable:
        """Human labels."""
        return self.judged.labels

    @cached_property
    def human(self) -> FloatArray:
        """Mean label of each row, NaN without labels."""
        n = self.labels.n_labels
        return np.where(n > 0, np.nansum(self.labels.labels, axis=1) / np.maximum(n, 1), np.nan)

    @cached_property
    def used(self) -> IntArray:
        """Rows with both a score and a label, called used rows."""
        return np.flatnonzero(~np.isnan(self.judged.scores) & ~np.isnan(self.human))

    @cached_property
    def scores(self) -> FloatArray:
        """Scores of the used rows."""
        return self.judged.scores[self.used]

    @cached_property
    def ratings(self) -> FloatArray:
        """Mean labels of the used rows."""
        return self.human[self.used]

    @cached_property
    def all_clusters(self) -> IntArray:
        """Number of the conversation of each row; each row is its own if conversations are unknown."""
        return cluster_codes(self.labels.source, self.labels.clusters, len(self.labels.ids))

    @property
    def clusters(self) -> IntArray:
        """Conversations of the used rows."""
        return self.all_clusters[self.used]

    @cached_property
    def words(self) -> FloatArray | None:
        """Number of words of each used response or dialogue; None without texts."""
        if self.labels.texts is None:
            return None
        first = 0 if self.labels.is_of_dialogues else 1
        return np.array([float(len(" ".join(self.labels.texts[row][first:]).split())) for row in self.used])

    @property
    def categories(self) -> int:
        """Number of labels that the evaluator chooses from; 0 if it gives numbers."""
        return len(self.judged.scale.categories) if self.judged.scale is not None else 0

    @property
    def kappa(self) -> str:
        """Name of the kappa for the scale of the labels."""
        return "quadratic_kappa" if self.labels.scale.kind == "ordinal" else "kappa"

    def labelled(self, rows: IntArray) -> LabelledRows:
        """Return labels of the evaluator and of people for some of the used rows, in an order set by their values only."""
        counts = label_counts(self.labels.labels, self.categories)
        ordered = canonical_rows("certify", [self.judged.scores, *counts.T], rows, self.all_clusters)
        n, n_rated = len(counts), int((self.labels.n_labels > 0).sum())
        of = Counts(n, len(rows), ordered.n_clusters, n_rated - len(rows), n - n_rated)
        return LabelledRows(self.judged.scores[ordered.order], counts[ordered.order], ordered.clusters, of)

    @cached_property
    def second_person(self) -> InPlaceOfRaters:
        """Agreement of the evaluator with people and of people with each other; for labels, kappa with one random person."""
        if not self.categories:
            people = by_place(self.labels.labels)
            return in_place_of_raters(self.judged.scores, people, clusters=self.all_clusters, bootstrap=self.bootstrap)
        answers, counts, clusters, of = self.labelled(self.used[self.labels.n_labels[self.used] >= MIN_RATERS])
        why = f"{self.kappa}: undefined on {len(answers)} rows with two labels and a score. Have more rows labelled."
        computed: dict[str, Computed] = dict.fromkeys(("evaluator", "person", "difference"), why)
        pilot = None
        if len(answers):
            kappa = label_statistics(self.labels.scale)[self.kappa]
            evaluator = Resampled(kappa, evaluator_cells(answers, counts, clusters))
            person = Resampled(kappa, people_cells(counts, clusters))
            difference = evaluator - person
            if not np.isnan(difference.value):
                computed, pilot = {"evaluator": evaluator, "person": person, "difference": difference}, difference
        return InPlaceOfRaters(**self.bootstrap.estimates(computed, of), pilot=pilot)

    def counted(self, estimate: AnyEstimate) -> AnyEstimate:
        """Return an estimate on the used rows with the counts of all rows."""
        n_rated = int((self.labels.n_labels > 0).sum())
        n_rows = len(self.labels.ids)
        return replace(estimate, n_total=n_rows, n_unscored=n_rated - estimate.n_scored, n_unrated=n_rows - n_rated)


@dataclass(frozen=True, slots=True)
class Finding:
    """Answer to one question about one evaluator.

    Attributes:
        key: name of the question.
        verdict: "cannot tell" if the interval allows both answers, "not tested" if the data do not allow the question.
        sentence: answer as text, or the reason for its absence.
        figures: named as in `TITLES`.
    """

    key: str
    question: str
    verdict: Verdict
    sentence: str
    figures: tuple[Estimate, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self, dict_factory=lambda items: {name: value for name, value in items if name != "bootstrap"})


def findings(evaluated: Evaluated) -> tuple[Finding, ...]:
    """Return the answers to all questions, in the order of a passport."""
    is_nominal = evaluated.labels.scale.kind == "nominal"
    why: Answer = "not tested", "The labels have no order, so they have no mean."
    return tuple(
        Finding(key, one.text, *(why if is_nominal and one.needs_order else one.answer(evaluated)))
        for key, one in QUESTIONS.items()
    )


def ends_of(estimate: Estimate) -> tuple[float, float] | None:
    """Return the ends of an interval; the value twice if all conversations have the same value, which gives no interval."""
    if estimate.value is not None and UNIFORM in (estimate.reason or ""):
        return estimate.value, estimate.value
    return None if estimate.ci_low is None or estimate.ci_high is None else (estimate.ci_low, estimate.ci_high)


def _verdict(estimate: Estimate, limit: float, no_below: float | None = None) -> Verdict:
    """Return whether the whole interval is above a limit; "no" if it is wholly below the limit, or `no_below`."""
    if (ends := ends_of(estimate)) is None:
        return "cannot tell"
    if ends[0] > limit:
        return "yes"
    return "no" if ends[1] < (limit if no_below is None else no_below) else "cannot tell"


def _judged(estimate: Estimate, limit: float, claims: Sequence[str], no_below: float | None = None) -> tuple[Verdict, str]:
    """Return the verdict, and its claim of those for "yes", "no" and "cannot tell"."""
    verdict = _verdict(estimate, limit, no_below)
    return verdict, dict(zip(("yes", "no", "cannot tell"), claims, strict=True))[verdict]


def _named(name: str, estimate: Estimate) -> Estimate:
    return replace(estimate, name=name)


def _why(estimate: Estimate) -> str:
    return f" {estimate.reason}" if estimate.reason else ""


def _second_person(of: Evaluated) -> Answer:
    if of.labels.n_labels.max(initial=0) < MIN_RATERS:
        return "not tested", "One rater only: how well people agree with each other, the ceiling, is not known."
    result = of.second_person
    difference = _named("second_person_difference", result.difference)
    if difference.value is None:
        return "cannot tell", str(difference.reason)
    claims = (
        f"It agrees with people as well as a second person does, within {MARGIN:g}",
        "It agrees with people less than a second person does",
        "It may agree with people more or less than a second person does",
    )
    verdict, sentence = _judged(difference, -MARGIN, claims, no_below=0.0)
    measure = f"{of.kappa.replace('_', ' ')} with one of them" if of.categories else "Spearman's rho in the place of each rater"
    figures = f"{result.evaluator.text(2)} against {number_text(result.person.value, 2)}, a difference of {difference.text(2)}"
    estimates = _named("second_person", result.evaluator), _named("person", result.person), difference
    return verdict, f"{sentence}: {measure} {figures}.{_why(difference)}", estimates


def _alternative_annotator(of: Evaluated) -> Answer:
    is_on_scale = of.judged.scale is not None or np.isin(of.scores, of.labels.labels).all()
    if not is_on_scale and of.labels.scale.kind == "nominal":
        return "not tested", "Its numbers cannot be compared with categories that have no order."
    try:
        test = alternative_annotator_test(of.judged, calibration="none" if is_on_scale else "quantiles", bootstrap=of.bootstrap)
    except InputError:
        return "not tested", f"No rater labelled {MIN_ROWS} rows that others labelled too, in {MIN_CLUSTERS} conversations."
    rate = mean_interval([float(one.is_matched) for one in test.comparisons], bootstrap=NO_RESAMPLES)
    figures = (
        _named("winning_rate", replace(rate, reason=None)),
        _named("advantage_probability", test.advantage),
        _named("advantage_over_constant", test.over_constant),
    )
    n_matched, n = sum(one.is_matched for one in test.comparisons), len(test.comparisons)
    # A test that does not reject shows nothing; "no" needs people who are closer to each other on most rows. With two raters,
    # the evaluator is compared with each by the labels of the other alone, which says little.
    verdict: Verdict = "yes" if test.passes else "no" if _verdict(test.advantage, PASSING_RATE) == "no" else "cannot tell"
    verdict = "cannot tell" if n < FEW_RATERS else verdict
    sentence = (
        f"It matches {n_matched} of {n} raters, each left out in turn, at epsilon {test.epsilon:g}, and half are needed; on "
        f"{test.advantage.text(2)} of the rows it is at least as close to the others."
    )
    if test.winning_rate >= PASSING_RATE and not test.passes:
        sentence += " But one that says the same of every row does as well."
    return verdict, " ".join([sentence, *test.cautions]), figures


def _agreement(of: Evaluated) -> Answer:
    if not len(of.used):
        return "cannot tell", "No row has a score and a label."
    if of.labels.scale.kind in {"interval", "ordinal"} and not of.categories:
        every = correlations(
            of.scores, of.ratings, coefficients=("spearman", "pearson"), clusters=of.clusters, bootstrap=of.bootstrap
        )
        statistics: dict[str, Estimate] = {name: of.counted(one) for name, one in every.items()}
        main, limit, measure = "spearman", 0.0, "Spearman's rho with the people's mean"
    else:
        agreement = agreement_of(of.judged, bootstrap=of.bootstrap)
        statistics = dict(agreement.statistics)
        if "jsd" in agreement.people:
            statistics["person_jsd"] = _named("person_jsd", agreement.people["jsd"])
        main, limit, measure = "auroc", 0.5, "AUROC"
        if of.categories:
            main, limit, measure = of.kappa, 0.0, f"{of.kappa.replace('_', ' ')} with one person"
    figures = statistics[main], *(one for name, one in statistics.items() if name != main)
    if (figure := figures[0]).value is None:
        return "cannot tell", str(figure.reason), figures
    claims = ("It agrees with people", "It contradicts people", "It cannot be told from chance")
    verdict, claim = _judged(figure, limit, claims)
    return verdict, f"{claim}: {measure} {figure.text(2)}.{_why(figure)}", figures


def _constant(of: Evaluated) -> Answer:
    if not of.categories:
        return "not tested", "It answers with numbers of its own: how often it is right depends on a threshold."
    answers, counts, clusters, n = of.labelled(of.used)
    if not len(answers):
        return "cannot tell", "No row has a score and a label."
    shares = (counts / counts.sum(axis=1, keepdims=True)).sum(axis=0)
    commonest = np.full(len(answers), float(shares.argmax()))
    accuracy = label_statistics(of.labels.scale)["accuracy"]
    ours, theirs = (Resampled(accuracy, evaluator_cells(one, counts, clusters)) for one in (answers, commonest))
    name = "accuracy_over_constant"
    gain = of.bootstrap.estimates({name: ours - theirs}, n)[name]
    verdict, claim = _judged(gain, 0.0, ("is right more often than", "is right less often than", "cannot be told from"))
    label = of.labels.scale.categories[int(shares.argmax())]
    return verdict, f"It {claim} one that always says {label!r}: by {gain.text(2)} of the rows.{_why(gain)}", (gain,)


def _beyond_length(of: Evaluated) -> Answer:
    if of.words is None:
        return "not tested", "The labels come without texts, so the length of the responses is not known."
    difference = difference_intervals(
        {"scores": of.scores, "length": of.words},
        RatingTable(ratings=of.ratings, clusters=of.clusters),
        Measure("spearman"),
        bootstrap=of.bootstrap,
    )["scores", "length"]
    length = correlations(of.words, of.ratings, coefficients=["spearman"], clusters=of.clusters, bootstrap=of.bootstrap)
    figures = _named("length_difference", of.counted(difference)), _named("length_spearman", of.counted(length["spearman"]))
    if difference.value is None:
        return "cannot tell", str(difference.reason), figures[1:]
    claims = (
        "It agrees with people better than the number of words does",
        "The number of words agrees with people better than it does",
        "It cannot be told from the number of words",
    )
    verdict, claim = _judged(difference, 0.0, claims)
    sentence = f"{claim}, by {difference.text(2)} in Spearman's rho; the words have {figures[1].text(2)}.{_why(difference)}"
    return verdict, sentence, figures


def _length_bias(of: Evaluated) -> Answer:
    if of.words is None:
        return "not tested", "The labels come without texts, so the length of the responses is not known."
    biases = covariate_bias(of.scores, of.ratings, of.words, name="length", clusters=of.clusters, bootstrap=of.bootstrap)
    bias = _named("length_bias", of.counted(biases["score_length_given_rating"]))
    ends = ends_of(bias)
    if bias.value is None or ends is None:
        return "cannot tell", str(bias.reason), (bias,)
    if max(map(abs, ends)) < SMALL:
        verdict: Verdict = "yes"
        claim = "Among responses that people find equally good, it prefers neither long nor short ones"
    elif ends[0] > 0 or ends[1] < 0:
        verdict = "no"
        claim = f"Among responses that people find equally good, it prefers {'long' if ends[0] > 0 else 'short'} ones"
    else:
        verdict, claim = "cannot tell", "It may prefer long or short responses among those that people find equally good"
    return verdict, f"{claim}: {bias.text(2)} in Spearman's rho.", (bias,)


def _ceiling(of: Evaluated) -> Answer:
    n = of.labels.n_labels
    if n.max(initial=0) < MIN_RATERS:
        return "not tested", "One rater only: how reliable the labels are is not known."
    rated = np.flatnonzero(n >= MIN_RATERS)
    scored = np.intersect1d(rated, of.used)

    reliability = intraclass_correlation(of.labels.labels[rated], clusters=of.all_clusters[rated], bootstrap=of.bootstrap)
    ceiling = _named("ceiling", reliability.ceiling_of_mean)
    figures = _named("icc_of_one", reliability.of_one), _named("icc_of_mean", reliability.of_mean), ceiling
    if ceiling.value is None:
        return "cannot tell", str(ceiling.reason), figures
    share = disattenuated_correlation(
        of.judged.scores[scored], of.labels.labels[scored], clusters=of.all_clusters[scored], bootstrap=of.bootstrap
    )
    of_that = "" if share.value is None else f" It reaches {share.text(2)} of that."
    sentence = f"No evaluator can be expected above Pearson's r {ceiling.text(2)} with these labels.{of_that}"
    return _verdict(ceiling, 0.0), sentence, (*figures, _named("share_of_ceiling", share))


def _repeats(of: Evaluated) -> Answer:
    if len(of.runs) < 2:
        return "not tested", "No repeated runs are given: give NAME=FILE several times with one NAME."
    runs = np.stack([run.scores for run in of.runs], axis=1)
    both = np.flatnonzero(~np.isnan(runs).any(axis=1))
    clusters = of.all_clusters[both]
    if of.categories:
        first, second = np.triu_indices(runs.shape[1], 1)
        flips = (runs[both][:, first] != runs[both][:, second]).mean(axis=1)
        rate = _named("flip_rate", mean_interval(flips, clusters=clusters, bootstrap=of.bootstrap))
        ends = ends_of(rate)
        is_steady = ends is not None and ends[1] < 1 - STEADY
        verdict: Verdict = "yes" if is_steady else "no" if ends is not None and ends[0] > 1 - STEADY else "cannot tell"
        claim = f"Two of {len(of.runs)} runs label {rate.text(2)} of the rows differently; less than {1 - STEADY:.1g} is steady"
        return verdict, f"{claim}.{_why(rate)}", (rate,)
    icc = intraclass_correlation(runs[both], clusters=clusters, bootstrap=of.bootstrap).of_one
    claim = f"The reliability of one of {len(of.runs)} runs is {icc.text(2)}; more than {STEADY:g} is steady"
    return _verdict(icc, STEADY), f"{claim}.{_why(icc)}", (_named("repeat_icc", icc),)


def _power(of: Evaluated) -> Answer:
    if of.labels.n_labels.max(initial=0) < MIN_RATERS:
        return "not tested", "One rater only: there is no second person to tell it from."
    pilot = of.second_person.pilot
    detectable = None if pilot is None else detectable_difference(pilot, bootstrap=of.bootstrap)
    if detectable is None:
        return "not tested", str(of.second_person.difference.reason)
    figure = replace(
        of.second_person.difference, name="detectable_difference", value=detectable.difference, ci_low=None, ci_high=None
    )
    verdict: Verdict = "yes" if detectable.difference <= SMALL else "no"
    claim = f"With these {detectable.n_clusters:,} conversations {detectable} between it and a person"
    return verdict, f"{claim}; {SMALL:g} or less is enough.", (figure,)


def _true_mean(of: Evaluated) -> Answer:
    place = {id: row for row, id in enumerate(of.whole.ids)}
    n_scored = int((~np.isnan(of.whole.scores)).sum())
    if n_scored <= len(of.used):
        return "not tested", "All rows that it scored are labelled: their mean is known."
    labels = np.full(len(place), np.nan)
    for row in of.used.tolist():
        labels[place[of.labels.ids[row]]] = of.human[row]
    scores, _ = on_scale(of.whole, of.labels.scale)
    is_rate = of.labels.scale.kind == "binary"
    try:
        sample = Sample.of(scores, labels, clusters=of.whole.clusters, is_rate=is_rate)
        result = true_mean(sample, confidence=of.bootstrap.confidence, seed=of.bootstrap.seed)
    except InputError as error:
        return "cannot tell", str(error)
    figures = _named("true_mean", result.mean), _named("mean_of_labels", result.labels_only)
    rows = f"{n_scored:,} {'' if n_scored == len(place) else 'scored '}rows"
    what = f"The true {'rate' if is_rate else 'mean'} of all {rows} is {result.mean.text(2)}"
    if result.effective_labels is None or result.effective_labels <= sample.n_labels:
        return "no", f"{what}; it adds nothing to the {sample.n_labels:,} labels.", figures
    worth = f"with its scores the {sample.n_labels:,} labels are worth {result.effective_labels:,.0f}"
    return "yes", f"{what}; {worth}.", figures


def _unmoved(of: Evaluated) -> Answer:
    if not of.bias:
        return "not tested", "No report of `dialeval bias` is given (--bias)."
    largest: dict[str, BiasEffect] = {}
    for effect in sorted(of.bias, key=lambda one: -abs(one["shift"].value or 0.0)):
        if _bias_name(effect["test"]) in _BIAS_TESTS:
            largest.setdefault(effect["test"], effect)
    figures = {test: _named(f"bias_{_bias_name(test)}", one["shift"]) for test, one in largest.items()}
    verdicts: dict[str, Verdict] = {}
    for test, figure in figures.items():
        ends = ends_of(figure)
        is_open = ends is None or min(map(abs, ends)) < MOVED or ends[0] < 0 < ends[1]
        verdicts[test] = "yes" if ends and max(map(abs, ends)) < MOVED else "cannot tell" if is_open else "no"
    claims: dict[Verdict, str] = {"no": "Its scores are moved by", "cannot tell": "Its scores may be moved by"}
    for verdict, begins in claims.items():
        if moved := [test for test, one in verdicts.items() if one == verdict]:
            effects = "; ".join(f"{test} ({largest[test]['change']}) by {figures[test].text(2)}" for test in moved)
            return verdict, f"{begins} {effects} standard deviations.", tuple(figures.values())
    tests = ", ".join(figures)
    return "yes", f"None of {tests} moves its scores by {MOVED:g} standard deviations.", tuple(figures.values())


def _bias_name(test: str) -> str:
    return test.replace(" ", "_").replace("-", "_")


def _systems(of: Evaluated) -> Answer:
    if of.labels.systems is None:
        return "not tested", "No systems are named: neither their ranks nor self-preference are tested."
    systems = [of.labels.systems[row] for row in of.used]
    if (n := len(set(systems))) < 3:
        return "not tested", f"{n} systems are named, and ranking them needs 3."
    rated = ScoredRatings(scores=of.scores, ratings=of.ratings, clusters=of.clusters, systems=systems)
    correlation = level_correlations(rated, level="system", coefficients=["pearson"], bootstrap=of.bootstrap)["pearson"]
    figure = _named("system_pearson", of.counted(correlation))
    if figure.value is None:
        return "cannot tell", str(figure.reason), (figure,)
    verdict, claim = _judged(figure, 0.0, ("It ranks", "It does not rank", "It may or may not rank"))
    return verdict, f"{claim} the means of {n} systems as people do: Pearson's r {figure.text(2)}.{_why(figure)}", (figure,)


def _coverage(of: Evaluated) -> Answer:
    is_labelled = ~np.isnan(of.human)
    is_scored = ~np.isnan(of.judged.scores[is_labelled])
    share = _named("coverage", mean_interval(is_scored.astype(float), bootstrap=NO_RESAMPLES))
    n_without = int((~is_scored).sum())
    if not n_without:
        return "yes", f"All {len(is_scored):,} labelled rows have a score.", (replace(share, reason=None),)
    reasons = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in sorted(of.judged.unscored.items()))
    claim = f"{n_without:,} of {len(is_scored):,} labelled rows have no score{f' ({reasons})' if reasons else ''}"
    return "no", f"{claim}. They are left out of every figure.", (replace(share, reason=None),)


_BIAS_TESTS = (
    *("repeated_runs", "order_of_rows", "prompt_wording", "order_of_options"),
    *("verbosity", "markdown", "injection", "self_preference", "language"),
)
"""Tests of changes that should not move a score; another context should."""


class Question(NamedTuple):
    """Question, the function that answers it, and descriptions of its figures by their names in `--require` and JSON."""

    text: str
    answer: Callable[[Evaluated], Answer]
    figures: Mapping[str, str]
    needs_order: bool = False
    """Whether it is about means of labels."""


QUESTIONS: Mapping[str, Question] = {
    "second_person": Question(
        "Does it agree with people as well as a second person does?",
        _second_person,
        {
            "second_person": "its agreement with people",
            "person": "a second person's agreement with people",
            "second_person_difference": "it less a person",
        },
    ),
    "alternative_annotator": Question(
        "Does it pass the alternative annotator test?",
        _alternative_annotator,
        {
            "winning_rate": "share of the raters whom it matches",
            "advantage_probability": "share of rows on which it is at least as close to the others as the rater left out",
            "advantage_over_constant": "how much more often it is closer than one that says the same of every row",
        },
    ),
    "agreement": Question(
        "Does it agree with people more than chance does?",
        _agreement,
        {
            "spearman": "Spearman's rho with the people's mean",
            "pearson": "Pearson's r with the people's mean",
            "auroc": "AUROC: how often it ranks a good row above a bad one",
            "kappa": "Cohen's kappa with one person",
            "quadratic_kappa": "kappa with one person, weighted by the squared distance of labels",
            "linear_kappa": "kappa with one person, weighted by the distance of labels",
            "accuracy": "share of rows on which it says what one person says",
            "balanced_accuracy": "the mean of that over the labels that people gave",
            "tpr": "share of the positive rows that it calls so",
            "tnr": "share of the negative rows that it calls so",
            "precision": "share of the rows that it calls positive that are",
            "f1": "F1 of the positive label",
            "macro_f1": "mean F1 of the labels",
            "mcc": "Matthews' correlation coefficient",
            "ac1": "Gwet's AC1 with one person",
            "constant_accuracy": "accuracy of always saying the commonest label",
            "jsd": "Jensen-Shannon divergence from the labels of all but one person; coarse for fewer than five labels a row",
            "person_jsd": "that of the person left out",
            "cross_entropy": "cross-entropy of its scores with people's labels, in bits a row; lower is better",
        },
    ),
    "constant": Question(
        "Is it right more often than one that always says the same?",
        _constant,
        {"accuracy_over_constant": "its accuracy less that of always saying the commonest label"},
    ),
    "beyond_length": Question(
        "Does it agree with people more than the length of the response does?",
        _beyond_length,
        {
            "length_difference": "its rho less that of the response length",
            "length_spearman": "Spearman's rho of the response length",
        },
        needs_order=True,
    ),
    "length_bias": Question(
        "Is it free of a preference for long or short responses?",
        _length_bias,
        {"length_bias": "its preference for length among equally good responses"},
        needs_order=True,
    ),
    "ceiling": Question(
        "Can these labels tell good evaluators from bad ones?",
        _ceiling,
        {
            "icc_of_one": "reliability of one label",
            "icc_of_mean": "reliability of the mean label",
            "ceiling": "highest Pearson's r that these labels allow",
            "share_of_ceiling": "its Pearson's r as a share of that",
        },
        needs_order=True,
    ),
    "power": Question(
        "Is the data enough to tell it from a person?",
        _power,
        {"detectable_difference": "smallest difference from a person that would be seen four times in five"},
    ),
    "true_mean": Question(
        "Does it make a sample of labels say more of all rows?",
        _true_mean,
        {"true_mean": "true mean of all rows", "mean_of_labels": "what the labels alone say of it"},
        needs_order=True,
    ),
    "repeats": Question(
        "Does it say the same when it is asked again?",
        _repeats,
        {"repeat_icc": "reliability of one run", "flip_rate": "share of rows that two runs label differently"},
    ),
    "unmoved": Question(
        "Do its scores stay where nothing that matters has changed?",
        _unmoved,
        {f"bias_{name}": f"largest shift by {name.replace('_', ' ')}, in standard deviations" for name in _BIAS_TESTS},
    ),
    "systems": Question(
        "Does it rank systems as people do?",
        _systems,
        {"system_pearson": "Pearson's r of the systems' means"},
        needs_order=True,
    ),
    "coverage": Question("Does it give every row a score?", _coverage, {"coverage": "share of labelled rows with a score"}),
}
"""Questions by key, in the order of a passport."""
TITLES: Mapping[str, str] = {name: title for one in QUESTIONS.values() for name, title in one.figures.items()}
"""Description of each figure by name."""
