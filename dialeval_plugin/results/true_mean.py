"""True mean of a file of scores from human labels of some of its rows, as text and figures, and the rows to label next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line, to_json
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.rows import label_field, text_field
from dialeval_plugin.corpora.score_files import turns_before
from dialeval_plugin.labels.answers import RowToLabel
from dialeval_plugin.labels.reading import labels_from, rows_from, texts_of
from dialeval_plugin.labels.scores import on_scale, pair, people_among, score_rows, scores_from
from dialeval_plugin.labels.table import Scale, ScoreTable
from dialeval_plugin.reports.tables import COUNTS, ESTIMATED, SCHEMA_VERSION, Table, figures, text_column
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import interval_text
from dialeval_plugin.statistics.estimation.sample import Sample, next_rows, score_strata
from dialeval_plugin.statistics.estimation.true_mean import (
    DifferenceOfTrueMeans,
    Method,
    TrueMean,
    difference_of_true_means,
    true_mean,
)
from dialeval_plugin.terminal import for_markdown

BY_SCORES = "scores"
"""Value of `strata` that stands for the judge's own scores instead of a field."""
_WORDS = {"ppi": "prediction-powered", "rogan-gladen": "Rogan-Gladen", "labels": "the labels alone"}


@dataclass(frozen=True, kw_only=True, eq=False)
class PartlyLabelled:
    """Scores of all rows, and human labels of some of them.

    Attributes:
        values: shape (rows,): share of the raters who said "pass", or the mean of their numbers; NaN without labels.
        drawn: how `dialeval label` drew the labelled rows; None if it did not.
    """

    scores: ScoreTable
    values: FloatArray
    scale: Scale | None
    drawn: str | None

    @property
    def is_rate(self) -> bool:
        """Whether labels are pass or fail."""
        return self.scale is not None and self.scale.kind == "binary"


def estimate(
    scores: Any,
    labels: Any,
    *,
    against: Any = None,
    labels_against: Any = None,
    method: Method = "auto",
    strata: str | None = None,
    width: float | None = None,
    **label_options: Any,
) -> TrueMean | DifferenceOfTrueMeans:
    """Return the true mean, or the true pass rate, of all scored rows; with `against`, the mean of B minus that of A.

    Args:
        scores: the judge's scores of all rows: a file, a pandas frame, rows, or a mapping of id to score.
        labels: human labels of some rows, by the same ids; a list of several sources is merged.
        against: scores of another chatbot, B.
        labels_against: labels of B; by default they are among `labels`.
        method: "ppi" (default of "auto") or "rogan-gladen", see `true_mean`.
        strata: field of the score rows, such as "system", each of whose values is weighted by its number of rows; "scores"
            makes strata from the scores, for labels chosen by them. Not needed for rows drawn by `dialeval label`.
        width: wanted width of the interval, for which the number of further labels is reported.
        label_options: `column` of the scores, and `quality`, `raters`, `order`, `positive` of the labels, see `read_labels`.

    Raises:
        InputError: a file is malformed, labels are neither numbers nor pass and fail, or do not suffice (`true_mean`).
    """
    if against is None:
        return true_mean(_sample(read_labelled(scores, labels, **label_options), scores, strata), method=method, width=width)
    if width is not None:
        raise InputError("estimate: a width is that of one mean, and two are compared. Leave out one of them.")
    of_b = labels if labels_against is None else labels_against
    sources = (scores, labels), (against, of_b)
    sides = [read_labelled(one, of, is_shared=of_b is labels, **label_options) for one, of in sources]
    labelled = [{one.scores.ids[row] for row in np.flatnonzero(~np.isnan(one.values)).tolist()} for one in sides]
    if of_b is labels and (both := labelled[0] & labelled[1]):
        raise InputError(
            f"estimate: {len(both)} labelled ids, such as {min(both)!r}, are in the scores of A and of B, so it is unclear "
            "whose answer was labelled. Give the labels of B's answers by --labels-against."
        )
    if sides[0].is_rate != sides[1].is_rate:
        raise InputError("estimate: one side has labels of pass and fail and the other has numbers. Use one scale.")
    a, b = (_sample(one, source, strata) for one, source in zip(sides, (scores, against), strict=True))
    return difference_of_true_means(a, b, method=method)


