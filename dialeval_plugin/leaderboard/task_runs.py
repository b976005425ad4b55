"""Runs of one evaluator on one task in lm-eval's files: figures, and one row per rated response or dialogue.

`rescore` computes the statistics of runs again from their rows, with other settings if requested; no model is needed.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, parse_json
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import AGAIN, COUNTS, Undefined, no_scores
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS, TaskKind
from dialeval_plugin.hosts.lm_eval.tasks.opinions import AGGREGATIONS, DialogueOpinion, Opinion, dialogue_opinions
from dialeval_plugin.hosts.lm_eval.tasks.ratings import COEFFICIENTS
from dialeval_plugin.reports.correlation_report import AgreementResult, EvaluatorScores, ReportOptions, evaluate_agreement
from dialeval_plugin.statistics.annotators.raters import aggregate
from dialeval_plugin.statistics.bootstrap import MIN_CLUSTERS, ROUGH_CLUSTERS, Bootstrap, Estimate

from .board import Cost

RunKind: TypeAlias = Literal["rating", "classification", "preference", "breakdown"]
Figures: TypeAlias = Mapping[str, float | Undefined]
Outcomes: TypeAlias = tuple[Any, ...]
"""Records of a run's documents, one per item; see `hosts.lm_eval.tasks.kinds`."""

UNKNOWN = "unknown"
"""Reason of an unscored row if the file reports none."""
RATING_METRICS = tuple(f"{name}{end}" for name in COEFFICIENTS for end in ("", "_ci_low", "_ci_high", "_deviation"))
CLUSTER_AND_SCORE: Mapping[RunKind, tuple[int, int]] = {"classification": (2, 1), "breakdown": (2, 0), "preference": (0, 2)}
"""Indices of cluster and score in the outcomes of each kind that has no rows."""


class TaskDescription(NamedTuple):
    """Description of a task; "" for unknown fields."""

    method: str
    """Way from answers to scores: the task's group, with its choice of examples."""
    dataset: str
    level: str
    kind: TaskKind
    quality: str = ""
    variant: str = ""
    """Name of the score, such as "in_dre", for a task with several; initially the main score."""
    lower_is_better: tuple[str, ...] = ()


class _Turn(TypedDict, total=False):
    text: Required[str]
    speaker: str | None


class SampleDocument(TypedDict, total=False):
    """Fields read from a task's document."""

    id: Required[str]
    level: str
    context: list[_Turn] | None
    response: _Turn | None
    turns: list[_Turn] | None
    references: list[str] | None
    facts: list[str] | None
    system: str | None
    raters: list[float] | None
    cluster: str | None
    dialogue: str
    quality: str | None
    signature: str | None


class Place(NamedTuple):
    """Position of a sample."""

    path: Path
    offset: int
    """Number of bytes before its line."""


