"""Proxy indicators through `evaluate`, lm-eval and the command line: the numbers are the scorer's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.methods.proxy_indicators.regression import ProxyModel
from dialeval_plugin.methods.proxy_indicators.scorer import GlueProxyScorer
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, TASKS
from tests.tiny.classifiers import write_classifier

WORDS = ("tea", "rain", "cats", "music", "trains", "bread", "snow", "books")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("classifiers")
    return {name: str(write_classifier(base / name, task.labels, seed=seed)) for seed, (name, task) in enumerate(TASKS.items())}


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """A file of USR's layout: eight contexts, three responses each, the last context without a fact."""
    rows: list[dict[str, Any]] = []
    for number, word in enumerate(WORDS):
        responses = []
        for place, text in enumerate((f"i love {word} too !", f"{word} is {number}", "why not ?")):
            ratings = {
                quality: [low + (number + place + rater) % (high - low + 1) for rater in range(3)]
                for quality, (low, high) in usr.SCALES.items()
            }
            responses.append({"response": f"{text}\n", "model": f"system {place}", **ratings})
        rows.append(
            {
                "context": f"do you like {word} ?\nyes .\n",
                "fact": f"{word} is old ." if number < 7 else "_nofact",
                "annotators": ["a", "b", "c"],
                "responses": responses,
            }
        )
    path = tmp_path / "rated.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def train(rated: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["train", "proxy", "--data", str(rated), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_trained_regression_scores_a_file(
    models: dict[str, str], rated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DIALEVAL_GLUE_PROXY", raising=False)
    classifiers = ";".join(f"{task}={folder}" for task, folder in models.items())
    output, plot = tmp_path / "proxy.json", tmp_path / "weights.png"
    printed = train(rated, "--models", classifiers, "--output", str(output), "--folds", "4", "--plot", str(plot))
    # The context without a fact cannot be used, because the regression reads facts.
    assert "3 of 24 responses have no rating or lack an indicator and are left out" in printed
    assert f"{output}: fitted on 21 responses, Overall" in printed
    assert "held out, 4 folds of contexts" in printed
    assert (tmp_path / "weights.svg").exists()
    trained = ProxyModel.load(output)
    assert trained.regression.features == FEATURES
    assert set(trained.hashes) == set(TASKS)
    # The last trained one is found without a name.
    scores = GlueProxyScorer().score(usr.read_examples(rated))
    assert (scores.n_scored, scores.unscored_by_reason) == (21, {"empty_input": 3})
    done = CliRunner().invoke(
        app,
        ["score", str(rated), "--scorer", "glue_proxy", "--output", str(tmp_path / "scores.jsonl"), "--max-unscored", "0.2"],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    written = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["glue_proxy"] for row in written] == pytest.approx(list(scores.values), abs=1e-9)


def test_published_scores_are_fitted_without_a_classifier(rated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    rows = json.loads(rated.read_text(encoding="utf-8"))
    values = iter(range(1000))
    for row in rows:
        for response in row["responses"]:
            response |= {"sst": (next(values) * 7 % 11) / 11, "cola": (next(values) * 5 % 13) / 13}
    rated.write_text(json.dumps(rows), encoding="utf-8")
    output = tmp_path / "proxy.json"
    settings = ("--published-scores", "--features", "single", "--in-sample", "--quality", "Uses Knowledge")
    printed = train(rated, *settings, "--output", str(output))
    assert f"{output}: fitted on 24 responses, Uses Knowledge" in printed
    assert "on the rows of the fit" in printed
    trained = ProxyModel.load(output)
    assert (trained.settings.entailment, trained.settings.absent_fact) == ("not_entailment", "_nofact")
    assert trained.hashes == {}
    scored = usr.read_scored(rated)
    # Columns keep their names whatever their order in the file.
    assert trained.regression.ranges[0].high == max(scored.scores["cola"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["--published-scores", "--entailment", "entailment"],
            "--entailment: the published scores are of not_entailment. Leave one of the options out.",
        ),
        (["--published-scores"], "{rated}: has no scores 'cola'. Leave --published-scores out to run the classifiers."),
    ],
)
def test_wrong_arguments_are_named(rated: Path, tmp_path: Path, arguments: list[str], text: str) -> None:
    output = tmp_path / "proxy.json"
    done = CliRunner().invoke(app, ["train", "proxy", "--data", str(rated), "--output", str(output), *arguments])
    assert str(done.exception) == text.format(rated=rated)
    assert not output.exists()


def test_an_unknown_set_of_indicators_is_refused(rated: Path, tmp_path: Path) -> None:
    output = tmp_path / "proxy.json"
    done = CliRunner().invoke(app, ["train", "proxy", "--data", str(rated), "--output", str(output), "--features", "pairs"])
    assert done.exit_code == 2
    assert "'pairs' is not one of" in done.output
    assert not output.exists()


def test_unrated_responses_are_named(tmp_path: Path, models: dict[str, str]) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"context": ["hi"], "response": "hello"}\n', encoding="utf-8")
    done = CliRunner().invoke(app, ["train", "proxy", "--data", str(path), "--output", str(tmp_path / "p.json")])
    assert str(done.exception) == f"{path}: has no rated responses. Give a file in the layout of USR or of a DSTC10 set."