def read_labelled(
    scores: Any,
    labels: Any,
    *,
    column: str | None = None,
    is_shared: bool = False,
    is_optional: bool = False,
    **label_options: Any,
) -> PartlyLabelled:
    """Read scores with labels of some rows; `is_shared` permits labels of other rows, `is_optional` permits none."""
    several = labels if isinstance(labels, (list, tuple)) and labels and not isinstance(labels[0], dict) else [labels]
    tables = [] if is_optional and not labels else [labels_from(one, **label_options) for one in several]
    scale = tables[0].scale if tables else None
    if scale is not None and scale.kind not in {"binary", "interval"}:
        raise InputError(
            f"{tables[0].source}: has labels {', '.join(scale.categories)}, which have no mean. "
            "Name those that count as pass by --positive, or give numbers."
        )
    people = (name for given, one in zip(several, tables, strict=False) for name in people_among(scores, given, one))
    raters = (*label_options.get("raters", ()), *people)
    table = scores_from(scores, column=column, scale=scale, raters=raters, positive=label_options.get("positive"))
    values = np.full(len(table.ids), np.nan)
    if scale is None:
        return PartlyLabelled(scores=table, values=values, scale=None, drawn=None)
    place = {id: row for row, id in enumerate(table.ids)}
    for one in tables:
        if one.scale.kind != scale.kind:
            raise InputError(f"{one.source}: has other labels than {tables[0].source}. Use one scale.")
        own = one
        if is_shared:
            rows = [row for row, id in enumerate(one.ids) if id in place]
            own = replace(one, ids=[one.ids[row] for row in rows], labels=one.labels[rows], clusters=None, systems=None)
        pair(table, own, is_subset=True, remedy="leave out their labels")
        with_labels = np.flatnonzero(one.n_labels > 0)
        for row in with_labels.tolist():
            if (at := place.get(one.ids[row])) is None:
                continue
            if not np.isnan(values[at]):
                raise InputError(f"{one.source}: {one.ids[row]!r} is labelled in another file too. Leave it in one of them.")
            values[at] = np.nanmean(one.labels[row])
    drawn = {one.drawn for one in tables if one.drawn}
    of_judge, scale_of_judge = on_scale(table, scale)
    whole = replace(table, scores=of_judge, scale=scale_of_judge)
    return PartlyLabelled(scores=whole, values=values, scale=scale, drawn="; ".join(sorted(drawn)) or None)


def way_of_drawing(scores: ScoreTable) -> str:
    """Return the text that `dialeval label` writes with each drawn row; it differs if the strata differ."""
    known = ~np.isnan(scores.scores)
    strata = iter(score_strata(scores.scores[known]).tolist())
    rows = (f"{id} {next(strata)}" for id, is_known in zip(scores.ids, known.tolist(), strict=True) if is_known)
    return f"by score, {text_hash(chr(10).join(rows))[:8]}"


def sentences(result: TrueMean | DifferenceOfTrueMeans) -> list[str]:
    """Return the result in sentences."""
    if isinstance(result, DifferenceOfTrueMeans):
        return _difference(result)
    mean, what = result.mean, "rate" if result.is_rate else "mean"
    judge = "judge's mean is {} over" if not result.is_rate or result.sensitivity is None else "judge passes {} of"
    judge_text = _share(result.judge.value) if "passes" in judge else f"{result.judge.value:.3g}"
    lines = [f"The {judge.format(judge_text)} {result.judge.n_scored:,} answers."]
    basis = f"{mean.n_scored:,} labels in {mean.n_clusters:,} conversations, {_WORDS[result.method]}"
    lines.append(f"The true {what} is {_interval(mean, is_rate=result.is_rate)} (95 % interval; {basis}).")
    if result.effective_labels is not None and result.method != "labels":
        lines.append(f"Without the judge, {round(result.effective_labels):,} labels would give that interval.")
    if result.width is not None:
        lines.append(_more(result))
    elif mean.reason:
        lines.append(mean.reason)
    return [*lines, *result.notes]


def shown(result: TrueMean | DifferenceOfTrueMeans, format: str) -> str:
    """Return the result as text, Markdown or JSON with a final line break."""
    if format == "json":
        record = {"schema_version": SCHEMA_VERSION, **result.to_dict(), "sentences": sentences(result)}
        return to_json(record, indent=2) + "\n"
    lines = sentences(result)
    text = "\n\n".join(map(for_markdown, lines)) if format == "markdown" else "\n".join(lines)
    return f"{text}\n\n{table(result).render(format)}"


def table(result: TrueMean | DifferenceOfTrueMeans) -> Table:
    """Return the figures with their intervals."""
    rows = [{"statistic": name, **figures(one)} for name, one in result.estimates.items()]
    return Table(rows, [text_column("statistic"), *ESTIMATED, *COUNTS])


def _sample(labelled: PartlyLabelled, source: Any, strata: str | None) -> Sample:
    scores = labelled.scores
    if labelled.drawn is not None and strata is None:
        if labelled.drawn != way_of_drawing(scores):
            raise InputError(
                f"{scores.source}: the labels say that their rows were drawn from other scores. Give the scores that `dialeval "
                "label` read, or a field by --strata."
            )
        strata = BY_SCORES
    is_by_score = strata == BY_SCORES
    return Sample.of(
        scores.scores,
        labelled.values,
        clusters=scores.clusters,
        strata=None if strata is None or is_by_score else _field(source, strata),
        is_rate=labelled.is_rate,
        is_by_score=is_by_score,
    )


