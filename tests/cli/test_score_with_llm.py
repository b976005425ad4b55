"""`dialeval score --llm`: what a run asks, and what a repeated one does not. FAULTS R58, R69."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dialeval_plugin.hosts.evaluate.metric import load_metric
from dialeval_plugin.testing.scripted_lm import ScriptedJudgeLM
from tests.cli import running
from tests.refusals import refused

ROWS = [
    {"context": ["Do you like tea?"], "response": "I like tea."},
    {"context": ["Do you like tea?"], "response": "Cats sleep."},
    {"context": ["Do you like tea?"], "response": "I like tea."},
    {"context": ["Where is the train?"], "response": "The train is late."},
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests that reach the scripted judge."""
    prompts: list[str] = []
    original = ScriptedJudgeLM.generate_until

    def noted(self: ScriptedJudgeLM, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        prompts.extend(request.args[0] for request in requests)
        return original(self, requests, disable_tqdm)

    monkeypatch.setattr(ScriptedJudgeLM, "generate_until", noted)
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.asking.time.sleep", lambda seconds: None)
    return prompts


@pytest.fixture
def score(tiny_slm: Path, tmp_path: Path, asked: list[str]) -> Any:
    rows = running.write_rows(tmp_path / "in.jsonl", ROWS)

    def run(*words: object, output: str = "out.jsonl") -> Result:
        return running.run("score", rows, "--output", tmp_path / output, "--scorer", "slide", "--slm", tiny_slm, *words)

    return run


def test_a_dry_run_says_what_would_be_asked_and_a_run_then_asks_that(score: Any, asked: list[str], tmp_path: Path) -> None:
    words = ("--llm", "scripted-judge", "--answers", tmp_path / "answers.sqlite")
    rehearsed = score(*words, "--dry-run")
    assert rehearsed.exit_code == 0
    assert asked == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["answers.sqlite", "in.jsonl"]

    done = score(*words)
    n_tokens = -(-sum(map(len, asked)) // 4)
    assert len(asked) == 3
    counted = f"3 calls, about {n_tokens} prompt tokens (at 4 characters a token), 0 of 3 requests from the cache (0 %)"
    assert rehearsed.stdout == f"dry run: {counted}\n"
    assert done.stderr.splitlines()[-2] == f"llm: {counted}, 0 failed"

    assert score(*words, "--dry-run").stdout == ("dry run: 0 calls, 0 prompt tokens, 3 of 3 requests from the cache (100 %)\n")


def test_d27_a_run_goes_on_without_answers_where_the_users_cache_cannot_be_written(
    score: Any, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DIALEVAL_ANSWERS")
    path = tmp_path / "home" / "dialeval" / "answers.sqlite"
    problem = f"[Errno 20] Not a directory: '{path.parent}'"

    done = score("--llm", "scripted-judge")
    assert (done.exit_code, len(asked)) == (0, 3)
    assert [record.getMessage() for record in caplog.records if record.name.endswith("llm.answers")] == [
        f"{path}: cannot be written ({problem}). The run goes on and keeps no answers; "
        "name a file with DIALEVAL_ANSWERS to keep them."
    ]

    with refused(
        f"{path}: cannot be used for answers ({problem}). What is in it stays; mend this and repeat the command, "
        "or name another file."
    ):
        score("--llm", "scripted-judge", "--answers", path, output="other.jsonl")
    assert len(asked) == 3


def test_a_repeated_run_asks_nothing_and_writes_the_same_bytes(score: Any, asked: list[str], tmp_path: Path) -> None:
    words = ("--llm", "scripted-judge", "--answers", tmp_path / "answers.sqlite")
    score(*words)
    again = score(*words, output="again.jsonl")
    assert len(asked) == 3
    assert again.stderr.splitlines()[-2] == ("llm: 0 calls, 0 prompt tokens, 3 of 3 requests from the cache (100 %), 0 failed")
    for suffix in ("", ".meta.json"):
        assert (tmp_path / f"again.jsonl{suffix}").read_bytes() == (tmp_path / f"out.jsonl{suffix}").read_bytes()

    score(*words[:2], "--no-answers")
    assert len(asked) == 6


def test_failed_rows_exit_with_1_and_the_same_command_asks_for_them_alone(
    score: Any, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--llm", "scripted-judge", "--answers", tmp_path / "answers.sqlite", "--max-unscored", "0.2")
    generate_until = ScriptedJudgeLM.generate_until

    def down(self: ScriptedJudgeLM, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        if any("train" in request.args[0] for request in requests):
            raise ConnectionError("503")
        return generate_until(self, requests, disable_tqdm)

    with monkeypatch.context() as patch:
        patch.setattr(ScriptedJudgeLM, "generate_until", down)
        broken = score(*words)
    assert broken.exit_code == 1
    assert broken.stderr.splitlines()[-2].endswith(", 0 of 3 requests from the cache (0 %), 1 failed")
    assert broken.stderr.splitlines()[-1] == (
        "1 of 4 examples have no score, more than --max-unscored 0.2 allows: {'api_error': 1}"
    )
    assert json.loads((tmp_path / "out.jsonl.meta.json").read_text())["complete"] is False
    assert len(asked) == 2

    mended = score(*words)
    assert mended.exit_code == 0
    assert len(asked) == 3
    assert "The train is late." in asked[-1]
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert (meta["complete"], meta["n_scored"]) == (True, 4)


def test_options_that_do_not_go_together_are_refused(score: Any) -> None:
    with refused("--dry-run: there is no language model to ask. Name one with --llm."):
        score("--dry-run")
    with refused("--answers and --no-answers: cannot be combined. Leave one of them out."):
        score("--llm", "scripted-judge", "--answers", "x", "--no-answers")
    with refused("slide: answers is 'x', but no llm was named. Pass for example llm='hf' as well."):
        score("--answers", "x")


def test_a_metric_keeps_answers_by_default_in_the_users_file_and_none_if_told(
    asked: list[str], tiny_slm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "mine.sqlite"))
    rows = {"predictions": [row["response"] for row in ROWS], "contexts": [row["context"] for row in ROWS]}
    first = load_metric("slide", slm=str(tiny_slm), llm="scripted-judge").compute(**rows)
    assert load_metric("slide", slm=str(tiny_slm), llm="scripted-judge").compute(**rows) == first
    assert len(asked) == 3
    assert (tmp_path / "mine.sqlite").exists()

    for answers, n_asked in ((False, 6), (str(tmp_path / "other.sqlite"), 9), (True, 9)):
        load_metric("slide", slm=str(tiny_slm), llm="scripted-judge", answers=answers).compute(**rows)
        assert len(asked) == n_asked


@pytest.mark.parametrize("is_shown", [True, False])
def test_answers_that_cannot_be_read_are_shown_where_asked(
    is_shown: bool, score: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "dialeval_plugin.llm.parsing")
    caplog.handler.setLevel(logging.DEBUG)
    words = ("--show-unparsed",) if is_shown else ()
    score("--llm", "scripted-judge", "--llm-args", "garble=Cats", "--no-answers", "--max-unscored", "1", *words)
    shown = [record.getMessage() for record in caplog.records if record.name == "dialeval_plugin.llm.parsing"]
    assert shown == (["unread answer (parse_failure): '%& ##'"] if is_shown else [])


def test_how_often_a_judge_is_asked_is_said_before_it_is_asked(asked: list[str], tmp_path: Path) -> None:
    rows = running.write_rows(tmp_path / "in.jsonl", ROWS)
    done = running.run("score", rows, "--scorer", "g_eval", "--llm", "scripted-judge", "--no-answers")
    # One response is there twice.
    said = "g_eval: 80 questions a response, up to 320 in all; --dry-run counts them, asks none"
    assert (done.stderr.splitlines()[0], len(asked)) == (said, 240)
