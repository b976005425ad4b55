"""`dialeval meta-eval` and `dialeval rescore`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import write_json_lines, write_text
from dialeval_plugin.core.scores import NOT_FOR_THIS_DATA

from .options import check_share, refuse, takes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dialeval_plugin.labels.table import JudgedLabels, LabelTable
    from dialeval_plugin.reports.correlation_report import AgreementResult, ReportOptions
    from dialeval_plugin.reports.tables import Table
    from dialeval_plugin.results.agreement import Agreement, Human
    from dialeval_plugin.statistics.annotators.alternative_annotator_test import AlternativeAnnotatorTest, Calibration


@dataclass(frozen=True, kw_only=True)
class AgreementOptions:
    """Options for the statistics of agreement and the output of the table."""

    coefficient: Annotated[
        list[str] | None, typer.Option(help="Coefficient: pearson, spearman, kendall_b, ...; may be repeated.")
    ] = None
    by_system: Annotated[bool, typer.Option("--by-system", help="Correlate the means of the systems instead of rows.")] = False
    average_by: Annotated[
        Literal["none", "system", "item"], typer.Option(help="Average one coefficient over systems or contexts.")
    ] = "none"
    tied_groups: Annotated[
        Literal["zero", "skip"],
        typer.Option(help="Groups with constant scores in --average-by: count as 0, or are skipped."),
    ] = "zero"
    within: Annotated[
        tuple[float, float] | None, typer.Option(help="Use only rows whose rating is between LOW and HIGH.", metavar="LOW HIGH")
    ] = None
    choices: Annotated[
        bool, typer.Option("--choices", help="Mean rating of the best-scored rows, and of the best of several responses.")
    ] = False
    human: Annotated[
        str, typer.Option(help="How several ratings become one: mean, median, without_furthest, minimum or maximum.")
    ] = "mean"
    confidence: Annotated[float, typer.Option(help="Level of the confidence intervals.")] = 0.95
    rounds: Annotated[int, typer.Option(help="Number of resamples for the intervals; 0 for no intervals.")] = 1000
    interval: Annotated[
        Literal["percentile", "expanded", "bca"],
        typer.Option(help="Method of the intervals; percentile and bca are too narrow with few dialogues."),
    ] = "expanded"
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0
    permutations: Annotated[
        int, typer.Option(help="Permutations for each two evaluators, for p-values and ranks; 0 for neither.")
    ] = 1000
    alpha: Annotated[float, typer.Option(help="Significance level of the ranks.")] = 0.05
    min_coverage: Annotated[
        float,
        typer.Option(callback=check_share, help="Omit a coefficient if a smaller share of the rated rows has a score."),
    ] = 0.8
    max_unscored: Annotated[
        float, typer.Option(callback=check_share, help="Exit with 1 if a larger share of an evaluator's rows has no score.")
    ] = 0.05
    format: Annotated[Literal["text", "markdown", "csv", "latex", "json"], typer.Option(help="Format of the table.")] = "text"
    output: Annotated[Path | None, typer.Option(help="File to write the table to, instead of printing it.")] = None

    def question(self, threshold: float | None = None) -> ReportOptions:
        """Return the options of the report."""
        from dialeval_plugin.reports.correlation_report import ReportOptions
        from dialeval_plugin.statistics.bootstrap import Bootstrap
        from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS

        return ReportOptions(
            coefficients=tuple(self.coefficient or DEFAULT_COEFFICIENTS),
            by_system=self.by_system,
            average_by=self.average_by,
            tied_groups=self.tied_groups,
            within_range=self.within,
            choices=self.choices,
            bootstrap=Bootstrap(self.rounds, self.confidence, self.seed, self.interval),
            min_coverage=self.min_coverage,
            permutations=self.permutations,
            alpha=self.alpha,
            threshold=threshold,
        )

    def check_labels(self, **others: object) -> None:
        """Refuse options for numeric ratings, and `others`, where the ratings are labels."""
        own = {"coefficient": self.coefficient, "by-system": self.by_system, "within": self.within, "choices": self.choices}
        numeric = {**own, "average-by": self.average_by != "none", **others}
        refuse({f"--{name}": value for name, value in numeric.items()}, "needs numeric ratings, not labels. Leave it out.")
        if self.human not in {"mean", "majority"}:
            raise InputError(
                f"--human {self.human}: needs numeric ratings. Leave it out, so that each label counts, or use majority."
            )

    def show(self, table: Table) -> None:
        """Print or write a table."""
        if self.output is not None:
            write_text(self.output, table.render(self.format))
            typer.echo(f"table: {self.output}")
        elif self.format == "text":
            table.print()
        else:
            typer.echo(table.render(self.format), nl=False)

    def report(
        self,
        findings: Sequence[AgreementResult],
        options: ReportOptions,
        tests: Sequence[AlternativeAnnotatorTest] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Print or write the table; exit with 1 where an evaluator failed on too many rows."""
        from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import no_scores
        from dialeval_plugin.reports.correlation_report import report_table
        from dialeval_plugin.reports.rating_report import with_tests

        self.show(with_tests(report_table(findings, options), tests, notes))
        worst: dict[tuple[str, str, str], AgreementResult] = {}
        for one in findings:
            key = one.dataset, one.quality, one.evaluator
            worst[key] = max(worst.get(key, one), one, key=lambda each: each.estimate.n_unscored)
        counts: dict[str, tuple[int, int]] = {}
        for one in sorted(worst.values(), key=lambda one: not _is_not_for(one)):
            name, estimate = f"{one.evaluator}, {one.dataset}, {one.quality}", one.estimate
            if _is_not_for(one):
                why = f"undefined ({no_scores(Counter(one.unscored))})"
                # `rescore` prints it below the table.
                if why not in (estimate.reason or ""):
                    typer.echo(f"{name}: {why}", err=True)
            else:
                counts[name] = estimate.n_unscored, one.n_rated
        _refuse_unscored(counts, self.max_unscored)


