"""The page on which people label: by a real HTTP client, and in headless Chromium where the machine has one."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.labels.answers import AnswerFile, RowToLabel
from dialeval_plugin.pages.labelling import LabellingServer
from tests.browser import CLIPPED, PALE, Page, axe_violations, browser_page
from tests.leaderboard_files import HOSTILE

ROWS = [
    RowToLabel(f"c{place}:1", [("user", f"question {place}"), ("bot", HOSTILE)], "bot", f"{HOSTILE} {place}")
    for place in range(3)
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabellingServer]:
    answers = AnswerFile(tmp_path / "answers.csv", "by score, 1")
    with LabellingServer(ROWS, answers, "pass-fail", question="Is it polite?") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: LabellingServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    connection.request(method, path, text, {name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    found = reply.status, reply.read().decode(), reply.headers
    connection.close()
    return found


def test_an_answer_is_in_the_file_before_it_is_said_to_be(server: LabellingServer, tmp_path: Path) -> None:
    answer = {"rater": "Anna", "row": 1, "label": "pass"}
    status, body, headers = ask(server, "POST", "/answer", answer, X_Token=server.token)
    assert (status, body) == (200, '{"kept": true}')
    assert (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()[1:] == ['c1:1,Anna,pass,"by score, 1"']
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert ask(server, "GET", f"/answers?token={server.token}&rater=Anna")[:2] == (200, '{"1": "pass"}')
    assert ask(server, "GET", f"/answers?token={server.token}&rater=%20Anna")[:2] == (200, '{"1": "pass"}')
    assert ask(server, "GET", f"/answers?token={server.token}&rater=Ben")[:2] == (200, "{}")


def test_without_the_token_and_from_other_pages_nothing_is_said_or_kept(server: LabellingServer, tmp_path: Path) -> None:
    answer = {"rater": "Anna", "row": 1, "label": "pass"}
    refused = '{"error": "Open the address that `dialeval label` has printed."}'
    for path, headers in (("/", {}), ("/?token=x", {}), (f"/?token={server.token}", {"Host": "evil.example"})):
        assert ask(server, "GET", path, **headers)[:2] == (403, refused)
    assert ask(server, "POST", "/answer", answer)[:2] == (403, refused)
    assert ask(server, "POST", "/answer", answer, X_Token=server.token, Origin="http://evil.example")[:2] == (403, refused)
    assert len((tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("{", "This is no answer."),
        ([], "This is no answer."),
        ({"rater": "Anna", "row": 3, "label": "pass"}, "This is no answer."),
        ({"rater": "Anna", "row": -1, "label": "pass"}, "This is no answer."),
        ({"rater": "Anna", "row": True, "label": "pass"}, "This is no answer."),
        ({"rater": " ", "row": 0, "label": "pass"}, "A name has 1 to 60 letters."),
        ({"rater": "An\nna", "row": 0, "label": "pass"}, "A name has 1 to 60 letters."),
        ({"rater": "Anna", "row": 0, "label": "5"}, "There is no such label."),
        ("x" * 20_000, "This is no answer."),
    ],
)
def test_what_is_no_answer_is_refused(server: LabellingServer, answer: Any, error: str) -> None:
    assert ask(server, "POST", "/answer", answer, X_Token=server.token)[:2] == (400, json.dumps({"error": error}))


def test_the_page_says_neither_ids_nor_scores_and_runs_nothing_else(server: LabellingServer) -> None:
    status, body, headers = ask(server, "GET", f"/?token={server.token}")
    assert (status, headers["Content-Security-Policy"]) == (200, "frame-ancestors 'none'")
    assert "c1:1" not in body
    assert "default-src 'none'" in body
    assert "connect-src 'self'" in body
    assert ask(server, "GET", f"/other?token={server.token}")[:2] == (404, '{"error": "There is no such page."}')


def begin(page: Page, server: LabellingServer) -> None:
    page.open(server.url)
    page.evaluate("document.querySelector('#rater').value = 'Anna'; document.querySelector('#name button').click()")


def until(page: Page, text: str, item: str = "#progress") -> None:
    shown, deadline = f"document.querySelector('{item}').textContent", time.monotonic() + 20
    while page.evaluate(shown) != text and time.monotonic() < deadline:
        time.sleep(0.02)
    assert page.evaluate(shown) == text


@pytest.mark.long
def test_a_person_labels_by_keys_and_goes_on_later(server: LabellingServer, tmp_path: Path) -> None:
    with browser_page() as page:
        page.resize(390, 800)
        begin(page, server)
        until(page, "0 of 3 labelled")
        turns = "[...document.querySelectorAll('#chat .turn')].map((turn) => [turn.textContent, turn.className])"
        assert page.evaluate(turns) == [
            ["userquestion 0", "turn"],
            [f"bot{HOSTILE}", "turn other"],
            [f"bot{HOSTILE} 0", "turn other judged"],
        ]
        for key, done in (("p", 1), ("f", 2)):
            page.evaluate(
                f"document.querySelector('#chat').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
            )
            until(page, f"{done} of 3 labelled")
        assert page.evaluate(PALE) == []
        assert page.evaluate(CLIPPED) == []
        page.resize(1200, 800, scheme="dark")
        assert page.evaluate(PALE) == []
        begin(page, server)
        until(page, "2 of 3 labelled")
        page.evaluate("document.querySelector('#choices [value=pass]').click()")
        until(page, "3 of 3 labelled")
        assert page.evaluate("document.querySelector('#chat').textContent") == "All are labelled. Thank you."
        assert page.problems == []
        assert page.evaluate("window.hacked") is None
    lines = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert lines == [f'c{place}:1,Anna,{label},"by score, 1"' for place, label in enumerate(["pass", "fail", "pass"])]


@pytest.mark.long
def test_who_goes_on_before_an_answer_is_kept_has_labelled_the_row_that_was_shown(server: LabellingServer) -> None:
    with browser_page() as page:
        begin(page, server)
        until(page, "0 of 3 labelled")
        page.evaluate(
            "(() => { const own = fetch; fetch = async (...all) => { await new Promise((on) => setTimeout(on, 300));"
            "return own(...all); }; })()"
        )
        for button in ("[value=pass]", "#on"):
            page.evaluate(f"document.querySelector('{button}').click()")
        until(page, "1 of 3 labelled")
        assert page.evaluate("document.querySelector('#chat .turn').textContent") == "userquestion 1"
        assert page.evaluate("document.querySelector('[aria-pressed=true]')") is None


@pytest.mark.long
def test_axe_finds_no_violation(server: LabellingServer) -> None:
    with browser_page() as page:
        for scheme in ("light", "dark"):
            page.resize(390, 844, scheme=scheme)
            page.open(server.url)
            assert axe_violations(page) == []
            begin(page, server)
            until(page, "0 of 3 labelled")
            assert axe_violations(page) == []


@pytest.mark.long
def test_an_answer_that_cannot_be_sent_is_said_not_to_be_kept(server: LabellingServer) -> None:
    with browser_page() as page:
        begin(page, server)
        until(page, "0 of 3 labelled")
        page.evaluate("window.fetch = async () => { throw new TypeError('Failed to fetch'); }")
        page.evaluate("document.querySelector('#choices [value=pass]').click()")
        until(page, "Not kept: Failed to fetch. Is `dialeval label` still running?", "#problem")


@pytest.mark.long
def test_a_turn_from_right_to_left_is_read_in_its_order_below_a_role_in_latin(server: LabellingServer) -> None:
    left = (
        "((from, to) => { const range = document.createRange(); const text = document.querySelector('.judged').lastChild;"
        "range.setStart(text, from); range.setEnd(text, to); return range.getBoundingClientRect().left; })"
    )
    with browser_page() as page:
        begin(page, server)
        until(page, "0 of 3 labelled")
        page.evaluate("document.querySelector('.judged').lastChild.data = 'مرحبا abc'")
        assert page.evaluate(f"{left}(6, 9) < {left}(0, 5)")


@pytest.mark.parametrize(("texts", "shown"), [(("Hi.", " "), 1), ((" ", "", "Hi."), 2), (("", ""), 0)])
def test_an_empty_response_is_said_to_be_one(tmp_path: Path, texts: tuple[str, ...], shown: int) -> None:
    """Otherwise the turn before it stands in its place. Rows of whole conversations have no text of their own."""
    rows = [RowToLabel(str(place), [("user", "Who?")], "bot", text) for place, text in enumerate(texts)]
    with LabellingServer(rows, AnswerFile(tmp_path / "answers.csv", "by score, 1"), "pass-fail", question="Good?") as server:
        assert server.page.count(b"(empty)") == shown
