"""The evaluators whose results are in results.md: what each one is, what it needs, and the tasks on which it can run.

The table is `evaluators.json`. Names in braces in the values of options are folders that the user names, `{slm}`
that of `--slm`; an evaluator with several folders of one kind runs once for each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, Level
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.methods.judging.dialogue_rating import rating_prompts
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve

Cost: TypeAlias = Literal["seconds", "minutes", "tens of minutes", "hours"]
Folders: TypeAlias = Mapping[str, Sequence[str]]
"""Kind of model to the folders that the user named."""

KINDS = ("slm", "causalscore", "language_model", "background", "odin", "reconstruction", "general", "llm")
"""Kinds of models. All but "llm", a language model that is asked, are trained with `dialeval train`."""

_ENCODER = "packaged_encoder"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """One row of the table.

    Attributes:
        name: of its folder of results; unique.
        scorer: empty for a language model that judges.
        model: the host's name of the kind of model.
        level: of the tasks that it can run on; None for both.
        needs_references: whether a response without references has no score.
        cost: of one run over all sets, on two cores.
        not_here: why it is never run by `reproduction/results/runs.py`; empty for one that is.
    """

    name: str
    cost: Cost
    scorer: str = ""
    model: str = "dialogue-metric"
    options: Mapping[str, Any] = field(default_factory=dict)
    level: Level | None = "turn"
    needs_references: bool = False
    not_here: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of models that it needs."""
        found = _PLACEHOLDER.findall(" ".join(map(str, self.options.values())))
        return tuple(dict.fromkeys(name for name in found if name in KINDS))

    @property
    def model_arguments(self) -> dict[str, Any]:
        """The host's `--model_args`."""
        return {**({"scorer": self.scorer} if self.scorer else {}), **self.options}


class Plan(NamedTuple):
    """Evaluators that are run, and the reasons why others are not."""

    ready: tuple[Evaluator, ...]
    not_run: Mapping[str, str]
    """Name of an evaluator to what it lacks."""


class RatedTask(NamedTuple):
    """A task whose data is on this machine."""

    name: str
    level: Level
    has_references: bool


@cache
def evaluators() -> tuple[Evaluator, ...]:
    """Return the table."""
    return tuple(Evaluator(**row) for row in read_json(Path(__file__).with_name("evaluators.json"))["evaluators"])


def plan(folders: Folders) -> Plan:
    """Tell the evaluators that can run with the folders given from those that cannot."""
    ready: list[Evaluator] = []
    not_run: dict[str, str] = {}
    for row in evaluators():
        missing = [kind for kind in row.kinds if not folders.get(kind)]
        if row.not_here or missing:
            options = " and ".join(f"--{kind.replace('_', '-')}" for kind in missing)
            not_run[row.name] = row.not_here or f"needs {options} FOLDER"
        else:
            ready += _filled(row, folders)
    return Plan(tuple(ready), not_run)


def tasks_at_hand() -> list[RatedTask]:
    """Return the DSTC10 sets and FED's qualities that are on this machine, but for those without an overall quality.

    FED's overall quality is left out: it is rated by the same people on the same responses as in fed-turn and fed-dial.
    """
    found = []
    for code, entry in dstc10.SETS.items():
        if entry.overall is None:
            continue
        try:
            items = dstc10.read(code)
        except MissingPrerequisite:
            continue
        has_references = any(not isinstance(item, Dialogue) and item.references for item in items)
        found.append(RatedTask(f"dstc10_dialog_{code}", entry.level, has_references))
    return [*found, *_fed_tasks()]


def tasks_of(evaluator: Evaluator, tasks: Sequence[RatedTask]) -> list[str]:
    """Return the names of the tasks on which an evaluator can score anything."""
    return [
        task.name
        for task in tasks
        if evaluator.level in {None, task.level} and (task.has_references or not evaluator.needs_references)
    ]


def row_of(name: str, rows: Collection[str]) -> str:
    """Return the row that an evaluator comes from: its own name, or the longest that begins the name of one of several."""
    return name if name in rows else max((row for row in rows if name.startswith(f"{row}-")), key=len, default=name)


def _filled(row: Evaluator, folders: Folders) -> list[Evaluator]:
    """The row with folders in the place of their kinds: one, or one for each folder of a kind of which there are several."""
    several = next((kind for kind in row.kinds if len(folders[kind]) > 1), None)
    filled = []
    for folder in folders[several] if several else ("",):
        values = {kind: folder if kind == several else folders[kind][0] for kind in row.kinds}
        if f"{{{_ENCODER}}}" in row.options.values():
            values[_ENCODER] = str(resolve(PACKAGED_ENCODER))
        options = {name: value.format_map(values) if isinstance(value, str) else value for name, value in row.options.items()}
        name = f"{row.name}-{Path(folder).name}" if several else row.name
        filled.append(replace(row, name=name, options=options))
    return filled


def _fed_tasks() -> list[RatedTask]:
    from dialeval_plugin.corpora.readers import fed

    try:
        fed.read()
    except MissingPrerequisite:
        return []
    parts: dict[Level, str] = {"turn": "turn", "dialogue": "dial"}
    return [
        RatedTask(f"fed_dialog_{part}_{quality}", level, False)
        for level, part in parts.items()
        for quality in rating_prompts(level)
        if quality != "overall"
    ]
