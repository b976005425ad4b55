"""Installs the wheel beside other Pythons and other versions of what it needs, and tests it there: `make matrix`.

    python tests/matrix.py                          # every environment, one after the other
    python tests/matrix.py full-3.11-lowest ...     # these
    python tests/matrix.py --resolve                # only which versions pip would take, on every Python: a minute

It needs uv, which brings no interpreter by itself: those that are not on this machine are said. Rows go to
docs/data/compatibility.json, each in place of the last one of its environment, and docs/install.md shows them.
`--torch 2.13.0+cpu` takes that version of torch and no other; UV_TORCH_BACKEND=cpu takes builds without CUDA.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "matrix"
ROWS = ROOT / "docs" / "data" / "compatibility.json"
PAGE = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- written by make matrix -->", "<!-- end of make matrix -->"

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SHOWN = ("torch", "transformers", "lm-eval", "evaluate", "numpy", "scipy", "pandas", "onnxruntime", "pydantic", "typer")
ON_PAGE = ("torch", "lm-eval", "numpy", "onnxruntime")
# The last four are what tests compare with and read.
TOOLS = ("pytest", "pytest-socket", "pytest-timeout", "hypothesis", "krippendorff", "scikit-learn", "pandas", "rank-bm25")
TESTS = {
    "full": ("tests/core", "tests/statistics", "tests/models", "tests/hosts"),
    # What needs neither torch nor a host, nor datasets.
    "light": ("tests/statistics", "tests/labels", "tests/conversations", "--ignore=tests/conversations/test_every_way_in.py"),
}
"""By distribution."""
SMOKE = {"full": "tests/smoke.py", "light": "tests/light.py"}
EXTRAS = {"full": {"", "api", "onnx", "openvino", "reports", "bertscore"}, "light": {""}}
SCORE = """
from dialeval_plugin import Example, load_scorer
item = Example.from_texts(["Do you have plans for Sunday?", "Not yet. Why?"], "We could have a picnic by the river.")
print(f"{load_scorer('general').score([item]).values[0]:.4f}")
"""


class Environment(NamedTuple):
    """Distribution to install, and the packages next to it."""

    distribution: str
    """full or light."""
    python: str
    versions: str
    """pinned (constraints.txt), newest, lowest (of each bound of ours), or a requirement beside the newest."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "-".join([self.distribution, self.python, self.versions.replace("==", "-")])


ENVIRONMENTS = [
    Environment("full", "3.11", "pinned"),
    *(Environment("full", python, "newest") for python in PYTHONS),
    *(Environment("full", python, "lowest") for python in PYTHONS[:2]),
    Environment("full", "3.11", "lm-eval==0.5.0.dev1"),
    *(Environment("light", python, "newest") for python in PYTHONS),
    *(Environment("light", python, "lowest") for python in PYTHONS[:2]),
]


@dataclass(frozen=True)
class Row:
    """Results in one environment."""

    environment: str
    date: str
    python: str = ""
    packages: int = 0
    versions: Mapping[str, str] | None = None
    pip_check: str = ""
    score: str = ""
    """Score of `general`."""
    smoke: str = ""
    tests: str = ""


