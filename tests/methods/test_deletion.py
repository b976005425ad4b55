"""Each paper's method is one folder of `methods`: without it and its lines in setup.cfg the rest works."""

from __future__ import annotations

import configparser
import json
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.cli.running import environment
from tests.test_architecture import MODULES, PACKAGE, ROOT, imported

DOORS = {
    "assistant": ("dialeval_plugin.bias.",),
    "augmentation": (),
    "baselines": (),
    "breakdown": (),
    "causalscore": (),
    "likelihood": (),
    "proxy_indicators": (),
    "reconstruction": (),
    "slide": ("dialeval_plugin.hosts.lm_eval.tasks.small_models", "dialeval_plugin.reports.slm"),
}
"""Folder to the modules elsewhere that are about nothing else, or build on it, and go with it.

`general` is the default scorer, `auto` is made of it and of `assistant`, and `judging` has the prompts of every judge.
"""

SCRIPT = """
import gc, importlib, json, os, sys
from pathlib import Path
# Once for all of them, where the server that forks has not done so.
import aiohttp, datasets, evaluate, lm_eval.models.api_models, nltk.translate.meteor_score, pydantic, rouge_score.rouge_scorer
import sacrebleu, safetensors.torch, scipy.stats, sentence_transformers, sklearn.linear_model, torch, transformers, typer
import transformers.models.bert.modeling_bert, transformers.models.bert.tokenization_bert, transformers.pipelines
for name in list(sys.modules):
    if name.partition(".")[0] == "dialeval_plugin": del sys.modules[name]
gc.freeze()

for folder, modules in json.loads(Path("left.json").read_text()).items():
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, folder
        continue
    sys.path.insert(0, folder)
    from dialeval_plugin.cli.main import main
    for name in modules:
        importlib.import_module(name)
    for words in (["--help"], ["scorers"], ["models", "list"], ["score", "r.jsonl", "--scorer", "general"]):
        sys.argv = ["dialeval", *words]
        try:
            main()
        except SystemExit as end:
            assert not end.code, words
    sys.stdout.flush()
    os._exit(0)  # Python's end would take apart all that was imported.
"""
NOT_IMPORTED = ("dialeval_plugin.integrations.", "dialeval_plugin.hosts.lm_eval.tasks.answers.")
"""They need inspect_ai and lm-eval 0.5, which need not be installed."""


def importers(method: str) -> set[str]:
    """Modules outside a method's folder that need it as soon as they are imported."""
    gone = {name for name in MODULES if f"{name}.".startswith(f"dialeval_plugin.methods.{method}.")}
    found = set(gone)
    while more := {name for name in MODULES.keys() - found if not found.isdisjoint(imported(name, lazily=False))}:
        found |= more
    return found - gone


@pytest.mark.parametrize("method", DOORS)
def test_nothing_but_its_doors_needs_a_method(method: str) -> None:
    assert {name for name in importers(method) if not name.startswith(DOORS[method] or ("-",))} == set()


def test_every_method_can_be_deleted_or_says_why_not() -> None:
    folders = {path.parent.name for path in (PACKAGE / "methods").glob("*/__init__.py")}
    assert folders - DOORS.keys() == {"auto", "general", "judging"}


def delete(method: str, copy: Path) -> list[str]:
    """Make a copy of the package without a method; return the modules that are left and can be imported."""
    (copy / "dialeval_plugin" / "methods").mkdir(parents=True)
    for path in (*PACKAGE.iterdir(), ROOT / "metrics", ROOT / "tasks"):
        if path.name != "methods":
            (copy / "dialeval_plugin" / path.name).symlink_to(path)
    for path in (PACKAGE / "methods").iterdir():
        if path.name != method:
            (copy / "dialeval_plugin" / "methods" / path.name).symlink_to(path)
    setup = configparser.ConfigParser(delimiters="=", interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options.entry_points"]["dialeval_plugin.scorers"].splitlines()
    metadata = copy / "dialeval_plugin-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: dialeval-plugin\nVersion: 0\n", encoding="utf-8")
    kept = ["[dialeval_plugin.scorers]", *(line for line in lines if f".methods.{method}." not in line)]
    (metadata / "entry_points.txt").write_text("\n".join(kept), encoding="utf-8")
    gone = (f"dialeval_plugin.methods.{method}.", *DOORS[method], *NOT_IMPORTED)
    return [name for name in sorted(MODULES) if not f"{name}.".startswith(gone)]


@pytest.mark.long
def test_the_rest_works_without_a_method(tmp_path: Path) -> None:
    left = {str(tmp_path / method): delete(method, tmp_path / method) for method in DOORS}
    row = {"context": ["Is it far?"], "response": "No, two streets."}
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "left.json").write_text(json.dumps(left), encoding="utf-8")
    environ = environment(tmp_path, PYTHONPATH=str(ROOT))
    done = forked.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environ, timeout=900)
    assert done.returncode == 0, done.stderr
    titles = [line.split()[0] for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    # Each of the lists of scorers is without those of one method.
    assert titles.count("auto") == titles.count("random") + 1 == len(DOORS)
