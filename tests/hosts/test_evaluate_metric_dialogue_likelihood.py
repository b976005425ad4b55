"""The metric `dialogue_likelihood` with its real scorer on tiny real models."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from tests.tiny.likelihood import write_likelihood_model

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "I do.", "Two streets from here.", "None yet."]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_likelihood_model(tmp_path_factory.mktemp("gpt2"), "gpt2"))


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
