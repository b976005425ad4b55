"""The page as text: it needs nothing from outside, and no dialogue gets out of its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from dialeval_plugin.leaderboard.build import Built
from dialeval_plugin.leaderboard.page import render
from tests.leaderboard_files import HOSTILE


@pytest.fixture(scope="module")
def page(built: Built) -> str:
    return render(built.board, built.evidence)


class Elements(HTMLParser):
    """All start tags, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    elements = Elements(page)
    assert {tag for tag, _ in elements.tags} & {"link", "img", "iframe", "object", "embed", "base"} == set()
    assert [attributes for _, attributes in elements.tags if "src" in attributes] == []
    assert all(attributes["href"].startswith("#") for tag, attributes in elements.tags if tag == "a" and attributes["href"])
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}


def test_the_content_security_policy_names_the_only_script_and_style(page: str) -> None:
    elements = Elements(page)
    policy = next(attributes["content"] for _, attributes in elements.tags if "http-equiv" in attributes)
    script = base64.b64encode(hashlib.sha256(elements.scripts[-1].encode()).digest()).decode()
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    styled = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{styled}'; base-uri 'none'; form-action 'none'"
    )
    assert [name for _, attributes in elements.tags for name in attributes if name == "style" or name.startswith("on")] == []


def test_hostile_dialogue_stays_inside_the_data(page: str) -> None:
    assert "hacked = 1</script>" not in page
    assert "<img src=x" not in page
    scripts = Elements(page).scripts
    assert len(scripts) == 2
    groups = json.loads(scripts[0])
    first = groups[0]["cases"][0]
    assert first["context"][0] == [HOSTILE, HOSTILE]
    assert first["references"] == [HOSTILE]


def test_an_evaluator_with_markup_in_its_name_is_text(page: str) -> None:
    assert "<b>judge</b>" not in page
    assert '<th scope="row" class="name">&lt;b&gt;judge&lt;/b&gt;, dstc10_<wbr>dialog</th>' in page


def test_the_page_is_a_table_without_its_script(page: str) -> None:
    static = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    body = re.search('<table id="board">.*?</table>', static, re.DOTALL)
    assert body is not None
    assert body[0].count('<th scope="row"') == 3
    assert "37 of 40 scored" in body[0]
    assert "part of the set" in body[0]
    assert body[0].count('title="not run"') == 3  # one for each coefficient
    assert static.count('<svg class="chart"') == 2 * 3 + 5 * 2


def test_a_forest_has_the_best_of_its_column_on_top_and_figures_alone_make_a_page(built: Built) -> None:
    board = built.board
    page = render(board)
    picture = re.search('<figure class="forest".*?</figure>', page, re.DOTALL)
    assert picture is not None
    figures = [board.figure(name, board.columns[0], "spearman") for name in board.evaluators]
    expected = sorted((figure.value or 0.0 for figure in figures if figure), reverse=True)
    assert re.findall(r'class="value"[^>]*>([-.\d]+)<', picture[0]) == [f"{value:.3f}" for value in expected]
    assert 'id="cases"' not in page
    assert '<table id="board">' in page


def test_half_a_surrogate_pair_does_not_keep_the_page_from_being_written(built: Built) -> None:
    assert render(built.board, built.evidence, title="cut \ud83d").encode().startswith(b"<!DOCTYPE html>")
