"""Evaluators that differ have different names, and nothing is merged or left out for a name. FAULTS_FOUND_2 F6."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.result_files import evaluator_name, read_runs
from dialeval_plugin.leaderboard.task_runs import newest
from tests.leaderboard_files import change_json, documents, noisy_scores, write_run

SHORT: list[tuple[dict[str, Any], str]] = [
    (
        {"model": "dialogue-metric", "model_args": "scorer=causalscore,model=./dream,conditions=4"},
        "causalscore (conditions=4, dream)",
    ),
    ({"model": "dialogue-metric", "model_args": "scorer=bleu,n=1"}, "bleu-1"),
    ({"model": "dialogue-metric"}, "general"),
    ({"model": "hf", "model_args": {"pretrained": "openai-community/gpt2"}}, "openai-community/gpt2"),
]


@pytest.mark.parametrize(("config", "name"), SHORT)
def test_a_name_is_short(config: dict[str, Any], name: str) -> None:
    assert evaluator_name(config) == name


LONG = "Please judge kindly, and " * 3
TU, DZ = "dstc10_dialog_tu", "dstc10_dialog_dz"


def hf(path: str, **options: Any) -> dict[str, Any]:
    return {"model": "hf", "model_args": {"pretrained": path, **options}}


def served(port: int, **options: Any) -> dict[str, Any]:
    arguments = {"model": "m", "base_url": f"http://localhost:{port}/v1/chat/completions", **options}
    return {"model": "local-chat-completions", "model_args": arguments}


def scorer(slm: str, signature: str) -> dict[str, Any]:
    return {"model": "dialogue-metric", "model_args": {"scorer": "slide", "slm": slm}, "scorer_signature": signature}


def asking(path: str, signature: str) -> dict[str, Any]:
    arguments = {"scorer": "g_eval", "llm": "hf", "llm_args": f"pretrained={path},device=cpu"}
    return {"model": "dialogue-metric", "model_args": arguments, "scorer_signature": signature}


def write(folder: Path, configs: list[dict[str, Any]], tasks: list[str]) -> None:
    for second, (config, task) in enumerate(zip(configs, tasks, strict=True)):
        rows = documents(20, text="Hello.", seed=second)
        others = {name: config.pop(name) for name in ("metadata", "file") if name in (config := dict(config))}
        path = write_run(folder, config, {task: (rows, noisy_scores(rows, 0.1))}, second=second)
        for name, value in others.get("metadata", {}).items():
            change_json(path, "configs", task, "metadata", name, value=value)
        for name, value in others.get("file", {}).items():
            change_json(path, name, value=value)


DIFFERENT: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "folders of one name": (
        [hf("/x/runA/checkpoint-500"), hf("/x/runB/checkpoint-500")],
        ["runA/checkpoint-500", "runB/checkpoint-500"],
    ),
    "folders that differ far up": (
        [hf("/a/mine/last", dtype="float32"), hf("/b/mine/last/", dtype="float32"), hf("/b/other", dtype="float32")],
        ["a/mine/last (dtype=float32)", "b/mine/last (dtype=float32)", "other (dtype=float32)"],
    ),
    "adapters": (
        [hf("gpt2", peft="./one/adapter"), hf("gpt2", peft="./two/adapter")],
        ["one/adapter (pretrained=gpt2)", "two/adapter (pretrained=gpt2)"],
    ),
    "settings of the generation": (
        [{**hf("gpt2"), "gen_kwargs": {"temperature": 0.9}}, {**hf("gpt2"), "gen_kwargs": {"temperature": 0.0}}, hf("gpt2")],
        ["gpt2 (temperature=0.9)", "gpt2 (temperature=0.0)", "gpt2"],
    ),
    "--metadata": ([{**hf("gpt2"), "metadata": {"k": 1}}, hf("gpt2", dtype="f")], ["gpt2", "gpt2 (dtype=f)"]),
    "--metadata alone": ([{**hf("gpt2"), "metadata": {"k": 1}}, hf("gpt2")], ["gpt2 (k=1)", "gpt2"]),
    "servers": ([served(8000), served(8001)], [f"m (base_url=localhost:{n}/v1/chat/completions)" for n in (8000, 8001)]),
    "hosts": ([hf("gpt2"), {**hf("gpt2"), "model": "vllm"}], ["gpt2 (host=hf)", "gpt2 (host=vllm)"]),
    "revisions": (
        [{**hf("gpt2"), "model_sha": "607a30d"}, {**hf("gpt2"), "model_sha": "e7da7f2"}],
        ["gpt2 (revision=607a30d)", "gpt2 (revision=e7da7f2)"],
    ),
    "system instructions": (
        [{**hf("gpt2"), "file": {"system_instruction_sha": hash}} for hash in ("12ab", "34cd")],
        ["gpt2 (system_instruction=12ab)", "gpt2 (system_instruction=34cd)"],
    ),
    # What does not fit into a name is shown as its hash.
    "long settings": (
        [{**hf("gpt2"), "metadata": {"k": LONG + end}} for end in "12"],
        [f"gpt2 (k={text_hash(LONG + end)[:8]})" for end in "12"],
    ),
    # DRE's small model signs what it finds; the judge is the language model.
    "language models beside one small model": (
        [{**hf(f"/x/{run}/last"), "scorer_signature": "method:dre|slm:1"} for run in ("runA", "runB")],
        ["runA/last", "runB/last"],
    ),
    "small models of scorers": (
        [scorer("/a/one/slm", "method:slide|slm:1"), scorer("/b/two/slm", "method:slide|slm:2")],
        ["slide (one/slm)", "slide (two/slm)"],
    ),
    "language models of scorers": (
        [asking("/a/one/last", "method:g_eval|llm:1"), asking("/b/two/last", "method:g_eval|llm:2")],
        ["g_eval (one/last)", "g_eval (two/last)"],
    ),
}


@pytest.mark.parametrize("tasks", [(TU, DZ, TU), (TU, TU, TU)], ids=["on other sets", "on one set"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_evaluators_that_differ_are_two_rows(
    name: str, tasks: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configs, expected = DIFFERENT[name]
    write(tmp_path, configs, list(tasks[: len(configs)]))
    with caplog.at_level(logging.WARNING):
        board = build([tmp_path], rank_rounds=0).board
    assert caplog.messages == []
    assert len(board.cells) == len(configs)
    assert sorted(name.partition(", dstc10_dialog")[0] for name in board.evaluators) == sorted(expected)
    assert len(newest(read_runs([tmp_path]))) == len(configs)


def test_no_name_has_a_secret(tmp_path: Path) -> None:
    addresses = [f"http://me:hunter2hunter2@localhost:{port}/v1" for port in (8000, 8001)]
    asked = [served(8000, base_url=address) for address in addresses]
    by_scorers = [scorer("/a/slm", f"method:slide|llm:{number}") for number in range(2)]
    for config, address in zip(by_scorers, addresses, strict=True):
        config["model_args"] |= {"llm": "local-completions", "llm_args": f"model=m,base_url={address}"}
    named = [{**hf("gpt2"), "model": address} for address in addresses]
    for number, configs in enumerate((asked, by_scorers, named)):
        write(tmp_path / str(number), configs, [TU, TU])
        board = build([tmp_path / str(number)], rank_rounds=0).board
        assert len(board.evaluators) == 2
        assert all("localhost:800" in name for name in board.evaluators)
        assert "hunter2" not in str(board.evaluators)


SAME: dict[str, tuple[list[dict[str, Any]], str]] = {
    # Its signature has the contents of its model.
    "a scorer whose model lies elsewhere": (
        [scorer("/a/one/slm", "method:slide|slm:1"), scorer("/b/two/slm", "method:slide|slm:1")],
        "slide (slm)",
    ),
    "another batch size and device": ([hf("/a/mine", batch_size=4, device="cpu"), hf("/a/mine/", batch_size=8)], "mine"),
    # Only tasks with a small model take it, and this is none of them.
    "metadata for other tasks": ([{**hf("gpt2"), "metadata": {"slm": "/a/slm", "clip": True}}, hf("gpt2")], "gpt2"),
    "another key": ([served(8000, api_key="sk-" + 20 * "1"), served(8000, api_key="sk-" + 20 * "2")], "m"),
    "other seeds": ([{**hf("gpt2"), "random_seed": 1}, {**hf("gpt2"), "random_seed": 2}], "gpt2"),
}


@pytest.mark.parametrize("name", SAME)
def test_one_evaluator_has_one_short_name(name: str, tmp_path: Path) -> None:
    configs, expected = SAME[name]
    write(tmp_path, configs, [TU, DZ])
    board = build([tmp_path], rank_rounds=0).board
    assert [name.removesuffix(", dstc10_dialog") for name in board.evaluators] == [expected]
    assert len(board.cells) == 2


def test_a_folder_that_was_trained_again_is_still_refused(tmp_path: Path) -> None:
    write(tmp_path, [scorer("/a/slm", "method:slide|slm:1"), scorer("/a/slm", "method:slide|slm:2")], [TU, DZ])
    with pytest.raises(Exception, match=r"'slide \(slm\)' is another scorer than in .*Leave one of the files out, or run its"):
        build([tmp_path], rank_rounds=0)


def test_the_page_tells_them_apart_too(tmp_path: Path) -> None:
    write(tmp_path, *([hf("/x/runA/checkpoint-500"), hf("/x/runB/checkpoint-500")], [TU, TU]))
    found = json.dumps(build([tmp_path], rank_rounds=0).board.to_dict())
    assert found.count("runA/checkpoint-500") >= 2
    assert "/x/" not in found
