"""The leaderboard as one HTML file that loads nothing and is readable without JavaScript; see `pages.html`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from dialeval_plugin.core.files import read_text
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.models.folders import PRETRAINED
from dialeval_plugin.pages.charts import distribution, forest_axis, forest_row, forest_scale
from dialeval_plugin.pages.html import render_page, script_data
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import number_text

from .board import Column, Cost, DataSet, Figure, Identity, Leaderboard, RatedSet
from .evidence import HALF_THE_PEOPLE, ONE_PERSON, EvaluatorRows, cases, differences

TITLE = "Dialogue evaluators against people"
UNKNOWN = "unknown"
_HEAT_STEPS = 5
_SMALL_MODEL = 100_000_000
"""Largest number of parameters that the filter calls small."""


def render(board: Leaderboard, evidence: Sequence[EvaluatorRows] = (), *, title: str = TITLE) -> str:
    """Return the page; a cell without evidence has figures, but no plots or cases."""
    filters: dict[str, Callable[[Any], Any]] = {
        "named": coefficient_name,
        "heat": _heat,
        "breakable": breakable,
        "facts": identity_in_words,
    }
    filters |= {"wrapped": _wrapped, "three": number_text}
    filters["bounds"] = lambda one: f"{number_text(one.ci_low, 2)} to {number_text(one.ci_high, 2)}"
    identities = {name: board.identities.get(name, Identity()) for name in board.evaluators}
    groups = cases(evidence, board)
    return render_page(
        __package__,
        "leaderboard",
        filters,
        title=title,
        unknown=UNKNOWN,
        board=board,
        latest=max((cell.date[:10] for cell in board.cells), default=""),
        has_ranks=any(figure.rank is not None for cell in board.cells for figure in cell.figures.values()),
        data=script_data(_data(board, identities, differences(board, evidence))),
        cases=script_data(groups._asdict()) if groups.groups else "",
        **_of_ranking(board),
        **_of_sets(board, evidence),
        identities=identities,
        filters=_filters(identities),
        costs={name: cost_in_words(_total_cost(board, name), identities[name]) for name in board.evaluators},
        cards=_cards(identities.values()),
    )


def _of_ranking(board: Leaderboard) -> dict[str, Any]:
    ranking = board.ranking(board.main)
    means = {name: board.reference_mean(name, board.main, ranking.sets) for name in (ONE_PERSON, HALF_THE_PEOPLE)}
    people = {name: mean for name, mean in means.items() if mean is not None}
    ends = [mean.value for mean in people.values()]
    scale = forest_scale(ranking.means.values(), ends)
    rough = {name for name in ranking.means if board.has_rough_mean(name, ranking.sets, board.main)}
    return {
        "ranking": ranking,
        "people": people,
        "rough": rough,
        "chosen": [_set_name(board, one) for one in ranking.sets],
        "axis": forest_axis(ends, scale),
        "rows": {name: forest_row(mean, ends, scale, is_rough=name in rough) for name, mean in ranking.means.items()},
        "lacking": {name: lacking(board, name, ranking.sets) for name in board.evaluators},
    }


def _of_sets(board: Leaderboard, evidence: Sequence[EvaluatorRows]) -> dict[str, Any]:
    sets = _all_sets(board)
    columns = {one: [column for column in board.columns if column.rated_set == one] for one in sets}
    return {
        "sets": [{"set": one, "name": _set_name(board, one), "columns": columns[one]} for one in sets],
        "set_of": {column: sets.index(column.rated_set) for column in board.columns},
        "levels": list(dict.fromkeys(one.level for one in sets)),
        "data_sets": {column: board.data_sets.get(column.dataset, DataSet(title=column.dataset)) for column in board.columns},
        "references": list(dict.fromkeys(reference.name for reference in board.references)),
        "reference_rows": {name: board.reference_rows(name) for name in board.coefficients},
        "plots": {column: _plots(board, column, evidence) for column in board.columns},
    }


def coefficient_name(name: str) -> str:
    """Return the printed name of a coefficient.

    Example:
        >>> coefficient_name("spearman"), coefficient_name("f1_b")
        ("Spearman's rho", 'f1 b')
    """
    known = {"spearman": "Spearman's rho", "pearson": "Pearson's r", "kendall": "Kendall's tau-b"}
    return known.get(name, name.replace("_", " "))


def breakable(name: str) -> Markup:
    """Return an evaluator's name with its options in small print and possible line breaks between words."""
    words, bracket, options = (str(escape(part)) for part in name.partition(" ("))
    words, options = re.sub("([_/])", r"\1<wbr>", words), re.sub("(/)", r"\1<wbr>", options)
    html = f"{words} <small>({options}</small>" if bracket else words
    return Markup(html)  # noqa: S704 - escaped three lines above


