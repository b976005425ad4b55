"""Computes the statistics of lm-eval runs again from their samples, with other settings if requested; no model is needed."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import no_scores
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.reports.correlation_report import AgreementResult, EvaluatorScores, ReportOptions, evaluate_agreement
from dialeval_plugin.statistics.annotators.raters import aggregate
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate

from .result_files import check_one_scorer
from .task_runs import RatedRow, TaskRun

logger = logging.getLogger(__name__)


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