def _field(source: Any, name: str) -> list[str]:
    rows = score_rows(Path(source)) if isinstance(source, (str, Path)) else rows_from(source, "scores", "score")
    values = []
    for row in rows:
        if row.value.get(name) in (None, ""):
            raise unknown_name(f"{row.where}: has no field {name!r} (--strata)", name, sorted(map(str, row.value)))
        values.append(str(row.value[name]))
    return values


def _share(value: float | None, decimals: int = 0) -> str:
    return f"{100 * (value or 0):.{decimals}f} %"


def _interval(one: Estimate, *, is_rate: bool) -> str:
    """Format a rate in per cent, with a decimal if its interval is narrow; a mean with three digits."""
    is_narrow = one.ci_low is not None and one.ci_high is not None and one.ci_high - one.ci_low < 0.04
    if not is_rate:
        return interval_text(one.value, one.ci_low, one.ci_high, 2 + is_narrow, is_rough=one.is_rough)
    low, high = (None if end is None else 100 * end for end in (one.ci_low, one.ci_high))
    bounds = interval_text(100 * (one.value or 0), low, high, int(is_narrow), is_rough=one.is_rough)
    value, _, rest = bounds.partition(" ")
    return f"{value} % {rest}".rstrip()


def _more(result: TrueMean) -> str:
    low, high = result.mean.ci_low or 0.0, result.mean.ci_high or 0.0
    is_half = result.width == (high - low) / 2
    wide = _share(result.width, 1) if result.is_rate else f"{result.width:.3g}"
    if result.more_labels is None:
        goal = "halves that interval" if is_half else f"makes that interval {wide} wide"
        return f"No number of labels on these answers {goal}: more conversations would."
    if not result.more_labels:
        return f"The interval is at most {wide} wide already."
    return f"{result.more_labels:,} more labels {'halve that interval' if is_half else f'make that interval {wide} wide'}."


def _difference(result: DifferenceOfTrueMeans) -> list[str]:
    one, is_rate = result.difference, result.a.is_rate
    what = "rate" if is_rate else "mean"
    sides = " and ".join(f"{name} {_interval(side.mean, is_rate=is_rate)}" for name, side in (("A", result.a), ("B", result.b)))
    verdict = "No difference is shown"
    if one.ci_low is not None and one.ci_low > 0:
        verdict = "B is better"
    elif one.ci_high is not None and one.ci_high < 0:
        verdict = "A is better"
    points = _interval(one, is_rate=is_rate).replace(" %", " points" if is_rate else " %")
    how = (
        f"{result.n_shared:,} labelled conversations have answers of both" if result.n_shared else "they share no conversation"
    )
    lines = [f"The true {what} is of {sides}.", f"{verdict}: B less A is {points} (95 % interval; {how})."]
    return [*lines, *([one.reason] if one.reason else []), *dict.fromkeys([*result.a.notes, *result.b.notes])]


class NextLabels(NamedTuple):
    """Rows to label in random order, how they were drawn, and whether earlier labels are pass or fail (None: no labels)."""

    rows: Sequence[RowToLabel]
    drawn: str
    is_rate: bool | None


def next_labels(scores: Path, n_next: int, *, labels: Sequence[Path] = (), seed: int = 0, **label_options: Any) -> NextLabels:
    """Draw rows to label: more among rows with similar scores whose labels vary most.

    Args:
        scores: the judge's scores of all rows.
        n_next: number of rows to draw.
        labels: earlier labels.
        seed: for the draw and the order; equal seed, scores and labels draw equal rows.
        label_options: as in `estimate`.

    Raises:
        InputError: a file is malformed, or no row is left.
    """
    labelled = read_labelled(scores, labels, is_optional=True, **label_options)
    table = labelled.scores
    is_rate = labelled.is_rate if labelled.scale is not None else None
    chosen = next_rows(table.scores, labelled.values, n_next, is_rate=is_rate, seed=seed).tolist()
    wanted = {table.clusters[row] for row in chosen}
    turns: dict[tuple[str, str], list[tuple[str, str]]] = {}
    to_label: dict[int, RowToLabel] = {}
    for place, row in enumerate(score_rows(scores)):
        if (conversation := table.clusters[place]) in wanted:
            before, role, text = _said(row)
            # Rows with a position in their conversation, or branch, follow each other; others answer one context.
            if label_field(row, "message") is not None:
                earlier = turns.setdefault((conversation, table.ids[place].rpartition(":")[0]), [])
                earlier += before
                before = list(earlier)
                earlier.append((role, text))
            to_label[place] = RowToLabel(table.ids[place], before, role, text)
    return NextLabels([to_label[row] for row in chosen], way_of_drawing(table), is_rate)


def _said(row: Line) -> tuple[list[tuple[str, str]], str, str]:
    context, text = texts_of(row)
    role = label_field(row, "role") or ""
    if (preceding := turns_before(row)) is not None:
        return [(label_field(turn, "role") or "", text_field(turn, "text")) for turn in preceding], role, text
    return [("", line) for line in context.split("\n") if line], role, text
