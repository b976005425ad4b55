"""No command opens a connection that nobody asked for, whatever the backend, and none leaves files in the user's home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.cli.running import DIALEVAL, write_rows

WATCH = """
import os, sys
def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        where = args[0] if event == "socket.getaddrinfo" else args[1]
        if event == "socket.getaddrinfo" or not isinstance(where, (str, bytes)):
            with open(os.environ["DIALEVAL_CONNECTIONS"], "a") as file:
                file.write(f"{event} {where}\\n")
            raise OSError("there is no network")
sys.addaudithook(refuse)
"""
"""A `sitecustomize.py`, which every Python of the command reads: it writes down connections, those to a socket file apart."""
METRIC = """
from dialeval_plugin import load_metric
print(load_metric("general").compute(predictions=["Fine, thanks."], contexts=[["How are you?"]])["n_scored"])
"""
TASK = ("lm-eval", "run", "--model", "dialogue-metric", "--model_args", "scorer=response_length", "--limit", "20")
COMMANDS: dict[str, tuple[str | Path, ...]] = {
    **{
        backend: (DIALEVAL, "score", "in.jsonl", "--worst", "0", "--option", f"backend={backend}")
        for backend in ("torch", "onnx", "openvino", "openvino-int8")
    },
    "a metric of evaluate": (sys.executable, "-c", METRIC),
    "a task of lm-eval": (DIALEVAL, *TASK, "--tasks", "dialogue_evaluation_mini", "--output_path", "results", "--log_samples"),
    "launch": (DIALEVAL, "launch", "in.jsonl", "--scorer", "response_length", "--shards", "2", "--output", "out.jsonl"),
    "export": (DIALEVAL, "models", "export", "slide", "slide"),
    "list": (DIALEVAL, "models", "list"),
    "demo": (DIALEVAL, "demo"),
}


# int8 is made from OpenVINO's graph, and torch runs in the metric of evaluate and in the demo.
OF_OTHERS = {"torch", "openvino"}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in OF_OTHERS)) for name in COMMANDS]
)
def test_no_command_opens_a_connection_unasked(name: str, tiny_general: Path, tiny_slm: Path, tmp_path: Path) -> None:
    """A01: OpenVINO's, nncf's and onnxruntime's telemetry sent events, and made a folder at home."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCH)
    (tmp_path / "home").mkdir()
    write_rows(tmp_path / "in.jsonl", [{"context": [f"Hi {number}."], "response": "Hello there."} for number in range(4)])
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "DIALEVAL_", "PYTEST", "ORT_"))}
    own = {"HOME": tmp_path / "home", "PYTHONPATH": tmp_path / "site", "DIALEVAL_CONNECTIONS": tmp_path / "connections"}
    own |= {"DIALEVAL_EXPORTS": tmp_path / "exports", "DIALEVAL_GENERAL": tiny_general, "DIALEVAL_SLM": tiny_slm}
    environment = {**inherited, **{key: str(value) for key, value in own.items()}}
    if name == "demo":
        # It starts from nothing: a connection that an import opens, of torch or of a host, is seen too.
        done = subprocess.run(COMMANDS[name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    else:
        done = forked.run(COMMANDS[name], cwd=tmp_path, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "connections").exists(), (tmp_path / "connections").read_text()
    assert [path.name for path in (tmp_path / "home").iterdir() if path.name not in {".cache", ".local"}] == []
    # onnxruntime connects outside of Python, where the watch sees nothing.
    assert not (tmp_path / "home" / ".cache" / "Microsoft").exists()


def test_the_watch_sees_a_connection(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    code = "import socket\ntry:\n    socket.create_connection(('localhost', 9))\nexcept OSError as error:\n    print(error)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "DIALEVAL_CONNECTIONS": str(tmp_path / "connections")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "there is no network\n"
    assert (tmp_path / "connections").read_text() == "socket.getaddrinfo localhost\n"
