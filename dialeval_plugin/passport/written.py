"""Passport files: HTML, JSON, Markdown or LaTeX, by the suffix of the file name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.pages.html import forest_axis, forest_row, forest_scale, render_page
from dialeval_plugin.reports.tables import markdown_table
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import bounds_text, number_text
from dialeval_plugin.terminal import for_markdown

from .certify import EvaluatorPassport, Passport
from .findings import TITLES

_MAIN = ("second_person", "kappa", "spearman")
"""Figures plotted next to the verdicts: the first one available."""
_MARKS = {"yes": "yes", "no": "no", "cannot tell": "open", "not tested": "none"}
"""CSS classes of the verdicts."""


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
            "bounds": lambda of: bounds_text(of.ci_low, of.ci_high, is_rough=of.is_rough),
        },
        title=title,
        passport=passport,
        titles=TITLES,
        main=TITLES[main],
        axis=forest_axis(ends, scale),
        rows={name: forest_row(of, ends, scale, is_rough=of.is_rough) for name, of in figures.items()},
        figures=figures,
    )


_MOST_SHOWN = 5
"""Largest number of disagreements of an evaluator in Markdown."""


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
