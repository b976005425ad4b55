"""The sheet for people: a seeded sample that no spreadsheet runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dialeval_plugin.core.plain_text import for_spreadsheet
from dialeval_plugin.methods.augmentation.generation import AugmentedContext, Candidate
from dialeval_plugin.methods.augmentation.spot_check import HEADER, write_spot_check


def context(id: str, turns: tuple[str, ...], *texts: str) -> AugmentedContext:
    candidates = [
        Candidate("positive" if place % 2 == 0 else "adversarial", text, 1, "positive", None, True)
        for place, text in enumerate(texts)
    ]
    return AugmentedContext(id, turns, (*candidates, Candidate("positive", "Rejected.", 1, "negative")))


CONTEXTS = [
    context("=1+1", ("=SUM(A1)", 'He said "no",\nthen left.'), "=HYPERLINK(1)", "- said nobody.", "Fine, “thanks”."),
    context("b", ("Hi.",), *(f"Response {number}." for number in range(7))),
]


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_each_row_has_what_a_person_needs_and_a_blank_for_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    assert write_spot_check(path, CONTEXTS, n=100, seed=0) == 10
    header, *rows = read(path)
    assert tuple(header) == HEADER == ("context_id", "context", "response", "intended_label", "verdict")
    assert {row[4] for row in rows} == {""}
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'=HYPERLINK(1)", "positive", ""] in rows
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'- said nobody.", "adversarial", ""] in rows
    assert "Rejected." not in {row[2] for row in rows}
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_the_sample_is_the_seeds(tmp_path: Path) -> None:
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_spot_check(tmp_path / name, CONTEXTS, n=4, seed=seed) == 4
        drawn.append(read(tmp_path / name))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({(row[0], row[2]) for row in drawn[0][1:]}) == 4


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "  =", "\u00a0@"])
def test_no_cell_starts_as_a_formula_does(start: str) -> None:
    assert for_spreadsheet(f"{start}1+1|cmd") == f"'{start}1+1|cmd"


@pytest.mark.parametrize("cell", ["", "1 = 1", "a@b.org", "“= quoted", "'tis"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert for_spreadsheet(cell) == cell
