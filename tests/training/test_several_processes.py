"""Trainings in two processes end with a folder that is like that of one process (docs/architecture.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.breakdown.model import LANGUAGE_MODEL_FOLDER
from dialeval_plugin.methods.causalscore.model import CAUSAL_FOLDER
from dialeval_plugin.methods.slide.model import SLM_FOLDER
from dialeval_plugin.training.history import read_history
from tests.training.launched import launch
from tests.training_processes import files_of

SETS = mini.read_response_sets("train")[:12]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rows = (
        {
            "id": item.id,
            "context": list(item.context),
            "positive_responses": list(item.positive),
            "adversarial_negative_responses": list(item.adversarial),
            "random_negative_responses": [],
        }
        for item in SETS
    )
    write_json_lines(folder / "sets.jsonl", rows)
    causes = [
        {
            "history": [text[:40] for text in item.context],
            "response": item.positive[0][:40],
            "entities": [item.context[-1][:40]],
        }
        for item in SETS
    ]
    (folder / "causes.json").write_text(json.dumps(causes))
    write_json_lines(folder / "talk.jsonl", ({"turns": [*item.context, item.positive[0]]} for item in SETS))
    return folder


SLM = ["slm", "--data", "sets.jsonl", "--epochs", 2, "--validation-fraction", 0.3]
INDEPENDENCE = ["independence", "--data", "causes.json", "--epochs", 2, "--rounds", 1, "--max-tokens", 128]
LANGUAGE_MODEL = ["language-model", "--layers", 1, "--width", 16, "--vocabulary", 300, "--block", 64, "--epochs", 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "folder_of"),
    [
        ([*SLM, "--recipe", "default"], SLM_FOLDER),
        ([*SLM, "--recipe", "code"], SLM_FOLDER),
        ([*INDEPENDENCE, "--validation-fraction", 0.3, "--unlabelled", "talk.jsonl"], CAUSAL_FOLDER),
        ([*LANGUAGE_MODEL, "--data", "talk.jsonl", "--batch-size", 4, "--objective", "odin"], LANGUAGE_MODEL_FOLDER),
    ],
)
def test_two_processes_end_with_the_folder_of_one(
    arguments: Sequence[object],
    folder_of: object,
    data: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    given = [str(data / part) if isinstance(part, str) and part.endswith((".json", ".jsonl")) else part for part in arguments]
    if arguments[0] != "language-model":
        given += ["--backbone", tiny_encoder]
    for n_processes in (1, 2):
        output = tmp_path / str(n_processes)
        done = launch("train", *given, "--precision", "float32", "--output", output, n_processes=n_processes)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(f"{output}: trained on") == 1
    one, two = tmp_path / "1", tmp_path / "2"
    assert files_of(one).keys() == files_of(two).keys()
    # The same stages in the same steps; the figures are near.
    histories = read_history(one), read_history(two)
    assert [(row.stage, row.epoch, row.step) for row in histories[0]] == [
        (row.stage, row.epoch, row.step) for row in histories[1]
    ]
