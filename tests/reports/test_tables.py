"""The same rows for people and for programs. FAULTS R65."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dialeval_plugin.errors import InputError
from dialeval_plugin.reports.tables import Column, Row, Table, figure

ROWS: list[Row] = [
    {"name": "a|b_{c}", "value": 0.12345, "note": None},
    {"name": 'x, "y"', "value": -0.0001, "note": "50 % & \\ ~^<>#$"},
]
TABLE = Table(
    ROWS,
    [
        Column("name", lambda row: str(row["name"]), is_number=False),
        Column("value", lambda row: figure(row["value"])),
        Column("note", lambda row: figure(row["note"]), is_number=False),
    ],
    notes=["One note."],
    settings={"seed": 7},
)


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
    with pytest.raises(InputError) as caught:
        TABLE.render("html")
    assert str(caught.value) == "--format 'html': there is no such format. Choose one of text, markdown, csv, latex, json."
