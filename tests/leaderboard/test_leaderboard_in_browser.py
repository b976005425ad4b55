"""The page in headless Chromium; skipped where the machine has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.build import Built, write
from tests.browser import Page, browser_page
from tests.leaderboard_files import HOSTILE, JUDGE

NAMES = "[...document.querySelectorAll('#board tbody tr')].filter((row) => !row.hidden).map((row) => row.dataset.name)"


@pytest.fixture(scope="module")
def address(built: Built, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write(built, folder)
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browser_page() as page:
        yield page


@pytest.fixture
def page(browser: Page, address: str) -> Iterator[Page]:
    """The page, freshly opened; at the end nothing may have gone wrong or left it."""
    browser.problems.clear()
    browser.requests.clear()
    browser.resize(1280, 900)
    browser.open(address)
    yield browser
    assert browser.problems == []
    assert browser.requests == [address]
    assert browser.evaluate("window.hacked") is None


def choose(page: Page, control: str, value: str) -> None:
    page.evaluate(
        f"(() => {{ const item = document.querySelector('{control}'); item.value = {value!r};"
        "item.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_a_click_sorts_by_a_column_a_second_one_turns_it_round_and_the_keyboard_sorts_too(page: Page) -> None:
    assert page.evaluate(NAMES) == ["sharp", JUDGE, "blunt"]
    header = "document.querySelector('#board th[data-key=\"1\"]')"
    page.evaluate(f"{header}.querySelector('button').click()")
    # The judge did not run there: it stands last in either direction.
    assert page.evaluate(NAMES) == ["sharp", "blunt", JUDGE]
    assert page.evaluate(f"{header}.ariaSort") == "descending"
    page.evaluate(f"{header}.querySelector('button').click()")
    assert page.evaluate(NAMES) == ["blunt", "sharp", JUDGE]
    assert page.evaluate(f"{header}.ariaSort") == "ascending"
    sorted_by = "[...document.querySelectorAll('#board th[aria-sort]')].filter((th) => th.ariaSort !== 'none').length"
    assert page.evaluate(sorted_by) == 1
    page.evaluate("document.querySelector('#board th[data-key=name] button').focus()")
    page.press("Enter")
    assert page.evaluate(NAMES) == sorted(["sharp", "blunt", JUDGE])


def test_filters_hide_rows_and_columns_and_say_how_many_are_left(page: Page) -> None:
    choose(page, "#evaluator", "SHA")
    assert page.evaluate(NAMES) == ["sharp"]
    choose(page, "#dataset", "dailydialog-zhao")
    shown = "[...document.querySelectorAll('#board thead th')].filter((th) => !th.hidden).map((th) => th.dataset.key)"
    assert page.evaluate(shown) == ["name", "mean", "1"]
    assert page.evaluate("document.querySelector('#count').textContent") == "1 of 3 evaluators, 1 of 2 columns"
    assert page.evaluate("document.querySelectorAll('details.column:not([hidden])').length") == 1
    choose(page, "#evaluator", "nobody")
    assert page.evaluate(NAMES) == []


def test_the_mean_and_the_evaluators_are_those_of_the_columns_that_are_shown(page: Page) -> None:
    mean = "document.querySelector('#board tr[data-name=blunt] td .figure:not([hidden])').innerText.split('\\n')"
    values = "[...document.querySelectorAll('#board tr[data-name=blunt] td:not([hidden]) .figure:not([hidden]) b')]"
    both, first, second = map(float, page.evaluate(f"{values}.map((b) => b.textContent)"))
    assert both == pytest.approx((first + second) / 2, abs=0.001)
    assert page.evaluate(mean)[1] == "2 of 2"
    choose(page, "#dataset", "dailydialog-zhao")
    assert page.evaluate(mean) == [f"{second:.3f}", "1 of 1"]
    # An evaluator that did not run on what is shown is hidden.
    assert page.evaluate(NAMES) == ["sharp", "blunt"]
    choose(page, "#dataset", "")
    assert page.evaluate(NAMES) == ["sharp", JUDGE, "blunt"]


def test_head_and_names_stay_where_a_long_table_scrolls(page: Page) -> None:
    page.resize(400, 250)
    page.evaluate("(() => { const box = document.querySelector('.scroll.both'); box.scrollTop = 99; box.scrollLeft = 99; })()")
    place = """((selector) => {
      const box = document.querySelector('.scroll.both').getBoundingClientRect();
      const item = document.querySelector(selector).getBoundingClientRect();
      return [item.left - box.left, item.top - box.top];
    })"""
    assert page.evaluate("document.querySelector('.scroll.both').scrollTop") > 0
    left, top = page.evaluate(f"{place}('#board thead .name')")
    assert (left, top) == (pytest.approx(0, abs=2), pytest.approx(0, abs=2))
    assert page.evaluate(f"{place}('#board tbody .name')")[0] == pytest.approx(0, abs=2)


def test_another_coefficient_shows_its_own_figures_and_intervals_can_be_left_out(page: Page) -> None:
    shown = "[...document.querySelectorAll('#board {}')].filter((item) => item.offsetParent).map((item) => item.textContent)"
    spearman = page.evaluate(shown.format(".figure b"))
    choose(page, "#coefficient", "kendall")
    kendall = page.evaluate(shown.format(".figure b"))
    assert len(spearman) == len(kendall) == 8
    assert set(spearman).isdisjoint(kendall)
    assert len(page.evaluate(shown.format(".ci"))) == 5
    page.evaluate("document.querySelector('#intervals').click()")
    assert page.evaluate(shown.format(".ci")) == []


def test_a_plot_is_shown_on_demand(page: Page) -> None:
    shown = "[...document.querySelectorAll('svg')].filter((svg) => svg.checkVisibility()).length"
    assert page.evaluate(shown) == 0
    page.evaluate("document.querySelector('details.column summary').click()")
    # One forest plot, and two plots for each of the three evaluators.
    assert page.evaluate(shown) == 7
    size = page.evaluate("(({width, height}) => [width, height])(document.querySelector('svg').getBoundingClientRect())")
    assert min(size) > 50


def test_a_case_shows_hostile_text_as_text(page: Page) -> None:
    assert HOSTILE in page.evaluate("document.querySelector('#shown').textContent")
    assert page.evaluate("document.querySelector('#shown img, #shown script')") is None
    rows = "[...document.querySelectorAll('#shown tbody tr')].map((row) => row.cells[1].textContent)"
    # People, two evaluators with a score, and the judge with the reason why it has none.
    assert sum(text.replace("_", "").isalpha() for text in page.evaluate(rows)) == 1
    page.evaluate("document.querySelector('#next').click()")
    assert page.evaluate("document.querySelector('#case').selectedIndex") == 1
    assert page.evaluate("document.querySelector('#shown').textContent").count("Response ") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_scrolling_it_sideways(page: Page, scheme: str, tmp_path: Path) -> None:
    page.resize(390, 844, scheme=scheme)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.screenshot(tmp_path / "phone.png")
    assert (tmp_path / "phone.png").stat().st_size > 10_000
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(251, 251, 249)" if scheme == "light" else "rgb(20, 23, 26)"
    )


def test_what_a_reader_sees_stands_out_from_its_ground(page: Page) -> None:
    """Body and soft text have the contrast that WCAG AA asks for, in both schemes."""
    contrast = """((name) => {
      const parse = (text) => text.match(/\\d+/g).slice(0, 3).map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      const light = (text) => parse(text).reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
      const a = light(getComputedStyle(document.querySelector(name)).color);
      const b = light(getComputedStyle(document.body).backgroundColor);
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    })"""
    for scheme in ("light", "dark"):
        page.resize(1280, 900, scheme=scheme)
        for selector in ("body", ".lead", "a", ".figure .partial"):
            assert page.evaluate(f"{contrast}({selector!r})") >= 4.5, (scheme, selector)
