"""Proxy indicators through `evaluate`, lm-eval and the command line: the numbers are the scorer's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.methods.proxy_indicators.regression import ProxyModel
from dialeval_plugin.methods.proxy_indicators.scorer import GlueProxyScorer
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, TASKS
from tests.layouts import WORDS
from tests.tiny.classifiers import write_classifier

pytestmark = pytest.mark.any_lm_eval


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("classifiers")
    return {name: str(write_classifier(base / name, task.labels, seed=seed)) for seed, (name, task) in enumerate(TASKS.items())}


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """A file of USR's layout: eight contexts, three responses each, the last context without a fact."""
    rows = []
    for number, word in enumerate(WORDS):
        row: dict[str, Any] = {"context": f"do you like {word} ?\nyes .\n", "annotators": ["a", "b", "c"], "responses": []}
        row["fact"] = f"{word} is old ." if number < 7 else "_nofact"
        for place, text in enumerate((f"i love {word} too !", f"{word} is {number}", "why not ?")):
            response: dict[str, Any] = {"response": f"{text}\n", "model": f"system {place}"}
            for quality, (low, high) in usr.SCALES.items():
                response[quality] = [low + (number + place + rater) % (high - low + 1) for rater in range(3)]
            row["responses"].append(response)
        rows.append(row)
    path = tmp_path / "rated.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def command(*words: str | Path, expected: int = 0) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == expected, done.output
    return done


def train(rated: Path, output: Path, *words: str | Path, expected: int = 0) -> Result:
    return command("train", "proxy", "--data", rated, "--output", output, *words, expected=expected)


def test_a_trained_regression_scores_a_file(
    models: dict[str, str], rated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifiers = ";".join(f"{task}={folder}" for task, folder in models.items())
    output, plot = tmp_path / "proxy.json", tmp_path / "weights.svg"
    printed = train(rated, output, "--models", classifiers, "--folds", "4", "--plot", plot).output
    # The context without a fact cannot be used, because the regression reads facts.
    assert "3 of 24 responses have no rating or lack an indicator and are left out" in printed
    assert f"{output}: fitted on 21 responses, Overall" in printed
    assert "held out, 4 folds of contexts" in printed
    assert plot.exists()
    trained = ProxyModel.load(output)
    assert trained.regression.names == FEATURES
    assert set(trained.hashes) == set(TASKS)
    monkeypatch.setenv("DIALEVAL_GLUE_PROXY", str(output))
    scores = GlueProxyScorer().score(usr.read_examples(rated))
    assert (scores.n_scored, scores.unscored_by_reason) == (21, {"empty_input": 3})
    scored = tmp_path / "scores.jsonl"
    command("score", rated, "--scorer", "glue_proxy", "--output", scored, "--max-unscored", "0.2")
    written = [json.loads(line) for line in scored.read_text(encoding="utf-8").splitlines()]
    assert [row["glue_proxy"] for row in written] == pytest.approx(list(scores.values), abs=1e-9)


def test_published_scores_are_fitted_without_a_classifier(rated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = json.loads(rated.read_text(encoding="utf-8"))
    values = iter(range(1000))
    for row in rows:
        for response in row["responses"]:
            response |= {"sst": (next(values) * 7 % 11) / 11, "cola": (next(values) * 5 % 13) / 13}
    rated.write_text(json.dumps(rows), encoding="utf-8")
    output = tmp_path / "proxy.json"
    settings = ("--published-scores", "--features", "single", "--in-sample", "--quality", "Uses Knowledge")
    printed = train(rated, output, *settings).output
    assert f"{output}: fitted on 24 responses, Uses Knowledge" in printed
    assert "on the rows of the fit" in printed
    trained = ProxyModel.load(output)
    assert (trained.settings.entailment, trained.settings.absent_fact) == ("not_entailment", "_nofact")
    assert trained.hashes == {}
    scored = usr.read_scored(rated)
    # Columns keep their names whatever their order in the file.
    assert trained.regression.features[0].high == max(scored.scores["cola"])


WRONG = {
    "--entailment entailment": "--entailment: the published scores are of not_entailment. Leave one of the options out.",
    "": "{rated}: has no scores 'cola'. Leave --published-scores out to run the classifiers.",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_arguments_are_named(rated: Path, tmp_path: Path, words: str) -> None:
    output = tmp_path / "proxy.json"
    done = train(rated, output, "--published-scores", *words.split(), expected=1)
    assert str(done.exception) == WRONG[words].format(rated=rated)
    done = train(rated, output, "--features", "pairs", expected=2)
    assert "'pairs' is not one of" in done.output
    assert not output.exists()


def test_unrated_responses_are_named(tmp_path: Path, models: dict[str, str]) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"context": ["hi"], "response": "hello"}\n', encoding="utf-8")
    done = train(path, tmp_path / "p.json", expected=1)
    assert str(done.exception) == f"{path}: has no rated responses. Give a file in the layout of USR or of a DSTC10 set."
