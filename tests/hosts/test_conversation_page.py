"""The page that scores a pasted conversation: what it reads and says, and the Space started for real."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from dialeval_plugin import examples_from
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.evaluate.conversation_page import EXAMPLES, HEADS, LOW, answer, judge, read_conversation
from tests.browser import browser_page
from tests.cli.running import run
from tests.leaderboard_files import write_runs

ROOT = Path(__file__).resolve().parents[2]
WITH_GRADIO = os.environ.get("DIALEVAL_GRADIO_PYTHON", sys.executable)
"""An interpreter that has gradio, which wants an older pillow than the rest: `make spaces` makes one."""
CHAT = [{"role": "user", "content": "Hi, how are you?"}, {"role": "assistant", "content": "Fine: and you?"}]


def turns_of(text: str) -> list[tuple[str | None, str]]:
    return [(turn.speaker, turn.text) for turn in read_conversation(text).turns]


@pytest.mark.parametrize(
    "text",
    [
        "user: Hi, how are you?\nassistant: Fine: and you?",
        "  User : Hi, how are you?  \n\nbot:  Fine: and you?\n",
        json.dumps(CHAT),
        json.dumps({"messages": CHAT}),
        json.dumps([{"messages": CHAT}]),
    ],
)
def test_lines_and_chat_messages_are_one_conversation(text: str) -> None:
    assert turns_of(text) == [("user", "Hi, how are you?"), ("assistant", "Fine: and you?")]
    assert [one.response.text for one in read_conversation(text).examples()] == ["Fine: and you?"]
    both = read_conversation(text + ("\nuser: Bye." if text.startswith("user") else ""), every_turn=True)
    assert len(both.examples()) == len(both.turns) - 1


def test_a_colon_in_one_line_names_no_speaker() -> None:
    assert turns_of("Note: bring water.\nI will.") == [(None, "Note: bring water."), (None, "I will.")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Paste one conversation: a turn a line, or its messages as JSON."),
        (
            json.dumps([{"messages": CHAT}, {"messages": CHAT}]),
            "Paste one conversation: a turn a line, or its messages as JSON.",
        ),
        ("Hello?", "There is no response to score: a conversation needs two turns at least."),
        ("a\n" * 101, "The conversation has 101 turns, more than 100. Paste a part of it."),
        ("a" * 50_001, "The conversation has 50,001 characters, more than 50,000. Paste a part of it."),
    ],
)
def test_what_cannot_be_scored_is_said_in_the_page(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_conversation(text)
    shown, data = answer(text, False)
    assert f'role="alert">{message}</p>' in shown
    assert data == []


def test_each_response_has_the_scorers_own_score_and_low_ones_a_reason() -> None:
    conversation = read_conversation(EXAMPLES["A cat that died"])
    found = judge(conversation)
    scorer = load_scorer("general")
    examples = examples_from([[{"role": turn.speaker, "content": turn.text} for turn in conversation.turns]])
    scores = scorer.score(examples)
    judged = [turn for turn in found if turn.score is not None]
    assert [turn.score for turn in judged] == list(scores.values)
    assert [turn.percentile for turn in judged] == list(scores.columns["percentile"])
    assert [turn.speaker for turn in judged] == ["assistant"] * 3
    for turn, explained in zip(judged, scorer.explain(examples), strict=True):
        assert turn.percentile is not None
        assert turn.heads is not None
        assert list(turn.heads) == list(HEADS)
        assert turn.reason == (explained.partition(" (")[0] if turn.percentile < LOW else "")
    assert judged[-1].reason
    assert not judged[0].reason


def test_what_people_write_is_no_markup() -> None:
    shown, data = answer("<b>user</b>: Hi <img src=x onerror=alert(1)>\nassistant: <script>alert(2)</script>\u200b", True)
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert not re.search(r"<(img|script|b>user)", shown)
    assert len(data) == 2


def test_a_turn_without_a_visible_sign_has_no_score_and_says_why() -> None:
    shown, data = answer(json.dumps([CHAT[0], {"role": "assistant", "content": " "}]), False)
    assert (data[1]["score"], data[1]["unscored"]) == (None, "the response has no visible character")
    assert "No response could be scored." in shown


@contextmanager
def started(app: Path) -> Iterator[str]:
    """Start a Space as the Hub does, and yield its address."""
    code = "import sys, importlib.util; sys.exit(importlib.util.find_spec('gradio') is None)"
    if subprocess.run([WITH_GRADIO, "-c", code], check=False).returncode:
        pytest.skip("gradio is not installed: the page is not started. `make spaces` installs it beside and runs this test")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [WITH_GRADIO, app],
        env={**os.environ, **variables, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            with suppress(requests.ConnectionError):
                requests.get(address, timeout=5)
                break
            time.sleep(0.2)
        yield address
    finally:
        process.kill()
        process.communicate()


def asked(address: str, *values: object) -> list[Any]:
    """Return the answer of the page's function through gradio's own API."""
    event = requests.post(f"{address}/gradio_api/call/score", json={"data": values}, timeout=60).json()["event_id"]
    lines = requests.get(f"{address}/gradio_api/call/score/{event}", timeout=120).content.decode().splitlines()
    assert "event: complete" in lines, lines
    return list(json.loads(lines[lines.index("event: complete") + 1].removeprefix("data: ")))


@pytest.mark.long
def test_the_space_starts_and_scores_through_its_api_and_in_the_browser() -> None:
    text = EXAMPLES["A picnic, and a train"]
    with started(metrics_path() / "general" / "app.py") as address:
        shown, data = asked(address, text, False)
        assert (shown, data) == answer(text, False)
        with browser_page() as page:
            page.resize(390, 844)
            page.open(address)
            press(page, "button", "picnic")
            until(page, "document.querySelector('textarea').value.includes('Leeds')")
            page.evaluate("document.querySelector('.judged-button').click()")
            until(page, "document.querySelectorAll('.judged li').length === 6")
            assert page.evaluate("document.querySelectorAll('.judged .chip.low').length") == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert page.problems == []
            assert [one for one in page.requests if not one.startswith((address, "data:"))] == []


@pytest.mark.long
def test_a_leaderboards_space_has_the_page_in_a_tab(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    run("leaderboard", "build", tmp_path / "runs", "--output", tmp_path / "board", "--rank-rounds", "0")
    run("leaderboard", "space", tmp_path / "board", "--output", tmp_path / "space", "--demo")
    text = EXAMPLES["A cat that died"]
    with started(tmp_path / "space" / "app.py") as address:
        assert asked(address, text, True) == list(answer(text, True))
        with browser_page() as page:
            page.resize(1280, 900)
            page.open(address)
            until(page, "document.querySelector('iframe') !== null")
            press(page, "button[role=tab]", "Score a conversation")
            until(page, "document.querySelector('.judged-button')?.offsetParent != null")
            assert page.evaluate("document.querySelectorAll('.judged-button').length") == 1
            assert page.problems == []


def press(page: Any, selector: str, words: str) -> None:
    """Click the element with these words as soon as there is one: the page puts its parts there one after the other."""
    found = f"[...document.querySelectorAll('{selector}')].find(one => one.textContent.includes('{words}'))"
    until(page, f"{found} !== undefined")
    page.evaluate(f"{found}.click()")


def until(page: Any, condition: str) -> None:
    deadline = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        time.sleep(0.2)