def _refuse_unscored(counts: Mapping[str, tuple[int, int]], max_unscored: float) -> None:
    """Exit with 1 where an evaluator has no score for more of its rows; `counts` are rows without a score, and all rows."""
    failed = {name: one for name, one in counts.items() if one[0] > max_unscored * one[1]}
    for name, (n_unscored, n) in failed.items():
        typer.echo(f"{name}: {n_unscored} of {n} rows have no score, more than --max-unscored {max_unscored} allows", err=True)
    if failed:
        raise typer.Exit(code=1)


def _is_not_for(one: AgreementResult) -> bool:
    """Whether nothing has a score because the evaluator is not for such data."""
    expected = {reason.value for reason in NOT_FOR_THIS_DATA}
    return not one.estimate.n_scored and bool(one.unscored) and expected.issuperset(one.unscored)


@takes(agreement=AgreementOptions)
def meta_eval(
    agreement: AgreementOptions,
    scores: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of scores: from `dialeval score`, JSON or CSV with ids, or published; NAME=FILE names the evaluator. "
            "Without any, the ratings themselves are examined."
        ),
    ] = None,
    ratings: Annotated[
        str | None, typer.Option(help="File of ratings in any layout, or name of a data set: tu, fed, convai1, ...")
    ] = None,
    quality: Annotated[
        list[str] | None,
        typer.Option(help="Rated quality, or all; may be repeated. Default: overall; all if there are no scores."),
    ] = None,
    rows: Annotated[
        Literal["turn", "dialogue"] | None, typer.Option(help="Level of the rows, if the ratings have both.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help="Column of the scores; may be repeated.")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Column of the ratings, if the file of scores has them.")] = None,
    raters: Annotated[
        str | None, typer.Option(help="Columns of the raters of one quality, as r1,r2,r3.", metavar="COLUMN,COLUMN")
    ] = None,
    lower: Annotated[list[str] | None, typer.Option(help="Evaluator whose lower scores are better; may be repeated.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Use only ids that have both a score and a rating.")] = False,
    threshold: Annotated[
        float | None, typer.Option(help="Threshold of the scores for accuracy, if ratings are 0 or 1.")
    ] = None,
    alt_test: Annotated[
        float | None,
        typer.Option(
            help="Alternative annotator test: may an evaluator replace a person? EPSILON is its cost advantage: 0.2 over "
            "experts, 0.1 over crowdworkers.",
            metavar="EPSILON",
        ),
    ] = None,
    calibrate: Annotated[
        Literal["none", "quantiles", "isotonic"] | None,
        typer.Option(help="How --alt-test makes labels of scores: unchanged, by quantiles, or by isotonic regression."),
    ] = None,
    people: Annotated[bool, typer.Option("--people", help="Add a row for each person.")] = False,
    order: Annotated[
        str | None, typer.Option(help="Order of labels in words or numbers, the worst first.", metavar="WORD,WORD")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="The good one of two unknown labels.")] = None,
    cost: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Costs of a false pass and a false fail, which choose the threshold of scores.", metavar="PASS FAIL"),
    ] = None,
    disagreements: Annotated[
        Path | None, typer.Option(help="File (.jsonl) for the differing labels, the strongest first.")
    ] = None,
    plan: Annotated[
        float | None,
        typer.Option(
            metavar="[DIFFERENCE]",
            help="Only estimate from a pilot how many dialogues show which difference between two evaluators.",
        ),
    ] = None,
) -> None:
    """Correlate scores with human ratings, with confidence intervals and coverage.

    Labels in words (pass and fail, named categories) are compared as labels: accuracy, kappa, TPR and TNR. Without scores,
    the agreement of the raters is examined.
    """
    from dialeval_plugin.corpora.rated_items import of_level, read_rated_items
    from dialeval_plugin.labels.reading import LabelOptions, has_words, read_labels
    from dialeval_plugin.labels.scores import pair_files
    from dialeval_plugin.reports.correlation_report import evaluate_agreement
    from dialeval_plugin.reports.rating_report import (
        PEOPLE,
        alternative_annotator_tests,
        evaluate_people,
        examine,
        rating_table,
    )
    from dialeval_plugin.reports.score_alignment import AlignedScores, align
    from dialeval_plugin.results.plans import agreement_plan

    of_people = tuple(raters.split(",")) if raters else ()
    labels = ratings or (str(scores[0]) if scores and len(scores) == 1 else None)
    named = rating_column or next(iter(quality or ()), None)
    if labels is not None and (order or positive or has_words(labels, named, of_people)):
        options = LabelOptions(
            quality=named, raters=of_people, order=order.split(",") if order else (), positive=positive, level=rows
        )
        table = read_labels(labels, **options)
        agreement.check_labels(lower=lower, people=people, threshold=threshold, plan=plan)
        judged = pair_files(scores or (), table, columns=column or (), is_partial=partial)
        test = None if alt_test is None else (alt_test, calibrate)
        results = _compare_labels(judged, table, agreement, cost or (1, 1), test)
        if disagreements is not None:
            lines = ({"evaluator": one.evaluator, **asdict(row)} for one in results for row in one.disagreements)
            write_json_lines(disagreements, lines)
            typer.echo(f"disagreements: {disagreements}")
        counts = {one.evaluator: max(one.statistics.values(), key=lambda each: each.n_unscored) for one in results}
        _refuse_unscored(
            {name: (one.n_unscored, one.n_scored + one.n_unscored) for name, one in counts.items()}, agreement.max_unscored
        )
        return
    of_labels = {"--cost": cost, "--disagreements": disagreements}
    refuse(of_labels, "needs labels in words, and these are numbers. Leave it out, or give their --order.")
    question = agreement.question(threshold)
    if not scores:
        if ratings is None:
            raise InputError("meta-eval: there are neither scores nor ratings. Name a file of scores, or one by --ratings.")
        of_files = {"--column": column, "--rating-column": rating_column, "--lower": lower, "--partial": partial}
        of_scores = {"--threshold": threshold, "--alt-test": alt_test, "--people": people, "--plan": plan}
        refuse({**of_files, **of_scores}, "needs scores, and there are none. Name a file of scores, or leave it out.")
        items = of_level(read_rated_items(ratings, quality or (), of_people), rows, ratings)
        agreement.show(rating_table(examine(items, quality or (), question.bootstrap), question.bootstrap))
        return
    if calibrate is not None and alt_test is None:
        raise InputError("--calibrate: needs --alt-test. Add --alt-test 0.2, or leave it out.")
    how = AlignedScores(
        ratings=ratings,
        qualities=quality or ([rating_column] if ratings and rating_column else ()),
        level=rows,
        columns=column or (),
        rating_column=None if ratings else rating_column,
        raters=of_people,
        lower=lower or (),
        human=agreement.human,
        is_partial=partial,
    )
    judgements = align(scores, how)
    if plan is not None:
        agreement.show(agreement_plan(judgements, question, plan))
        return
    tests = []
    if alt_test is not None:
        tests = alternative_annotator_tests(judgements, epsilon=alt_test, calibration=calibrate, bootstrap=question.bootstrap)
    if people:
        agreement.report(evaluate_people(judgements, question), question, tests, [PEOPLE])
    else:
        agreement.report(evaluate_agreement(judgements, question), question, tests)


