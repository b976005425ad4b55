"""The host writes down a failed request with its headers: no key reaches stderr. FAULTS D5."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from dialeval_plugin.hosts.lm_eval.logs import redact_host_logs
from tests.loopback import Reply, serve

Run = Callable[..., CompletedProcess[str]]
MAIN = "from dialeval_plugin.cli.main import main; main()"
KEY = "sk-SECRETENV"
"""Too short for a key's look, so that it has to be known by its place or by its value."""


def test_d5_no_key_is_in_what_a_failed_request_leaves_on_stderr(clean_run: Run, tmp_path: Path) -> None:
    rows = "".join(f'{{"context": ["Hi {number}."], "response": "Hello."}}\n' for number in range(4))
    (tmp_path / "in.jsonl").write_text(rows, encoding="utf-8")
    with serve(lambda _: Reply({"error": "no"}, 500)) as server:
        done = clean_run(
            *("-c", MAIN, "score", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl")),
            *("--scorer", "llm_judge", "--llm", "local-chat-completions", "--no-answers"),
            *("--llm-args", f"model=m,base_url={server.chat}?api-key={KEY},max_retries=1,num_concurrent=4"),
            env={"OPENAI_API_KEY": KEY},
        )
    assert len(server.asked) == 4
    assert done.returncode == 1
    # The host's own message comes, without the key.
    assert "ClientResponseError" in done.stderr
    assert "Authorization" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert all(KEY not in path.read_text(encoding="utf-8") for path in tmp_path.glob("out*"))


def test_d5_nor_in_what_the_hosts_own_command_leaves(clean_run: Run, tmp_path: Path) -> None:
    with serve(lambda _: Reply({"error": "no"}, 500)) as server:
        done = clean_run(
            *("-c", MAIN, "lm-eval", "run", "--model", "local-chat-completions", "--apply_chat_template"),
            *("--model_args", f"model=m,base_url={server.chat},max_retries=1,num_concurrent=4,api_key=sk-ARGUMENT"),
            *("--tasks", "dailydialog_pp_generate_mini", "--limit", "4", "--output_path", str(tmp_path / "out")),
            env={"OPENAI_API_KEY": KEY},
        )
    assert server.asked
    assert done.returncode != 0
    assert "ClientResponseError" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert "sk-ARGUMENT" not in done.stderr + done.stdout


def test_d5_a_traceback_is_logged_without_the_key_and_other_loggers_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    redact_host_logs()
    redact_host_logs()
    host, other = logging.getLogger("lm_eval.models.new_one"), logging.getLogger("somebody")
    try:
        raise ValueError("api_key=abcdef")
    except ValueError:
        host.exception("failed for %s", "token=abcdef")
    other.error("token=abcdef")
    assert [record.getMessage() for record in caplog.records] == ["failed for token=***", "token=abcdef"]
    assert "ValueError: api_key=***" in caplog.text
