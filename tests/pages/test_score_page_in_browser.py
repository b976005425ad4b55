"""The page of a score file in headless Chromium; skipped where the machine has none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from dialeval_plugin.pages.report import write_report
from tests.browser import CLIPPED, PALE, Page, axe_violations, choose
from tests.leaderboard_files import HOSTILE
from tests.pages.conftest import score_rows, write_score_file

pytestmark = pytest.mark.long

N = 130
NAMES = "[...document.querySelectorAll('.chat')].map((chat) => chat.querySelector('.name').textContent)"
COUNT = "document.querySelector('#count').textContent"
OPEN_ALL = "document.querySelector('#open').click()"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_report(write_score_file(folder, score_rows(N)), folder / "report.html")
    return (folder / "report.html").as_uri()


def wait_for(page: Page, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        page.evaluate("0")
        time.sleep(0.02)
    assert is_so()


def count(page: Page) -> str:
    """Return the page's count of matches, once the page has followed what was typed."""
    time.sleep(0.3)
    return str(page.evaluate(COUNT))


def name(number: int) -> str:
    return f"{HOSTILE}/3" if number == 3 else f"logs/monday.jsonl/{number}"


def test_the_worst_conversations_are_shown_as_chats_with_scores_and_reasons(page: Page) -> None:
    assert page.evaluate(COUNT) == "130 conversations, 260 responses."
    assert page.evaluate(NAMES)[:4] == [name(number) for number in range(4)]
    turns = "[...document.querySelector('.chat').querySelectorAll('.turn')].map((turn) => [turn.textContent, turn.className])"
    assert page.evaluate(turns) == [
        ["userAbout Leeds, 0?", "turn"],
        ["assistant, message 2Answer 2 to 0.", "turn other judged n5"],
        ["userAbout Leeds, 0?", "turn"],
        ["assistant, message 4Answer 4 to 0.", "turn other judged n5"],
    ]
    said = page.evaluate("document.querySelector('.chat .verdict').innerText").split("\n")
    assert said == ["0.002", "percentile 0.2", "explanation: because 0", "logs/monday.jsonl:1", "1 column"]
    link = "(({href, rel}) => [href, rel])(document.querySelector('.verdict a'))"
    folder = page.evaluate("location.href").rpartition("/")[0]
    assert page.evaluate(link) == [f"{folder}/logs/monday.jsonl", "noopener noreferrer"]
    assert page.evaluate("document.querySelectorAll('.chat[open]').length") == 3


