"""Every figure of a bundled model stands once, a line each in `dialeval_plugin/pretrained/figures.jsonl`.

A figure is how far one of the model's scorers agrees with people on a rated set (Spearman's rho with its interval, which
resamples dialogues), the accuracy of the small model on DailyDialog++'s test contexts, the share of hand-written pairs that are
in a person's order, or how far a packed model's scores agree with those of the full one that it was packed from.
DIALEVAL_DATA_DIR names the folder with the public data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Item, Level, mean_rating
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import checked, read_json_lines
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dailydialog_pp, dstc10, fed, usr
from dialeval_plugin.models.folders import PRETRAINED, pretrained_names
from dialeval_plugin.reports.slm import classify
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.correlation import correlate
from reproduction.contrasts.measures import Share, order_pairs, pairs_of, read_contrasts, shares_of_right_pairs
from reproduction.contrasts.pairs import RESPONSES
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores
from reproduction.results.evaluators import Evaluator, evaluators, plan

FIGURES = PRETRAINED / "figures.jsonl"
KINDS: Mapping[str, str] = {
    "general": "general",
    "general-open": "general",
    "slide": "slm",
    "causalscore": "causalscore",
    "language-model": "language_model",
}
"""Name of a bundled model to its kind in the table of evaluators."""
AGREEMENT, ACCURACY, RIGHT_PAIRS = "spearman", "accuracy", "right pairs"
SAME_ORDER = "spearman with the full model's scores"
DAILYDIALOG_PP, CONTRASTS = "dailydialog_pp", "contrasts"
_CONTRAST_KINDS = ("off_topic", "generic", "repeated", "scrambled")
"""Kinds of the worse responses in `RESPONSES`; `reproduction/contrasts/results.md` has the figures of the others."""
_EVALUATOR_OF = {"slm": "slide-slm", "slm_probability": "slide-probability", "slm_distance": "slide-distance"}
"""Column of the small model's scores to the evaluator whose score it is."""
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure, rounded to six decimals.

    Attributes:
        model: name of the bundled model.
        model_hash: of its folder.
        evaluator: row of the table of evaluators, `reproduction/results/evaluators.json`.
        dataset: code of a DSTC10 set, or name of another one.
        quality: what people rated; of an accuracy the class of responses, of pairs the kind of the worse response.
        name: `AGREEMENT`, `ACCURACY`, `RIGHT_PAIRS` or `SAME_ORDER`.
        value: None where it is undefined.
        n_clusters: dialogues that the interval resamples.
        full: the same figure of the full model; None where none was compared.
    """

    model: str
    model_hash: str
    evaluator: str
    dataset: str
    quality: str
    name: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    is_rough: bool = False
    n_scored: int
    n_total: int
    n_clusters: int
    full: float | None = None

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """Fields that identify the measured quantity."""
        return self.model, self.evaluator, self.dataset, self.quality, self.name


class RatedItems(NamedTuple):
    """The items of a data set, and the qualities that figures are made of."""

    name: str
    level: Level
    items: Sequence[Item]
    qualities: Sequence[str]


@dataclass(frozen=True, slots=True)
class Question:
    """The figures of a model.

    Attributes:
        work: folder that keeps scores, so that a second call computes only what is missing.
        datasets: names of data sets; all that are at hand without any.
        rounds: of the bootstrap.
    """

    work: Path
    datasets: Sequence[str] = ()
    rounds: int = 1000

    def asks_for(self, dataset: str) -> bool:
        """Whether figures on a data set are wanted."""
        return not self.datasets or dataset in self.datasets


def read_figures(path: Path = FIGURES) -> list[Figure]:
    """Read what was computed last; nothing where there is no file."""
    if not path.exists():
        return []
    return [checked(line.value, Figure, line.where, advice="Compute the figures again.") for line in read_json_lines(path)]


def packaged_folders() -> dict[str, Path]:
    """Return the models that are bundled, by name."""
    return {name: PRETRAINED / name for name in KINDS if name in pretrained_names()}


def rated_items(question: Question) -> Iterator[RatedItems]:
    """Read the rated sets that are asked for; without names those of DSTC10 that are at hand, and say which are not.

    FED and USR have their qualities but the overall one: that is `ft`, `fd`, `tu` and `pu` in DSTC10.
    """
    further: dict[str, Callable[[], Sequence[Item]]] = {
        "fed-turn": fed.read_examples,
        "fed-dialogue": fed.read_dialogues,
        "usr-topical-chat": lambda: usr.read_examples("topical_chat"),
        "usr-persona-chat": lambda: usr.read_examples("persona_chat"),
    }
    for code, entry in dstc10.SETS.items():
        if entry.overall is not None and question.asks_for(code):
            try:
                items = dstc10.read(code)
            except MissingPrerequisite:
                if question.datasets:
                    raise
                print(f"not on this machine: {code}", file=sys.stderr)
                continue
            yield RatedItems(code, entry.level, items, [dstc10.overall_quality(items, entry)])
    for name, read in further.items():
        if question.asks_for(name):
            others = read()
            level: Level = "dialogue" if name == "fed-dialogue" else "turn"
            yield RatedItems(name, level, others, [quality for quality in others[0].ratings if quality != "Overall"])


def figures_of(model: str, folder: Path, question: Question, *, full: Path | None = None) -> list[Figure]:
    """Compute every figure of a model in a folder, next to that of the full model if its folder is given.

    Raises:
        InputError: there is no model of that name.
    """
    if model not in KINDS:
        raise InputError(f"{model}: there is no such bundled model. Choose one of {', '.join(KINDS)}.")
    runs = [_Run(model, content_hash(folder), row, load_scorer(row.scorer, **row.options)) for row in rows_of(model, folder)]
    data = list(rated_items(question))
    found = [figure for run in runs for items in data for figure in run.agreements(items, question)]
    if KINDS[model] == "slm" and question.asks_for(DAILYDIALOG_PP):
        found += _accuracies(model, runs[0].model_hash, folder)
    if question.asks_for(CONTRASTS):
        found += [figure for run in runs for figure in run.right_pairs()]
    if full is None:
        return found
    values = {figure.place: figure.value for figure in figures_of(model, full, replace(question, rounds=0))}
    beside = [replace(figure, full=values[figure.place]) for figure in found]
    whole = [load_scorer(row.scorer, **row.options) for row in rows_of(model, full)]
    pairs = [(run, other, items) for run, other in zip(runs, whole, strict=True) for items in data if items.name in dstc10.SETS]
    return [*beside, *(figure for run, other, items in pairs for figure in run.same_order(other, items, question))]


class _Run(NamedTuple):
    """A row of the table of evaluators with its model."""

    model: str
    model_hash: str
    row: Evaluator
    scorer: Scorer

    def agreements(self, data: RatedItems, question: Question) -> Iterator[Figure]:
        """How far the scores agree with each quality; nothing where the set is of the other level."""
        if data.level != self.row.level:
            return
        scores = kept_scores(self.scorer, data.items, question.work, data.name)
        clusters = [context_key(item) for item in data.items]
        sign = -1 if scores.orientation == "lower" else 1
        values = [None if value is None else sign * value for value in scores.values]
        for quality in data.qualities:
            ratings = [mean_rating(item, quality) if quality in item.ratings else None for item in data.items]
            bootstrap = percentile_bootstrap(question.rounds)
            found = correlate(values, ratings, coefficient="spearman", clusters=clusters, bootstrap=bootstrap)
            yield _figure(self.model, self.model_hash, self.row.name, data.name, (quality, AGREEMENT), found)

    def right_pairs(self) -> Iterator[Figure]:
        """How many of the hand-written pairs of `_CONTRAST_KINDS` are in a person's order; nothing of whole dialogues."""
        if self.row.level != "turn":
            return
        pairs = [pair for pair in pairs_of(read_contrasts(RESPONSES)) if pair.kind in _CONTRAST_KINDS]
        for kind, share in shares_of_right_pairs(order_pairs(self.scorer, pairs)).items():
            yield _figure(self.model, self.model_hash, self.row.name, CONTRASTS, (kind, RIGHT_PAIRS), share)

    def same_order(self, full: Scorer, data: RatedItems, question: Question) -> Iterator[Figure]:
        """How far the scores order the items as those of the full model do."""
        if data.level != self.row.level:
            return
        one, other = (kept_scores(scorer, data.items, question.work, data.name).values for scorer in (self.scorer, full))
        found = correlate(one, other, coefficient="spearman", bootstrap=Bootstrap(0))
        yield _figure(self.model, self.model_hash, self.row.name, data.name, ("score", SAME_ORDER), found)


