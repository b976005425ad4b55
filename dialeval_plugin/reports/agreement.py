"""How far evaluators agree with people: every coefficient of every evaluator, with what it is to be compared with.

`dialeval meta-eval` makes `Judgements` of score files, `dialeval rescore` of lm-eval's result files; from there on both are the
same. The statistics are those of `meta_evaluation`; `agreement_table` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap, Estimate
from dialeval_plugin.statistics.ceiling import leave_one_rater_out, split_half
from dialeval_plugin.statistics.comparison.common_rows import Measure
from dialeval_plugin.statistics.comparison.ranking import Ranking, rank_metrics
from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS, level_correlations
from dialeval_plugin.statistics.levels import AverageBy, LevelOrSystem, Range, Rated
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.partial import covariate_bias
from dialeval_plugin.statistics.sensitivity import sensitivity_range


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """What an evaluator and people said of the same responses or dialogues; columns have one value a row."""

    evaluator: str
    dataset: str
    quality: str
    level: LevelOrSystem
    ids: Sequence[str]
    scores: Sequence[float | None]
    """Higher is better; None where unscored."""
    ratings: Sequence[float | None]
    """One a row, after aggregating the raters; None where nobody rated it."""
    raters: Mapping[str, Sequence[float]]
    """Each rater's answer by id, of all rated rows, scored or not; () where they are not known."""
    clusters: Sequence[str] | None
    items: Sequence[str] | None
    systems: Sequence[str] | None
    words: Sequence[int] | None
    """Of the responses, or of the dialogues."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """How many rows have no score, by reason."""
    sign: float = 1.0
    """-1 where the evaluator's own scores are better the lower they are."""

    @property
    def rated(self) -> Rated:
        """What the statistics take."""
        return Rated(scores=self.scores, ratings=self.ratings, clusters=self.clusters, systems=self.systems, items=self.items)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of all judgements alike."""

    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS
    by_system: bool = False
    """Compare the systems' means instead of rows."""
    average_by: AverageBy = "none"
    within_range: Range | None = None
    threshold: float | None = None
    """Where ratings are 0 or 1: the accuracy of calling a response good from this score on, as one more statistic."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    permutations: int = 1000
    """Of each pair of evaluators, for p-values and ranks; 0 for neither."""
    alpha: float = 0.05
    """Level of significance of the ranks, after Holm's correction."""
    min_coverage: float = 0.8
    """A coefficient is withheld where a smaller share of the rated rows has a score."""

    @property
    def is_plain(self) -> bool:
        """Whether coefficients are over all rows, which alone can be set beside the raters' own agreement."""
        return not self.by_system and self.average_by == "none" and self.within_range is None


class Beside(NamedTuple):
    """What a statistic is to be read beside; each is None where it cannot be had."""

    leave_one_out: float | None = None
    """The same statistic between one rater and the mean of the others."""
    split_half: float | None = None
    """The same between the means of two halves of the raters."""
    if_unscored_low: float | None = None
    """The statistic if the unscored rows contradicted the ratings; a sensitivity range, no bound."""
    if_unscored_high: float | None = None
    """The statistic if they agreed with them."""
    rank: int | None = None
    """Of the evaluator's cluster among those of the same data."""
    p_value: float | None = None
    """Against the best evaluator, after Holm's correction; None for that one itself."""


class Lengths(NamedTuple):
    """Spearman's correlations with the number of words; None where the texts are not known."""

    of_scores: float | None = None
    of_ratings: float | None = None
    bias: float | None = None
    """Of the scores among responses that people rate the same: the partial correlation given the rating."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statistic of one evaluator."""

    evaluator: str
    dataset: str
    quality: str
    level: LevelOrSystem
    statistic: str
    estimate: Estimate
    unscored: Mapping[str, int]
    is_withheld: bool = False
    is_clustered: bool = True
    """Whether it is known which rows belong to one dialogue."""
    beside: Beside = field(default_factory=Beside)
    lengths: Lengths = field(default_factory=Lengths)

    @property
    def value(self) -> float | None:
        """The statistic, if it is defined and not withheld."""
        return None if self.is_withheld else self.estimate.value

    @property
    def n_rated(self) -> int:
        """Rows that the statistic could rest on."""
        return self.estimate.n_scored + self.estimate.n_unscored


def find(judgements: Sequence[Judgements], question: Question) -> list[Finding]:
    """Return every coefficient of every evaluator.

    Raises:
        InputError: a coefficient or level needs what the judgements do not have, or an accuracy is asked for where ratings are
            not 0 or 1.
    """
    cells: dict[tuple[str, str, str], list[Judgements]] = {}
    for one in judgements:
        cells.setdefault((one.dataset, one.quality, one.level), []).append(one)
    return [finding for cell in cells.values() for finding in _of_cell(_Cell(cell, question), question)]


def _of_cell(cell: _Cell, question: Question) -> list[Finding]:
    """The findings on one quality of one data set."""
    people = {name: cell.people(name) for name in question.coefficients}
    rankings = {name: cell.ranking(name) for name in question.coefficients}
    found = []
    for one in cell.judgements:
        lengths = _lengths(one)
        for name, estimate in _estimates(one, question).items():
            beside = people.get(name, Beside())
            if name in rankings:
                low, high = _if_unscored(one, question, name)
                beside = beside._replace(if_unscored_low=low, if_unscored_high=high, **_place(rankings[name], one.evaluator))
            finding = Finding(
                evaluator=one.evaluator,
                dataset=one.dataset,
                quality=one.quality,
                level=cell.level,
                statistic=name,
                estimate=estimate,
                unscored=one.unscored,
                is_withheld=estimate.n_scored < question.min_coverage * (estimate.n_scored + estimate.n_unscored),
                is_clustered=one.clusters is not None,
                beside=beside,
                lengths=lengths,
            )
            found.append(finding)
    return found