@dataclass(frozen=True, slots=True)
class RatedRow:
    """Rated response or dialogue."""

    id: str
    cluster: str
    """Label of its dialogue, whose rows are resampled together."""
    item: str
    """Label of its context, shared by the responses of all systems."""
    system: str | None
    score: float | None
    unscored: str | None
    """Reason for a missing score: a value of `scores.Reason`, or `UNKNOWN`; None with a score."""
    rating: float
    ratings: tuple[float, ...]
    """Ratings, one per rater; () if the file lacks them."""
    response_words: int
    """Words of the response, or of a rated dialogue."""
    context_words: int
    seed: int | None
    """Seed of the few-shot examples, in a task with several; each id then occurs once per seed."""
    place: Place = field(repr=False)

    def document(self) -> dict[str, Any]:
        """Read the task's document (context, response, references, facts or turns); InputError if the file has changed."""
        try:
            with self.place.path.open("rb") as file:
                file.seek(self.place.offset)
                document = parse_json(file.readline().decode("utf-8"), str(self.place.path))["doc"]
            return dict(checked(document, SampleDocument, str(self.place.path), advice=AGAIN))
        except (OSError, ValueError, KeyError, TypeError, InputError) as error:
            raise InputError(f"{self.place.path}: has changed since it was read. Read the run again.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of the host's run.

    Attributes:
        model: the host's name for the kind of model, without secrets.
        arguments: model arguments, without secrets.
        n_parameters: parameters of the model, if the host counted them.
        is_on_hub: whether the host found the model's revision on the Hub.
        limit: number or share of documents per task; None for all.
        has_chat_template: whether prompts used the model's chat template.
        others: generation settings, `--metadata`, the revision and hashes of templates, without secrets.
    """

    model: str
    arguments: Mapping[str, Any]
    n_parameters: int | None = None
    is_on_hub: bool = False
    limit: float | None = None
    has_chat_template: bool = False
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskRun:
    """Run of one evaluator on one task."""

    evaluator: str
    """Model or scorer with everything that distinguishes it: arguments, method, examples, template."""
    model: str
    """Language model or scorer with its arguments."""
    about: TaskDescription
    """Task description with the `variant` of this run; level and quality are from documents if the metadata lack them."""
    task: str
    version: str
    date: datetime
    """Start of the run, in UTC."""
    printed: Figures
    """Printed metrics of this variant."""
    n_total: int
    n_scored: int
    unscored_by_reason: Mapping[str, int]
    signature: str
    """Everything in the file that can change a number."""
    scorer_signature: str
    """Part of it written by the scorer, or by the task's small model; "" if there is none."""
    setup: Setup
    is_partial: bool
    """Whether only a part of the documents was run."""
    cost: Cost
    """Cost of the run; its time is divided among the tasks by their number of requests."""
    rows: tuple[RatedRow, ...] | None
    """Rows in file order; None without samples, or for tasks that compare or classify (see `outcomes`)."""
    outcomes: Outcomes | None
    """Inputs of the task's own aggregations, one per item; None without samples."""
    path: Path

    @property
    def kind(self) -> RunKind:
        """Kind of the outcomes; "rating" for all kinds with rows."""
        return cast("RunKind", self.about.kind if self.about.kind in CLUSTER_AND_SCORE else "rating")

    @property
    def n_unscored(self) -> int:
        """Number of items without a score."""
        return self.n_total - self.n_scored

    @cached_property
    def _figures(self) -> Figures:
        if self.outcomes is None:
            return self.printed
        figures = KINDS[self.about.kind].values(self.outcomes)
        if self.about.kind == "opinion":
            names = {f"{self.about.variant}_{name}".removeprefix("_"): name for name in RATING_METRICS}
            figures = {names.get(name, name): value for name, value in figures.items() if name in names or name in COUNTS}
        return {**figures, **self.printed}

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Metrics of this variant by the task's own aggregations, or as printed if there are no samples; None if undefined."""
        return {name: None if isinstance(value, str) else value for name, value in self._figures.items()}

    @property
    def undefined(self) -> Mapping[str, str]:
        """Reasons for metrics that are None."""
        return {name: str(value) for name, value in self._figures.items() if isinstance(value, str)}

    @property
    def n_clusters(self) -> int | None:
        """Number of dialogues with a scored row, which intervals resample; None without samples."""
        if self.rows is not None:
            return len({row.cluster for row in self.rows if row.score is not None})
        if self.outcomes is None:
            return None
        cluster, score = CLUSTER_AND_SCORE[self.kind]
        return len({item[cluster] for item in self.outcomes if item[score] is not None})

    @property
    def has_rough_intervals(self) -> bool:
        """Whether its intervals are based on few dialogues; see `bootstrap.Estimate`."""
        return self.n_clusters is not None and MIN_CLUSTERS <= self.n_clusters < ROUGH_CLUSTERS

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Evaluator, data, level and quality; runs with the same cell are repetitions."""
        return self.evaluator, self.about.dataset, self.about.level, self.about.quality


def rated_rows(
    samples: Sequence[tuple[Mapping[str, Any], Place]], outcomes: Outcomes, mark: str, variant: str, default_reason: str
) -> tuple[RatedRow, ...]:
    """Return one row per sample from its outcome; for opinions, one per dialogue.

    Args:
        samples: those with the metric `mark`, in file order, one per outcome.
        outcomes: see `TaskRun.outcomes`.
        mark: metric that every sample has.
        variant: see `TaskDescription.variant`.
        default_reason: reason for a missing score if the sample logs none.
    """
    if outcomes and isinstance(outcomes[0], Opinion):
        # Turns are joined as in the task's own aggregation.
        last = {sample["doc"]["dialogue"]: (sample["doc"], place) for sample, place in samples}
        return tuple(_opinion_row(*last[opinion.dialogue], opinion, variant) for opinion in dialogue_opinions(outcomes))
    return tuple(
        _row(sample, place, mark, outcome, _why(sample, variant) or default_reason)
        for (sample, place), outcome in zip(samples, outcomes, strict=True)
    )


def _row(sample: Mapping[str, Any], place: Place, mark: str, outcome: Any, reason: str) -> RatedRow:
    document = sample["doc"]
    try:
        return RatedRow(
            id=document["id"],
            cluster=document["cluster"],
            item=text_hash(*(turn["text"] for turn in document["context"])) if document["context"] else document["id"],
            system=document.get("system"),
            score=outcome.score,
            unscored=(outcome.unscored or reason) if outcome.score is None else None,
            rating=float(outcome.rating),
            ratings=tuple(document.get("raters") or ()),
            response_words=_words([document["response"] or {}] if document["level"] == "turn" else document["turns"]),
            context_words=_words(document["context"]),
            seed=getattr(outcome, "seed", None),
            place=place,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{place.path}: sample {sample.get('doc_id')}: {mark} or its document is not as this package's tasks write them "
            f"({error!r}). Run the task again."
        ) from error


def _opinion_row(document: Mapping[str, Any], place: Place, opinion: DialogueOpinion, variant: str) -> RatedRow:
    return RatedRow(
        id=opinion.dialogue,
        cluster=opinion.dialogue,
        item=opinion.dialogue,
        system=document.get("system"),
        score=None if opinion.scores is None else opinion.scores[AGGREGATIONS[variant]],
        unscored=Reason.NON_FINITE.value if opinion.scores is None else None,
        rating=opinion.rating,
        ratings=tuple(document.get("raters") or ()),
        response_words=_words([*document["context"], document["response"]]),
        context_words=0,
        seed=None,
        place=place,
    )


def _why(sample: Mapping[str, Any], variant: str) -> str | None:
    """Return the logged reason: the variant's own, else the sample's first one, else None."""
    names = [name for name in sample if name.endswith("_unscored") and not name.endswith("n_unscored")]
    for name in sorted(names, key=lambda name: name != f"{variant}_unscored"):
        if isinstance(sample[name], list) and sample[name]:
            return str(sample[name][0])
    return None


def _words(turns: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(str(turn.get("text", "")).split()) for turn in turns)


logger = logging.getLogger(__name__)


def check_one_scorer(runs: Iterable[TaskRun]) -> None:
    """Raise InputError if different scorers ran under one evaluator name, because their figures must not share it."""
    first_runs: dict[str, TaskRun] = {}
    for run in runs:
        first = first_runs.setdefault(run.evaluator, run)
        if run.scorer_signature != first.scorer_signature:
            raise InputError(
                f"{run.path}: {run.evaluator!r} is another scorer than in {first.path}: its signature is "
                f"{run.scorer_signature!r}, and there it is {first.scorer_signature!r}. Leave one of the files out, or run its "
                "tasks again."
            )


def newest(runs: Iterable[TaskRun]) -> list[TaskRun]:
    """Keep the first run of each cell; `runs` are in the order of `read_runs`."""
    newest_runs: dict[tuple[str, ...], TaskRun] = {}
    for run in runs:
        newest_runs.setdefault((*run.cell, run.task), run)
    check_one_scorer(newest_runs.values())
    return list(newest_runs.values())


def rescore(
    runs: Sequence[TaskRun], question: ReportOptions, *, human: str = "mean", only_coefficients: bool = False
) -> list[AgreementResult]:
    """Return the statistics of all runs that have samples; with the settings of the tasks, they equal the printed ones.

    Args:
        runs: see `result_files.read_runs`; an InputError if none has samples, or they lack a requested rating.
        question: coefficients, level, range and bootstrap.
        human: aggregation of several ratings into one; see `raters.AGGREGATIONS`.
        only_coefficients: leave out tasks that compare or classify, which have other statistics.
    """
    with_samples = [run for run in runs if run.outcomes]
    if len(with_samples) < len(runs):
        left_out = sorted({run.task for run in runs if not run.outcomes})
        logger.warning("no samples: %s. Run with --log_samples.", ", ".join(left_out))
    chosen = [run for run in with_samples if run.kind == "rating" or not only_coefficients]
    if not chosen:
        raise InputError("rescore: no run with samples is there. Run lm-eval with --log_samples, and give the whole folder.")
    repeated = Counter(run.cell for run in chosen)
    all_results: list[AgreementResult] = []
    for one in chosen:
        name = f"{one.evaluator}, {one.task}, {one.date:%Y-%m-%d %H:%M:%S}"
        run = replace(one, evaluator=name) if repeated[one.cell] > 1 else one
        results = (
            evaluate_agreement(judgements(run, human), question) if run.kind == "rating" else _others(run, question.bootstrap)
        )
        all_results += map(_explained, results)
    return all_results


def _explained(result: AgreementResult) -> AgreementResult:
    why = no_scores(Counter(result.unscored))
    if result.estimate.n_scored or not why:
        return result
    reason = f"{result.evaluator}, {result.dataset}: undefined ({why})."
    return replace(result, is_withheld=False, estimate=replace(result.estimate, reason=reason))


def judgements(run: TaskRun, human: str = "mean") -> list[EvaluatorScores]:
    """Return the scores and ratings of a run, one table per few-shot seed."""
    rows = list(run.rows or ())
    if human != "mean" and not all(row.ratings for row in rows):
        raise InputError(f"{run.path}: the samples of {run.task} do not have the single raters' answers. Use --human mean.")
    by_seed: dict[int | None, list[RatedRow]] = defaultdict(list)
    for row in rows:
        by_seed[row.seed].append(row)
    tables = []
    for seed in sorted(by_seed, key=lambda seed: seed or 0):
        rows = by_seed[seed]
        systems = [row.system for row in rows if row.system is not None]
        tables.append(
            EvaluatorScores(
                evaluator=run.evaluator if seed is None else f"{run.evaluator}, seed {seed}",
                dataset=run.about.dataset,
                quality=run.about.quality,
                level="dialogue" if run.about.level == "dialogue" else "turn",
                ids=[row.id for row in rows],
                scores=[row.score for row in rows],
                ratings=[row.rating for row in rows] if human == "mean" else aggregate([row.ratings for row in rows], human),
                raters={row.id: row.ratings for row in rows},
                clusters=[row.cluster for row in rows],
                items=[row.item for row in rows],
                systems=systems if len(systems) == len(rows) else None,
                words=[row.response_words for row in rows],
                unscored=run.unscored_by_reason,
            )
        )
    return tables


def _others(run: TaskRun, bootstrap: Bootstrap) -> list[AgreementResult]:
    results = []
    for name, estimate in KINDS[run.kind].estimates(run.outcomes or (), bootstrap).items():
        quality, _, statistic = name.partition("_") if run.kind == "preference" else (run.about.quality, "", name)
        if isinstance(estimate, Estimate):
            results.append(
                AgreementResult(
                    evaluator=run.evaluator,
                    dataset=run.about.dataset,
                    quality=quality,
                    level="dialogue" if run.about.level == "dialogue" else "turn",
                    statistic=statistic,
                    estimate=estimate,
                    unscored=run.unscored_by_reason,
                )
            )
    return results
