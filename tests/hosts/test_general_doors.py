"""The scorer `general` through every door: Python, `evaluate`, lm-eval and the command line give the same numbers."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin import load_metric
from dialeval_plugin.core.resources import metrics_path

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", "", "Two streets from here.", "None yet."]
FACTS = [["I travel a lot."], [], [], "I never plan."]


def test_the_card_names_every_option_and_entry(tiny_general: Path) -> None:
    card = (metrics_path() / "general" / "README.md").read_text(encoding="utf-8")
    names: set[str] = set()
    for level in ("turn", "dialogue"):
        metric = load_metric("general", model=str(tiny_general), device="cpu", level=level)
        names |= {*metric.compute(predictions=RESPONSES, contexts=CONTEXTS)}
        names |= {*metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")}
    assert {"coherence", "knowledge", "n_turns", "score_fitted", "leave_out"} <= names
    assert [name for name in names if f"`{name}`" not in card] == []