class People(NamedTuple):
    """How well people reach a coefficient among themselves; None where no row has two raters or it is undefined."""

    leave_one_out: float | None = None
    """Between one rater and the mean of the others; see `ceiling.leave_one_rater_out`."""
    split_half: float | None = None
    """Between the means of two halves of the raters; see `ceiling.split_half`."""


def people(raters: Sequence[Sequence[float]], coefficient: str, *, seed: int = 0) -> People:
    """Return the human ceiling of a coefficient.

    Args:
        raters: each rater's answer, for each row; () where they are not known.
        coefficient: its name in `meta_evaluation`.
        seed: of the random halves.
    """
    if not any(len(answers) > 1 for answers in raters):
        return People()
    bootstrap = Bootstrap(rounds=0, seed=seed)
    return People(
        leave_one_rater_out(raters, coefficient=coefficient, bootstrap=bootstrap).value,
        split_half(raters, coefficient=coefficient, bootstrap=bootstrap).value,
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """Evaluators of one quality of one data set."""

    judgements: Sequence[Judgements]
    question: Question

    @property
    def level(self) -> LevelOrSystem:
        return "system" if self.question.by_system else self.judgements[0].level

    def people(self, coefficient: str) -> Beside:
        """How well people reach a coefficient; nothing for means of systems, averages of groups, and a range of ratings."""
        if not self.question.is_plain:
            return Beside()
        raters = {id: answers for one in self.judgements for id, answers in one.raters.items()}
        return Beside(*people(list(raters.values()), coefficient, seed=self.question.bootstrap.seed))

    def ranking(self, coefficient: str) -> Ranking | None:
        """Tests between all evaluators; None where there is one only, or no test is asked for."""
        if len(self.judgements) < 2 or not self.question.permutations:
            return None
        rows = self._rows()
        low, high = self.question.within_range or (-math.inf, math.inf)
        ratings = [one.ratings[row] for one, row in rows.values()]
        scores = {one.evaluator: dict(zip(one.ids, one.scores, strict=True)) for one in self.judgements}
        return rank_metrics(
            {name: [by_id.get(id) for id in rows] for name, by_id in scores.items()},
            Rated(
                scores=[],
                ratings=[rating if rating is not None and low <= rating <= high else None for rating in ratings],
                clusters=self._labels("clusters"),
                systems=self._labels("systems"),
                items=self._labels("items"),
            ),
            Measure(coefficient, self.level, self.question.average_by),
            alpha=self.question.alpha,
            rounds=self.question.permutations,
            seed=self.question.bootstrap.seed,
        )

    def _rows(self) -> dict[str, tuple[Judgements, int]]:
        """Every id with where it stands: not all evaluators need to have been run on the same rows."""
        found: dict[str, tuple[Judgements, int]] = {}
        for one in self.judgements:
            for row, id in enumerate(one.ids):
                found.setdefault(id, (one, row))
        return found

    def _labels(self, name: str) -> list[Any] | None:
        if any(getattr(one, name) is None for one in self.judgements):
            return None
        return [getattr(one, name)[row] for one, row in self._rows().values()]


def _estimates(one: Judgements, question: Question) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {
        **level_correlations(
            one.rated,
            level="system" if question.by_system else one.level,
            average_by=question.average_by,
            coefficients=question.coefficients,
            within_range=question.within_range,
            bootstrap=question.bootstrap,
        )
    }
    if question.threshold is not None:
        found["accuracy"] = _accuracy(one, question.threshold, question.bootstrap)
    return found


def _place(ranking: Ranking | None, evaluator: str) -> dict[str, Any]:
    """Rank, and p-value against the best."""
    if ranking is None:
        return {}
    values: dict[str, float] = {}
    for (a, b), found in ranking.comparisons.items():
        values |= {name: value for name, value in ((a, found.value_a), (b, found.value_b)) if value is not None}
    first = [name for name, rank in ranking.ranks.items() if rank == 1]
    best = max(first, key=lambda name: values.get(name, -math.inf), default=evaluator)
    p_values = {frozenset(pair): p for pair, p in ranking.adjusted.items()}
    return {"rank": ranking.ranks[evaluator], "p_value": p_values.get(frozenset((best, evaluator)))}


def _if_unscored(one: Judgements, question: Question, coefficient: str) -> tuple[float | None, float | None]:
    if not question.is_plain or None not in one.scores:
        return None, None
    found = sensitivity_range(one.scores, one.ratings, coefficient=coefficient)
    return found.low, found.high


def _lengths(one: Judgements) -> Lengths:
    if one.words is None:
        return Lengths()
    found = covariate_bias(one.scores, one.ratings, one.words, name="length", bootstrap=NO_RESAMPLES)
    return Lengths(*(found[name].value for name in ("score_length", "rating_length", "score_length_given_rating")))


def _accuracy(one: Judgements, threshold: float, bootstrap: Bootstrap) -> Estimate:
    """Share of the rated rows whose score is on the rating's side of the threshold."""
    rated = [row for row, rating in enumerate(one.ratings) if rating is not None]
    if wrong := [one.ratings[row] for row in rated if one.ratings[row] not in {0.0, 1.0}]:
        raise InputError(
            f"--threshold: ratings of {one.quality!r} are not all 0 or 1, {wrong[0]:g} is there. Leave the option out."
        )
    hits: list[float | None] = []
    for row in rated:
        score = one.scores[row]
        is_good = score is not None and score >= one.sign * threshold
        hits.append(None if score is None else float(is_good == (one.ratings[row] == 1.0)))
    clusters = None if one.clusters is None else [one.clusters[row] for row in rated]
    return mean_interval(hits, clusters=clusters, bootstrap=bootstrap)
