"""The metric `dialogue_reconstruction` with its real scorer on tiny models: every door gives the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from tests.tiny.reconstruction import write_tiny_model

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "I do.", "Two streets from here.", "None yet."]


@pytest.fixture(scope="module")
def vhcr(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_model(tmp_path_factory.mktemp("vhcr"), "vhcr"))


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
        "references, facts and the options model, device, revision, level, reduction, latent, max_utterances, seed."
    )


def test_the_card_names_every_option_and_entry(vhcr: str) -> None:
    card = (metrics_path() / "dialogue_reconstruction" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("dialogue_reconstruction", model=vhcr, device="cpu", latent="posterior")
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    names = list(metric.compute(predictions=RESPONSES, contexts=CONTEXTS))
    assert len(names) == 14
    assert [name for name in [*names, *options] if f"`{name}`" not in card] == []
