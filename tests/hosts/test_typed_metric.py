"""TRIAL §6: `load_metric` and its result were `Any` to a user's type checker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dialeval_plugin

SCRIPT = """\
from dialeval_plugin import load_metric, load_scorer

metric = load_metric("general", level="turn")
metric.add_batch(predictions=["Hello."], contexts=[["Hi."]])
result = metric.compute(predictions=["Hello."], contexts=[["Hi."]])
scores: list[float | None] = result["scores"]
unscored: dict[str, int] = result["unscored"]
mean: float | None = result["general"]
print(result["n_total"] - result["n_scored"] - result["n_unscored"], result["signature"].upper(), result["fit"][0])
print([one.mean() for one in [load_scorer("random").score([])]])
counted: str = result["n_total"]
max(result["scores"])
"""
ERRORS = [
    'user.py:11: error: Incompatible types in assignment (expression has type "int", variable has type "str")  [assignment]',
    'user.py:12: error: Value of type variable "SupportsRichComparisonT" of "max" cannot be "float | None"  [type-var]',
]


@pytest.mark.any_lm_eval
@pytest.mark.long
def test_a_users_type_checker_knows_the_metric_and_its_result(tmp_path: Path) -> None:
    package = Path(dialeval_plugin.__file__).parent
    assert (package / "py.typed").is_file()
    (tmp_path / "user.py").write_text(SCRIPT)
    # As an installed package is read, whose own errors are not the user's. No type of other packages is part of the result,
    # and reading them would be three quarters of the time.
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--no-site-packages", "--no-pretty"]
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    done = subprocess.run([*command, "user.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if ": error: " in line] == ERRORS, done.stdout
