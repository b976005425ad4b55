"""`--model replay-judge`: verdicts that were recorded stand in for the judge, through the host, and at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.files import read_json_lines
from dialeval_plugin.corpora import mini
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.hosts.lm_eval.tasks.ratings import Judged
from dialeval_plugin.methods.judging.replay import Recorder
from tests.cli import running
from tests.hosts.through_lm_eval import evaluate, metrics
from tests.refusals import refused

TASK = "dstc10_dialog_mini"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Verdicts of the scripted judge on the embedded corpus, without its first response."""
    items = mini.read_examples(split="test")[1:]
    judge = load_scorer_with_judge("llm_judge", {"llm": "scripted-judge", "answers": False})
    recorder = Recorder.of(judge, tmp_path_factory.mktemp("kept") / "kept.jsonl")
    recorder.add(judge.score(items))
    assert recorder.write() == len(items)
    return recorder.path


def judge_of(kept: Path) -> str:
    return str(read_json_lines(kept)[0].value["judge"])


@pytest.mark.long
def test_a_task_gets_the_stored_numbers(kept: Path) -> None:
    judge = load_scorer_with_judge("llm_judge", {"llm": "scripted-judge", "answers": False})
    args = f"source={judge_of(kept)},verdicts={kept}"
    replayed = metrics(evaluate("replay-judge", TASK, model_args=args), TASK)
    assert replayed["n_unscored"] == 1
    items = mini.read_examples(split="test")
    without_first = judge.score(items[1:]).values
    samples = evaluate("replay-judge", TASK, model_args=args)["samples"][TASK]
    assert sorted(sample["spearman"].score for sample in samples if sample["spearman"].score is not None) == sorted(
        without_first
    )
    assert [sample["spearman"].unscored for sample in samples].count("no_verdict") == 1


@pytest.mark.long
def test_dre_gets_the_verdict_on_its_scale_where_it_asks_for_a_rating_alone(kept: Path, tiny_slm: Path) -> None:
    args = f"source={judge_of(kept)},verdicts={kept}"
    found = evaluate("replay-judge", "dre_mini", model_args=args, metadata={"slm": str(tiny_slm)})
    judged = [Judged(*sample["spearman"]) for sample in found["samples"]["dre_mini"]]
    # The variant without a small model is the verdict from 0 to 5; those that ask the interior prompt have no answer.
    shares = load_scorer_with_judge("llm_judge", {"llm": "scripted-judge", "answers": False}).score(
        mini.read_examples(split="test")
    )
    said = [one.by("non_dre").score for one in judged]
    assert said[1:] == pytest.approx([5 * share for share in shares.values[1:] if share is not None])
    assert said[0] is None
    assert {one.by("dre").score for one in judged} == {None}


@pytest.mark.parametrize("scorer", ["llm_judge", "slide"])
def test_a_run_that_was_recorded_is_repeated_without_the_model(scorer: str, tmp_path: Path, tiny_slm: Path) -> None:
    rows = [
        {"id": str(number), "context": ["Do you like tea?"], "response": text} for number, text in enumerate(("Tea!", "Cats."))
    ]
    data, record = running.write_rows(tmp_path / "in.jsonl", rows), tmp_path / "kept.jsonl"
    words: list[Any] = ["score", data, "--scorer", scorer, *(["--slm", tiny_slm] if scorer == "slide" else [])]
    first = running.run(*words, "--output", tmp_path / "a.jsonl", "--llm", "scripted-judge", "--no-answers", "--record", record)
    assert f"verdicts: 2 in {record}" in first.output
    args = f"source={judge_of(record)},verdicts={record}"
    again = running.run(*words, "--output", tmp_path / "b.jsonl", "--llm", "replay-judge", "--llm-args", args)
    assert again.exit_code == 0, again.output
    assert [row.value for row in read_json_lines(tmp_path / "a.jsonl")] == [
        row.value for row in read_json_lines(tmp_path / "b.jsonl")
    ]


def test_recording_needs_a_judge_and_a_name_for_json_lines(tmp_path: Path) -> None:
    data = running.write_rows(tmp_path / "in.jsonl", [{"context": ["Tea?"], "response": "Yes."}])
    with refused("--record: keeps what a language model says, and response_length asks none. Name one with --llm."):
        running.run("score", data, "--scorer", "response_length", "--record", tmp_path / "kept.jsonl")
    path = tmp_path / "kept.csv"
    with refused(f"{path}: verdicts are kept as JSON lines. End the name in .jsonl."):
        running.run("score", data, "--scorer", "llm_judge", "--llm", "scripted-judge", "--no-answers", "--record", path)
