"""The metric `dialogue_likelihood` with its real scorer on tiny real models."""

from __future__ import annotations

from pathlib import Path

import evaluate
import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from tests.tiny.likelihood import write_likelihood_model

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "I do.", "Two streets from here.", "None yet."]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_likelihood_model(tmp_path_factory.mktemp("gpt2"), "gpt2"))


def test_the_same_scores_as_the_scorer_itself_at_both_levels(gpt2: str) -> None:
    metric = load_metric("dialogue_likelihood", model=gpt2, device="cpu")
    turns = [tuple(map(Turn, [*context, response])) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    whole = DialogueLikelihoodScorer(gpt2, device="cpu").score([Dialogue("0", found) for found in turns])
    single = DialogueLikelihoodScorer(gpt2, device="cpu", level="turn").score(
        [Example("0", found[:-1], found[-1]) for found in turns]
    )
    for options, direct in (({}, whole), ({"level": "turn"}, single)):
        result = metric.compute(predictions=RESPONSES, contexts=CONTEXTS, **options)
        assert result.pop("dialogue_likelihood") == direct.mean()
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


def test_the_hosts_own_loader_gives_the_same(gpt2: str) -> None:
    rows = {"predictions": RESPONSES, "contexts": CONTEXTS, "model": gpt2, "device": "cpu"}
    by_path = evaluate.load(str(metrics_path() / "dialogue_likelihood")).compute(**rows)
    assert by_path == load_metric("dialogue_likelihood").compute(**rows)


def test_what_is_missing_or_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_LANGUAGE_MODEL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    metric = load_metric("dialogue_likelihood")
    with pytest.raises(MissingPrerequisite) as missing:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS)
    assert str(missing.value).startswith("dialogue_likelihood: no model is named. ")
    with pytest.raises(InputError) as wrong:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS, models="gpt2")
    assert str(wrong.value).startswith("dialogue_likelihood: there is no input or option 'models'. ")


def test_the_card_names_every_option_and_entry(gpt2: str) -> None:
    card = (metrics_path() / "dialogue_likelihood" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("dialogue_likelihood", model=gpt2, device="cpu")
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert set(options) >= {"model", "level", "family", "context", "layout", "aggregation"}
    results = [metric.compute(predictions=RESPONSES, contexts=CONTEXTS, level=level) for level in ("dialogue", "turn")]
    names = [name for result in results for name in result if not name.startswith("max_")]
    assert [name for name in [*names, *options] if f"`{name}`" not in card] == []
