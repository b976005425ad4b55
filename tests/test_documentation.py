"""The documentation: its notebooks say what they show, its commands are run or marked, its pages open in a browser."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
import pytest

from reproduction.notebooks import NOTEBOOKS, SETTINGS, run
from tests import forked, prose
from tests.browser import browser_page
from tests.cli.running import DIALEVAL, environment, run_installed
from tests.documented import PAGES, ROOT, Block, blocks, is_printed
from tests.page_commands import PageCommands

page_name = attrgetter("stem")
SHAPES = {"json", "toml", "csv", "tree"}
"""Languages of blocks that show a layout."""


def shown(notebook: Any) -> list[list[str]]:
    """Return the texts that each cell shows on a page."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [output.get("text") or output["data"].get("text/markdown", "") for output in cell.outputs]
            cells.append([re.sub(r" +$", "", text, flags=re.MULTILINE) for text in texts])
    return cells


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_gives(path: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with forked.stand_in(DIALEVAL, environment(tmp_path, **SETTINGS)) as programs:
        found = run(path, tmp_path / "folder", programs)
    assert shown(found) == shown(nbformat.read(path, as_version=4))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


def test_the_documents_have_the_terms_and_sentences_that_contributing_asks_for() -> None:
    assert prose.all_problems() == []


def test_the_prose_check_names_the_line_and_what_to_write() -> None:
    text = "# What it is\n\nA judge.\nIt stands beside\na tool.\n\n| What | who |\n\n- **What is cut** counts. Who asks?\n"
    words = "Word " * 36
    assert list(prose.problems(f"{text}\nOf a scorer\nall scores.\n\n{words}end.")) == [
        (4, "'beside'. Write 'next to'."),
        (9, "'What' begins a sentence that is no question. Begin with the noun."),
        (12, "'Of a' begins a sentence that is no question. Begin with the noun."),
        (14, "a sentence of 37 words. Make two of it."),
    ]


def test_the_words_to_avoid_are_those_of_contributing() -> None:
    assert len(prose.terms()) >= 12
    assert prose.terms()["error bar"] == "confidence interval (then: interval)"


def test_every_block_of_the_documents_is_run_or_compared_or_says_what_it_needs() -> None:
    unknown = []
    for page in PAGES:
        is_after_a_command = False
        for block in blocks(page):
            is_after_a_command = is_after_a_command or block.is_run
            is_known = block.is_run or block.is_marked or block.is_file or block.language in SHAPES
            if not is_known and not (block.is_output and is_after_a_command):
                unknown.append(f"{page.name}:{block.line}: run it, mark it or delete it: {block.text.splitlines()[0]!r}")
    assert unknown == []


def test_no_output_of_a_page_stands_in_the_way_of_another_page() -> None:
    """A reader pastes page after page in one folder, and a file that is there is not written over."""
    written: dict[str, set[str]] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.is_run:
                for name in re.findall(r"(?:--output|--record|--by-conversation|dialeval merge) (\S+)", block.script):
                    written.setdefault(name, set()).add(page.name)
    assert {name: pages for name, pages in written.items() if len(pages) > 1} == {}


@pytest.mark.parametrize(
    ("shown", "stdout", "stderr", "is_same"),
    [
        ("mean 0.526, 4 of 4\n", "mean 0.527,  4 of 4\n", "", True),
        ("mean 0.526, 4 of 4\n", "mean 0.528, 4 of 4\n", "", False),
        ("mean 0.526, 4 of 4\n", "mean 0.526, 5 of 4\n", "", False),
        ("a|...|b 0.5\n", "a|much|more|b 0.5\n", "", True),
        ("one\n", "one\ntwo\n", "", False),
        ("one\nsaid 7\n", "one\n", "said 7\nnext: two\n", True),
        ("one\nsaid 7\n", "one\n", "said 8\n", False),
        ("-0.047 to 0.1", "0.047 to 0.1", "", False),
    ],
)
def test_what_a_block_shows_is_compared_to_the_digit(shown: str, stdout: str, stderr: str, is_same: bool) -> None:
    assert is_printed(shown, stdout, stderr) is is_same


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if any(block.is_run for block in blocks(page))], ids=page_name)
def test_the_commands_of_a_page_run_in_order_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    """In an empty folder, with no data, no network and nothing of the user's."""
    (folder := tmp_path / "home").mkdir()
    commands, printed = PageCommands(folder), None
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.is_file:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.is_run:
            printed = commands.run(block)
            assert printed.status == 0, f"{where}\n{printed.stdout}{printed.stderr}"
        elif block.is_output:
            assert printed is not None
            assert is_printed(block.text, printed.stdout, printed.stderr), f"{where}\n{printed.stdout}\n{printed.stderr}"


