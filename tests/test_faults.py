"""`tests/FAULTS.md` leaves no fault out, and every test that it names exists."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

TESTS = Path(__file__).parent

R = ((1, 13), (20, 32), (40, 48), (50, 58), (60, 69), (70, 78))
FAULTS = [
    *(f"R{number:02}" for first, last in R for number in range(first, last + 1)),
    *(f"D{number}" for number in range(1, 33)),
    *(f"T{rank}" for rank in (1, 3, 4, 5, 6)),
    *(f"A{number}" for number in range(1, 131)),
    *(f"L{number}" for number in range(1, 47)),
    *(f"P{number}" for number in range(1, 9)),
    *(f"Q{number}" for number in range(1, 4)),
    *(f"S{number}" for number in range(1, 375)),
]
WITHOUT_A_TEST = {
    "R57": "none: no judge of this package compares two responses",
    "R66": "none: no release before this one was published",
}
"""Faults that nothing here can have, and how the reason in their row begins."""

ROWS = dict(re.findall(r"^\| ([RDTALPQS]\d+) \| .+ \| (.*) \|$", (TESTS / "FAULTS.md").read_text("utf-8"), re.MULTILINE))


def test_no_fault_is_left_out() -> None:
    assert list(ROWS) == FAULTS


def test_every_fault_is_covered_by_tests_that_exist() -> None:
    assert {fault: row for fault, row in ROWS.items() if not is_covered(fault, row)} == {}


def is_covered(fault: str, row: str) -> bool:
    if fault in WITHOUT_A_TEST:
        return row.startswith(WITHOUT_A_TEST[fault])
    tests = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", row)
    # Nothing else stands in the cell, "(to be filled)" neither.
    whole = ", ".join(f"`tests/{path}::{name}`" for path, name in tests)
    return bool(tests) and row == whole and all(name in names_of_tests(path) for path, name in tests)


@functools.cache
def names_of_tests(path: str) -> frozenset[str]:
    """Names of the test functions of a file and of its classes of tests; none where there is no such file."""
    file = TESTS / path
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return frozenset(node.name for node in defined if node.name.startswith(("test_", "Test")))
