"""Runs what the pages show: each command in a process forked from one that has imported what most of them need.

A process that starts from nothing takes longer to import than a command of the documents takes.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.documented import ROOT, Block

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORTED = ["torch", "transformers", "datasets", "evaluate", "scipy.stats", "pandas", "pyarrow.parquet", "tests.page_commands"]


class Printed(NamedTuple):
    """What a block printed, and the last command's exit status."""

    status: int
    stdout: str
    stderr: str


class PageCommands:
    """Runs blocks in a folder, which is the user's home as well."""

    def __init__(self, folder: Path, processes: Any) -> None:
        self._folder = folder
        self._processes = processes
        self._site = folder / "site-packages"
        self._output = {name: folder.with_name(f"{folder.name}.{name}") for name in ("stdout", "stderr")}

    def run(self, block: Block) -> Printed:
        """Run what the block has to be typed; stops at the first command that fails."""
        status = 0
        for path in self._output.values():
            path.write_text("", encoding="utf-8")
        if block.language == "python":
            status = self._fork("python", [block.text])
        else:
            for line in block.script.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and status == 0:
                    status = self._fork("dialeval", words[1:]) if words[0] == "dialeval" else self._start(line)
        return Printed(status, *(path.read_text("utf-8") for path in self._output.values()))

    def _fork(self, kind: str, words: list[str]) -> int:
        place = (str(self._folder), str(self._site), [str(path) for path in self._output.values()])
        process = self._processes.Process(target=_run, args=(kind, words, *place))
        process.start()
        process.join(timeout=600)
        assert process.exitcode is not None, f"{words}: takes more than ten minutes"
        return int(process.exitcode)

    def _start(self, line: str) -> int:
        """Run a command that is not dialeval's in a shell."""
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": search, "PIP_TARGET": str(self._site)}
        with self._output["stdout"].open("a") as stdout, self._output["stderr"].open("a") as stderr:
            done = subprocess.run(
                ["bash", "-euc", line], cwd=self._folder, env=environment, stdout=stdout, stderr=stderr, check=False
            )
        return done.returncode


def _run(kind: str, words: list[str], folder: str, site: str, output: list[str]) -> None:
    """Run a command of dialeval, or Python code, in a process of its own."""
    for number, path in enumerate(output, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.update(HOME=folder, XDG_CACHE_HOME=f"{folder}/.cache", PYTHONPATH=os.pathsep.join([site, str(ROOT)]))
    sys.path.insert(0, site)
    if kind == "python":
        exec(compile(words[0], "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102 - what a reader would paste
    else:
        from dialeval_plugin.cli.entry import main

        sys.argv = [kind, *words]
        main()


@contextmanager
def page_processes() -> Iterator[Any]:
    """Yield what starts processes in which the user's settings, data and network are absent."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("DIALEVAL_", "HF_"))]:
            patch.delenv(name)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload(_IMPORTED)
        first = processes.Process(target=len, args=("",))
        first.start()
        first.join()
    yield processes
