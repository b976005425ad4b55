"""FAULTS R75: a host that is not installed, or lacks what the extra [api] brings, is one line that says what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.cli.running import environment
from tests.tiny.language_models import write_rating_language_model

RUN = """\
import sys
absent = sys.argv.pop(1).split(',')
for name in list(sys.modules):
    if name.partition('.')[0] in {*absent, 'dialeval_plugin', 'evaluate', 'lm_eval'}: del sys.modules[name]
sys.modules.update(dict.fromkeys(absent))
from dialeval_plugin.cli.main import main
main()
"""
"""The package and the hosts are imported anew: those of a server that forks have been imported where nothing is absent."""
CANNOT = (
    "dialeval: {0} needs {1}, which cannot be imported (import of {1} halted; None in sys.modules). "
    "Run `pip install 'dialeval-plugin[{2}]'`.\n"
)
NO_LM_EVAL = CANNOT.format("a task or a language model of lm-eval", "lm_eval", "lm-eval")
NO_EVALUATE = CANNOT.format("a metric of evaluate", "evaluate", "evaluate")
SCORE = ("score", "in.jsonl", "--output", "out.jsonl", "--scorer", "llm_judge")
AUGMENT = ("augment", "contexts.jsonl", "--output", "responses.jsonl")


@pytest.fixture
def folder(tmp_path: Path, small_host: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(small_host))  # of the server that forks the other tests' commands, too
    row = {"context": ["Do you like tea?"], "response": "I like tea."}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "contexts.jsonl").write_text(json.dumps({"context": row["context"]}) + "\n", encoding="utf-8")
    return tmp_path


def without(absent: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `dialeval` where none of the modules `absent` can be imported."""
    command = [sys.executable, "-c", RUN, absent, *words]
    env = environment(folder, OPENAI_API_KEY="none")
    if "torch" in absent.split(","):  # of which the modules of other packages hold parts
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return forked.run(command, cwd=folder, env=env)


WITHOUT_LM_EVAL = {
    "score": (*SCORE, "--llm", "hf", "--llm-args", "pretrained=m"),
    "augment": (*AUGMENT, "--llm", "hf"),
    "lm-eval": ("lm-eval", "ls", "groups"),
    "validate": ("validate",),
}


@pytest.mark.any_lm_eval
@pytest.mark.long
@pytest.mark.parametrize("words", WITHOUT_LM_EVAL.values(), ids=WITHOUT_LM_EVAL)
def test_r75_a_command_without_lm_eval_says_what_to_install(words: tuple[str, ...], folder: Path) -> None:
    done = without("lm_eval", folder, *words)
    assert (done.returncode, done.stderr) == (3, NO_LM_EVAL)


@pytest.mark.any_lm_eval
@pytest.mark.long
@pytest.mark.parametrize("words", [("validate", "--tasks", "no_tasks"), ("demo",)], ids=["validate", "demo"])
def test_r75_a_command_without_evaluate_says_what_to_install(words: tuple[str, ...], folder: Path) -> None:
    (folder / "no_tasks").mkdir()
    done = without("evaluate", folder, *words)
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (3, NO_EVALUATE)
    assert "Traceback" not in done.stderr


def test_r75_a_scorer_without_a_language_model_needs_no_host(folder: Path) -> None:
    done = without("lm_eval,evaluate", folder, *SCORE[:4], "--scorer", "response_length")
    assert done.returncode == 0
    assert done.stderr.startswith("next: ")


@pytest.mark.long
def test_r75_a_local_model_needs_none_of_what_served_ones_need(folder: Path) -> None:
    """TRIAL S1: `lm-eval[hf]` alone brings no aiohttp, so the host's module of served models has no `tqdm`."""
    model = write_rating_language_model(folder / "model", " 4")
    llm = ("--llm", "hf", "--llm-args", f"pretrained={model},dtype=float32", "--option", "prompt=dre", "--no-answers")
    done = without("aiohttp", folder, *SCORE, *llm)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "out.jsonl").read_text(encoding="utf-8"))["llm"] == 0.8  # 4 of 0 to 5


@pytest.mark.long
@pytest.mark.parametrize("kind", ["local-completions", "openai-chat-completions"])
def test_r75_a_served_model_without_its_packages_says_what_to_install(kind: str, folder: Path) -> None:
    llm = ("--llm", kind, "--llm-args", "model=m,base_url=http://127.0.0.1:9/v1/completions,tokenizer_backend=none")
    done = without("aiohttp", folder, *SCORE, *llm)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        3,
        f"dialeval: llm {kind!r}: needs packages that are not installed. Run pip install 'lm-eval[api]', or choose "
        "another model.",
    )
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_served_model_is_asked_without_torch(folder: Path) -> None:
    llm = ("--llm", "local-completions", "--no-answers", "--overwrite", "--llm-args")
    address = "model=m,base_url=http://127.0.0.1:9/v1/completions,tokenizer_backend=none,max_retries=1"
    done = without("torch,transformers,sentence_transformers", folder, *SCORE, *llm, address)
    # Nobody listens there.
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "llm: no score, 0 of 1 scored"), done.stderr
    assert json.loads((folder / "out.jsonl").read_text(encoding="utf-8"))["detail"] == "ClientConnectorError"
