"""Every door takes a backend, and says in the signature which it was; shards go through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.corpora import mini
from tests.cli.running import run as dialeval
from tests.cli.running import write_rows
from tests.hosts.through_lm_eval import evaluate
from tests.refusals import refused

EXAMPLES = mini.read_examples("test")[:20]
ROWS = [{"context": [turn.text for turn in one.context], "response": one.response.text} for one in EXAMPLES]


@pytest.fixture(scope="module")
def expected() -> list[object]:
    return [pytest.approx(value, abs=1e-5) for value in load_scorer("general", device="cpu").score(EXAMPLES).values]


@pytest.mark.any_lm_eval
def test_the_metric(expected: list[object]) -> None:
    found = load_metric("general").compute(
        predictions=[row["response"] for row in ROWS], contexts=[row["context"] for row in ROWS], backend="onnx"
    )
    assert found["scores"] == expected
    assert "|backend:onnx|" in found["signature"]


@pytest.mark.any_lm_eval
def test_the_command_whole_and_by_shards(expected: list[object], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", ROWS)
    for words, name in (([], "whole"), (["--shard", "1/2"], "one"), (["--shard", "2/2"], "two")):
        done = dialeval("score", source, "--output", tmp_path / f"{name}.jsonl", "--option", "backend=onnx", *words)
        assert done.exit_code == 0, done.output
        assert "|backend:onnx|" in (tmp_path / f"{name}.jsonl.meta.json").read_text(encoding="utf-8")
    parts = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    done = dialeval("merge", tmp_path / "merged.jsonl", *parts)
    assert done.exit_code == 0, done.output
    assert "20 of 20 scored" in done.output
    for name in ("whole", "merged"):
        rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [row["general"] for row in rows] == expected


@pytest.mark.any_lm_eval
@pytest.mark.parametrize("words", [["--explain"], ["--llm", "hf"], ["--record", "v.jsonl"], ["--by-conversation", "c.csv"]])
def test_what_looks_at_the_whole_input_is_refused_where_processes_share_it(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_rows(tmp_path / "rows.jsonl", ROWS)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with refused(f"{words[0]}: cannot be used while several processes score parts of the input. Leave it out."):
        dialeval("score", source, "--output", tmp_path / "scores.jsonl", *words)
    with refused("--output: is required for a part of the input. Name a file."):
        dialeval("score", source)


@pytest.mark.any_lm_eval
def test_a_model_is_exported_by_the_command(tmp_path: Path, tiny_general: Path) -> None:
    done = dialeval("models", "export", tiny_general, tmp_path / "mine", "--backend", "onnx")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "mine" / "exported" / "onnx" / "export.json").is_file()
    with pytest.raises(Exception, match="--backend"):
        dialeval("models", "export", tiny_general, tmp_path / "other", "--backend", "tensorrt")


@pytest.mark.long
def test_lm_eval() -> None:
    task = "dstc10_dialog_mini"
    found = evaluate("dialogue-metric", task, model_args="scorer=general,backend=onnx", limit=20)
    expected = evaluate("dialogue-metric", task, model_args="scorer=general,device=cpu", limit=20)
    one, other = ([sample["spearman"].score for sample in results["samples"][task]] for results in (found, expected))
    assert one == [pytest.approx(value, abs=1e-4) for value in other]