class Builder(NamedTuple):
    """Makes environments, by the wheel of each distribution."""

    wheels: Mapping[str, Path]
    torch: str | None

    def requirements(self, environment: Environment) -> Path:
        """Write what is installed: every package with its version."""
        folder = FOLDER / environment.name
        folder.mkdir(parents=True, exist_ok=True)
        given = requirements_of(self.wheels[environment.distribution], EXTRAS[environment.distribution])
        words = ["--python-version", environment.python, "--no-header", "--no-annotate", "--quiet"]
        if environment.versions == "pinned":
            words += ["--constraint", str(ROOT / "constraints.txt")]
        elif environment.versions == "lowest":
            words += ["--resolution", "lowest-direct"]
        elif environment.versions != "newest":
            # The bound of ours is what is tried to be true.
            words += ["--override", write(folder / "override.txt", [environment.versions]), "--prerelease", "allow"]
        if self.torch is not None and environment.distribution == "full":
            words += ["--override", write(folder / "torch.txt", [f"torch=={self.torch}"])]
        # An older file would be taken for what is wished.
        (locked := folder / "requirements.txt").unlink(missing_ok=True)
        uv("pip", "compile", *words, *links(), write(folder / "requirements.in", given), "--output-file", str(locked))
        return locked

    def row(self, environment: Environment, *, has_smoke: bool, has_tests: bool) -> Row:
        """Make an environment, run what is run in it, and remove it."""
        row = Row(environment.name, datetime.now(timezone.utc).date().isoformat())
        found = subprocess.run(
            ["uv", "python", "find", "--no-python-downloads", environment.python], capture_output=True, check=False
        )
        if found.returncode:
            return Row(row.environment, row.date, pip_check="no interpreter here")
        folder = FOLDER / environment.name
        venv = folder / "venv"
        try:
            locked = self.requirements(environment)
            uv("venv", "--quiet", "--clear", "--python", environment.python, str(venv))
            install = ["pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), *links()]
            uv(*install, "--no-deps", "--requirement", str(locked), str(self.wheels[environment.distribution]))
            # Beside pip's packages the smoke test would prove nothing of what users have.
            found = {**asdict(row), **look(venv)}
            if has_smoke:
                found["smoke"] = last_line([str(venv / "bin" / "python"), str(ROOT / SMOKE[environment.distribution])], ROOT)
            if not has_tests:
                return Row(**found)
            uv(*install, "--constraint", str(locked), *TOOLS)
            words = ["-m", "pytest", "-q", "-m", "not real_data and not exhaustive and not long", "-p", "no:cacheprovider"]
            command = [str(venv / "bin" / "python"), *words, *TESTS[environment.distribution]]
            found["tests"] = last_line(command, checkout(folder / "checkout"), folder / "tests.txt")
            return Row(**found)
        finally:
            for made in (venv, folder / "checkout"):
                shutil.rmtree(made, ignore_errors=True)


def requirements_of(wheel: Path, extras: set[str]) -> list[str]:
    """Return what a wheel asks for, with these of its extras; "" stands for what it asks for always."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = [Requirement(line) for line in message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])]
    kept = [one for one in asked if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)]
    return [f"{one.name}{'[' + ','.join(sorted(one.extras)) + ']' if one.extras else ''}{one.specifier}" for one in kept]


def look(venv: Path) -> dict[str, object]:
    """Say which Python and packages an environment has, whether they fit together, and the score of a response."""
    python = str(venv / "bin" / "python")
    listed = json.loads(uv("pip", "list", "--format", "json", "--python", python))
    versions = {one["name"].lower().replace("_", "-"): one["version"] for one in listed}
    check = subprocess.run(["uv", "pip", "check", "--python", python], capture_output=True, text=True, check=False)
    wrong = [line for line in check.stderr.splitlines() if line.startswith("The package")]
    return {
        "python": run([python, "-c", "import platform; print(platform.python_version())"]).strip(),
        "packages": len(listed),
        "versions": {name: versions[name] for name in SHOWN if name in versions},
        "pip_check": "; ".join(wrong) or "clean",
        "score": last_line([python, "-c", SCORE], FOLDER),
    }


def checkout(folder: Path) -> Path:
    """Copy the checkout without the package into a folder, so that tests import the one that is installed."""
    shutil.rmtree(folder, ignore_errors=True)
    files = run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]).splitlines()
    for name in files:
        if not name.startswith("dialeval_plugin/") and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def last_line(command: Sequence[str], folder: Path, log: Path | None = None) -> str:
    """Run a command that may fail and return the last line of what it says."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("DIALEVAL_", "PYTHON"))}
    own |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DIALEVAL_COMMERCIAL": "0"}
    done = subprocess.run(
        command, cwd=folder, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if log is not None:
        log.write_text(done.stdout, encoding="utf-8")
    return (done.stdout.strip().splitlines() or [""])[-1].strip("= ")


def uv(*words: str) -> str:
    """Run uv and return what it says."""
    return run(["uv", *words])


def run(command: Sequence[str]) -> str:
    """Run a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def links() -> list[str]:
    """Return the options of uv for the folders of wheels that pip is told of."""
    return [word for folder in os.environ.get("PIP_FIND_LINKS", "").split() for word in ("--find-links", folder)]


def write(path: Path, lines: Sequence[str]) -> str:
    """Write lines and return the path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def built() -> dict[str, Path]:
    """Return the wheel of each distribution, which `make wheels` has made."""
    wheels = {}
    for distribution, name in {"full": "dialeval_plugin", "light": "dialeval_core"}.items():
        found = list((ROOT / "build" / "dist").glob(f"{name}-*.whl"))
        if len(found) != 1:
            raise SystemExit(f"build/dist: holds {len(found)} wheels of {name}. Run `make wheels`.")
        wheels[distribution] = found[0]
    return wheels


def write_page(rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table between its two marks."""
    lines = ["| environment | date | versions | pip check | score |", "|---|---|---|---|---|"]
    for row in rows:
        versions = row["versions"] if isinstance(row["versions"], dict) else {}
        named = ", ".join(f"{name} {versions[name]}" for name in ON_PAGE if name in versions)
        lines.append(f"| {row['environment']} | {row['date']} | {named} | {row['pip_check']} | {row['score']} |")
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n".join([head + BEGIN, "", *lines, "", END + rest.partition(END)[2]]), encoding="utf-8")


def main() -> int:
    """Run the environments that are named and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="by default " + ", ".join(one.name for one in ENVIRONMENTS))
    parser.add_argument("--list", action="store_true", help="print the names as JSON")
    parser.add_argument("--resolve", action="store_true", help="install nothing")
    parser.add_argument("--torch", help="its version in full environments")
    parser.add_argument("--no-tests", action="store_true", help="only install, check and score; no row is written")
    parser.add_argument("--no-smoke", action="store_true", help="leave tests/smoke.py and tests/light.py out")
    given = parser.parse_args()
    known = {one.name: one for one in ENVIRONMENTS}
    if given.list:
        print(json.dumps(list(known)))
        return 0
    if unknown := set(given.names) - set(known):
        raise SystemExit(f"{', '.join(sorted(unknown))}: is none of {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    builder = Builder(built(), given.torch)
    has_failed = False
    for one in chosen:
        try:
            if given.resolve:
                n_packages = len(builder.requirements(one).read_text(encoding="utf-8").splitlines())
                print(f"{one.name}: {n_packages} packages", flush=True)
                continue
            row = builder.row(one, has_smoke=not given.no_smoke, has_tests=not given.no_tests)
        except SystemExit as error:
            print(f"{one.name}: cannot be installed\n{error}", flush=True)
            has_failed = True
            continue
        print(" | ".join(f"{name}: {value}" for name, value in asdict(row).items() if value), flush=True)
        if not row.python:
            continue
        has_failed |= not re.fullmatch(r"0\.\d{4}", row.score) or any(word in row.tests for word in ("failed", "error"))
        if given.no_tests:
            continue
        rows = {row["environment"]: row for row in (json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.is_file() else [])}
        rows[row.environment] = asdict(row)
        kept = [rows[name] for name in known if name in rows]
        ROWS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        write_page(kept)
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
