"""Gains by corpora and heads of the general evaluator: figures against a count of pairs, the script on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.general.conversations import Conversation, conversation
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.signals import QUALITIES
from dialeval_plugin.methods.general.training import REAL, ValidationRow, fit
from reproduction.general import ablations
from reproduction.general.ablations import areas_by_corpus, corpora_table, heads_table, rows_by_corpus


def conversations() -> list[Conversation]:
    """Two corpora, the second of which has facts."""
    found = []
    for number, example in enumerate(mini.read_examples("train")):
        turns = [turn.text for turn in (*example.context, example.response)]
        facts = [(f"we spoke of {turns[0]}",)] * len(turns) if number % 2 else ()
        found.append(conversation("told" if number % 2 else "plain", turns, facts))
    return [item for item in found if item is not None]


@pytest.fixture(scope="module")
def rows() -> dict[str, list[ValidationRow]]:
    return rows_by_corpus(conversations(), max_pairs=60, seed=5)


@pytest.fixture
def trained(tiny_general: Path) -> TrainedGeneral:
    return TrainedGeneral.load(str(tiny_general), device="cpu")


def counted(trained: TrainedGeneral, rows: list[ValidationRow]) -> float:
    """Mean over the kinds of the share of pairs in which the real response has the higher main score."""
    # Judged all together, as in the figure: in other batches some processors round otherwise, and a near tie falls otherwise.
    values = trained.mixing.log_odds(trained.model.judge([row.triple for row in rows]).log_odds)
    by_kind: dict[str, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        if not row.is_fitted:
            by_kind.setdefault(row.kind, []).append(float(value))
    real = by_kind.pop(REAL)
    shares = [np.mean([(one > other) + (one == other) / 2 for one in real for other in wrong]) for wrong in by_kind.values()]
    return float(np.mean(shares))


def test_a_corpus_area_is_the_share_of_pairs_in_the_right_order(
    trained: TrainedGeneral, rows: dict[str, list[ValidationRow]]
) -> None:
    found = areas_by_corpus(trained, rows)
    assert list(found) == ["mean", "plain", "told"]
    for corpus, drawn in rows.items():
        assert found[corpus] == pytest.approx(counted(trained, drawn), abs=1e-9)
    assert found["mean"] == pytest.approx(((found["plain"] or 0) + (found["told"] or 0)) / 2)
    text = corpora_table({"all": found, "all but told": {**found, "told": None}}).render("markdown").splitlines()
    assert text[0] == "| trained on | mean | plain | told |"
    assert text[3].startswith("| all but told | ")
    assert text[3].endswith(" |  |")


def test_a_corpus_draws_the_same_rows_whatever_else_there_is(rows: dict[str, list[ValidationRow]]) -> None:
    alone = rows_by_corpus([item for item in conversations() if item.corpus == "told"], max_pairs=30, seed=5)
    assert alone == {"told": rows["told"]}


def test_all_qualities_are_what_training_reports_and_one_that_is_left_out_is_missed(
    trained: TrainedGeneral, rows: dict[str, list[ValidationRow]]
) -> None:
    every = [row for drawn in rows.values() for row in drawn]
    # Blends the experts as after training, so that the mixture fitted on top of them is the same one.
    fitted = fit(trained.model, every, [])
    table = {str(row["main score"]): row for row in heads_table(trained, every).rows}
    assert list(table) == ["all", *(f"without {quality}" for quality in QUALITIES)]
    reported = [value for value in fitted.figures["general"].values() if value is not None]
    assert table["all"]["all wrong texts"] == pytest.approx(sum(reported) / len(reported), abs=1e-6)
    of_fluency = [fitted.figures["general"][kind] or 0.0 for kind in ("shuffled", "dropped", "repeated", "swapped")]
    assert table["all"]["wrong for fluency"] == pytest.approx(sum(of_fluency) / 4, abs=1e-6)
    # The knowledge head alone reads facts: without it a response beside right and beside wrong ones has one score. For a few
    # there are no wrong ones.
    with_head = fit(trained.model, rows["told"], []).figures["general"]["other_facts"]
    told = {str(row["main score"]): row for row in heads_table(trained, rows["told"]).rows}
    assert told["without knowledge"]["wrong for knowledge"] == pytest.approx(0.5, abs=0.01)
    # A model this small knows nothing: which way the head moves the figure is chance, by how much is what training reports.
    assert told["all"]["wrong for knowledge"] == pytest.approx(with_head, abs=1e-6)
    # On some processors a single head gets no weight; on each some heads do.
    assert any(row["all wrong texts"] != table["all"]["all wrong texts"] for row in table.values())


@pytest.mark.long
def test_the_script_trains_one_model_without_each_corpus_and_keeps_them(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name: dict[str, list[str]] = {}
    for item in conversations():
        by_name.setdefault(item.corpus, []).append(json.dumps({"turns": item.turns}))
    words = ["--work", str(tmp_path / "work"), "--backbone", str(tiny_encoder)]
    words += ["--max-pairs", "60", "--max-validation-pairs", "60", "--validation-fraction", "0.4"]
    for name, lines in by_name.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        words += ["--corpus", f"{name}={path}"]
    page = tmp_path / "general.md"
    page.write_text("".join(f"<!-- {name} -->\n<!-- end of {name} -->\n\n" for name in ("corpora", "heads")), encoding="utf-8")
    ablations.main([*words, "--document", str(page)])
    work = tmp_path / "work"
    assert sorted(path.name for path in work.iterdir()) == ["all", "plain", "told"]
    counts = json.loads((work / "told" / "general.json").read_text(encoding="utf-8"))["training"]["counts"]
    assert list(counts["training_dialogues"]) == ["plain"]
    assert sorted(counts["validation_dialogues"]) == ["plain", "told"]
    first = page.read_text(encoding="utf-8")
    assert [line.split(" | ")[0] for line in first.splitlines() if line.startswith("| all")] == [
        *("| all corpora, 60 responses", "| all but plain, 60 responses", "| all but told, 60 responses")
    ]
    times = {path: path.stat().st_mtime_ns for path in work.rglob("general.json")}
    ablations.main([*words, "--document", str(page), "--model", str(work / "all")])
    assert {path: path.stat().st_mtime_ns for path in work.rglob("general.json")} == times
    second = page.read_text(encoding="utf-8")
    assert "| the model of the other tables | " in second
    assert "| without knowledge | " in second
