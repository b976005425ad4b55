"""Mutation testing: how many small changes of a module its own tests notice.

    python tests/mutants.py                                # every module of MODULES
    python tests/mutants.py methods/slide/fusion.py ...    # these

mutmut (its settings: pyproject.toml) changes one place after the other and runs the tests that come there. The rate of each
module is printed; diffs of the changes that no test noticed are in mutants/MODULE/survivors.diff. A repeated command goes on
where the last one ended; `rm -r mutants` begins anew. Changes that only a test in a process of its own could notice count as
survivors, and so does what changes no result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "mutants"
MODULES = {
    "methods/slide/fusion.py": ("methods/slide/test_fusion.py",),
    "methods/slide/losses.py": ("methods/slide/test_losses.py",),
    "methods/causalscore/aggregation.py": ("methods/causalscore/test_aggregation.py",),
    "methods/likelihood/aggregation.py": ("methods/likelihood/test_likelihood_aggregation.py",),
    "llm/parsing.py": ("methods/judging/test_parsing.py",),
    "methods/judging/goodness.py": ("methods/judging/test_goodness.py",),
    "llm/neutralise.py": ("methods/judging/test_injection.py", "methods/judging/test_prompts.py"),
    "statistics/correlation.py": ("statistics/test_correlation.py",),
    "statistics/coefficients/kendall.py": ("statistics/test_coefficients.py",),
    "statistics/bootstrap.py": ("statistics/test_bootstrap.py",),
    "core/scorer.py": ("core/test_runner.py", "core/test_signature.py"),
    "core/percentiles.py": ("core/test_percentiles.py",),
    "core/locks.py": ("core/test_locks.py",),
}
"""A module of the package, and the test files that are its own."""

COPIED = ("dialeval_plugin", "tests", "tasks", "metrics", "setup.cfg", "setup.py", "pyproject.toml")


def main(modules: list[str]) -> int:
    """Measure modules, print a line for each, and return 1 where one could not be measured."""
    failed = False
    for module in modules or list(MODULES):
        start = time.monotonic()
        counts = measure(module, FOLDER / module.removesuffix(".py").replace("/", "."))
        n_killed = counts["killed"] + counts["timeout"]
        n_mutants = sum(counts.values()) - counts["not checked"]
        failed |= bool(counts["not checked"]) or not n_mutants
        rate = f"{n_killed / n_mutants:.1%}" if n_mutants else "nothing measured"
        print(
            f"{module}: {n_killed} of {n_mutants} killed, {rate}; {dict(counts)}; {time.monotonic() - start:.0f} s", flush=True
        )
    return int(failed)


def measure(module: str, folder: Path) -> Counter[str]:
    """Change `module` in a copy of the project in `folder`, and return how many changes came to which end."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    tests = [f"tests/{path}" for path in MODULES[module]]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as settings:  # its last table is mutmut's
        settings.write(f'only_mutate = ["dialeval_plugin/{module}"]\npytest_add_cli_args_test_selection = {tests}\n')
    run(folder, "run", "--max-children", str(os.cpu_count() or 1), log=folder / "log.txt")
    ends = dict(line.strip().rsplit(": ", 1) for line in run(folder, "results", "--all", "true").splitlines() if ": " in line)
    diffs = [run(folder, "show", name) for name, end in ends.items() if end not in {"killed", "timeout", "not checked"}]
    (folder / "survivors.diff").write_text("\n".join(diffs), encoding="utf-8")
    return Counter(ends.values())


def run(folder: Path, *words: str, log: Path | None = None) -> str:
    """Run mutmut in the copy and return what it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if log is not None:
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        if done.returncode:
            print(f"{folder.name}: mutmut ended with {done.returncode}; see {log}", flush=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
