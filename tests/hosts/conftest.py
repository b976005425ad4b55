"""Tiny data in the published layout, and a tiny language model, for the tests of the lm-eval doors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.resources import tasks_path
from tests import forked
from tests.small_corpora import write_dstc10


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with seven of the eight sets; DailyDialog-GRADE is absent, as on many machines."""
    return write_dstc10(tmp_path_factory.mktemp("data"))


@pytest.fixture
def use_tiny_data(tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tiny_data))
    return tiny_data


@pytest.fixture
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that the test fills, the user's own."""
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two small layers with random weights, whose vocabulary has " Yes", " No", " yes" and " no" as tokens."""
    from tests.tiny.language_models import write_random_language_model

    words = " Yes No yes no Answer: Question: Response: Person A: tea rain"
    folder = tmp_path_factory.mktemp("tiny-lm")
    return write_random_language_model(folder, words=words, chat_template=None, n_positions=1024)


@pytest.fixture(scope="session")
def small_host() -> Path:
    """A folder for PYTHONPATH with lm-eval and one family of its tasks: at each start it reads all files of tasks, 14,000.

    All processes of a run have the same, so that their commands are forked from one server.
    """
    (own,) = map(Path, find_spec("lm_eval").submodule_search_locations or ())
    of_this_run = Path(os.environ["DIALEVAL_TEST_FILES"])
    host = Path(tempfile.mkdtemp(dir=of_this_run)) / "lm_eval"
    (host / "tasks").mkdir(parents=True)
    for path in [*own.iterdir(), *(own / "tasks").glob("*.py"), own / "tasks" / "super_glue"]:
        if path.name != "tasks":
            (host / path.relative_to(own)).symlink_to(path)
    with suppress(OSError):  # where another process was faster
        host.parent.rename(of_this_run / "host")
    return of_this_run / "host"


@pytest.fixture
def clean_run(tmp_path: Path, tiny_data: Path, small_host: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python in an empty folder, with an empty home, no network and a host of few tasks, and return what it did."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        for folder in ("cwd", "home"):
            (tmp_path / folder).mkdir(exist_ok=True)
        ours = ("HF_", "DIALEVAL_", "XDG_", "LMEVAL_", "PYTHON", "HOME")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        settings = {"HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "DIALEVAL_DATA_DIR": str(tiny_data)}
        settings |= {"PYTHONPATH": str(small_host), "COLUMNS": "200"}
        return forked.run(
            arguments if arguments[0].endswith("python") else (sys.executable, *arguments),
            cwd=tmp_path / "cwd",
            env={**kept, **settings, **(env or {})},
            timeout=timeout,
        )

    return run


@pytest.fixture
def on_host(
    clean_run: Callable[..., subprocess.CompletedProcess[str]], tiny_lm: Path, tmp_path: Path
) -> Callable[..., tuple[Any, str]]:
    """Run the host's own command with a tiny model on tasks of ours; return its result file and what stands on stderr.

    The host's dummy model will not do: from 0.5 on it gives every choice the same likelihood, and no coefficient is defined.
    """
    from tests.hosts.through_lm_eval import result_of

    def run(tasks: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[Any, str]:
        done = clean_run(
            *("-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={tiny_lm}", "--device", "cpu"),
            *("--batch_size", "8", "--tasks", tasks, "--include_path", str(tasks_path())),
            *("--output_path", str(tmp_path / "out"), "--log_samples", *words),
            env=env,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return result_of(tmp_path / "out"), done.stderr

    return run
