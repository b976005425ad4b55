"""The leaderboard as one HTML file: a table to sort and filter, plots and cases; it loads nothing from anywhere.

The page is readable without JavaScript. Its content security policy names the hashes of its own script and style, so that
nothing else runs even where a dialogue holds markup; every text is escaped besides.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from dialeval_plugin.version import __version__

from .board import Column, Cost, Figure, Leaderboard
from .charts import distribution, forest, scatter
from .evidence import Evidence, cases

TITLE = "Dialogue evaluators against people"
_HEAT_STEPS = 5


def render(board: Leaderboard, evidence: Sequence[Evidence] = (), *, title: str = TITLE) -> str:
    """Return the page; a cell without evidence has its figures only, without plots and cases."""
    environment = jinja2.Environment(
        autoescape=True, loader=jinja2.FunctionLoader(static_text), undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"named": coefficient_name, "heat": _heat, "cost": cost_in_words, "breakable": breakable}
    script, style = static_text("leaderboard.js"), static_text("leaderboard.css")
    groups = cases(evidence)
    levels = Counter(cell.column.level for cell in board.cells if cell.column.level).most_common()
    html = environment.get_template("leaderboard.html").render(
        title=title,
        board=board,
        means={name: board.means(name) for name in board.coefficients},
        references=list(dict.fromkeys(reference.name for reference in board.references)),
        reference_rows={name: board.reference_rows(name) for name in board.coefficients},
        reference_means={name: board.reference_means(name) for name in board.coefficients},
        levels=[level for level, _ in levels],
        main_level=levels[0][0] if levels else "",
        datasets=sorted({column.dataset for column in board.columns}),
        qualities=sorted({column.quality for column in board.columns if column.quality}),
        latest=max((cell.date[:10] for cell in board.cells), default=""),
        forests={column: _forests(board, column) for column in board.columns},
        plots={column: _plots(board, column, evidence) for column in board.columns},
        cases=_script_data(groups) if groups else "",
        has_ranks=any(figure.rank is not None for cell in board.cells for figure in cell.figures.values()),
        script=Markup(script),  # noqa: S704 - the package's own files
        style=Markup(style),  # noqa: S704
        script_hash=_csp_hash(script),
        style_hash=_csp_hash(style),
        version=__version__,
    )
    # A dialogue may hold half of a surrogate pair, which no file can.
    return html.encode("utf-8", "replace").decode("utf-8")


def coefficient_name(name: str) -> str:
    """A coefficient's name for people.

    Example:
        >>> coefficient_name("spearman"), coefficient_name("f1_b")
        ("Spearman's rho", 'f1 b')
    """
    known = {"spearman": "Spearman's rho", "pearson": "Pearson's r", "kendall": "Kendall's tau-b"}
    return known.get(name, name.replace("_", " "))


def breakable(name: str) -> Markup:
    """An evaluator's name with its options in small print, and places after underscores where a line may end.

    Example:
        >>> breakable("dialogue_likelihood (mean, turn)")
        Markup('dialogue_<wbr>likelihood <small>(mean, turn)</small>')
    """
    words, bracket, options = (str(escape(part)).replace("_", "_<wbr>") for part in name.partition(" ("))
    html = f"{words} <small>({options}</small>" if bracket else words
    return Markup(html)  # noqa: S704 - escaped two lines above


def cost_in_words(cost: Cost) -> str:
    """What a run took, as far as it is known.

    Example:
        >>> cost_in_words(Cost(seconds=75.2, n_requests=1200))
        '75 s, 1,200 requests'
    """
    parts = []
    if cost.seconds is not None:
        parts.append(f"{cost.seconds:,.0f} s")
    for count, unit in ((cost.n_requests, "requests"), (cost.n_prompt_characters, "characters of prompts")):
        if count is not None:
            parts.append(f"{count:,} {unit}")
    return ", ".join(parts) or "not known"


def _forests(board: Leaderboard, column: Column) -> dict[str, str]:
    """Coefficient to its picture."""
    pictures = {}
    for coefficient in board.coefficients:
        found = {name: board.figure(name, column, coefficient) for name in board.evaluators}
        known = {name: figure for name, figure in found.items() if figure is not None and figure.value is not None}
        if known:
            best_first = sorted(known, key=lambda name: known[name].value or 0, reverse=board.higher_is_better(coefficient))
            label = coefficient_name(coefficient)
            title = f"{label} of each evaluator on {column}"
            pictures[coefficient] = forest({name: known[name] for name in best_first}, title=title, label=label)
    return pictures


def _plots(board: Leaderboard, column: Column, evidence: Sequence[Evidence]) -> dict[str, tuple[str, str]]:
    """Evaluator to its two plots; nothing for one without a scored row."""
    by_evaluator = {item.evaluator: item.scored for item in evidence if item.column == column and item.scored}
    pictures = {}
    for evaluator in board.evaluators:
        if evaluator in by_evaluator:
            scores, ratings = zip(*by_evaluator[evaluator], strict=True)
            title = f"{evaluator} on {column}"
            pictures[evaluator] = scatter(scores, ratings, title=title), distribution(scores, ratings, title=title)
    return pictures


def _heat(figure: Figure) -> str:
    """Name of the tint of a value between -1 and 1; none where lower is better or the value is no such number."""
    if figure.value is None or not figure.higher_is_better or abs(figure.value) > 1:
        return ""
    step = min(_HEAT_STEPS, 1 + int(abs(figure.value) * _HEAT_STEPS * 1.25))
    return f" {'p' if figure.value >= 0 else 'n'}{step}"


def _script_data(value: Any) -> Markup:
    """JSON for the inside of a script element: no character that could end the element, or a string in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped)  # noqa: S704 - escaped in the line above


def _csp_hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def static_text(name: str) -> str:
    """Return one of the files that page, Space and cards are made of."""
    return resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")