def _compare_labels(
    judged: Sequence[JudgedLabels],
    labels: LabelTable,
    options: AgreementOptions,
    costs: tuple[float, float],
    test: tuple[float, Calibration | None] | None,
) -> list[Agreement]:
    """Print the agreement of evaluators with labels in words, and of people with each other."""
    from dialeval_plugin.reports.rating_report import with_tests
    from dialeval_plugin.results.agreement import agreement_of, agreement_table, of_people, withheld
    from dialeval_plugin.statistics.annotators.alternative_annotator_test import alternative_annotator_test
    from dialeval_plugin.statistics.bootstrap import Bootstrap
    from dialeval_plugin.statistics.choices import Costs

    human: Human = "majority" if options.human == "majority" else "each"
    bootstrap = Bootstrap(options.rounds, options.confidence, options.seed, options.interval)
    results = [
        withheld(agreement_of(one, human=human, costs=Costs(*costs), bootstrap=bootstrap), options.min_coverage)
        for one in judged
    ]
    tests = []
    if test is not None:
        epsilon, calibration = test
        tests = [
            alternative_annotator_test(one, epsilon=epsilon, calibration=calibration, bootstrap=bootstrap) for one in judged
        ]
    options.show(with_tests(agreement_table(results or [of_people(labels, bootstrap)]), tests))
    return results


@takes(agreement=AgreementOptions)
def rescore(
    results: Annotated[
        list[Path], typer.Argument(help="Folders or files written by lm-eval with --output_path and --log_samples.")
    ],
    agreement: AgreementOptions,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Include older runs of the same evaluator and task.")] = False,
) -> None:
    """Correlate lm-eval runs with human ratings again, from their samples; no model is needed."""
    from dialeval_plugin.leaderboard.result_files import read_runs
    from dialeval_plugin.leaderboard.task_runs import newest
    from dialeval_plugin.leaderboard.task_runs import rescore as compute

    question = agreement.question()
    runs = read_runs(results)
    chosen, has_chosen = runs if all_runs else newest(runs), agreement.coefficient is not None
    agreement.report(compute(chosen, question, human=agreement.human, only_coefficients=has_chosen), question)
