"""The table of how well CausalScore's classifiers tell causes from other turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.methods.causalscore.classifiers import Probabilities
from dialeval_plugin.methods.causalscore.model import CausalModel, CausalModelConfig
from reproduction.causalscore import causes


class Knows:
    """Calls a turn dependent whose first word is the response's."""

    limit = ""

    def probabilities(self, texts: Sequence[str], indices: np.ndarray) -> Probabilities:
        same = [texts[row[0]].split()[0] == texts[row[-1]].split()[0] for row in indices]
        return Probabilities(np.where(same, 0.9, 0.2), np.zeros(len(same), dtype=bool))


def test_each_file_has_a_row_for_each_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [
        CausePair(topic, tuple(Turn(f"{topic}{end}") for end in (" first", "s no cause", "s last")), Turn(f"{topic} so"), (0,))
        for topic in ("plum", "bus", "tea", "map", "cat")
    ]
    monkeypatch.setattr(causes, "FILES", MappingProxyType({"TOY": "toy.json"}))
    monkeypatch.setattr(causes, "read_causes", lambda path: pairs)
    model = CausalModel(CausalModelConfig("toy"), Knows(), Knows(), frozenset())  # type: ignore[arg-type]
    single, double = causes.cause_table(model, Path()).rows
    # The turn before the response is a positive row that no word tells.
    assert (single["classifier"], single["rows"], single["dialogues"]) == ("TOY, unconditional", "20", "5")
    assert str(single["AUROC"]).startswith("0.750")
    assert single["F1"] == pytest.approx(2 / 3)
    assert (double["classifier"], double["rows"]) == ("TOY, conditional", "10")
    assert str(double["AUROC"]).startswith("1.000")
