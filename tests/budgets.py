"""Processor time of each test, which does not depend on how busy the machine is: one that takes tenfold of its budget fails.

`make budgets` measures again and writes `budgets.json`, the seconds of the slow tests, which `make test` leaves out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import forked

FILE = Path(__file__).with_name("budgets.json")
WRITTEN = 0.5
"""Seconds from which on a test is slow, and in the file."""
LONGEST = 12.0
"""Seconds from which on a test is one of the first: the last one of all runs while the other processes have nothing to do."""
LOWEST, UNWRITTEN = 3.0, 12.0
"""Lowest budget, and that of a test not in it. Which test first exports a model, varies."""
BUDGETS: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8"))

_measured: dict[str, float] = {}


def used() -> float:
    """Return the processor seconds of this process and of all below it, those that have ended and the forked ones included."""
    return sum(os.times()[:4]) + sum(_below(os.getpid())) / os.sysconf("SC_CLK_TCK") + sum(forked.USED)


def _below(process: int) -> Iterator[int]:
    """Clock ticks of each process that lives below one; none where the system does not tell."""
    for names in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in set(map(int, _text(names).split())) - forked.STARTED.keys():
                yield from _below(child)
                # After the name in brackets: user and system time of the process, and of its children that have ended.
                yield sum(map(int, _text(f"/proc/{child}/stat").rpartition(")")[2].split()[11:15]))


def _text(path: str | Path) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - the test may have replaced Path.open
        return file.read()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, and move the slowest ones to the front."""
    for item in items:
        if item.nodeid in BUDGETS:
            item.add_marker("slow")
    items.sort(key=lambda item: BUDGETS.get(item.nodeid, 0.0) < LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure the test, without its fixtures, which the first of the tests that share one pays."""
    before = used()
    yield
    seconds = used() - before
    item.user_properties.append(("processor_seconds", seconds))
    allowed = 10 * max(BUDGETS.get(item.nodeid, UNWRITTEN), LOWEST)
    if seconds > allowed and "DIALEVAL_WRITE_BUDGETS" not in os.environ:
        message = f"{seconds:.0f} s of processor time are more than {allowed:.0f} s, tenfold of the budget. See `make budgets`."
        pytest.fail(message, pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect what each process of the run measured."""
    if report.when == "call" and report.passed:
        _measured[report.nodeid] = dict(report.user_properties).get("processor_seconds", 0.0)


def pytest_sessionfinish() -> None:
    """Write the file again, where `make budgets` asks for it; tests that did not run keep their lines."""
    if "DIALEVAL_WRITE_BUDGETS" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        found = {name: round(seconds, 1) for name, seconds in sorted((BUDGETS | _measured).items()) if seconds >= WRITTEN}
        FILE.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
