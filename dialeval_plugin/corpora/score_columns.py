"""What the readers of score files return: a column of scores an evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dialeval_plugin.core.scores import Orientation

from .rated_items import RatedItem


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """The scores of one evaluator, by id."""

    evaluator: str
    scores: Mapping[str, float | None]
    """None where a row is unscored."""
    unscored: Mapping[str, str]
    """Why it is, by id."""
    source: str
    quality: str | None = None
    """The quality that the scores are meant for; None where they are for any."""
    orientation: Orientation = "higher"
    is_in_file_order: bool = False
    """Whether the ids are numbers that say a place in the rated file, from 0."""
    signature: str | None = None


class ScoreFile(NamedTuple):
    """The evaluators of a file, and the ratings where it has them too."""

    columns: list[ScoreColumn]
    ratings: list[RatedItem] | None = None
