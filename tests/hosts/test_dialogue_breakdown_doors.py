"""Every door gives the scorer's own numbers: the metric, the host's loader, the command line, and the tasks over DBDC3."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora.readers import dbdc
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.methods.breakdown.calibration import Calibration
from dialeval_plugin.methods.breakdown.scorer import DialogueBreakdownScorer
from dialeval_plugin.statistics.breakdown.detection import METRICS, breakdown_metrics, detections
from dialeval_plugin.training.history import read_history
from tests.hosts import through_lm_eval
from tests.tiny.breakdown import SIZES, TinyModels, mini_dialogues


@pytest.fixture
def small_dbdc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip of the published layout with the dialogues of one system; their first response follows nothing."""
    folder = tmp_path / "data" / dbdc.CORPUS.name
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / dbdc.FILE, "w") as archive:
        for split in ("dev", "eval"):
            for number, dialogue in enumerate(mini_dialogues("test", 6)):
                turns = []
                for place, turn in enumerate(dialogue.turns):
                    is_system = place % 2 == 0
                    labels = "X" * ((7 * place + 5 * number) % 20) + "O" * 10 if is_system else ""
                    annotations = [{"breakdown": label} for label in labels]
                    turns.append({"speaker": "S" if is_system else "U", "utterance": turn.text, "annotations": annotations})
                value = json.dumps({"dialogue-id": f"{split}{number}", "turns": turns})
                archive.writestr(f"DBDC3/dbdc3_revised/en/{split}/CIC_6/{number}.log.json", value)
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    return folder / dbdc.FILE


@pytest.mark.parametrize("cut", [0.5, 0.2])
def test_the_scorer_is_a_detector_on_the_tasks(tiny_breakdown_models: TinyModels, small_dbdc: Path, cut: float) -> None:
    options = {"model": str(tiny_breakdown_models.odin), "method": "odin_g", "cut": cut, "device": "cpu"}
    ran = through_lm_eval.evaluate(DialogueMetricLM("dialogue_breakdown", **options), "dbdc_cic")
    found = through_lm_eval.metrics(ran, "dbdc_cic")
    responses = [response for dialogue in dbdc.read("cic") for response in dialogue.responses]
    scores = DialogueBreakdownScorer(**options).score(responses).values  # type: ignore[arg-type]
    # The host's answer is stretched so that the cut comes to 0.5, which is where the hard label changes.
    stretched = [
        None if score is None else 0.5 * score / cut if score < cut else 0.5 + 0.5 * (score - cut) / (1 - cut)
        for score in scores
    ]
    said = detections(stretched)
    expected = breakdown_metrics(said.distributions, [dbdc.counts(one) for one in responses], labels=said.labels)
    for name in METRICS:
        assert found[name] == pytest.approx(expected[name].value, abs=1e-9), name
    assert said.labels == [None if score is None else 2 if score > cut else 0 for score in scores]
    assert (found["n_unscored"], found["n_scored"]) == (6, len(responses) - 6)


def test_the_command_trains_calibrates_and_scores(
    tiny_breakdown_models: TinyModels, small_dbdc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    lines = [json.dumps({"turns": [turn.text for turn in dialogue.turns]}) + "\n" for dialogue in mini_dialogues("train", 12)]
    (tmp_path / "train.jsonl").write_text("".join(lines[:9]), encoding="utf-8")
    (tmp_path / "validation.jsonl").write_text("".join(lines[8:]), encoding="utf-8")
    sizes = {"layers": 1, "width": 16, "vocabulary": 300, "block": 64, "epochs": 2, "batch-size": 4}
    arguments = ["--data", str(tmp_path / "train.jsonl"), "--validation", str(tmp_path / "validation.jsonl")]
    arguments += [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    runner = CliRunner()
    trained = runner.invoke(app, ["train", "language-model", *arguments, "--output", str(tmp_path / "lm")])
    assert trained.exit_code == 0, trained.output
    shown = trained.stdout.splitlines()
    record = json.loads((tmp_path / "lm" / "language_model.json").read_text(encoding="utf-8"))
    n_tokens = record["training"]["counts"]["n_training_tokens"]
    assert shown[0] == f"{tmp_path / 'lm'}: trained on 8 dialogues ({n_tokens} tokens), validated on 4"
    assert shown[1].split("  ")[-1].strip() == "perplexity"
    assert [float(line.split()[-1]) for line in shown[2:]] == [
        round(row.figures["perplexity"], 2) for row in read_history(tmp_path / "lm")
    ]

    calibrated = runner.invoke(
        app,
        [
            *["train", "breakdown", "--calibration", str(small_dbdc), "--inside", "DBDC3/dbdc3_revised/en/dev/"],
            *["--model", str(tmp_path / "lm"), "--output", str(tmp_path / "own.json"), "--device", "cpu"],
        ],
    )
    assert calibrated.exit_code == 0, calibrated.output
    own = Calibration.load(tmp_path / "own.json")
    responses = [response for dialogue in dbdc.read("cic", split="dev") for response in dialogue.responses]
    assert calibrated.stdout.splitlines()[0] == f"{tmp_path / 'own.json'}: max_probability over {len(responses) - 6} responses"
    scored = DialogueBreakdownScorer(
        str(tmp_path / "lm"), calibration=str(tmp_path / "own.json"), device="cpu", context="pair"
    ).score(responses)
    raw = [value for value in scored.columns["score"] if value is not None]
    extremes = own.ranges["max_probability"]["pair"]["mean"]
    assert (min(raw), max(raw)) == pytest.approx((extremes.low, extremes.high))
    assert SIZES["block"] == own.max_tokens
