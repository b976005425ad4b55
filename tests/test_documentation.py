"""The documentation: its notebooks say what they show, its commands are run or marked, its pages open in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
import pytest

from reproduction.notebooks import NOTEBOOKS, run
from tests.browser import browser_page
from tests.documented import PAGES, ROOT, Block, blocks, write_inputs


def is_run(block: Block) -> bool:
    """Whether a test runs it."""
    return block.is_command and not block.is_marked and (block.language == "sh" or not block.title)


def shown(notebook: Any) -> list[list[str]]:
    """What each cell shows on a page."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [output.get("text") or output["data"].get("text/markdown", "") for output in cell.outputs]
            cells.append([re.sub(r" +$", "", text, flags=re.MULTILINE) for text in texts])
    return cells


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_gives(path: Path, tmp_path: Path) -> None:
    assert shown(run(path, tmp_path)) == shown(nbformat.read(path, as_version=4))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


def test_every_command_of_the_documents_is_run_or_says_what_it_needs() -> None:
    unknown = [
        f"{block.page.name}:{block.line}: run it or mark it: {block.title or block.text.splitlines()[0]!r}"
        for page in PAGES
        for block in blocks(page)
        if block.is_command and not block.is_marked and (block.language not in {"sh", "python"} or _is_other_title(block))
    ]
    assert unknown == []


def _is_other_title(block: Block) -> bool:
    """Whether a title is neither a mark nor the name of the file in which the block stands."""
    return block.title != "" and Path(block.title).suffix != ".py"


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if any(map(is_run, blocks(page)))], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    """In a folder with the files that they name, with no data, no network and nothing of the user's."""
    write_inputs(tmp_path)
    site = tmp_path / "site-packages"
    path = [str(Path(sys.executable).parent), os.environ["PATH"]]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DIALEVAL_", "HF_"))}
    environment = {
        **kept,
        "PATH": os.pathsep.join(path),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PIP_TARGET": str(site),
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
    }
    for block in blocks(page):
        if block.title and not block.is_marked:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if not is_run(block):
            continue
        command = [sys.executable, "-c"] if block.language == "python" else ["bash", "-euc"]
        done = subprocess.run(
            [*command, block.script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{page.name}:{block.line}\n{done.stdout}{done.stderr}"


def test_files_that_pages_offer_hold_what_they_show() -> None:
    """Each figure of a table that ends in a link to its data files stands in one of them."""
    missing = []
    for page in PAGES:
        for section in re.findall(r"<!-- shown: .*? -->\n(.*?)<!-- end of ", page.read_text(encoding="utf-8"), re.DOTALL):
            names = re.findall(r"\]\((data/[^)]+\.csv)\)", section)
            values = set(re.split(r"[,\n]", "\n".join((page.parent / name).read_text(encoding="utf-8") for name in names)))
            rows = [line for line in section.splitlines() if line.startswith("| ")]
            figures = re.findall(r"(?<![\w.])-?\d\.\d{3,}(?![\w.])", "\n".join(rows))
            missing += [f"{page.name}: {figure} is not in {names}" for figure in figures if figure not in values]
    assert missing == []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; the build is strict, so no link in it is dead."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = Path(sys.executable).with_name("mkdocs")
    done = subprocess.run(
        [mkdocs, "build", "--quiet", "--strict", "--site-dir", folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
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
