"""Passports of evaluators: comparison of each with human labels, requirements on the figures, such as `kappa>=0.6`, and files.

Files are HTML, JSON, Markdown or LaTeX, by the suffix of the name.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.resources import optional
from dialeval_plugin.core.scores import PrintedResult
from dialeval_plugin.labels.reading import labels_from
from dialeval_plugin.labels.scores import pair, people_among, scores_from
from dialeval_plugin.labels.table import LabelTable, ScoreTable
from dialeval_plugin.pages.charts import forest_axis, forest_row, forest_scale
from dialeval_plugin.pages.html import render_page
from dialeval_plugin.reports.tables import Table, TableRow, markdown_table, text_column
from dialeval_plugin.results.agreement import Disagreement, disagreements
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Estimate
from dialeval_plugin.statistics.estimates import bounds_text, number_text
from dialeval_plugin.terminal import for_markdown

from .findings import QUESTIONS, TITLES, Evaluated, Finding, Verdict, ends_of, findings, read_bias

if TYPE_CHECKING:
    import pandas

SCHEMA_VERSION = 1
MOST_DISAGREEMENTS = 20
_MOST_SHOWN = 5
"""Largest number of disagreements of an evaluator in Markdown."""
_MAIN = ("second_person", "kappa", "spearman")
"""Figures plotted next to the verdicts: the first one available."""
_MARKS = {"yes": "yes", "no": "no", "cannot tell": "open", "not tested": "none"}
"""CSS classes of the verdicts."""

_FORM = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)(?P<point>\.value)?\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>-?\d*\.?\d+)\s*")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Requirement(NamedTuple):
    """Limit that a figure has to meet: with its whole interval, or with `is_of_value` by its value."""

    name: str
    sign: str
    limit: float
    is_of_value: bool = False

    def __str__(self) -> str:
        return f"{self.name}{'.value' if self.is_of_value else ''}{self.sign}{self.limit:g}"


class Checked(NamedTuple):
    """Whether an evaluator meets a requirement, and why."""

    evaluator: str
    requirement: str
    has_passed: bool
    reason: str


def requirement(text: str) -> Requirement:
    """Read a requirement such as "kappa>=0.6" or "kappa.value>=0.6"; raises InputError for another form or unknown figure.

    Example:
        >>> requirement("spearman>=0.3")
        Requirement(name='spearman', sign='>=', limit=0.3, is_of_value=False)
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--require {text!r}: is no limit of a figure. Write it as 'kappa>=0.6' or 'flip_rate<=0.05'.")
    if match["name"] not in TITLES:
        raise unknown_name(f"--require {text!r}: a passport has no figure {match['name']!r}", match["name"], TITLES)
    return Requirement(match["name"], match["sign"], float(match["limit"]), bool(match["point"]))


def check(required: Requirement, evaluator: str, figures: Mapping[str, Estimate], why_none: str) -> Checked:
    """Check a requirement, which a figure without a value or interval fails; `why_none` explains a missing figure."""
    figure, has_passed = figures.get(required.name), False
    if figure is None or figure.value is None:
        reason = f"{required.name} could not be computed. {why_none if figure is None else figure.reason}".strip()
    elif (ends := (figure.value, figure.value) if required.is_of_value else ends_of(figure)) is None:
        why = f"{required.name} {number_text(figure.value)} has no interval. {figure.reason or ''}".strip()
        reason = f"{why} The figure itself is asked for by {required.name}.value."
    else:
        is_lower = required.sign.startswith(">")
        has_passed = _SIGNS[required.sign](ends[0 if is_lower else 1], required.limit)
        which = "" if required.is_of_value else f", whose {'lower' if is_lower else 'upper'} end counts,"
        does = "is" if has_passed else "is not"
        reason = f"{required.name} {figure.text()}{which} {does} {required.sign} {required.limit:g}."
    return Checked(evaluator, str(required), has_passed, reason)