@pytest.mark.real_data
@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page) if block.needs_data])
def test_sessions_on_public_data_print_what_they_show(block: Block, tmp_path: Path, data_dir: Path) -> None:
    for path in (data_dir / "llm_judgements").glob("*/fed_data/turn_level/*_metrics.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    command, _, shown = block.text.removeprefix("$ dialeval ").partition("\n")
    done = run_installed(tmp_path, *shlex.split(command), DIALEVAL_DATA_DIR=str(data_dir))
    assert done.returncode == 0, done.stderr
    assert is_printed(shown, done.stdout, done.stderr), done.stdout


def test_files_that_pages_offer_hold_what_they_show() -> None:
    """Each figure of a table that ends in a link to its data files stands in one of them."""
    missing = []
    for page in [*PAGES, *ROOT.glob("reproduction/*/results.md")]:
        for section in re.findall(r"<!-- shown: .*? -->\n(.*?)<!-- end of ", page.read_text(encoding="utf-8"), re.DOTALL):
            names = re.findall(r"\]\((data/[^)]+\.csv)\)", section)
            values = set(re.split(r"[,\n]", "\n".join((page.parent / name).read_text(encoding="utf-8") for name in names)))
            rows = [line for line in section.splitlines() if line.startswith("| ")]
            figures = re.findall(r"(?<![\w.])-?\d\.\d{3,}(?![\w.])", "\n".join(rows))
            missing += [f"{page.name}: {figure} is not in {names}" for figure in figures if figure not in values]
    assert missing == []


def build_site(folder: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Build as `make docs` does."""
    (words,) = re.findall(r"^docs:.*\n\t.*\$\(BIN\)/mkdocs (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    mkdocs = Path(sys.executable).with_name("mkdocs")
    return subprocess.run([mkdocs, *words.split(), "--site-dir", folder], cwd=root, capture_output=True, text=True, check=False)


def test_the_build_of_the_site_stops_at_a_dead_link_and_at_a_dead_anchor(tmp_path: Path) -> None:
    settings = re.findall(r"^(?:strict: true|validation:\n(?: .*\n)+)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert len(settings) == 2
    (tmp_path / "mkdocs.yml").write_text("\n".join(["site_name: small", *settings]), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Here\n\n[page](gone.md) and [anchor](#gone)\n", encoding="utf-8")
    done = build_site(tmp_path / "site", tmp_path)
    assert done.returncode == 1
    assert "contains a link 'gone.md', but the target is not found among documentation files." in done.stderr
    assert "contains a link '#gone', but there is no such anchor on this page." in done.stderr


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; the build is strict, so no link in it is dead."""
    folder = tmp_path_factory.mktemp("site")
    done = build_site(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.long
def test_every_page_of_the_site_opens_without_an_error_and_loads_nothing_from_elsewhere(site: Path) -> None:
    # 404.html alone names its files from the root of a server.
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > len(PAGES)
    with browser_page() as page:
        for path in pages:
            page.open(path.as_uri())
            asked = [url for url in page.requests if not url.startswith(("file:", "data:", "blob:", "about:"))]
            assert (path.name, page.problems, asked) == (path.name, [], [])


@pytest.mark.long
def test_links_of_the_site_lead_to_files_that_are_there(site: Path) -> None:
    """Pages, data files and pictures, in the notebooks' pages too; addresses elsewhere are for people to follow."""
    dead = [
        f"{path.relative_to(site)}: {link}"
        for path in site.rglob("*.html")
        if path.name != "404.html"
        for link in re.findall(r'(?:href|src)="([^"#?]+)', path.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:", link) and not (path.parent / unquote(link)).exists()
    ]
    assert dead == []
