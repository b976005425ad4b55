"""What the regression is fitted on: rated responses with their indicators, run here or as published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.corpora.registry import read_items

from .indicators import IndicatorModels
from .tasks import IndicatorSettings


class IndicatedRows(NamedTuple):
    """The responses of a file that are rated and have every indicator, and how many do not."""

    examples: list[Example]
    table: list[list[float]]
    """A row a response, a column an indicator."""
    ratings: list[float]
    n_left_out: int


def indicated_rows(data: Path, indicators: IndicatorModels, quality: str) -> IndicatedRows:
    """Run the classifiers on a file's responses; InputError where none of them is rated."""
    examples = [item for item in read_items(data) if isinstance(item, Example)]
    if not any(example.ratings for example in examples):
        raise InputError(f"{data}: has no rated responses. Give a file in the layout of USR or of a DSTC10 set.")
    return _complete(examples, indicators.indicate(examples).columns, quality)


def published_rows(data: Path, settings: IndicatorSettings, quality: str) -> IndicatedRows:
    """Take the indicators that a file of USR has; InputError where it lacks one."""
    scored = usr.read_scored(data)
    if missing := [name for name in settings.features if name not in scored.scores]:
        raise InputError(f"{data}: has no scores {missing[0]!r}. Leave --published-scores out to run the classifiers.")
    return _complete(scored.examples, {name: scored.scores[name] for name in settings.features}, quality)


def _complete(examples: Sequence[Example], columns: Mapping[str, Sequence[object]], quality: str) -> IndicatedRows:
    rows = IndicatedRows([], [], [], 0)
    for place, example in enumerate(examples):
        rating = mean_rating(example, quality)
        numbers = [value for column in columns.values() if isinstance(value := column[place], float)]
        if rating is not None and len(numbers) == len(columns):
            rows.examples.append(example)
            rows.table.append(numbers)
            rows.ratings.append(rating)
    return rows._replace(n_left_out=len(examples) - len(rows.examples))