@dataclass(frozen=True, slots=True)
class LabelledData:
    """Description of the labelled data.

    Attributes:
        kind: kind of the scale; `categories` has the labels in order if they are categories.
        n_conversations: None if the conversation of rows is unknown.
        labels_a_row: smallest and largest number of labels of a labelled row.
    """

    source: str
    quality: str
    kind: str
    categories: tuple[str, ...]
    n_rows: int
    n_labels: int
    n_conversations: int | None
    raters: tuple[str, ...]
    labels_a_row: tuple[int, int]
    n_systems: int | None
    has_texts: bool

    @classmethod
    def of(cls, labels: LabelTable) -> LabelledData:
        """Return the description of a table of labels."""
        n = labels.n_labels.astype(int)
        n_each = n[n > 0]

        def n_distinct(names: Sequence[str] | None) -> int | None:
            return None if names is None else len({name for name, n_here in zip(names, n, strict=True) if n_here})

        return cls(
            source=Path(labels.source).name,
            quality=labels.quality,
            kind=labels.scale.kind,
            categories=labels.scale.categories,
            n_rows=len(n_each),
            n_labels=int(n.sum()),
            n_conversations=n_distinct(labels.clusters),
            raters=labels.raters,
            labels_a_row=(int(n_each.min()), int(n_each.max())),
            n_systems=n_distinct(labels.systems),
            has_texts=labels.texts is not None,
        )

    def __str__(self) -> str:
        low, high = self.labels_a_row
        each = f"{low} label{'s' if low > 1 else ''} each" if low == high else f"{low} to {high} labels each"
        where = "single rows" if self.n_conversations is None else f"{self.n_conversations:,} conversations"
        scale = f" ({', '.join(self.categories)})" if self.categories else ""
        return f"{self.n_rows:,} rows of {where}, {each}: {self.quality}{scale}, {self.source}"


