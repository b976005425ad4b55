"""A rubric at every door: `dialeval score`, a server, `evaluate`, and a task of lm-eval that is written for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import evaluate as host
import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.evaluate.metric import load_metric
from dialeval_plugin.hosts.registration import register_models
from dialeval_plugin.methods.judging.rubric import read_rubrics, rubric_prompt
from dialeval_plugin.testing.scripted_judge import overlap_answer
from tests.cli import running
from tests.loopback import Reply, prompt_of, serve, text_reply
from tests.refusals import refused

FITS = "Does the answer keep to the order?"
ROWS = [
    {"id": "a", "context": ["Two black teas, please."], "response": "Two black teas."},
    {"id": "b", "context": ["Two black teas, please."], "response": "Cats sleep."},
    {"id": "c", "context": ["Where is the train?"], "response": "The train is late today, sorry."},
]
RATED = [{**row, "rating": rating} for row, rating in zip(ROWS, (5, 1, 3), strict=True)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return running.write_rows(tmp_path / "log.jsonl", ROWS)


def scores(path: Path, column: str = "rubric") -> list[float | None]:
    return [json.loads(line)[column] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_served_model_answers_a_rubric_once_and_what_it_said_stands_in_for_it(log: Path, tmp_path: Path) -> None:
    def rule(body: dict[str, Any]) -> Reply:
        return text_reply(body, overlap_answer(prompt_of(body)))

    words = ("score", log, "--rubric", FITS, "--answers", tmp_path / "answers.sqlite")
    with serve(rule) as server:
        llm = ("--llm", "local-chat-completions", "--llm-args", f"model=any,base_url={server.chat}")
        rehearsed = running.run(*words, *llm, "--dry-run")
        assert rehearsed.stdout.startswith("dry run: 3 calls, about ")
        assert server.asked == []
        done = running.run(*words, *llm, "--output", tmp_path / "one.jsonl", "--record", tmp_path / "said.jsonl")
        again = running.run(*words, *llm, "--output", tmp_path / "two.jsonl")
        assert (done.exit_code, again.exit_code, len(server.asked)) == (0, 0, 3)
    assert scores(tmp_path / "one.jsonl") == scores(tmp_path / "two.jsonl") == [1.0, 0.0, 0.0]
    meta = json.loads((tmp_path / "one.jsonl.meta.json").read_text(encoding="utf-8"))
    assert meta["rubrics"] == [
        {"name": "rubric", "rubric": FITS, "level": "turn", "scale": "yes-no", "categories": ["no", "yes"]}
    ]
    judge = json.loads((tmp_path / "said.jsonl").read_text(encoding="utf-8").splitlines()[0])["judge"]
    replay = ("--llm", "replay-judge", "--llm-args", f"source={judge},verdicts={tmp_path / 'said.jsonl'}")
    running.run("score", log, "--rubric", FITS, *replay, "--output", tmp_path / "three.jsonl")
    assert scores(tmp_path / "three.jsonl") == [1.0, 0.0, 0.0]


def test_the_command_refuses_what_could_be_read_in_two_ways(log: Path) -> None:
    with refused("--rubric: cannot be combined with --scorer slide. Leave one of them out."):
        running.run("score", log, "--rubric", FITS, "--scorer", "slide")
    with refused("--rubric-scale: needs a question. Add --rubric, or leave it out."):
        running.run("score", log, "--rubric-scale", "1-5")
    message = (
        "rubric: asks a large language model, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model)."
    )
    with refused(message, MissingPrerequisite):
        running.run("score", log, "--rubric", FITS)


def test_a_rubric_is_a_metric_of_evaluate(tmp_path: Path) -> None:
    columns = {"predictions": [row["response"] for row in ROWS], "contexts": [row["context"] for row in ROWS]}
    options = {"rubric": FITS, "llm": "scripted-judge", "answers": False}
    ours = load_metric("rubric", **options).compute(**columns)
    theirs = host.load(str(metrics_path().resolve() / "rubric")).compute(**columns, **options)
    assert ours == theirs
    assert (ours["rubric"], ours["scores"], ours["n_unscored"]) == (pytest.approx(1 / 3), [1.0, 0.0, 0.0], 0)


def run_task(folder: Path, task: str, model: str, arguments: str = "") -> dict[str, Any]:
    register_models()
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found: dict[str, Any] = lm_eval.simple_evaluate(
        model, model_args=arguments, tasks=[task], task_manager=manager, bootstrap_iters=0
    )
    return found


def test_the_command_writes_a_task_that_asks_the_model_under_test(tmp_path: Path) -> None:
    data = running.write_rows(tmp_path / "rated.jsonl", RATED)
    done = running.run("rubric", FITS, "--data", data, "--output", tmp_path / "tasks")
    assert done.stdout == f"task: {tmp_path / 'tasks' / 'rubric_rated.yaml'}\n"
    assert done.stderr == (
        f"next: dialeval lm-eval run --model hf --include_path {tmp_path / 'tasks'} --tasks rubric_rated  (runs it)\n"
    )
    found = run_task(tmp_path / "tasks", "rubric_rated", "scripted-judge", "refuse=train")
    assert found["results"]["rubric_rated"]["n_scored,none"] == 2
    said = {sample["doc"]["id"]: sample["spearman"] for sample in found["samples"]["rubric_rated"]}
    assert {id: (one.score, one.rating, one.unscored) for id, one in said.items()} == {
        "a": (1.0, 5.0, None),
        "b": (0.0, 1.0, None),
        "c": (None, 3.0, "refusal"),
    }
    (entry,) = read_rubrics(FITS)
    assert found["configs"]["rubric_rated"]["metadata"]["dialeval"] == {
        "method": rubric_prompt(entry).id,
        "dataset": "rated",
        "level": "turn",
        "quality": "rating",
        "kind": "rating",
        "direction": "higher",
    }


def test_a_scorer_answers_the_task_of_a_rubric(tmp_path: Path) -> None:
    data = running.write_rows(tmp_path / "rated.jsonl", RATED)
    running.run("rubric", "How long is it?", "--rubric-scale", "1-5", "--data", data, "--output", tmp_path / "tasks")
    found = run_task(tmp_path / "tasks", "rubric_rated", "dialogue-metric", "scorer=response_length")
    assert [sample["spearman"].score for sample in found["samples"]["rubric_rated"]] == [3.0, 2.0, 6.0]


def test_data_that_is_not_rated_for_the_rubric_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    two = [{**row, "ratings": {"kind": 1.0, "clear": 2.0}} for row in ROWS]
    data = running.write_rows(tmp_path / "rated.jsonl", two)
    with refused(f"{data}: has the qualities kind, clear. Say which is compared with, by --quality."):
        running.run("rubric", FITS, "--data", data, "--output", tmp_path / "tasks")
    with refused(f"{data}: has no quality 'clean'. Did you mean 'clear'? Known are: kind, clear."):
        running.run("rubric", FITS, "--data", data, "--output", tmp_path / "tasks", "--quality", "clean")
    (bare := tmp_path / "bare.csv").write_text("id,rating\na,1\n", encoding="utf-8")
    with refused(f"{bare}: has no columns 'context' and 'response'. Give what is rated, with its ratings."):
        running.run("rubric", FITS, "--data", bare, "--output", tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()
    running.run("rubric", FITS, "--data", data, "--output", tmp_path / "tasks", "--quality", "clear")
    assert running.names(tmp_path / "tasks") == ["rubric_rated.yaml"]
