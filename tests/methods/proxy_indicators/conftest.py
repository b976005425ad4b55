"""Classifiers of every task with random weights."""

from __future__ import annotations

import pytest

from dialeval_plugin.methods.proxy_indicators.tasks import TASKS
from tests.tiny.classifiers import write_classifier


@pytest.fixture(scope="session", params=["bert", "roberta"])
def classifiers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Task to the folder of its classifier, of one architecture."""
    base = tmp_path_factory.mktemp(request.param)
    return {
        name: str(write_classifier(base / name, task.labels, architecture=request.param, seed=seed))
        for seed, (name, task) in enumerate(TASKS.items())
    }