@dataclass(frozen=True, slots=True)
class EvaluatorPassport:
    """Findings on one evaluator, in the order of `findings.findings`, with its strongest disagreements first.

    `sources` has the file of each run; `signature` is None if the file has none.
    """

    evaluator: str
    sources: tuple[str, ...]
    signature: str | None
    findings: tuple[Finding, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the evaluator can replace an additional person."""
        return self.headline.verdict

    @property
    def headline(self) -> Finding:
        """Main finding, on a second person and the alternative annotator test: "cannot tell" if the two differ.

        With one rater neither can be tested, and only "no" is a possible verdict.
        """
        by_key = {finding.key: finding for finding in self.findings}
        second, other, agreement = (by_key[key] for key in ("second_person", "alternative_annotator", "agreement"))
        if second.verdict == "not tested":
            verdict: Verdict = "no" if agreement.verdict == "no" else "cannot tell"
            return replace(second, verdict=verdict, sentence=f"{second.sentence} {agreement.sentence}")
        if {second.verdict, other.verdict} == {"yes", "no"}:
            why = f"{second.sentence} But the alternative annotator test says {other.verdict}. {other.sentence}"
            return replace(second, verdict="cannot tell", sentence=why)
        return second

    @property
    def figures(self) -> dict[str, Estimate]:
        """Figures of all findings by name."""
        return {figure.name: figure for finding in self.findings for figure in finding.figures}

    def why_none(self, name: str) -> str:
        """Return why a figure is missing: the sentence of the finding that would have it."""
        return next((one.sentence for one in self.findings if name in QUESTIONS[one.key].figures), "")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return {
            "evaluator": self.evaluator,
            "verdict": self.verdict,
            "sentence": self.headline.sentence,
            "sources": list(self.sources),
            "signature": self.signature,
            "findings": [finding.to_dict() for finding in self.findings],
            "disagreements": [asdict(one) for one in self.disagreements],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Passport(PrintedResult):
    """Passports of evaluators, in the order given."""

    data: LabelledData
    evaluators: tuple[EvaluatorPassport, ...]
    bootstrap: Bootstrap
    checked: tuple[Checked, ...] = ()

    @property
    def title(self) -> str:
        """Title of the page."""
        names = [one.evaluator for one in self.evaluators]
        return f"Passport of {names[0]}" if len(names) == 1 else f"Passports of {len(names)} evaluators"

    @property
    def has_passed(self) -> bool:
        """Whether all requirements are met; True without requirements."""
        return all(one.has_passed for one in self.checked)

    def __str__(self) -> str:
        return "\n".join(f"{one.evaluator}: {one.verdict}. {one.headline.sentence}" for one in self.evaluators)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object, described in docs/estimate.md."""
        settings = {name: getattr(self.bootstrap, name) for name in ("rounds", "confidence", "interval", "seed")}
        return {
            "schema_version": SCHEMA_VERSION,
            "data": asdict(self.data),
            "bootstrap": settings,
            "evaluators": [one.to_dict() for one in self.evaluators],
            "requirements": [one._asdict() for one in self.checked],
            "has_passed": self.has_passed,
        }

    def rows(self) -> Iterator[TableRow]:
        """Yield one row per figure, and one per finding without figures."""
        for one in self.evaluators:
            for finding in one.findings:
                for figure in finding.figures or (None,):
                    yield {
                        "evaluator": one.evaluator,
                        "question": finding.question,
                        "verdict": finding.verdict,
                        "figure": figure.name if figure else None,
                        **{name: getattr(figure, name, None) for name in ("value", "ci_low", "ci_high", "n_scored")},
                        "sentence": finding.sentence,
                    }

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame."""
        return optional("pandas", "to_pandas").DataFrame(list(self.rows()))

    def table(self) -> Table:
        """Return the answers as a table: one row per question and evaluator, grouped by question."""
        rows = [
            {"evaluator": one.evaluator, "question": finding.question, "verdict": finding.verdict, "why": finding.sentence}
            for one in self.evaluators
            for finding in one.findings
        ]
        columns = [*map(text_column, rows[0])]
        return Table(rows, columns, [f"Data: {self.data}."])


def certify(
    results: Mapping[str, Any] | Sequence[Any] | Any,
    labels: Any,
    *,
    require: str | Sequence[str] = (),
    bias: str | Path | Sequence[str | Path] = (),
    column: str | None = None,
    is_partial: bool = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    **label_options: Any,
) -> Passport:
    """Return the passport of evaluators, compared with human labels.

    Args:
        results: score files, each `FILE` or `NAME=FILE`; or a mapping of name to a file, a pandas frame or another input of
            `scores_from`, or to a list of these for repeated runs. Files with the same NAME are repeated runs, too.
        labels: a file, the name of a data set, a frame, or a `LabelTable`; labels of all rows of the results, or of a sample.
        require: limits such as "kappa>=0.6": the end of the interval nearer to the limit has to meet it, and a figure that
            could not be computed does not; "kappa.value>=0.6" compares the value itself.
        bias: reports of `dialeval bias --output FILE.json`, matched to evaluators by signature.
        column: score column.
        is_partial: leave out labelled rows without a score row, instead of an error.
        bootstrap: settings of the intervals.
        label_options: `raters`, `order`, `positive`, `quality`, `level` of the labels, as in `read_labels`.

    Raises:
        InputError: a file is malformed, does not match the labels, or a requirement names no figure.
    """
    required = [requirement(text) for text in ([require] if isinstance(require, str) else require)]
    table = labels_from(labels, **label_options)
    passports = []
    by_name = _runs(results, column, labels, table, label_options.get("raters", ()))
    effects = read_bias([bias] if isinstance(bias, (str, Path)) else bias, [runs[0].signature for runs in by_name.values()])
    for name, runs in by_name.items():
        judged = [pair(scores, table, is_partial=is_partial, is_subset=True) for scores in runs]
        of_bias = effects.get(runs[0].signature or "", ())
        of = Evaluated(runs=judged, whole=runs[0], bootstrap=bootstrap, bias=of_bias)
        sources = tuple(Path(scores.source).name for scores in runs)
        passports.append(
            EvaluatorPassport(
                name,
                sources,
                runs[0].signature,
                findings(of),
                tuple(disagreements(of.judged, of.used, most=MOST_DISAGREEMENTS)),
            )
        )
    checked = [check(one, of.evaluator, of.figures, of.why_none(one.name)) for of in passports for one in required]
    return Passport(LabelledData.of(table), tuple(passports), bootstrap, tuple(checked))


def _runs(
    results: Any, column: str | None, labels: Any, table: LabelTable, raters: Sequence[str]
) -> dict[str, list[ScoreTable]]:
    sources = [(None, one) for one in (results if isinstance(results, (list, tuple)) else [results])]
    if isinstance(results, Mapping):
        # A list of objects has the rows of one run.
        several = {
            name: of if isinstance(of, (list, tuple)) and not isinstance(of[0], Mapping) else [of]
            for name, of in results.items()
        }
        sources = [(name, one) for name, of in several.items() for one in of]
    tables: dict[str, list[ScoreTable]] = {}
    for name, one in sources:
        people = (*raters, *people_among(one, labels, table))
        scores = scores_from(one, evaluator=name, column=column, scale=table.scale, raters=people)
        is_named = name is not None or (isinstance(one, (str, Path)) and scores.source != str(one))
        if scores.evaluator in tables and not is_named:
            raise InputError(
                f"{scores.source}: there is another evaluator {scores.evaluator!r}. Name it as NAME=FILE; files of one NAME "
                "are runs of one evaluator."
            )
        tables.setdefault(scores.evaluator, []).append(scores)
    if not tables:
        raise InputError("certify: there are no results. Name a file of scores.")
    return tables


def render(passport: Passport, title: str) -> str:
    """Return the page."""
    named = {one.evaluator: one.figures for one in passport.evaluators}
    main = next(name for name in (*_MAIN, "coverage") if any(name in of for of in named.values()))
    figures = {name: of[main] for name, of in named.items() if main in of and of[main].value is not None}
    people = [of["person"] for of in named.values() if main == "second_person"]
    ends = [end for one in people for end in (one.ci_low, one.value, one.ci_high) if end is not None]
    scale = forest_scale(figures.values(), ends)
    return render_page(
        __package__,
        "passport",
        {
            "mark": _MARKS.__getitem__,
            "three": number_text,
            "bounds": _bounds,
        },
        title=title,
        passport=passport,
        titles=TITLES,
        main=TITLES[main],
        axis=forest_axis(ends, scale),
        rows={name: forest_row(of, ends, scale, is_rough=of.is_rough) for name, of in figures.items()},
        figures=figures,
    )


def check_ending(path: Path) -> Path:
    """Return the path; raises InputError for a suffix without a format, before any work."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: a passport is written as {', '.join(_FORMATS)}. End the name in one of them.")
    return path


