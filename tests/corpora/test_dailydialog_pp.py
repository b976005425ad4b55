from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet, read, read_contexts

ROW = {
    "id": 12,
    "context": ["Am I late ?", "No, come in."],
    "positive_responses": ["Thanks .", "Phew!"],
    "adversarial_negative_responses": ["The late train came in."],
    "random_negative_responses": ["Two kilos, please."],
}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_a_line_becomes_a_response_set_with_its_texts_as_published(tmp_path: Path) -> None:
    assert read(write(tmp_path / "dev.json", ROW)) == [
        ResponseSet(
            "12", ("Am I late ?", "No, come in."), ("Thanks .", "Phew!"), ("The late train came in.",), ("Two kilos, please.",)
        )
    ]


def test_examples_have_the_keys_of_the_published_predictions() -> None:
    response_set = ResponseSet("12", ("Am I late?",), ("p", "q"), ("a",), ("r",))
    examples = list(response_set.examples())
    assert [(example.id, example.response.text, example.ratings) for example in examples] == [
        ("12p0", "p", {"appropriate": (1.0,)}),
        ("12p1", "q", {"appropriate": (1.0,)}),
        ("12r0", "r", {"appropriate": (0.0,)}),
        ("12a0", "a", {"appropriate": (0.0,)}),
    ]
    assert {example.context for example in examples} == {(Turn("Am I late?"),)}


def test_dialog_id_and_missing_negatives_are_accepted(tmp_path: Path) -> None:
    row = {"dialog_id": 3, "context": ["Hi."], "positive_responses": ["Hello."]}
    assert read(write(tmp_path / "more.json", row)) == [ResponseSet("3", ("Hi.",), ("Hello.",))]


def test_added_fields_a_missing_last_newline_and_line_separators_inside_texts_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(
        json.dumps({**ROW, "positive_responses": ["one\u2028two"], "bm25_sampled": ["x"]}, ensure_ascii=False), encoding="utf-8"
    )
    (response_set,) = read(path)
    assert response_set.positive == ("one\u2028two",)


def test_the_same_context_twice_stays_two_sets(tmp_path: Path) -> None:
    first, second = read(write(tmp_path / "dev.json", ROW, {**ROW, "id": 13}))
    assert first.context == second.context
    assert {first.id, second.id} == {"12", "13"}


def test_contexts_may_come_without_responses_and_without_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "contexts.jsonl", {"context": ["Hi."]}, {"context": [], "dialog_id": 7}, ROW)
    first, second, third = read_contexts(path)
    assert first == ResponseSet("0", ("Hi.",), ())
    assert second == ResponseSet("7", (), ())
    assert [third] == read(write(tmp_path / "dev.json", ROW))


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "n_negatives", "n_distinct_contexts"),
    [("dev.json", 10, 1027), ("train_first10.json", 10, 10), ("data_with_contexts_and_positive_responses_only.json", 0, 7638)],
)
def test_published_files(data_dir: Path, name: str, n_negatives: int, n_distinct_contexts: int) -> None:
    path = data_dir / "dailydialog_pp" / name
    sets = read(path)
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert len(sets) == len(raw)
    assert all(len(found.positive) == 5 for found in sets)
    assert all(len(found.adversarial) + len(found.random) == n_negatives for found in sets)
    assert len({found.context for found in sets}) == n_distinct_contexts
    assert [list(found.positive) for found in sets] == [row["positive_responses"] for row in raw]


@pytest.mark.real_data
@pytest.mark.parametrize(("negatives", "accuracy"), [("r", 0.853), ("a", 0.927)])
def test_published_predictions_separate_the_labels(data_dir: Path, negatives: str, accuracy: float) -> None:
    """The accuracy of DEB (random + adversarial) at 0.5 on all 1,142 test contexts, near enough on any large part of them."""
    folder = data_dir / "dailydialog_pp"
    predictions = json.loads((folder / "predictions" / "deb_rand_adv.json").read_text(encoding="utf-8"))
    examples = [example for found in read(folder / "test.json") for example in found.examples()]
    assert {example.id for example in examples} <= set(predictions)
    chosen = [example for example in examples if example.id.lstrip("0123456789")[0] in f"p{negatives}"]
    right = sum((predictions[example.id] > 0.5) == (example.ratings["appropriate"] == (1.0,)) for example in chosen)
    assert right / len(chosen) == pytest.approx(accuracy, abs=0.02)
