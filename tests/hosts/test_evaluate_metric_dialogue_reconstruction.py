"""The metric `dialogue_reconstruction` with its real scorer on tiny models: every door gives the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import evaluate
import pytest
from typer.testing import CliRunner

from dialeval_plugin import load_metric
from dialeval_plugin.cli.main import app
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from tests.tiny.reconstruction import write_tiny_model

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "I do.", "Two streets from here.", "None yet."]


@pytest.fixture(scope="module")
def vhcr(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_model(tmp_path_factory.mktemp("vhcr"), "vhcr"))


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"latent": "posterior", "seed": 3}, {"level": "turn"}])
def test_the_same_scores_as_the_scorer_itself(options: dict[str, object], vhcr: str) -> None:
    turns = [tuple(map(Turn, [*context, response])) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    is_turn = options.get("level") == "turn"
    items = [Example("0", found[:-1], found[-1]) if is_turn else Dialogue("0", found) for found in turns]
    direct = DialogueReconstructionScorer(vhcr, device="cpu", **options).score(items)  # type: ignore[arg-type]
    result = load_metric("dialogue_reconstruction", model=vhcr, device="cpu").compute(
        predictions=RESPONSES, contexts=CONTEXTS, **options
    )
    assert result.pop("dialogue_reconstruction") == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert {name: result.pop(name) for name in direct.columns} == {
        name: list(values) for name, values in direct.columns.items()
    }
    assert result == {
        "n_total": 4,
        "n_scored": 3,
        "n_unscored": 1,
        "unscored": {"empty_input": 1},
        "signature": str(direct.signature),
    }


def test_the_hosts_own_loader_and_the_command_line_give_the_same(vhcr: str, tmp_path: Path) -> None:
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS, "model": vhcr, "device": "cpu", "level": "turn"}
    by_path = evaluate.load(str(metrics_path() / "dialogue_reconstruction")).compute(**rows)
    assert by_path == load_metric("dialogue_reconstruction").compute(**rows)

    lines = [{"context": context, "response": text} for context, text in zip(CONTEXTS, RESPONSES, strict=True)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    files = [tmp_path / "in.jsonl", "--output", tmp_path / "out.jsonl"]
    options = [part for option in (f"model={vhcr}", "device=cpu", "level=turn") for part in ("--option", option)]
    command = ["score", *files, "--scorer", "dialogue_reconstruction", "--max-unscored", "0.5", *options]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["loss_token_mean"] for line in written] == by_path["scores"]


def test_what_is_missing_or_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_RECONSTRUCTION", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    metric = load_metric("dialogue_reconstruction")
    with pytest.raises(MissingPrerequisite) as missing:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS)
    assert str(missing.value).startswith("dialogue_reconstruction: no model is named. ")
    with pytest.raises(InputError) as wrong:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS, models="hred")
    assert str(wrong.value) == (
        "dialogue_reconstruction: there is no input or option 'models'. Accepted are the columns predictions, contexts, "
        "references, facts and the options model, level, reduction, latent, max_utterances, seed, device, revision."
    )


def test_the_card_names_every_option_and_entry(vhcr: str) -> None:
    card = (metrics_path() / "dialogue_reconstruction" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("dialogue_reconstruction", model=vhcr, device="cpu", latent="posterior")
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    names = list(metric.compute(predictions=RESPONSES, contexts=CONTEXTS))
    assert len(names) == 14
    assert [name for name in [*names, *options] if f"`{name}`" not in card] == []
