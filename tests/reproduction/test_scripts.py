"""Parts of all scripts: each starts, its README says how, it writes between its markers, and what it has scored is kept."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from reproduction import kept_results
from reproduction.documents import put_between, with_tables, write_tables
from reproduction.likelihood import write
from tests.layouts import write_convai
from tests.refusals import refused
from tests.tiny.likelihood import write_likelihood_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = "# Title\n\n<!-- table -->\nold\n<!-- end of table -->\n\nAfter, with \\1 in it.\n"


@pytest.mark.parametrize("paper", sorted(path.parent.name for path in (ROOT / "reproduction").glob("*/write.py")))
def test_a_script_starts_and_its_readme_says_how_and_where_the_outcome_stands(
    paper: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = import_module(f"reproduction.{paper}.write")
    with pytest.raises(SystemExit) as ended:
        script.main(["--help"])
    assert ended.value.code == 0
    assert "--document" in capsys.readouterr().out
    readme = (ROOT / "reproduction" / paper / "README.md").read_text(encoding="utf-8")
    assert f"python -m reproduction.{paper}.write" in readme
    documents = re.findall(r"`((?:docs|reproduction)/[\w/]+\.md)`", readme.partition("Outcome: ")[2])
    assert documents
    assert [document for document in documents if not (ROOT / document).is_file()] == []


def test_likelihoods_stand_beside_the_thesis_and_are_scored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(write_convai(tmp_path / "data", 12)))
    model = write_likelihood_model(tmp_path / "lm", "gpt2")
    arguments = ["--model", str(model), "--work", str(tmp_path / "work"), "--rounds", "0", "--limit", "6"]
    write.main(arguments)
    text = capsys.readouterr().out
    assert "### convai1, dialogue level, quality, 6 items\n\n|  | Pearson | Spearman | scored |\n" in text
    assert re.search(r"^\| ours \(full\), 5\.4 \| -?\d\.\d{3} \| -?\d\.\d{3} \| 6 of 6 \|$", text, re.MULTILINE)
    assert "\n| thesis, table 8.2: gpt2-sm (pair) | -0.0347 | 0.0520 |  |\n" in text
    assert len(list((tmp_path / "work" / "scores").iterdir())) == 4
    monkeypatch.setattr(kept_results, "run", None)
    write.main(arguments)
    assert capsys.readouterr().out == text


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    written = put_between(PAGE, "table", "| \\1 |\n")
    assert written == "# Title\n\n<!-- table -->\n\n| \\1 |\n\n<!-- end of table -->\n\nAfter, with \\1 in it.\n"
    assert put_between(written, "table", "| \\1 |") == written
    assert put_between(written, "table", "") == PAGE.replace("old\n", "")


@pytest.mark.parametrize(
    "document",
    ["# Title\n", "<!-- end of table -->\n<!-- table -->\n", "<!-- table -->\n<!-- table -->\n<!-- end of table -->\n"],
)
def test_a_document_without_a_single_place_is_refused(document: str) -> None:
    with refused("document: has no single place between '<!-- table -->' and '<!-- end of table -->'. Put the markers in."):
        put_between(document, "table", "x")


SECTION = """What it says.

### First

| name | score | n |
| --- | --- | --- |
| a | 0.100 [0.050, 0.150, rough] (97% scored) | 3 |
| b, c | 0.200 [0.150, 0.250] |  |

### Second

| name | score | n |
| --- | --- | --- |
| a | undefined | 4 |
"""
WHOLE = """table,name,score,"score, low","score, high","score, note",n
First,a,0.100,0.050,0.150,rough (97% scored),3
First,"b, c",0.200,0.150,0.250,,
Second,a,undefined,,,,4
"""


def test_a_page_shows_what_it_asks_for_and_the_data_file_has_all(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shown = '<!-- shown: [{"table": "First", "rows": "^. b", "columns": ["name", 1]}] -->'
    page.write_text(f"{shown}\n<!-- table -->\n<!-- end of table -->\n", encoding="utf-8")
    write_tables(page, {"table": SECTION})
    assert page.read_text(encoding="utf-8") == (
        f"{shown}\n<!-- table -->\n\nWhat it says.\n\n### First\n\n| name | score |\n| --- | --- |\n"
        "| b, c | 0.200 [0.150, 0.250] |\n\nThe whole table: [table.csv](data/page/table.csv) (3 rows).\n\n"
        "<!-- end of table -->\n"
    )
    assert (tmp_path / "data" / "page" / "table.csv").read_text(encoding="utf-8") == WHOLE


def test_each_of_several_documents_gets_the_tables_that_it_has_markers_of(tmp_path: Path) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text("<!-- one -->\n<!-- end of one -->\n", encoding="utf-8")
    second.write_text("<!-- one -->\n<!-- end of one -->\n<!-- two -->\n<!-- end of two -->\n", encoding="utf-8")
    write_tables([first, second], {"one": "1", "two": "2"})
    assert first.read_text(encoding="utf-8") == "<!-- one -->\n\n1\n\n<!-- end of one -->\n"
    assert second.read_text(encoding="utf-8") == (
        "<!-- one -->\n\n1\n\n<!-- end of one -->\n<!-- two -->\n\n2\n\n<!-- end of two -->\n"
    )
    with refused("document: has no single place between '<!-- three -->' and '<!-- end of three -->'. Put the markers in."):
        write_tables([first, second], {"one": "4", "three": "3"})
    assert "4" not in first.read_text(encoding="utf-8")


def test_a_section_without_a_table_stays_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- shown: [] -->\n<!-- table -->\n<!-- end of table -->\n", encoding="utf-8")
    assert set(with_tables(page, {"table": "Nothing yet."})) == {page}
