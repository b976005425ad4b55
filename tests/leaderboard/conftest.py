"""Fixtures of the leaderboard's tests: result files of lm-eval to damage, and a leaderboard of three evaluators."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.build import BuildResult, build
from tests.leaderboard_files import LM_EVAL_FILES, write_runs


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the run of a judge, beside one another."""
    for path in LM_EVAL_FILES.glob("*_*"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `write_runs`, which no test changes."""
    folder = tmp_path_factory.mktemp("runs")
    write_runs(folder)
    return folder


@pytest.fixture(scope="session")
def built(runs_folder: Path) -> BuildResult:
    """Build their leaderboard, without ranks."""
    return build([runs_folder], rank_rounds=0)
