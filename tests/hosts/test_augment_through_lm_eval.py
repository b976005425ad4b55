"""`dialeval augment` with models of the host: a scripted one, and random weights, which write nothing that can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter
from dialeval_plugin.methods.augmentation.prompts import TEMPERATURE
from dialeval_plugin.methods.slide.data import split_by_context


@pytest.fixture(scope="module")
def roomy_lm(tiny_lm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with random weights and a window that holds the prompt in letters."""
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("roomy-lm")
    tokenizer = AutoTokenizer.from_pretrained(tiny_lm)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=6000, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def test_the_command_takes_any_backend_of_the_host(roomy_lm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))
    contexts, output = tmp_path / "contexts.jsonl", tmp_path / "responses.jsonl"
    contexts.write_text(json.dumps({"context": ["Tea?", "With milk."]}) + "\n", encoding="utf-8")
    done = CliRunner().invoke(
        app,
        [
            *("augment", str(contexts), "--output", str(output), "--rounds", "1"),
            *("--llm", "hf", "--llm-args", f"pretrained={roomy_lm},device=cpu,max_length=6000"),
        ],
    )
    assert done.exit_code == 1, done.output
    assert done.stdout.splitlines()[-1] == (
        "  0: 0 of 5 positive and 0 of 5 adversarial responses in 1 round; answers without responses: 1 parse_failure"
    )


def test_the_scripted_judge_shows_the_whole_way_without_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))
    contexts, output = tmp_path / "contexts.jsonl", tmp_path / "responses.jsonl"
    sets = mini.read_response_sets("test")
    contexts.write_text("".join(json.dumps({"id": item.id, "context": item.context}) + "\n" for item in sets), encoding="utf-8")
    done = CliRunner().invoke(
        app, ["augment", str(contexts), "--output", str(output), "--spot-check", "3", "--llm", "scripted-judge"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == (
        f"{len(sets)} of {len(sets)} contexts have five positive and five adversarial responses"
    )
    written = dailydialog_pp.read(output)
    assert [item.context for item in written] == [item.context for item in sets]
    assert split_by_context(written, fraction=0.5, seed=0).validation


def test_a_draw_depends_on_seed_context_and_round_alone(roomy_lm: Path) -> None:
    from transformers import set_seed

    model = load_language_model("hf", f"pretrained={roomy_lm},device=cpu,max_length=6000")
    drawn: list[str] = []
    generate = model.generate

    def short(requests: list[Request]) -> object:
        found = generate([replace(request, max_tokens=min(request.max_tokens, 16)) for request in requests])
        drawn.extend(str(answer) for answer, request in zip(found, requests, strict=True) if request.temperature)
        return found

    model.generate = short  # type: ignore[method-assign, assignment]
    ResponseWriter(model, rounds=2, reseed=set_seed).write("a", ["Tea?"])
    set_seed(99)
    generate([Request("Something else.", 5, temperature=TEMPERATURE)])
    ResponseWriter(model, rounds=2, reseed=set_seed).write("a", ["Tea?"])
    ResponseWriter(model, rounds=1, seed=1, reseed=set_seed).write("a", ["Tea?"])
    assert drawn[:2] == drawn[2:4]
    assert len({drawn[0], drawn[1], drawn[4]}) == 3