def test_hostile_texts_ids_and_fields_are_shown_as_they_are(page: Page) -> None:
    page.evaluate(OPEN_ALL)
    chat = "document.querySelectorAll('.chat')[3]"
    assert page.evaluate(f"{chat}.querySelector('.name').textContent") == name(3)
    assert (
        page.evaluate(f"[...{chat}.querySelectorAll('.turn')].filter((turn) => turn.innerText.includes('<img src=x')).length")
        == 4
    )
    assert HOSTILE in page.evaluate(f"{chat}.querySelector('.foot').textContent")
    assert page.evaluate("document.querySelectorAll('main img, main script, main iframe').length") == 0
    # An address that would run a script is no link; it can be copied.
    assert page.evaluate(f"[...{chat}.querySelectorAll('a')].map((link) => link.textContent)") == ["Link to this conversation"]
    assert page.evaluate(f"{chat}.querySelector('.verdict button').ariaLabel") == "Copy javascript:window.hacked=1"
    for word in ["<img", "[", "\\", HOSTILE, "a" * 5000]:
        page.evaluate(
            f"(() => {{ const find = document.querySelector('#find'); find.value = {json.dumps(word)};"
            "find.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        time.sleep(0.2)


def test_search_finds_texts_ids_and_kept_words_and_marks_them(page: Page) -> None:
    choose(page, "#find", "A CARROT, 10?")
    assert count(page) == "1 of 130 conversations, 2 responses."
    assert page.evaluate("[...document.querySelectorAll('mark')].map((mark) => mark.textContent)") == ["a carrot, 10?"] * 2
    choose(page, "#find", "monday.jsonl/77")
    count(page)
    assert page.evaluate(NAMES) == [name(77)]
    choose(page, "#find", "nothing of the kind")
    assert count(page) == "No conversation matches."
    page.evaluate("document.querySelector('button[type=reset]').click()")
    assert page.evaluate(COUNT) == "130 conversations, 260 responses."


def test_filters_choose_by_score_percentile_role_reason_and_kept_fields(page: Page) -> None:
    choose(page, "#from", "0.5")
    choose(page, "#to", "0,52")
    assert count(page) == "3 of 130 conversations, 5 responses."
    choose(page, "#measure", "percentile")
    assert count(page) == "No conversation matches."
    choose(page, "#to", "1")
    assert count(page) == "1 of 130 conversations, 1 response."
    page.evaluate("document.querySelector('button[type=reset]').click()")
    choose(page, "#role", "bot")
    count(page)
    assert page.evaluate(NAMES) == [name(4)]
    choose(page, "#role", "")
    choose(page, "#scored", "empty_input")
    assert count(page) == "18 of 130 conversations, 18 responses."
    assert page.evaluate("document.querySelector('.turn.judged:not(.miss)').innerText").split("\n") == [
        "assistant, message 4",
        "empty",
    ]
    assert "empty input" in page.evaluate("document.querySelector('.chat .why').textContent")
    choose(page, "#scored", "")
    choose(page, '[data-field="0"]', "v1")
    assert count(page) == "65 of 130 conversations, 130 responses."
    # Fields may be called as they like.
    choose(page, '[data-field="3"]', "p")
    choose(page, '[data-field="4"]', "q")
    assert count(page) == "65 of 130 conversations, 130 responses."
    assert page.evaluate("document.querySelectorAll('#kept label')[4].firstChild.textContent") == f"{HOSTILE} "
    # A field with many values is searched.
    assert page.evaluate('document.querySelector("[data-field=\\"2\\"]").type') == "search"
    choose(page, '[data-field="2"]', "USER 77")
    assert count(page) == "1 of 130 conversations, 2 responses."


def test_a_bar_chooses_the_responses_that_it_counts_with_the_keyboard_too(page: Page) -> None:
    bars = "document.querySelectorAll('.bars[data-measure=score] button')"
    labels = page.evaluate(f"[...{bars}].map((bar) => bar.ariaLabel)")
    place = len(labels) // 2
    n = int(labels[place].rpartition(": ")[2])
    page.evaluate(f"{bars}[{place}].focus()")
    page.press("Enter")
    assert f", {n} responses." in page.evaluate(COUNT)
    assert page.evaluate(f"[...{bars}].filter((bar) => bar.ariaPressed === 'true').length") == 1
    page.press("Enter")
    assert page.evaluate(COUNT) == "130 conversations, 260 responses."


def test_conversations_are_sorted_by_score_mean_and_id(page: Page) -> None:
    choose(page, "#sort", "best")
    count(page)
    assert page.evaluate(NAMES)[0] == name(129)
    choose(page, "#sort", "mean")
    count(page)
    assert page.evaluate(NAMES)[0] == name(0)
    choose(page, "#sort", "id")
    count(page)
    assert page.evaluate(NAMES)[1:4] == [name(0), name(1), name(2)]


def test_the_list_grows_as_it_is_scrolled_to_its_end(page: Page) -> None:
    shown = "document.querySelectorAll('.chat').length"
    assert page.evaluate(shown) == 50

    def is_all_there() -> bool:
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        return bool(page.evaluate(shown) == N)

    wait_for(page, is_all_there)
    assert page.evaluate("document.querySelector('#more').hidden")
    assert len(set(page.evaluate(NAMES))) == N


def test_an_address_holds_what_is_chosen_and_opens_one_conversation(page: Page, address: str) -> None:
    choose(page, '[data-field="0"]', "v1")
    choose(page, "#sort", "best")
    count(page)
    shared = page.evaluate("location.href")
    seen = page.evaluate(NAMES)
    page.open("about:blank")
    page.open(shared)
    assert page.evaluate(NAMES) == seen
    for number in (3, 77):
        page.open("about:blank")
        page.open(f"{address}#?conversation={quote(name(number))}")
        assert page.evaluate(NAMES) == [name(number)]
        assert page.evaluate("document.querySelector('.chat').open")
        assert page.evaluate("document.querySelector('.foot a').href.split('#')[1]") == page.evaluate(
            f"`?${{new URLSearchParams({{conversation: {json.dumps(name(number))}}})}}`.replaceAll(\"'\", '%27')"
        )
    page.evaluate("document.querySelector('#alone').click()")
    assert page.evaluate(COUNT) == "130 conversations, 260 responses."


@pytest.mark.parametrize("wrong", ["sort=__proto__&role=constructor", "measure=x&kept.model=<b>", "%E0%A4%A", "kept.nothing=1"])
def test_an_address_that_means_nothing_shows_the_page(page: Page, wrong: str) -> None:
    choose(page, "#find", "a carrot")
    count(page)
    page.evaluate(f"location.hash = {json.dumps(f'#?{wrong}')}")
    wait_for(page, lambda: page.evaluate(COUNT) == "130 conversations, 260 responses.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_all_text_stands_out_and_nothing_is_cut_on_a_phone_either(page: Page, scheme: str, width: int) -> None:
    page.resize(width, 900, scheme=scheme)
    page.evaluate(OPEN_ALL)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert page.evaluate(f"document.documentElement.scrollWidth <= {width}")
    assert page.evaluate(PALE) == []
    assert page.evaluate(CLIPPED) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(page: Page, scheme: str) -> None:
    page.resize(390, 844, scheme=scheme)
    page.evaluate("for (const item of document.querySelectorAll('details')) item.open = true")
    assert axe_violations(page) == []


def test_no_control_and_no_button_is_without_a_name(page: Page) -> None:
    empty = (
        "[...document.querySelectorAll('button, summary, a')].filter((item) => item.checkVisibility())"
        ".filter((item) => !item.textContent.trim() && !item.ariaLabel).map((item) => item.outerHTML)"
    )
    assert page.evaluate(empty) == []
    unnamed = (
        "[...document.querySelectorAll('select, input')].filter((item) => !item.labels.length).map((item) => item.outerHTML)"
    )
    assert page.evaluate(unnamed) == []


def test_a_long_conversation_is_shown_around_its_worst_turn(browser: Page, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"a:{n}",
            "conversation": "a",
            "message": n,
            "preceding": [],
            "text": f"Turn {n}.",
            "general": abs(n - 200) / 500,
        }
        for n in range(1, 501)
    ]
    write_report(write_score_file(tmp_path, rows), tmp_path / "report.html")
    browser.open((tmp_path / "report.html").as_uri())
    texts = "[...document.querySelectorAll('.turn')].map((turn) => turn.lastChild.textContent)"
    assert browser.evaluate(texts) == [f"Turn {n}." for n in range(170, 230)]
    assert browser.evaluate("[...document.querySelectorAll('.jump')].map((button) => button.textContent)") == [
        "Show 100 of 169 earlier turns",
        "Show 100 of 271 later turns",
    ]
    browser.evaluate("document.querySelector('.jump').click()")
    assert browser.evaluate(texts)[0] == "Turn 70."


def test_ten_thousand_conversations_open_and_are_searched(browser: Page, tmp_path: Path) -> None:
    write_report(write_score_file(tmp_path, score_rows(10_000)), tmp_path / "report.html")
    browser.open((tmp_path / "report.html").as_uri())
    assert browser.evaluate(COUNT) == "10,000 conversations, 20,000 responses."
    assert browser.evaluate("document.querySelectorAll('.chat').length") == 50
    choose(browser, "#find", "Answer 2 to 9876.")
    wait_for(browser, lambda: browser.evaluate(COUNT) == "1 of 10,000 conversations, 2 responses.")
