"""A passport as one HTML file that loads nothing; what may run in it, see `pages.html`."""

from __future__ import annotations

from dialeval_plugin.leaderboard.charts import forest_axis, forest_row, forest_scale
from dialeval_plugin.pages.html import render_page
from dialeval_plugin.statistics.estimates import bounds_text, number_text

from .certify import Passport
from .findings import TITLES

_MAIN = ("second_person", "kappa", "spearman")
"""Figures that the verdicts are drawn by: the first that there is."""
_MARKS = {"yes": "yes", "no": "no", "cannot tell": "open", "not tested": "none"}
"""Classes of the verdicts."""


def render(passport: Passport, title: str) -> str:
    """Return the page."""
    named = {one.evaluator: one.figures for one in passport.evaluators}
    main = next(name for name in (*_MAIN, "coverage") if any(name in of for of in named.values()))
    figures = {name: of[main] for name, of in named.items() if main in of and of[main].value is not None}
    people = [value for of in named.values() if main == "second_person" and (value := of["person"].value) is not None]
    ends = [min(people), max(people)] if people else []
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
