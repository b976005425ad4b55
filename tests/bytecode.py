"""Gives another environment the byte code of this one: `python tests/bytecode.py build/installed/venv`.

uv links both to the same files, which Python would compile again for each environment. It does so where a file differs.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def main(environment: Path) -> None:
    """Link the byte code of each folder of packages that `environment` has too and has not compiled."""
    own = Path(sysconfig.get_path("purelib"))
    (other,) = environment.glob("lib/python3*/site-packages")
    for compiled in own.rglob("__pycache__"):
        target = other / compiled.relative_to(own)
        if target.parent.is_dir() and not target.exists():
            shutil.copytree(compiled, target, copy_function=os.link)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
