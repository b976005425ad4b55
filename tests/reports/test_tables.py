"""The same rows for people and for programs. FAULTS R65, D19."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dialeval_plugin.reports.tables import Table, TableRow, named_column
from dialeval_plugin.statistics.estimates import interval_text
from tests.refusals import refused

ROWS: list[TableRow] = [
    {"name": "a|b_{c}", "value": 0.12345, "note": None},
    {"name": 'x, "y"', "value": -0.0001, "note": "50 % & \\ ~^<>#$"},
]
TABLE = Table(
    ROWS,
    [named_column("name", is_number=False), named_column("value"), named_column("note", is_number=False)],
    notes=["One note."],
    settings={"seed": 7},
)


@pytest.mark.parametrize(
    ("figures", "options", "text"),
    [
        ((0.25, 0.1, 0.35), {}, "0.250 [0.100, 0.350]"),
        ((0.25, 0.1, 0.35), {"decimals": 2, "bound_decimals": 1, "is_rough": True}, "0.25 [0.1, 0.3, rough]"),
        ((-0.0001, -0.0004, 0.2), {}, "0.000 [0.000, 0.200]"),
        ((0.25, None, 0.35), {}, "0.250"),
        ((0.25, 0.1, None), {"is_rough": True}, "0.250"),
        ((0.25, 0.1, 0.35), {"decimals": 2, "bound_decimals": 0}, "0.25 [0, 0]"),
        ((None, 0.1, 0.35), {}, "undefined"),
    ],
)
def test_value_and_interval(figures: tuple[float | None, ...], options: dict[str, int], text: str) -> None:
    assert interval_text(*figures, **options) == text  # type: ignore[arg-type]


def test_text_is_aligned_and_ends_no_line_in_blanks() -> None:
    assert TABLE.render("text") == (
        'name     value  note\n-------  -----  ---------------\na|b_{c}  0.123\nx, "y"   0.000  50 % & \\ ~^<>#$\n\nOne note.\n'
    )


def test_markdown_keeps_bars_inside_a_cell() -> None:
    assert TABLE.render("markdown").split("\n")[:3] == [
        "| name | value | note |",
        "| --- | ---: | --- |",
        "| a\\|b_{c} | 0.123 |  |",
    ]


def test_latex_is_escaped() -> None:
    lines = TABLE.render("latex").split("\n")
    assert lines[0] == r"\begin{tabular}{lrl}"
    assert lines[4] == r"a|b\_\{c\} & 0.123 &  \\"
    assert lines[5] == (
        r'x, "y" & 0.000 & 50 \% \& \textbackslash{} \textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\#\$ \\'
    )
    assert lines[-2] == "% One note."


def test_programs_get_every_value_unrounded() -> None:
    assert json.loads(TABLE.render("json")) == {"schema_version": 1, "seed": 7, "rows": ROWS, "notes": ["One note."]}
    read = list(csv.DictReader(io.StringIO(TABLE.render("csv"))))
    assert [(row["name"], float(row["value"]), row["note"]) for row in read] == [
        ("a|b_{c}", 0.12345, ""),
        ('x, "y"', -0.0001, ROWS[1]["note"]),
    ]


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        Table([{"value": float("nan")}], []).render("json")


def test_an_unknown_format_is_refused() -> None:
    with refused("--format 'html': there is no such format. Known are: text, markdown, csv, latex, json."):
        TABLE.render("html")


FORMULAS = ["=HYPERLINK(1)", "@SUM(1)", "+1", "-2+3", "\t=1", "\r=1", " =1"]


@pytest.mark.parametrize("name", FORMULAS)
def test_d19_no_cell_of_a_csv_file_is_a_formula_and_numbers_stay_numbers(name: str) -> None:
    table = Table([{"name": name, "value": -0.5, "n": -3}], [])
    (row,) = csv.DictReader(io.StringIO(table.render("csv"), newline=""))
    assert row == {"name": "'" + name.replace("\t", " ").replace("\r", " "), "value": "-0.5", "n": "-3"}


@pytest.mark.parametrize("break_", ["\n", "\r\n", "\r", "\u2028", "\x85", "\x1b"])
def test_d19_a_line_break_in_a_name_breaks_no_row(break_: str) -> None:
    table = Table([{"name": f"a{break_}| b"}], [named_column("name", title=f"na{break_}me", is_number=False)], [f"x{break_}y"])
    assert table.render("markdown").split("\n")[:3] == ["| na me |", "| --- |", "| a \\| b |"]
    assert table.render("latex").split("\n")[2:5] == ["na me \\\\", "\\midrule", "a | b \\\\"]
    assert table.render("latex").endswith("% x y\n")
    assert table.render("text").split("\n")[:3] == ["na me", "-----", "a | b"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[x](javascript:alert(1))", "[x]\\(javascript:alert(1))"),
        ("![i](http://evil/p.png)", "![i]\\(http\\://evil/p.png)"),
        ("<img src=x>", "&lt;img src=x>"),
        ("<http://evil>", "&lt;http\\://evil>"),
        ("www.evil.org", "www\\.evil.org"),
        ("0.5 [0.4, 0.6]", "0.5 [0.4, 0.6]"),
    ],
)
def test_d4_no_name_is_a_link_or_an_image_in_markdown(name: str, shown: str) -> None:
    table = Table([{"name": name}], [named_column("name", is_number=False)])
    assert table.render("markdown").split("\n")[2] == f"| {shown} |"


def test_latex_sets_a_minus_and_no_hyphen() -> None:
    rows = [{"name": "a-1", "value": -0.25, "range": "-0.5 to -0.1"}]
    columns = [named_column("name", is_number=False), named_column("value"), named_column("range")]
    assert r"a-1 & $-$0.250 & $-$0.5 to $-$0.1 \\" in Table(rows, columns).render("latex")
