"""Runs what the pages show, in processes in which the user's settings, data and network are absent."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests import forked
from tests.documented import ROOT, Block


class Printed(NamedTuple):
    """Output of a block, and the last command's exit status."""

    status: int
    stdout: str
    stderr: str


class PageCommands:
    """Runs blocks in a folder, which is the user's home as well."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = Path(sys.executable).parent
        site = folder / "site-packages"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DIALEVAL_", "HF_", "XDG_"))}
        self._environment = {
            **inherited,
            **{"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HOME": str(folder), "PIP_TARGET": str(site)},
            **{"PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        }

    def run(self, block: Block) -> Printed:
        """Run what the block has to be typed; stops at the first command that fails."""
        if block.language == "python":
            commands: list[list[object]] = [[sys.executable, "-c", block.text]]
        else:
            lines = block.script.replace("\\\n", " ").splitlines()
            commands = [
                [self._bin / words[0], *words[1:]] if words[0] == "dialeval" else ["bash", "-euc", line]
                for line in lines
                if (words := shlex.split(line, comments=True))
            ]
        ended: list[subprocess.CompletedProcess[str]] = []
        while commands and not (ended and ended[-1].returncode):
            ended.append(forked.run(commands.pop(0), cwd=self._folder, env=self._environment, timeout=600))
        return Printed(ended[-1].returncode, "".join(one.stdout for one in ended), "".join(one.stderr for one in ended))
