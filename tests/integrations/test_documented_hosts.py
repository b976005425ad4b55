"""Examples of docs/integrations.md are run as they stand, with the host's package; Langfuse and Phoenix have a stand-in."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import examples_from, load_scorer
from tests.documented import ROOT, blocks
from tests.integrations.through_hosts import (
    ANNOTATIONS,
    OBSERVATIONS,
    SCORES,
    SPANS,
    chat,
    inspect_log,
    needed,
    observations,
    parts,
    phoenix_spans,
    standing_in,
)

PAGE = ROOT / "docs" / "integrations.md"
CHAT = chat("Hi, how are you?", "Great, just back from a run.")


def run(package: str, language: str = "python") -> None:
    """Run the page's block for a package, as a reader would."""
    title = f"needs a download of {package}"
    (block,) = (block for block in blocks(PAGE) if block.title == title and block.language == language)
    if language == "python":
        exec(compile(block.text, "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102 - what a reader would paste
    else:
        subprocess.run([Path(sys.executable).with_name(block.text.split()[0]), *block.text.split()[1:]], check=True)


def score() -> float:
    (value,) = load_scorer("general").score(examples_from([CHAT])).values
    assert value is not None
    return pytest.approx(value, abs=1e-6)


def inspect_ai(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    inspect_log([CHAT], folder / "logs").rename(folder / "logs" / "chat.eval")
    from inspect_ai.log import read_eval_log

    run("inspect-ai", "sh")
    results = read_eval_log("logs/chat.eval").results
    assert results is not None
    assert [(one.name, one.metrics["mean"].value) for one in results.scores] == [("general", score())]
    printed()
    run("inspect-ai")
    assert float(printed().split()[-1]) == score()


def mlflow(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    needed("mlflow").set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    run("mlflow")
    (value,) = re.findall(r"\{'dialeval_general/mean': np\.float64\(([\d.]+)\)\}", printed())
    assert float(value) == score()


def deepeval(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    needed("deepeval")
    run("deepeval")
    assert re.search(r"dialeval general.*passed=1 \| failed=0", printed())


def opentelemetry(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    needed("opentelemetry.sdk")
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    events, logs = InMemoryLogRecordExporter(), LoggerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    _logs.set_logger_provider(logs)
    run("opentelemetry-sdk")
    with trace.get_tracer("chat").start_as_current_span("chat model") as span:
        span.set_attributes({"gen_ai.input.messages": parts(CHAT[:1]), "gen_ai.output.messages": parts(CHAT[1:])})
    trace.get_tracer_provider().shutdown()  # type: ignore[attr-defined]
    (event,) = events.get_finished_logs()
    assert event.log_record.attributes["gen_ai.evaluation.score.value"] == score()
    assert event.log_record.span_id == span.get_span_context().span_id
    assert event.log_record.trace_id == span.get_span_context().trace_id


def langfuse(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    client = needed("langfuse")
    with standing_in({OBSERVATIONS: observations([CHAT])}, {"ids": []}) as server:
        for name, value in {"PUBLIC_KEY": "pk-page", "SECRET_KEY": "sk", "BASE_URL": server.url}.items():
            patch.setenv(f"LANGFUSE_{name}", value)
        run("langfuse")
        client.get_client().shutdown()
    assert [one["value"] for body in server.posted[SCORES] for one in body] == [score()]


def phoenix(patch: pytest.MonkeyPatch, folder: Path, printed: Callable[[], str]) -> None:
    needed("phoenix.client")
    with standing_in({SPANS: phoenix_spans([CHAT])}, {"data": []}) as server:
        patch.setenv("PHOENIX_BASE_URL", server.url)
        run("arize-phoenix-client")
    assert [one["result"]["score"] for body in server.posted[ANNOTATIONS] for one in body["data"]] == [score()]


PACKAGES: dict[str, Callable[..., Any]] = {
    "inspect-ai": inspect_ai,
    "mlflow": mlflow,
    "deepeval": deepeval,
    "opentelemetry-sdk": opentelemetry,
    "langfuse": langfuse,
    "arize-phoenix-client": phoenix,
}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_gives_a_score(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PACKAGES[package](monkeypatch, tmp_path, lambda: capfd.readouterr().out)


def test_every_block_of_the_page_is_run_and_its_versions_are_those_that_are_installed() -> None:
    titles = [block.title for block in blocks(PAGE)]
    assert set(titles) == {f"needs a download of {package}" for package in PACKAGES}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pins,) = re.findall(r"^INTEGRATIONS := ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    tested = dict(pin.split("==") for pin in pins.replace("\\", " ").split())
    rows = re.findall(r"^\| [\w ]+ \| (?:client )?([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert (list(tested), list(tested.values())) == (list(PACKAGES), rows)
