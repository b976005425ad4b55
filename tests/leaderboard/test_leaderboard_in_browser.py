"""The page in headless Chromium; skipped where the machine has none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.board import Cell, Column, Figure, Leaderboard
from dialeval_plugin.leaderboard.build import BuildResult, write
from dialeval_plugin.leaderboard.evidence import differences
from dialeval_plugin.leaderboard.page import render
from tests.browser import CLIPPED, PALE, Page, axe_violations, choose
from tests.leaderboard_files import HOSTILE, JUDGE

pytestmark = pytest.mark.long

NAMES = (
    "[...document.querySelectorAll('#board tr[data-i]')].filter((row) => !row.hidden)"
    ".map((row) => row.querySelector('.name').textContent)"
)
RANKED = (
    "Object.fromEntries([...document.querySelectorAll('#ranking tbody tr')].filter((row) => row.offsetParent)"
    ".map((row) => [row.querySelector('.name').textContent, row.querySelector('.mean').textContent]))"
)
UNRANKED = (
    "Object.fromEntries([...document.querySelectorAll('#unranked tbody tr')].filter((row) => row.offsetParent)"
    ".map((row) => [row.querySelector('th').textContent, row.querySelector('.lacks').textContent]))"
)
SHOWN_HEADS = "[...document.querySelectorAll('#board thead th')].filter((th) => !th.hidden).map((th) => th.dataset.key)"


@pytest.fixture(scope="module")
def address(built: BuildResult, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write(built, folder)
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(page: Page, address: str) -> Iterator[Page]:
    """The page, which may load itself once and nothing else."""
    yield page
    assert [request for request in page.requests if request != "about:blank"] == [address]


def test_the_script_computes_the_means_that_the_files_have(page: Page, built: BuildResult) -> None:
    """The page is written with them; the script, which has run by now, must not change one."""
    ranking = built.board.ranking("spearman")
    expected = {
        name: f"{mean.value:.3f} {mean.ci_low:.2f} to {mean.ci_high:.2f}, rough" for name, mean in ranking.means.items()
    }
    assert page.evaluate(RANKED) == expected
    assert page.evaluate(UNRANKED) == {JUDGE: "part of the set: DailyDialog (Gupta); not run: DailyDialog (Zhao)"}


def test_who_is_ranked_depends_on_the_sets_that_count(page: Page) -> None:
    choose(page, "#coefficient", "kendall")
    page.evaluate("document.querySelector('#chooser').open = true")
    page.evaluate("document.querySelectorAll('input[name=set]')[0].click()")
    assert page.evaluate("document.querySelector('#chosen').textContent") == "1 of 2"
    assert list(page.evaluate(RANKED)) == ["sharp", "blunt"]
    assert page.evaluate(UNRANKED) == {JUDGE: "not run: DailyDialog (Zhao)"}
    assert "Kendall's tau-b on one set: DailyDialog (Zhao)" in page.evaluate("document.querySelector('#count').textContent")
    assert page.evaluate(SHOWN_HEADS) == ["name", "mean", "1"]
    page.evaluate("document.querySelectorAll('input[name=set]')[1].click()")
    assert page.evaluate(RANKED) == {}
    assert page.evaluate("document.querySelector('#count').textContent").startswith("No evaluator that is shown")
    page.evaluate("document.querySelector('[data-preset=common]').click()")
    assert len(page.evaluate(RANKED)) == 2


def test_the_forest_plot_moves_with_what_is_chosen(page: Page) -> None:
    dot = "parseFloat(document.querySelector('#ranking tr[data-i=\"1\"] circle').getAttribute('cx'))"
    before = page.evaluate(dot)
    page.evaluate("document.querySelectorAll('input[name=set]')[0].click()")
    assert page.evaluate(dot) != before
    boxes = page.evaluate(
        "[...document.querySelectorAll('#ranking tbody tr:not([hidden]) svg')].map((svg) => svg.getBoundingClientRect().width)"
    )
    assert min(boxes) > 200


def test_filters_hide_evaluators_everywhere_and_reset_brings_them_back(page: Page) -> None:
    choose(page, "#evaluator", "SHA")
    assert list(page.evaluate(RANKED)) == ["sharp"]
    assert page.evaluate(NAMES) == ["sharp"]
    assert page.evaluate("document.querySelectorAll('#evaluators .entry:not([hidden])').length") == 1
    choose(page, "#evaluator", "nobody")
    assert (page.evaluate(RANKED), page.evaluate(NAMES)) == ({}, [])
    page.evaluate("document.querySelector('#reset').click()")
    choose(page, "[data-filter=method]", "prompted")
    assert page.evaluate(NAMES) == [JUDGE]
    assert page.evaluate("document.querySelector('#unranked').hidden") is False
    choose(page, "[data-filter=method]", "unknown")
    assert page.evaluate(NAMES) == ["sharp", "blunt"]
    assert page.evaluate("document.querySelector('#unranked').hidden") is True


def test_two_evaluators_are_compared_on_each_set_and_by_the_cases_on_which_they_differ(page: Page, built: BuildResult) -> None:
    found = differences(built.board, built.evidence)
    rows = (
        "[...document.querySelectorAll('#differences tbody tr')]"
        ".map((row) => [...row.cells].slice(0, 4).map((cell) => cell.textContent))"
    )
    shown = page.evaluate(rows)
    assert [row[0] for row in shown] == ["DailyDialog (Gupta)", "DailyDialog (Zhao)", "mean of 2 sets"]
    names = ("sharp", "blunt")
    for row, column in zip(shown, built.board.columns, strict=False):
        (one,) = (one for pair, one in found[column].items() if set(pair) == set(names))
        sign = 1 if names in found[column] else -1
        assert one.value is not None
        low, high = sorted((sign * (one.ci_low or 0), sign * (one.ci_high or 0)))
        assert row[3] == f"{sign * one.value:+.3f} {low:.2f} to {high:.2f}, rough"
    assert shown[2][3].endswith(", rough")
    assert page.evaluate("document.querySelectorAll('#differences line.interval:not(.rough)').length") == 0
    assert len(page.evaluate("[...document.querySelectorAll('#apart li')].map((item) => item.textContent)")) == 6
    spread = (
        "[...document.querySelectorAll('#apart li')].map((item) => "
        "[...item.querySelectorAll('.gauge span:last-child')].slice(1).map((span) => Number(span.textContent)))"
    )
    apart = [abs(a - b) for a, b in page.evaluate(spread)]
    assert apart == sorted(apart, reverse=True)
    page.evaluate("document.querySelector('#apart button').click()")
    response = page.evaluate("document.querySelector('#apart .said:not(.note)').textContent")
    assert response[:20] in page.evaluate("document.querySelector('#shown').textContent")
    choose(page, "#coefficient", "kendall")
    assert page.evaluate(rows) == shown
    choose(page, "#second", "2")
    assert page.evaluate(rows)[1][3] == "not run"
    choose(page, "#second", page.evaluate("document.querySelector('#first').value"))
    assert [row[3] for row in page.evaluate(rows)] == ["the same evaluator"] * 2
    assert page.evaluate("document.querySelector('#compare-note').textContent") == "Choose two evaluators that differ."


def test_the_address_holds_what_is_shown_and_shows_it_to_others(page: Page, address: str, browser: Page) -> None:
    choose(page, "#coefficient", "pearson")
    choose(page, "#evaluator", "s")
    choose(page, "[data-filter=method]", "unknown")
    page.evaluate("document.querySelectorAll('input[name=set]')[0].click()")
    page.evaluate("document.querySelector('#board th[data-key=name] button').click()")
    choose(page, "#first", "1")
    page.evaluate("document.querySelector('#intervals').click()")
    shared = page.evaluate("location.href")
    assert shared.startswith(f"{address}#?")
    state = (
        "[...['#count', '#compare-note'].map((name) => document.querySelector(name).textContent), "
        "document.querySelector('#coefficient').value, document.querySelector('#board th[data-key=name]').ariaSort, "
        "document.querySelector('#intervals').checked, "
        "[...document.querySelectorAll('#board .ci')].some((ci) => ci.offsetParent)]"
    )
    seen = page.evaluate(state), page.evaluate(RANKED)
    assert seen[0][-2:] == [False, False]
    browser.open("about:blank")
    browser.open(shared)
    assert (browser.evaluate(state), browser.evaluate(RANKED)) == seen
    page.evaluate("document.querySelector('#reset').click()")
    assert page.evaluate("location.href") == address
    assert page.evaluate(state)[-2:] == [True, True]
    browser.requests[:] = [address]


def test_names_of_compared_evaluators_are_apart_in_the_address(page: Page) -> None:
    """They were joined by a "~", which a name may have too; links of that kind are still read."""
    shown = "['#first', '#second'].map((name) => document.querySelector(name).selectedOptions[0].textContent)"
    choose(page, "#first", "1")
    names = page.evaluate(shown)
    compared = "new URLSearchParams(location.hash.slice(2)).getAll('compare')"
    assert page.evaluate(compared) == names
    page.evaluate(f"location.hash = '#?compare=' + encodeURIComponent({names[::-1]!r}.join('~'))")
    time.sleep(0.2)
    assert page.evaluate(shown) == names[::-1]


@pytest.mark.parametrize(
    "wrong", ["sets=nobody/turn", "compare=a~b", "sort=up:nothing", "coefficient=x", "method=<b>", "%E0%A4%A"]
)
def test_an_address_that_means_nothing_shows_the_page(page: Page, wrong: str) -> None:
    page.evaluate(f"location.hash = '#?{wrong}'")
    time.sleep(0.2)  # Events of the address and of scrolling come with the next frame.
    assert page.evaluate("document.querySelectorAll('#board tbody tr[data-i]').length") == 3


def test_the_theme_follows_the_system_until_another_is_chosen(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.resize(1280, 900, scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    choose(page, "#theme", "light")
    assert page.evaluate(ground) == light
    page.resize(1280, 900, scheme="light")
    choose(page, "#theme", "dark")
    assert page.evaluate(ground) == dark
    choose(page, "#theme", "")
    assert page.evaluate(ground) == light


def test_a_click_sorts_by_a_column_a_second_one_turns_it_round_and_the_keyboard_sorts_too(page: Page) -> None:
    assert page.evaluate(NAMES) == ["sharp", "blunt", JUDGE]
    header = "document.querySelector('#board th[data-key=\"1\"]')"
    page.evaluate(f"{header}.querySelector('button').click()")
    # The judge is not ranked: it stands in a part of its own, last in either direction.
    assert page.evaluate(NAMES) == ["sharp", "blunt", JUDGE]
    assert page.evaluate(f"{header}.ariaSort") == "descending"
    page.evaluate(f"{header}.querySelector('button').click()")
    assert page.evaluate(NAMES) == ["blunt", "sharp", JUDGE]
    assert page.evaluate(f"{header}.ariaSort") == "ascending"
    sorted_by = "[...document.querySelectorAll('#board th[aria-sort]')].filter((th) => th.ariaSort !== 'none').length"
    assert page.evaluate(sorted_by) == 1
    page.evaluate("document.querySelector('#board th[data-key=name] button').focus()")
    page.press("Enter")
    assert page.evaluate(NAMES) == ["blunt", "sharp", JUDGE]


def test_head_and_names_stay_and_the_page_alone_scrolls_downwards(page: Page) -> None:
    page.resize(400, 400)
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.evaluate("document.querySelector('#board tbody.ranked').scrollIntoView()")
    page.evaluate("(() => { const box = document.querySelector('#board-scroll'); box.scrollLeft = 60; box.scrollTop = 99; })()")
    time.sleep(0.2)  # Events of the address and of scrolling come with the next frame.
    assert page.evaluate("document.querySelector('#board-scroll').scrollTop") == 0
    place = "(({left, top}) => [left, top])(document.querySelector('{}').getBoundingClientRect())"
    box = page.evaluate(place.replace("{}", "#board-scroll"))
    left, top = page.evaluate(place.replace("{}", "#board thead .name"))
    assert (left - box[0], top) == (pytest.approx(1, abs=2), pytest.approx(0, abs=2))
    assert page.evaluate(place.replace("{}", "#board tbody .name"))[0] - box[0] == pytest.approx(1, abs=2)


def test_another_coefficient_shows_its_own_figures_and_intervals_can_be_left_out(page: Page) -> None:
    shown = "[...document.querySelectorAll('#board {}')].filter((item) => item.offsetParent).map((item) => item.textContent)"
    spearman = page.evaluate(shown.format(".f b"))
    choose(page, "#coefficient", "kendall")
    kendall = page.evaluate(shown.format(".f b"))
    assert len(spearman) == len(kendall) == 5
    assert set(spearman).isdisjoint(kendall)
    assert len(page.evaluate(shown.format(".ci"))) == 5
    page.evaluate("document.querySelector('#intervals').click()")
    assert page.evaluate(shown.format(".ci")) == []


def test_a_link_opens_what_it_leads_to(page: Page) -> None:
    shown = "[...document.querySelectorAll('svg.chart')].filter((svg) => svg.checkVisibility()).length"
    assert page.evaluate(shown) == 0
    page.evaluate("document.querySelector('#board .about').click()")
    assert page.evaluate(shown) == 3
    size = page.evaluate("(({width, height}) => [width, height])(document.querySelector('svg.chart').getBoundingClientRect())")
    assert min(size) > 50
    page.evaluate("document.querySelector('#ranking tbody tr:not([hidden]) .name a').click()")
    assert page.evaluate("document.querySelector('#evaluator-0').open")
    assert page.evaluate("document.activeElement.closest('details').id") == "evaluator-0"


def test_a_case_shows_hostile_text_as_text(page: Page) -> None:
    assert HOSTILE in page.evaluate("document.querySelector('#shown').textContent")
    assert page.evaluate("document.querySelector('#shown img, #shown script')") is None
    rows = "[...document.querySelectorAll('#shown tbody tr')].map((row) => row.cells[1].textContent)"
    # People, two evaluators with a score, and the judge with the reason why it has none.
    assert sum(text.replace(" ", "").isalpha() for text in page.evaluate(rows)) == 1
    page.evaluate("document.querySelector('#next').click()")
    assert page.evaluate("document.querySelector('#case').selectedIndex") == 1
    assert page.evaluate("document.querySelector('#shown').textContent").count("Response ") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_scrolling_it_sideways(page: Page, scheme: str, tmp_path: Path) -> None:
    page.resize(390, 844, scheme=scheme)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(CLIPPED) == []
    page.screenshot(tmp_path / "phone.png")
    assert (tmp_path / "phone.png").stat().st_size > 10_000
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(251, 251, 249)" if scheme == "light" else "rgb(20, 23, 26)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(page: Page, scheme: str) -> None:
    page.resize(390, 844, scheme=scheme)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert axe_violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_all_text_stands_out_from_its_ground(page: Page, scheme: str, width: int) -> None:
    """All text that is seen, whatever is open, has the contrast that WCAG AA asks for."""
    page.resize(width, 900, scheme=scheme)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert page.evaluate(PALE) == []
    # The ground of a cell at both ends of the tints, which this board does not have.
    page.evaluate(
        "[...document.querySelectorAll('.f')].filter((cell) => !cell.querySelector('.missing')).forEach((cell, place) => "
        "(cell.className = `f ${['n5', 'p5', 'n4', 'p4'][place % 4]}`))"
    )
    assert page.evaluate(PALE) == []
    assert page.evaluate(CLIPPED) == []


def test_no_table_has_a_head_without_words_and_no_control_is_without_a_name(page: Page) -> None:
    empty = (
        "[...document.querySelectorAll('th, button, summary, a')]"
        ".filter((item) => !item.textContent.trim()).map((item) => item.outerHTML)"
    )
    assert page.evaluate(empty) == []
    unnamed = (
        "[...document.querySelectorAll('select, input')].filter((item) => !item.labels.length).map((item) => item.outerHTML)"
    )
    assert page.evaluate(unnamed) == []
    twice = (
        "(() => { const ids = [...document.querySelectorAll('[id]')].map(({id}) => id);"
        "return ids.filter((id, place) => ids.indexOf(id) !== place); })()"
    )
    assert page.evaluate(twice) == []


def test_each_coefficient_ranks_as_the_board_does(browser: Page, tmp_path: Path) -> None:
    """A part of a set that lacks the main coefficient, a quality that is undefined for all, and rough intervals."""
    rough = {"ci_low": 0.1, "ci_high": 0.9, "is_rough": True}
    figures = {
        ("chat", "turn", "a"): [{"spearman": Figure(value=0.5, **rough)}, {"spearman": Figure(value=0.3)}],
        ("chat", "turn", "b"): [{"spearman": Figure(value=None)}] * 2,
        ("dbdc", "turn", ""): [{"jsd": Figure(value=value, higher_is_better=False, **rough)} for value in (0.2, 0.3)],
    }
    cells = [
        Cell(
            **{"evaluator": name, "column": Column(*column), "figures": of, "n_scored": 9, "n_total": 9, "signature": "m:x"},
            is_partial=(name, column[0]) == ("two", "dbdc"),
        )
        for column, both in figures.items()
        for name, of in zip(("one", "two"), both, strict=True)
    ]
    board = Leaderboard(tuple(cells))
    (tmp_path / "index.html").write_text(render(board), encoding="utf-8")
    browser.open((tmp_path / "index.html").as_uri())
    assert browser.evaluate(RANKED) == {"one": "0.500 0.10 to 0.90, rough", "two": "0.300 "}
    choose(browser, "#coefficient", "jsd")
    assert browser.evaluate(RANKED) == {"one": "0.200 0.10 to 0.90, rough"}
    assert browser.evaluate(UNRANKED) == {"two": "part of the set: dbdc"}
    for coefficient, names in (("spearman", ["one", "two"]), ("jsd", ["one"])):
        assert list(board.ranking(coefficient).means) == names
