"""Programs of docs/production.md: the scorer in its processes, and its web service, started for real."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import examples_from, load_scorer
from tests.documented import ROOT, blocks
from tests.refusals import refusal

CHATS = [
    [{"role": "user", "content": "Any plans for Sunday?"}, {"role": "assistant", "content": text}]
    for text in ("We could go to the river.", "The parking garage closes at ten.", "I see.", "")
]


def write_file(name: str, folder: Path) -> Path:
    """The file of that name in the page."""
    (text,) = (block.text for block in blocks(ROOT / "docs" / "production.md") if block.title == name)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def post(url: str, body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310 - of this machine
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page's service, run by uvicorn."""
    folder = tmp_path_factory.mktemp("service")
    name = write_file("service.py", folder).stem
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", f"{name}:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            while True:
                assert process.poll() is None
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/score"
        finally:
            process.terminate()


def test_the_service_of_the_page_answers_eight_callers_with_the_scores_of_the_scorer(service: str) -> None:
    scorer = load_scorer("general")
    alone = [scorer.score(examples_from([chat])) for chat in CHATS]
    expected = [(200, {"rows": list(scores), "signature": str(scores.signature)}) for scores in alone]
    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(lambda chat: post(service, chat), CHATS * 8)) == expected * 8


@pytest.mark.long
def test_the_service_of_the_page_says_what_is_wrong_with_a_conversation(service: str) -> None:
    chat = [{"role": "user"}, {"role": "assistant", "content": "Hi."}]
    assert post(service, chat) == (422, {"detail": refusal(examples_from, [chat])})


def test_the_processes_of_the_page_print_the_score_of_the_scorer(tmp_path: Path) -> None:
    command = [sys.executable, write_file("scores_in_processes.py", tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == [load_scorer("general").score(examples_from(CHATS[:1])).mean()] * 8
