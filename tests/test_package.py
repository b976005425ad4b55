"""What an import costs and offers: `import dialeval_plugin` and `dialeval --help` load neither torch nor a host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dialeval_plugin
from dialeval_plugin.core.resources import metrics_path, tasks_path
from tests.refusal import refused_as

HEAVY = ("torch", "lm_eval", "evaluate", "datasets", "transformers", "sentence_transformers", "scipy", "pandas")
SHOW_LOADED = f"; import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"


def loaded_by(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code + SHOW_LOADED], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def test_the_public_names_are_listed() -> None:
    """TRIAL section 2: `dir(dialeval_plugin)` had none of them, so that tab completion found nothing."""
    assert dir(dialeval_plugin) == sorted(dialeval_plugin.__all__)


@pytest.mark.parametrize(
    "code",
    [
        "import dialeval_plugin",
        "import dialeval_plugin.core.registry, dialeval_plugin.core.runner, dialeval_plugin.corpora.registry",
        "from dialeval_plugin import Dialogue, Example, Scores, register_scorer; import dialeval_plugin as d; d.scorer_names()",
        "import sys; sys.argv = ['dialeval', '--help']\n"
        "import dialeval_plugin.cli.main as command\n"
        "try: command.main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "pass",
    ],
    ids=["package", "core", "names", "help"],
)
def test_light_imports_load_neither_torch_nor_a_host(code: str) -> None:
    assert loaded_by(code) == []


def test_every_public_name_resolves() -> None:
    assert sorted(dialeval_plugin.__all__) == dialeval_plugin.__all__
    for name in dialeval_plugin.__all__:
        assert getattr(dialeval_plugin, name) is not None
    assert set(dialeval_plugin._HOMES) == set(dialeval_plugin.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with refused_as("module 'dialeval_plugin' has no attribute 'load_scorers'", AttributeError):
        dialeval_plugin.load_scorers  # noqa: B018 - the access is what is tested


def test_the_package_is_typed_and_carries_its_tasks_and_metrics() -> None:
    assert (Path(dialeval_plugin.__file__).parent / "py.typed").is_file()
    assert (tasks_path() / "dstc10_dialog" / "dstc10_dialog.yaml").is_file()
    assert (metrics_path() / "slide" / "slide.py").is_file()


@pytest.mark.parametrize("metric", sorted(path.parent.name for path in metrics_path().glob("*/app.py")))
def test_a_space_installs_what_its_page_may_be_told_to_use(metric: str) -> None:
    """TRIAL S1: a page whose DIALEVAL_LLM names a served judge had nothing that brings lm-eval's API models."""
    page, requirements = (
        (metrics_path() / metric / name).read_text(encoding="utf-8") for name in ("app.py", "requirements.txt")
    )
    extras = {extra for line in re.findall(r"^dialeval-plugin\[(.*?)\]", requirements, re.M) for extra in line.split(",")}
    assert ("api" in extras) == ("DIALEVAL_LLM" in page)
