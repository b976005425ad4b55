"""`dialeval enable`: plain host commands know our names, in an environment of its own, offline and with an empty home."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.hosts.enable import HOOK, INSTEAD, MARK, disable, enable, status
from dialeval_plugin.version import __version__
from tests.hosts.through_lm_eval import result_of
from tests.refusals import refusal, refused

Run = Callable[..., subprocess.CompletedProcess[str]]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that sees this one's packages; returns its Python."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # An environment may see those of another in its turn.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("".join(f"{path}\n" for path in [*others, REPOSITORY]), encoding="utf-8")
    return folder / "bin" / "python"


@pytest.fixture
def python(environment: Path, clean_run: Run) -> Run:
    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return clean_run(str(environment), *arguments, **options)

    return run


SCORER = """\
from dialeval_plugin import Scorer, register_scorer
@register_scorer("here")
class Here(Scorer):
    name, columns, range = "here", ("length",), (0.0, 100.0)
    def score_batch(self, items):
        return [{"length": float(len(item.response.text))} for item in items]
    def signature_fields(self):
        return {"method": "here"}
"""
WITHOUT_TRANSFORMERS = "import sys; sys.modules['transformers'] = None"
"""From it `evaluate` imports pipelines for five seconds, if it is there."""


def command(name: str) -> tuple[str, str]:
    return "-c", f"import typer; from dialeval_plugin.cli import hosts as c; typer.run(c.{name})"


def test_enabling_is_idempotent_and_reversible(tmp_path: Path) -> None:
    files = {tmp_path / f"{HOOK}.py", tmp_path / f"{HOOK}.pth"}
    assert {(change.path, change.action) for change in enable(tmp_path)} == {(path, "written") for path in files}
    assert all(path.read_text(encoding="utf-8").startswith(MARK) for path in files)
    assert {change.action for change in enable(tmp_path)} == {"unchanged"}
    assert status(tmp_path).state == "enabled"
    (tmp_path / f"{HOOK}.py").write_text(f"{MARK}# another version's\n", encoding="utf-8")
    assert status(tmp_path).state == "outdated"
    assert [change.action for change in enable(tmp_path)] == ["written", "unchanged"]
    assert [(change.path.suffix, change.action) for change in disable(tmp_path)] == [(".pth", "removed"), (".py", "removed")]
    assert not list(tmp_path.iterdir())
    assert {change.action for change in disable(tmp_path)} == {"absent"}
    assert status(tmp_path).state == "disabled"


@pytest.mark.parametrize("call", [enable, disable, status])
def test_a_file_of_somebody_else_is_left_alone(call: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / f"{HOOK}.pth"
    path.write_text("import os\n", encoding="utf-8")
    with refused(f"{path}: was not written by `dialeval enable`. Move it away first."):
        call(tmp_path)
    assert path.read_text(encoding="utf-8") == "import os\n"


def test_where_nothing_can_be_written_it_says_what_to_type(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    said = refusal(enable, blocked, error=MissingPrerequisite)
    assert said.startswith(f"{blocked / HOOK}.py: ")
    assert said.endswith(INSTEAD)


@pytest.mark.any_lm_eval
@pytest.mark.long
def test_plain_evaluate_loads_a_metric_after_enable_and_not_after_disable(python: Run) -> None:
    load = "import evaluate; print(type(evaluate.load('slide')).__mro__[1].__name__)"
    enabled = python(*command("enable"))
    assert enabled.returncode == 0, enabled.stderr
    assert enabled.stdout.splitlines()[0].endswith(f"{HOOK}.py")
    state = python(*command("status"))
    assert (state.returncode, state.stdout.splitlines()[1:]) == (0, []), state.stdout
    assert state.stdout.startswith("enabled in ")
    loaded = python("-c", f"{WITHOUT_TRANSFORMERS}; {load}")
    assert (loaded.returncode, loaded.stdout) == (0, "DialogueMetric\n"), loaded.stderr
    disabled = python(*command("disable"))
    assert [line.split(":")[0] for line in disabled.stdout.splitlines()] == ["removed", "removed"]
    after = python("-c", f"{WITHOUT_TRANSFORMERS}; {load}", env={"HF_EVALUATE_OFFLINE": "1"})
    assert after.returncode != 0
    assert "slide" in after.stderr.splitlines()[-1]


@pytest.mark.long
def test_plain_lm_eval_knows_a_scorer_after_enable(python: Run, tmp_path: Path) -> None:
    python(*command("enable"))
    (tmp_path / "cwd" / "here.py").write_text(SCORER, encoding="utf-8")
    run = "import sys, here; sys.argv[0] = 'lm_eval'; from lm_eval.__main__ import cli_evaluate; cli_evaluate()"
    done = python(
        *("-c", run, "--model", "dialogue-metric", "--model_args", "scorer=here", "--tasks", "dstc10_dialog"),
        *("--output_path", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = result_of(tmp_path / "out")
    assert -1 <= result["groups"]["dstc10_dialog"]["spearman,none"] <= 1
    assert result["config"]["scorer_signature"] == f"method:here|level:turn|version:{__version__}"
    python(*command("disable"))


def test_starting_python_imports_nothing_of_ours_and_survives_a_lost_package(python: Run) -> None:
    python(*command("enable"))
    ours = "[name for name in sys.modules if 'dialeval' in name or name in ('typing', 'lm_eval')]"
    assert python("-c", f"import sys; print({ours})").stdout == "[]\n"
    lose = f"import sys; sys.modules['dialeval_plugin'] = None; import lm_eval.models, {HOOK}; print({HOOK}.failures)"
    survived = python("-c", lose)
    assert survived.returncode == 0, survived.stderr
    assert "lm_eval.models: ModuleNotFoundError" in survived.stdout
    assert survived.stderr == ""
    python(*command("disable"))


@pytest.mark.any_lm_eval
@pytest.mark.long
def test_a_hook_that_cannot_run_is_silent(python: Run, environment: Path) -> None:
    python(*command("enable"))
    (site,) = environment.parent.parent.glob("lib/python*/site-packages")
    (site / f"{HOOK}.py").write_text(f"{MARK}raise RuntimeError('damaged')\n", encoding="utf-8")
    for code in ("print('fine')", f"{WITHOUT_TRANSFORMERS}; import evaluate.loading; print('fine')"):
        started = python("-c", code)
        assert (started.returncode, started.stdout, started.stderr) == (0, "fine\n", "")
    assert python(*command("status")).stdout.startswith("outdated in ")
    python(*command("disable"))