def _figure(
    model: str, model_hash: str, evaluator: str, dataset: str, what: tuple[str, str], found: Estimate | Share
) -> Figure:
    value, low, high = (None if one is None else round(one, _DECIMALS) for one in (found.value, found.ci_low, found.ci_high))
    return Figure(
        model=model,
        model_hash=model_hash,
        evaluator=evaluator,
        dataset=dataset,
        quality=what[0],
        name=what[1],
        value=value,
        ci_low=low,
        ci_high=high,
        is_rough=found.is_rough,
        n_scored=found.n_scored,
        n_total=found.n_total,
        n_clusters=found.n_clusters,
    )


def rows_of(model: str, folder: Path) -> list[Evaluator]:
    """Return the rows of the table of evaluators that need this kind of model and nothing else, its folder filled in."""
    names = {row.name for row in evaluators() if row.kinds == (KINDS[model],)}
    return [row for row in plan({KINDS[model]: [str(folder)]}).ready if row.name in names]


def _accuracies(model: str, model_hash: str, folder: Path) -> Iterator[Figure]:
    """By the thresholds that training found, as in SLIDE's Table 1; the paper's own, the last rule, gives no figure here."""
    test = dailydialog_pp.CORPUS.folder() / "test.json"
    for rule in classify(dailydialog_pp.read(test), str(folder))[0][: len(_EVALUATOR_OF)]:
        for of, accuracy in rule.accuracy.items():
            yield _figure(model, model_hash, _EVALUATOR_OF[rule.column], DAILYDIALOG_PP, (of, ACCURACY), accuracy)
