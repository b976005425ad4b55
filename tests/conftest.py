"""Fixtures that every test may use."""

from __future__ import annotations

import atexit
import functools
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import settings

from tests.budgets import (  # noqa: F401 - hooks
    pytest_collection_modifyitems,
    pytest_runtest_call,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.browser import Page
    from tests.tiny.breakdown import TinyModels

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them the commands that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A test says what is right, not how fast: on a machine that is busy everything takes long.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")
# Reading the options of every command takes a tenth of a second: once a process, not once a command.
typer.main.get_command = functools.cache(typer.main.get_command)
# A test's file need not outlive a loss of power, for which it would wait for the disk. Commands in other processes do wait.
os.fsync = lambda descriptor: None  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect tests without garbage collection, and exempt from it the tests and all that they import.

    Hosts' trainers and pools ask for whole collections, which take half a second each with all that is imported.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _remove_folder(of_process: int) -> None:
    if os.getpid() == of_process:  # and not one that a test forked
        shutil.rmtree(os.environ["DIALEVAL_TEST_FILES"], ignore_errors=True)


# One folder for the caches of a run of the tests, and of all its processes.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["DIALEVAL_TEST_FILES"] = tempfile.mkdtemp(prefix="dialeval-tests-")
    # Models as other backends run them: made once a run.
    os.environ["DIALEVAL_EXPORTS"] = str(Path(os.environ["DIALEVAL_TEST_FILES"]) / "exports")
    atexit.register(_remove_folder, os.getpid())
_own_files = Path(tempfile.mkdtemp(dir=os.environ["DIALEVAL_TEST_FILES"]))
# `evaluate` copies a metric's code to this folder, whose name it reads when it is imported: the user's own stays as it is.
os.environ.setdefault("HF_MODULES_CACHE", str(_own_files / "modules"))
# Answers of language models: a test neither reads nor changes the user's own.
os.environ["DIALEVAL_ANSWERS"] = str(_own_files / "answers.sqlite")
# What is written to stderr does not depend on which test is the first of its process to open a bundled model.
os.environ["DIALEVAL_COMMERCIAL"] = "0"


_DATA_DIR = os.environ.get("DIALEVAL_DATA_DIR")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the public data, one folder a corpus; the test is skipped where nobody has named it."""
    if not _DATA_DIR:
        pytest.skip("DIALEVAL_DATA_DIR is not set: the test reads the public data that it names")
    return Path(_DATA_DIR)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Name the public data in the environment of the tests that ask for them alone, whatever an earlier test has left there."""
    os.environ.pop("DIALEVAL_DATA_DIR", None)
    if _DATA_DIR and item.get_closest_marker("real_data"):
        os.environ["DIALEVAL_DATA_DIR"] = _DATA_DIR
    return (yield)


@pytest.fixture(scope="session")
def oracles_dir() -> Path:
    """Folder of inputs with expected outputs; its README.md says where each is from."""
    return Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """A page of Chromium, the same for all tests of a file."""
    from tests.browser import browser_page

    with browser_page() as page:
        yield page


@pytest.fixture
def page(browser: Page, address: str) -> Iterator[Page]:
    """The page of a file's fixture `address`, freshly opened; at the end nothing may have gone wrong or left it."""
    browser.problems.clear()
    browser.requests.clear()
    browser.resize(1280, 900)
    browser.open("about:blank")
    browser.open(address)
    browser.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    yield browser
    assert browser.problems == []
    assert {request.partition("#")[0] for request in browser.requests} <= {"about:blank", address}
    assert browser.evaluate("window.hacked") is None


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a one-layer encoder with random weights."""
    from tests.tiny.models import write_tiny_encoder

    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def tiny_slm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an SLM with random weights."""
    from tests.tiny.models import write_tiny_slm

    return write_tiny_slm(tmp_path_factory.mktemp("slm"))


@pytest.fixture(scope="session")
def tiny_causal_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of independence classifiers with random weights."""
    from tests.tiny.models import write_tiny_causal_model

    return write_tiny_causal_model(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="session")
def tiny_breakdown_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Folders of a language model, one with ODIN's second head, and a background model, trained for a moment."""
    from tests.tiny.breakdown import write_tiny_breakdown_models

    return write_tiny_breakdown_models(tmp_path_factory.mktemp("breakdown"))


@pytest.fixture(scope="session")
def tiny_assistant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an evaluator of assistants with random weights."""
    from tests.tiny.models import write_tiny_assistant

    return write_tiny_assistant(tmp_path_factory.mktemp("assistant"))


@pytest.fixture(scope="session")
def tiny_general(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a general evaluator with random weights."""
    from tests.tiny.models import write_tiny_general

    return write_tiny_general(tmp_path_factory.mktemp("general"))