def write_passport(passport: Passport, path: Path, *, title: str = "") -> None:
    """Write a passport over an earlier file, as HTML (.html), JSON, Markdown (.md) or LaTeX (.tex)."""
    write_text(check_ending(path), _FORMATS[path.suffix.lower()](passport, title or passport.title))


def _markdown(passport: Passport, title: str) -> str:
    parts = [f"# {for_markdown(title)}", f"Data: {for_markdown(str(passport.data))}."]
    parts.append(
        markdown_table(
            ["evaluator", "may it take the place of a person?", "why"],
            [[one.evaluator, one.verdict, one.headline.sentence] for one in passport.evaluators],
        )
    )
    parts += [part for one in passport.evaluators for part in _of_evaluator(one)]
    if passport.checked:
        lines = [
            f"- {'passed' if one.has_passed else 'FAILED'}: {for_markdown(f'{one.evaluator}: {one.reason}')}"
            for one in passport.checked
        ]
        parts += ["## Requirements", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _of_evaluator(one: EvaluatorPassport) -> list[str]:
    tested = [finding for finding in one.findings if finding.verdict != "not tested"]
    parts = [
        f"## {for_markdown(one.evaluator)}",
        markdown_table(["question", "answer", "why"], [[of.question, of.verdict, of.sentence] for of in tested]),
        markdown_table(
            ["figure", "value", "interval", "rows"],
            [[TITLES[of.name], number_text(of.value), _bounds(of), f"{of.n_scored:,}"] for of in one.figures.values()],
            [False, True, True, True],
        ),
    ]
    if untested := [f"- {finding.question} {finding.sentence}" for finding in one.findings if finding not in tested]:
        parts += ["Not tested:", "\n".join(map(for_markdown, untested))]
    if one.disagreements:
        rows = [[of.id, of.said, ", ".join(of.people), of.response] for of in one.disagreements[:_MOST_SHOWN]]
        parts += ["Strongest disagreements:", markdown_table(["row", "evaluator", "people", "response"], rows)]
    return [*parts, f"Signature: {for_markdown(one.signature or 'unknown')}"]


def _bounds(of: Estimate) -> str:
    return bounds_text(of.ci_low, of.ci_high, is_rough=of.is_rough)


_FORMATS: Mapping[str, Callable[[Passport, str], str]] = {
    ".html": render,
    ".json": lambda passport, _: to_json(passport.to_dict(), indent=2) + "\n",
    ".md": _markdown,
    ".tex": lambda passport, _: passport.table().render("latex"),
}
