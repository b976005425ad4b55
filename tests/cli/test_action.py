"""The GitHub action: its steps, as a runner would run them, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import forked
from tests.cli.running import DIALEVAL, environment
from tests.results.test_comparison import SIGNATURE, file, rows

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_step(number: int, folder: Path, variables: dict[str, str], **given: str) -> subprocess.CompletedProcess[str]:
    """Run a step in `folder` with the inputs that are given, and the defaults of the others."""
    inputs = {name: given.get(name, one.get("default", "")) for name, one in ACTION["inputs"].items()}
    step: dict[str, Any] = ACTION["runs"]["steps"][number]
    own = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text) for name, text in step["env"].items()
    }
    # As a runner starts bash.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    with forked.stand_in(DIALEVAL, environment(folder)) as programs:
        search = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {**os.environ, "PATH": search, "GITHUB_ACTION_PATH": str(ROOT), **variables, **own}
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The files of a runner, with two versions' scores where it works."""
    for name, shift in (("before", 0.05), ("after", 0.0)):
        file(tmp_path / f"{name} it.jsonl", rows(shift=shift), SIGNATURE)
    return {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }


FILES = "'before it.jsonl' \"after it.jsonl\""


@pytest.mark.parametrize(
    ("arguments", "code", "verdict", "gate"),
    [
        (FILES, 0, "**B is worse than A by 0.050 (0.045 to 0.055).**", None),
        (f"{FILES} --fail-if-worse 0.06", 0, "**B is worse than A by 0.050 (0.045 to 0.055).**", "passed"),
        (f"{FILES} --fail-if-worse", 1, "**B is worse than A by 0.050 (0.045 to 0.055).**", "failed"),
    ],
)
def test_a_comparison_is_the_summary_of_a_job_and_its_gate_the_end_of_it(
    runner: dict[str, str], tmp_path: Path, arguments: str, code: int, verdict: str, gate: str | None
) -> None:
    done = run_step(1, tmp_path, runner, arguments=arguments)
    assert done.returncode == code, done.stderr
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.splitlines()[0] == verdict
    assert (gate is None) is ("gate" not in summary)
    assert gate is None or f"\n**gate {gate}: B - A -0.050 (-0.055 to -0.045) is " in summary
    assert (tmp_path / "output").read_text(encoding="utf-8") == f"report={tmp_path / 'dialeval.md'}\n"
    assert done.stdout == (tmp_path / "dialeval.md").read_text(encoding="utf-8") == summary


def test_a_quote_that_is_not_closed_leaves_no_gate_out(runner: dict[str, str], tmp_path: Path) -> None:
    """What stood behind it was dropped, and the build passed."""
    done = run_step(1, tmp_path, runner, arguments=f"{FILES} 'x --fail-if-worse")
    assert (done.returncode, done.stdout) == (2, "::error::arguments: a quote is not closed. Close it.\n")


@pytest.mark.long
def test_a_file_is_scored(runner: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}\n', encoding="utf-8"
    )
    done = run_step(1, tmp_path, runner, command="score", arguments="log.jsonl --scorer response_length --worst 0")
    assert done.returncode == 0, done.stderr
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.startswith("```\nwords: mean 1.0000")
    assert summary.endswith("\n```\n")
    (tmp_path / "summary").unlink()
    done = run_step(1, tmp_path, runner, command="score", arguments="nothing.jsonl")
    assert (done.returncode, done.stderr) == (2, "dialeval: nothing.jsonl: there is no such file.\n")


def test_what_is_wrong_is_in_the_log_of_the_job(runner: dict[str, str], tmp_path: Path) -> None:
    done = run_step(1, tmp_path, runner, command="rm", arguments="-r .")
    assert (done.returncode, done.stdout) == (2, "::error::command is 'rm'. Write compare or score.\n")
    # Nothing in the arguments is run.
    done = run_step(1, tmp_path, runner, arguments="$(touch run) `touch run` ; touch run")
    assert done.returncode == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_package_of_the_action_is_what_is_installed(runner: dict[str, str], tmp_path: Path) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DRY_RUN": "1"}
    done = run_step(0, tmp_path, {**runner, **offline, "PIP_TARGET": str(tmp_path / "site")}, arguments="")
    assert done.returncode == 0, done.stderr
    assert "Would install dialeval" in done.stdout
