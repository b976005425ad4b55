"""FAULTS R67, D17: whatever stands in a result file, a samples file or a leaderboard, it is read or refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.leaderboard.board import Leaderboard
from dialeval_plugin.leaderboard.build import BuildResult, build
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import newest, rescore
from dialeval_plugin.reports.correlation_report import ReportOptions
from dialeval_plugin.statistics.bootstrap import Bootstrap
from tests.leaderboard_files import DATE

ODD = (None, True, False, -1, 0, 7, 1e18, 1e308, -1.5, "", "x", "nan", "1e999", "9", [], [1, 2], ["x", None], {}, {"a": 1})
QUESTION = ReportOptions(bootstrap=Bootstrap(0), permutations=0)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield everything in a JSON value but itself."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield (*path, name)
        yield from places(inner, (*path, name))


def mutated(value: Any, drawn: random.Random) -> Any:
    """One node, near the top as often as deep down, is another value or is not there."""
    found = deepcopy(value)
    by_depth: dict[int, list[tuple[Any, ...]]] = {}
    for path in places(found):
        by_depth.setdefault(len(path), []).append(path)
    *way, last = drawn.choice(by_depth[drawn.choice(sorted(by_depth))])
    holder = found
    for step in way:
        holder = holder[step]
    if drawn.random() < 0.2:
        del holder[last]
    else:
        holder[last] = deepcopy(drawn.choice(ODD))
    return found


def read_and_use(folder: Path) -> None:
    rescore(newest(read_runs([folder])), QUESTION)
    build([folder], rank_rounds=0)


def refusal(action: Callable[[], object]) -> str | None:
    """The message of an `InputError`, the one error that may come; None where there is none."""
    try:
        action()
    except InputError as error:
        return str(error)
    return None


def count_accepted(refusals: Sequence[str | None], name: str) -> int:
    """Refusals begin with the name of the file."""
    assert [said for said in refusals if said and not said.startswith((name, "rescore: no run with samples"))] == []
    return refusals.count(None)


@pytest.mark.long
def test_a_mutated_result_file_is_read_or_refused(copy: Path) -> None:
    drawn = random.Random(0)
    path = copy / f"judge_{DATE}.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    said = []
    for _ in range(90):
        path.write_text(json.dumps(mutated(good, drawn)), encoding="utf-8")
        said.append(refusal(lambda: read_and_use(copy)))
    assert 20 < count_accepted(said, str(copy)) < 85


@pytest.mark.long
@pytest.mark.parametrize("task", ["dstc10_dialog_mini", "slide_mini", "dailydialog_pp_mini"])
def test_a_mutated_samples_file_is_read_or_refused(task: str, copy: Path) -> None:
    drawn = random.Random(1)
    path = copy / f"samples_{task}_{DATE}.jsonl"
    good = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    said = []
    for _ in range(40):
        changed = [mutated(sample, drawn) if place == 2 else sample for place, sample in enumerate(good)]
        path.write_text("".join(json.dumps(sample) + "\n" for sample in changed), encoding="utf-8")
        said.append(refusal(lambda: read_and_use(copy)))
    assert 5 < count_accepted(said, str(copy)) < 39


def test_a_mutated_leaderboard_is_read_or_refused(built: BuildResult) -> None:
    good = built.board.to_dict()
    drawn = random.Random(2)

    def use(data: Any) -> None:
        board = Leaderboard.from_dict(data, where="board.json")
        board.to_csv()
        board.to_markdown()

    said = []
    for _ in range(150):
        data = mutated(good, drawn)
        said.append(refusal(lambda data=data: use(data)))  # type: ignore[misc]
    assert 10 < count_accepted(said, "board.json") < 140
