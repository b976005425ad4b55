"""Cost of the two distributions: packages, size, first score of a new process, its memory; and whether scores are equal.

    make wheels && python -m benchmarks.install --work build/installations --document docs/install.md

Each is installed from its wheel into an environment below --work, unless it is there already; torch is that for processors.
Scored are all responses of the embedded corpus, by bundled models.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.reports.tables import Table, named_column
from reproduction.documents import script_parser, write_tables

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = {"dialeval-core": ("dialeval_core",), "dialeval-plugin": ("torch", "dialeval_plugin")}
ROUNDS = 5
"""New processes; of their figures the median is shown."""

PACKAGES = """
import importlib.metadata, json, pathlib
sizes = {}
for one in importlib.metadata.distributions():
    paths = {pathlib.Path(one.locate_file(file)) for file in one.files or ()}
    sizes[one.name.lower()] = sum(512 * path.stat().st_blocks for path in paths if path.is_file())
# An environment has these before anything is installed.
print(json.dumps([size for name, size in sizes.items() if name not in {"pip", "setuptools"}]))
"""
FIRST = """
import json, resource
import dialeval_plugin
example = dialeval_plugin.Example.from_texts(["Do you like jazz?"], "Yes, I do like jazz a lot.")
assert dialeval_plugin.load_scorer("general").score([example]).n_scored
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
SCORES = """
import json
import dialeval_plugin
from dialeval_plugin.corpora import mini
examples = [one for split in ("train", "validation", "test") for one in mini.read_examples(split)]
models = {"general": {}, "general-open": {"model": "general-open"}, "assistant": {}, "slide": {"variant": "slm"}}
scorers = {name: dialeval_plugin.load_scorer(name.partition("-")[0], **options) for name, options in models.items()}
print(json.dumps({name: scorer.score(examples).values for name, scorer in scorers.items()}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    given = script_parser(__doc__, work="the environments").parse_args(arguments)
    measured = {name: measure(environment(name, given.work / name)) for name in INSTALLED}
    light, full = (one.pop("scores") for one in measured.values())
    rows = [{"": what, **{name: one[what] for name, one in measured.items()}} for what in measured["dialeval-core"]]
    apart = [f"{model} {max(abs(a - b) for a, b in zip(light[model], full[model], strict=True)):.1e}" for model in light]
    columns = [named_column(name, is_number=False) for name in rows[0]]
    note = f"Largest difference between the two scores of one of {len(light['general'])} responses: {', '.join(apart)}."
    write_tables(given.document, {"installations": Table(rows, columns, [note])})


def environment(name: str, folder: Path) -> Path:
    """Return the Python of an environment, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
        for package in INSTALLED[name]:
            wheel = next((ROOT / "build" / "dist").glob(f"{package}-*.whl"), None)
            subprocess.run([*pip, wheel or package], check=True)
    return python.absolute()


def measure(python: Path) -> dict[str, Any]:
    """Return the figures of an environment, and the scores of every response by models' names."""
    sizes, runs = answer(python, PACKAGES), [answer(python, FIRST) for _ in range(ROUNDS)]
    seconds, memory = (statistics.median(of_runs) for of_runs in zip(*runs, strict=True))
    return {
        "packages": str(len(sizes)),
        "on disk, MB": f"{sum(sizes) / 2**20:.0f}",
        "first score of a new process, s of processor": f"{seconds:.1f}",
        "its peak memory, MB": f"{memory:.0f}",
        "scores": answer(python, SCORES),
    }


def answer(python: Path, code: str) -> Any:
    """Output of a new process of an environment, outside this folder and without the user's settings."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([python, "-I", "-c", code], env=env, cwd=python.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
