"""The table of simulations in the documentation: the ranges of what the simulations wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduction.coverage import summary
from reproduction.documents import with_tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "meta_evaluation.md"


def test_the_page_has_the_ranges_of_the_simulated_shares() -> None:
    assert with_tables(PAGE, {"coverage": summary.table()})[PAGE] == PAGE.read_text(encoding="utf-8")


def test_shares_are_read_by_row_and_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "NOTES.md"
    of_tests = "| test | clusters | wrong |\n|---|---|---|\n| means | 30 | 5.5 |\n"
    of_intervals = "| labelled | ppi |\n| --- | ---: |\n| 30 rows | 95.9 (0.17) |\n| 60 rows |  |\n"
    notes.write_text(f"<!-- one -->\n{of_tests}\n{of_intervals}<!-- end of one -->\n| other | 1.0 |\n", encoding="utf-8")
    monkeypatch.setattr(summary, "NOTES", notes)
    assert summary.shares("one") == {"means: 30": {"clusters": 30.0, "wrong": 5.5}, "30 rows": {"ppi": 95.9}, "60 rows": {}}
    assert (summary.span([95.0, 93.64, 94.1]), summary.span([95.0])) == ("93.6 to 95.0", "95.0")
