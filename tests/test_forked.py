"""A forked command is one of a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.cli import running

pytestmark = pytest.mark.long
SHOW = """
import os, sys, datasets, own, mark
print(sys.argv, os.getcwd(), sorted(os.environ), own.name, mark.__name__, sys.stdin.read(), sys.stdout.isatty())
print(os.path.realpath(datasets.config.HF_DATASETS_CACHE), "tests.forked" in sys.modules, len(os.listdir("/proc/self/fd")) < 9)
print("last", end="", file=sys.stderr)
sys.exit(3)
"""
COMMANDS = {
    "argument": [sys.executable, "-c", SHOW, "a", "b c"],
    "message": [sys.executable, "-c", "import sys; sys.exit('no')"],
    "killed": [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    "module": [sys.executable, "-m", "dialeval_plugin", "--version"],
    "script": [str(Path(sys.executable).with_name("dialeval")), "score", "absent.jsonl"],
    "host": [str(Path(sys.executable).with_name("lm_eval")), "validate"],
}


def environment(folder: Path) -> dict[str, str]:
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "own.py").write_text("name = 'own'\n")
    (folder / "site" / "mark.py").touch()
    (folder / "site" / "sitecustomize.py").write_text("import os; os.environ['SAW'] = 'sitecustomize'\n")
    return running.environment(folder, PYTHONPATH=str(folder / "site"), OMP_NUM_THREADS="1")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_forked_command_ends_as_one_of_its_own_process(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "FROM_NOTHING", 0)
    monkeypatch.setattr(forked, "MOST", 9)
    env = environment(tmp_path)
    done = forked.run(COMMANDS[name], cwd=tmp_path, env=env)
    own = subprocess.run(
        COMMANDS[name], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (own.returncode, own.stdout, own.stderr)
    assert forked._servers


def test_the_traceback_of_a_forked_command_ends_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "FROM_NOTHING", 0)
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    done = forked.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_a_forked_command_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "FROM_NOTHING", 0)
    code = "import os, pathlib, time; pathlib.Path('id').write_text(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path), timeout=3)
    assert not Path("/proc", (tmp_path / "id").read_text()).exists()


def test_processes_of_pytest_share_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "FROM_NOTHING", 0)
    command = [sys.executable, "-c", "import os; print(os.getppid())"]
    before = len(forked.USED)
    found = forked.run(command, cwd=tmp_path, env=environment(tmp_path)).stdout
    monkeypatch.setattr(forked, "_servers", {})  # as in another process
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw9")
    assert forked.run(command, cwd=tmp_path, env=environment(tmp_path)).stdout == found
    assert len([seconds for seconds in forked.USED[before:] if seconds > 0]) == 2
