"""The page as text: it needs nothing from outside, and no dialogue gets out of its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.leaderboard.board import Identity, Leaderboard
from dialeval_plugin.leaderboard.build import BuildResult, build
from dialeval_plugin.leaderboard.page import lacking, render
from tests.leaderboard_files import HOSTILE, JUDGE, documents, noisy_scores, scorer_config, write_run, write_scores


@pytest.fixture(scope="module")
def page(built: BuildResult) -> str:
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
    links = {attributes["href"] or "" for tag, attributes in elements.tags if tag == "a"}
    outside = {link for link in links if not link.startswith("#")}
    # What is downloaded lies beside the page, and what lies elsewhere is opened when somebody asks for it.
    papers = {"https://aclanthology.org/W19-5944/", "https://aclanthology.org/2020.acl-main.4/"}
    assert outside == {"leaderboard.csv", "leaderboard.json", "leaderboard.md", *papers}
    assert set(re.findall(r"https?://[\w./-]+", page)) == {"http://www.w3.org/2000/svg", *papers}


def test_a_link_within_the_page_leads_to_something(page: str) -> None:
    elements = Elements(page)
    names = {attributes.get("id") for _, attributes in elements.tags}
    links = {attributes["href"] or "" for tag, attributes in elements.tags if tag == "a"}
    inside = {link[1:] for link in links if link.startswith("#")}
    assert len(inside) > 8
    assert inside <= names


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
    assert len(scripts) == 3
    cases = json.loads(scripts[0])
    first = cases["items"][cases["groups"][0]["cases"][0]["item"]]
    assert first["context"][0] == [HOSTILE, HOSTILE]
    assert first["references"] == [HOSTILE]


def test_an_evaluator_with_markup_in_its_name_is_text(page: str) -> None:
    assert "<b>judge</b>" not in page
    assert ">&lt;b&gt;judge&lt;/<wbr>b&gt;, dstc10_<wbr>dialog</a></th>" in page


def test_the_page_is_a_table_without_its_script(page: str) -> None:
    static = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    body = re.search('<table id="board">.*?</table>', static, re.DOTALL)
    assert body is not None
    assert body[0].count('<th scope="row"') == 3
    assert "37 of 40 scored" in body[0]
    assert "part of the set" in body[0]
    assert body[0].count("not run") == 3  # one for each coefficient
    assert static.count('<svg class="chart"') == 5
    assert static.count('<circle class="estimate"') == 2  # of the forest plot, which has a row for each that is ranked


def test_the_forest_plot_is_above_all_else_and_says_how_far_people_agree(tmp_path: Path) -> None:
    rows = documents(40)
    for number, row in enumerate(rows):
        row["raters"] = [row["rating"], row["rating"] + (number % 3) / 2, row["rating"]]
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.2))
    built = build([tmp_path], rank_rounds=0)
    page = render(built.board, built.evidence)
    assert page.index('<table id="ranking"') < page.index('<table id="board">')
    assert '<rect class="people"' in page
    assert "people among themselves" in page
    (mean,) = built.board.ranking("spearman").means.values()
    assert f"<b>{mean.value:.3f}</b> <small>{mean.ci_low:.2f} to {mean.ci_high:.2f}" in page


def test_who_is_not_ranked_stands_in_a_section_of_its_own_with_what_is_missing(built: BuildResult, page: str) -> None:
    assert lacking(built.board, JUDGE, built.board.ranking("spearman").sets) == (
        "part of the set: DailyDialog (Gupta); not run: DailyDialog (Zhao)"
    )
    section = re.search('<section id="unranked".*?</section>', page, re.DOTALL)
    assert section is not None
    shown = re.findall(r'<tr data-i="\d"( hidden)?>.*?<td class="lacks">(.*?)</td>', section[0])
    assert shown == [
        (" hidden", ""),
        (" hidden", ""),
        ("", "part of the set: DailyDialog (Gupta); not run: DailyDialog (Zhao)"),
    ]


def test_figures_alone_make_a_page(built: BuildResult) -> None:
    page = render(built.board)
    assert 'id="cases"' not in page
    assert '<table id="board">' in page


@pytest.mark.long
def test_a_page_of_forty_evaluators_is_small_enough_to_mail(tmp_path: Path) -> None:
    """On nine sets of turns with an overall quality, as DSTC10 has them, each with texts and scores of its own."""
    codes = ("dgu", "dz", "pz", "tu", "pu", "dgr", "eg", "cg", "ft")
    text = "What did you do at the weekend, and whom did you meet there? " * 3
    tasks = {}
    for code in codes:
        rows = documents(60, text=text)
        for row in rows:
            row["context"] = [{"speaker": None, "text": f"{text}{row['id']} {code}"}] * 3
        tasks[f"dstc10_dialog_{code}"] = (rows, noisy_scores(rows, 0.1))
    write_run(tmp_path, scorer_config("one"), tasks)
    board, evidence = build([tmp_path], rank_rounds=0)
    names = [f"evaluator_with_a_name (option={number}, another)" for number in range(40)]
    generator = np.random.default_rng(0)
    cells = [replace(cell, evaluator=name) for name in names for cell in board.cells]
    of_all = [
        replace(item, evaluator=name, rows=tuple(replace(row, score=float(generator.normal())) for row in item.rows))
        for name in names
        for item in evidence
    ]
    many = Leaderboard(tuple(cells), identities=dict.fromkeys(names, Identity(command="x" * 500)), data_sets=board.data_sets)
    assert (len(many.evaluators), len(many.columns)) == (40, 9)
    size = len(render(many, of_all).encode())
    assert 500_000 < size <= 2_000_000


def test_half_a_surrogate_pair_does_not_keep_the_page_from_being_written(built: BuildResult) -> None:
    assert render(built.board, built.evidence, title="cut \ud83d").encode().startswith(b"<!DOCTYPE html>")
