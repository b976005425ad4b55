"""`dialeval augment` with models of the host: a scripted one, and random weights, which write nothing that can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from transformers import set_seed
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.llm.language_model import Request
from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter
from dialeval_plugin.methods.augmentation.prompts import TEMPERATURE
from dialeval_plugin.methods.slide.data import split_by_context
from tests.tiny.language_models import write_random_language_model


@pytest.fixture(scope="module")
def roomy_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its window holds the prompt."""
    return write_random_language_model(tmp_path_factory.mktemp("roomy-lm"), chat_template=None, n_positions=6000)


def augment(tmp_path: Path, contexts: list[dict[str, Any]], *words: str) -> tuple[Result, Path]:
    """Run the command in a home of its own; return what it said and the file that it wrote."""
    given, output = tmp_path / "contexts.jsonl", tmp_path / "responses.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in contexts), encoding="utf-8")
    arguments = ["augment", str(given), "--output", str(output), *words]
    return CliRunner().invoke(app, arguments, env={"DIALEVAL_ANSWERS": str(tmp_path / "answers.sqlite")}), output


def test_the_command_takes_any_backend_of_the_host(roomy_lm: Path, tmp_path: Path) -> None:
    llm = ("--llm", "hf", "--llm-args", f"pretrained={roomy_lm},device=cpu,max_length=6000")
    done, _ = augment(tmp_path, [{"context": ["Tea?", "With milk."]}], "--rounds", "1", *llm)
    assert done.exit_code == 1, done.output
    assert done.stdout.splitlines()[-1] == (
        "  0: 0 of 5 positive and 0 of 5 adversarial responses in 1 round; answers without responses: 1 parse_failure"
    )


def test_the_scripted_judge_shows_the_whole_way_without_weights(tmp_path: Path) -> None:
    sets = mini.read_response_sets("test")
    contexts = [{"id": item.id, "context": item.context} for item in sets]
    done, output = augment(tmp_path, contexts, "--spot-check", "3", "--llm", "scripted-judge")
    assert done.exit_code == 0, done.output
    n = len(sets)
    assert done.stdout.splitlines()[0] == f"{n} of {n} contexts have five positive and five adversarial responses"
    written = dailydialog_pp.read(output)
    assert [item.context for item in written] == [item.context for item in sets]
    assert split_by_context(written, fraction=0.5, seed=0).validation


def test_a_draw_depends_on_seed_context_and_round_alone(roomy_lm: Path) -> None:
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