def _wrapped(text: str) -> Markup:
    return Markup(re.sub("([,|])", r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped here


def identity_in_words(identity: Identity) -> dict[str, str]:
    """Return the table texts that describe an evaluator, by column; "unknown" if unavailable.

    Example:
        >>> identity_in_words(Identity(method="trained", reads_references=False, n_parameters=23_800_000))
        {'method': 'trained', 'references': 'not read', 'parameters': '24 M', 'licence': 'unknown'}
    """
    n, is_rule = identity.n_parameters, identity.method == "rule"
    several = identity.licence.count(";") + 1
    return {
        "method": identity.method or UNKNOWN,
        "references": {True: "read", False: "not read", None: UNKNOWN}[identity.reads_references],
        "parameters": "none" if n == 0 else UNKNOWN if n is None else f"{n / 1e9:.1f} B" if n >= 1e9 else f"{n / 1e6:.0f} M",
        "licence": "no model" if is_rule else f"{several} licences" if several > 1 else identity.licence or UNKNOWN,
    }


def cost_in_words(cost: Cost, identity: Identity) -> str:
    """Return the cost of runs as text; requests and prompts only for evaluators that prompt a model.

    Example:
        >>> cost_in_words(Cost(seconds=75.2, n_requests=1200), Identity(method="prompted"))
        '75 s, 1,200 requests'
        >>> cost_in_words(Cost(seconds=75.2, n_requests=1200), Identity(method="rule"))
        '75 s'
    """
    parts = [] if cost.seconds is None else [f"{cost.seconds:,.0f} s"]
    counts = ((cost.n_requests, "requests"), (cost.n_prompt_characters, "characters of prompts"))
    parts += [f"{n:,} {unit}" for n, unit in counts if n is not None and identity.method == "prompted"]
    return ", ".join(parts) or UNKNOWN


def lacking(board: Leaderboard, evaluator: str, sets: Sequence[RatedSet]) -> str:
    """Return why an evaluator is not ranked on some sets, such as "needs references: FED, turns"; empty if it is ranked."""
    sets_by_reason: dict[str, list[str]] = {}
    for column in board.columns_with(board.main):
        if column.rated_set in sets and (why := _lack(board, evaluator, column, board.main)):
            names = sets_by_reason.setdefault(why, [])
            names += [name] if (name := _set_name(board, column.rated_set)) not in names else []
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in sets_by_reason.items())


def _lack(board: Leaderboard, evaluator: str, column: Column, coefficient: str) -> str:
    cell, figure = board.cell(evaluator, column), board.figure(evaluator, column, coefficient)
    if figure is None or figure.value is None:
        return board.why_missing(evaluator, column, coefficient)
    return "part of the set" if cell is not None and cell.is_partial else ""


def _all_sets(board: Leaderboard) -> list[RatedSet]:
    return list(dict.fromkeys(column.rated_set for column in board.columns))


def _set_name(board: Leaderboard, one: RatedSet) -> str:
    levels = {other.level for other in _all_sets(board) if other.dataset == one.dataset}
    return board.title(one.dataset) if len(levels) == 1 else f"{board.title(one.dataset)}, {one.level}s"


def _kinds(identity: Identity) -> dict[str, str]:
    n = identity.n_parameters
    size = UNKNOWN if n is None else "none" if n == 0 else "up to 100 M" if n <= _SMALL_MODEL else "more than 100 M"
    use = {True: "commercial use", False: "non-commercial", None: UNKNOWN}[identity.commercial_use]
    words = identity_in_words(identity)
    licence = words["licence"] if identity.method == "rule" else use
    return {"references": words["references"], **words, "parameters": size, "licence": licence}


def _filters(identities: Mapping[str, Identity]) -> dict[str, list[str]]:
    """Return the values of each filter, "unknown" last."""
    kinds = [_kinds(identity) for identity in identities.values()]
    names = dict.fromkeys(name for one in kinds for name in one)
    return {name: sorted({one[name] for one in kinds}, key=lambda value: (value == UNKNOWN, value)) for name in names}


def _total_cost(board: Leaderboard, evaluator: str) -> Cost:
    costs = [cell.cost for cell in board.cells if cell.evaluator == evaluator]
    fields = ("seconds", "n_requests", "n_prompt_characters")
    values = {name: [getattr(cost, name) for cost in costs] for name in fields}
    return Cost(**{name: None if None in of_cells else sum(of_cells) for name, of_cells in values.items()})


def _cards(identities: Iterable[Identity]) -> dict[str, tuple[str, str]]:
    metrics = {identity.card: metrics_path() / identity.card for identity in identities if identity.card}
    models = {identity.model_card: PRETRAINED / identity.model_card for identity in identities if identity.model_card}
    cards = {f"card-{name}": (f"Metric {name}", folder) for name, folder in sorted(metrics.items())}
    cards |= {f"model-{name}": (f"Model {name}", folder) for name, folder in sorted(models.items())}
    return {anchor: (title, _card_text(read_text(folder / "README.md"))) for anchor, (title, folder) in cards.items()}


def _card_text(text: str) -> str:
    return (text.partition("\n---\n")[2] if text.startswith("---\n") else text).strip()


def _data(
    board: Leaderboard,
    identities: Mapping[str, Identity],
    pairs: Mapping[Column, Mapping[tuple[str, str], Estimate]],
) -> dict[str, Any]:
    """Return the data of the page's script: figures with five decimals, and indices instead of names."""
    names, sets = board.evaluators, _all_sets(board)
    place = {name: number for number, name in enumerate(names)}
    values = {
        coefficient: [[_figure(board.figure(name, column, coefficient)) for column in board.columns] for name in names]
        for coefficient in board.coefficients
    }
    apart = [
        [[place[a], place[b], *_numbers(one)] for (a, b), one in pairs.get(column, {}).items() if one.value is not None]
        for column in board.columns
    ]
    return {
        "coefficients": [{"id": name, "higher": board.higher_is_better(name)} for name in board.coefficients],
        "sets": [{"key": f"{one.dataset}/{one.level}", "name": _set_name(board, one), "level": one.level} for one in sets],
        "columns": [{"set": sets.index(column.rated_set), "quality": column.quality} for column in board.columns],
        "common": {name: [sets.index(one) for one in board.common_sets(name)] for name in board.coefficients},
        "evaluators": [{"name": name, **_kinds(identities[name])} for name in names],
        "values": values,
        "lacks": {
            coefficient: [[_lack(board, name, column, coefficient) for column in board.columns] for name in names]
            for coefficient in board.coefficients
        },
        "people": {
            name: [
                [board.reference_rows(name).get(person, {}).get(column) for column in board.columns]
                for person in (ONE_PERSON, HALF_THE_PEOPLE)
            ]
            for name in board.coefficients
        },
        "differences": apart,
    }


def _figure(figure: Figure | None) -> list[float] | int:
    """Return the numbers of a figure; 0 without a value."""
    return 0 if figure is None or figure.value is None else _numbers(figure)


def _numbers(one: Figure | Estimate) -> list[float]:
    """Return value, interval, and a 1 if it is rough."""
    numbers = [round(number, 5) for number in (one.value, one.ci_low, one.ci_high) if number is not None]
    return [*numbers, *([1] if one.is_rough else [])]


def _plots(board: Leaderboard, column: Column, evidence: Sequence[EvaluatorRows]) -> dict[str, str]:
    by_evaluator = {item.evaluator: item.scored for item in evidence if item.column == column and item.scored}
    pictures = {}
    for evaluator in board.evaluators:
        if evaluator in by_evaluator:
            scores, ratings = zip(*by_evaluator[evaluator], strict=True)
            pictures[evaluator] = distribution(scores, ratings, title=f"Scores of {evaluator} at each level of the rating")
    return pictures


def _heat(figure: Figure) -> str:
    """Return the name of the tint of a value in [-1, 1]; empty for other values, or if lower is better."""
    if figure.value is None or not figure.higher_is_better or abs(figure.value) > 1:
        return ""
    step = min(_HEAT_STEPS, 1 + int(abs(figure.value) * _HEAT_STEPS * 1.25))
    return f" {'p' if figure.value >= 0 else 'n'}{step}"
