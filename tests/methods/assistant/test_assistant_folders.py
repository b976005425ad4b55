"""Folders of the evaluator of assistants: written whole, exported for other backends, verified by golden scores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.signature import GOLDEN_FILE
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import write_manifest
from dialeval_plugin.pretrained.catalogue import export, golden_items, open_scorer, verify, write_golden
from dialeval_plugin.training.people import write_percentiles
from tests.refusals import refused

EXAMPLES = mini.read_examples("test")[:6]


def scores(folder: Path, **options: object) -> list[float | None]:
    return list(load_scorer("assistant", model=str(folder), **options).score(EXAMPLES).values)


def test_an_exported_folder_is_the_same_model_on_every_backend(tiny_assistant: Path, tmp_path: Path) -> None:
    export(str(tiny_assistant), tmp_path / "out", ["onnx", "openvino"])
    assert (tmp_path / "out" / "exported" / "onnx" / "of_answers.onnx").is_file()
    for backend in ("torch", "onnx", "openvino"):
        assert scores(tmp_path / "out", backend=backend) == pytest.approx(scores(tiny_assistant), abs=1e-5)


def test_golden_scores_are_verified(tiny_assistant: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_assistant, tmp_path / "model")
    assert open_scorer(str(folder)).name == "assistant"
    write_golden(folder)
    found = verify(str(folder))
    assert (found.n_scores, found.is_equal) == (len(golden_items("turn")), True)
    golden = read_json(folder / GOLDEN_FILE)
    golden["scores"] = {id: score + 0.1 for id, score in golden["scores"].items()}
    write_text(folder / GOLDEN_FILE, to_json(golden))
    write_manifest(folder)
    assert not verify(str(folder)).is_equal


@pytest.mark.parametrize("field", ["max_question_parts", "max_response_tokens"])
def test_a_configuration_that_reads_nothing_is_refused(field: str, tiny_assistant: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_assistant, tmp_path / "model")
    settings = read_json(folder / "assistant.json")
    settings["config"][field] = 0
    write_text(folder / "assistant.json", to_json(settings))
    write_manifest(folder)
    least = {"max_question_parts": 2, "max_response_tokens": 3}[field]
    expected = (
        f"{folder / 'assistant.json'}: config.{field}: input should be greater than or equal to {least}. Copy the folder again."
    )
    with refused(expected, ModelLoadError):
        scores(folder)


@pytest.mark.parametrize("level", ["turn", "dialogue"])
def test_percentiles_stand_beside_the_scores_they_were_made_of(level: str, tiny_assistant: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_assistant, tmp_path / "model")
    dialogues = list(golden_items("dialogue")[:30])
    write_percentiles(load_scorer("assistant", model=str(folder), level=level), folder, dialogues, {"mini": "0"})  # type: ignore[arg-type]
    items = dialogues if level == "dialogue" else [Example.from_texts(["Hi."], "Hello there.")]
    found = load_scorer("assistant", model=str(folder), level=level).score(items)  # type: ignore[arg-type]
    assert all(0 <= value <= 100 for value in found.columns[PERCENTILE])  # type: ignore[operator]
