"""Cost and names of an import: `import dialeval_plugin` and `dialeval --help` load neither torch nor a host."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import dialeval_plugin
from dialeval_plugin.core import resources
from dialeval_plugin.core.resources import metrics_path, tasks_path
from tests.refusals import refused

HEAVY = ("torch", "lm_eval", "evaluate", "datasets", "transformers", "sentence_transformers", "scipy", "pandas")
SHOW_LOADED = f"; import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"


HEADINGS = ("Metric Description", "How to Use", "Limitations and Bias", "Citation")
"""Headings of the host's own cards."""
ROOT = Path(__file__).resolve().parents[1]
# Of the repository, not of the project.
ONLY_IN_GIT = (".devcontainer/", ".dockerignore", ".github/", ".gitignore", "Dockerfile", "conda/", "upstream/")


def test_the_bounds_of_versions_are_those_that_were_shown_to_work() -> None:
    """numpy 1.26 breaks pyarrow, transformers 5.0 opens no model it wrote, nltk 3.9 wants data."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    wanted = {line for line in settings["options"]["install_requires"].splitlines() if line and not line.startswith("#")}
    assert wanted >= {
        "lm-eval[hf]>=0.4.13,<0.6",
        "transformers>=5.6",
        "numpy>=2.0",
        "nltk>=3.9.1",
        "huggingface_hub>=1.3",
    }
    pinned = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M))
    pinned = {canonicalize_name(name): version for name, version in pinned.items()}
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is None or requirement.specifier.contains(version), requirement


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Message]:
    """The metadata of both distributions, by what the variable says."""
    found = {}
    for asked in ("plugin", "core"):
        source = tmp_path_factory.mktemp(asked)
        for name in ("setup.py", "setup.cfg", "README.md", "dialeval_plugin/version.py"):
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, source / name)
        for name in ("dialeval_plugin/__init__.py", "metrics/__init__.py", "tasks/__init__.py"):
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).touch()
        code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
        env = {**os.environ, "DIALEVAL_DISTRIBUTION": asked}
        done = subprocess.run([sys.executable, "-c", code], cwd=source, env=env, capture_output=True, text=True, check=True)
        text = (source / done.stdout.splitlines()[-1] / "METADATA").read_text(encoding="utf-8")
        found[asked] = message_from_string(text)
    return found


def packages(metadata: Message, extra: str = "") -> set[str]:
    requirements = map(Requirement, metadata.get_all("Requires-Dist", []))
    return {
        canonicalize_name(one.name) for one in requirements if (f'extra == "{extra}"' if extra else "") == str(one.marker or "")
    }


def test_the_light_distribution_is_the_same_with_few_requirements(described: dict[str, Message]) -> None:
    plugin, core = described["plugin"], described["core"]
    assert (plugin["Name"], core["Name"], plugin["Version"]) == ("dialeval-plugin", "dialeval-core", core["Version"])
    assert packages(core) == {
        *("annotated-types", "filelock", "fsspec", "huggingface-hub", "jinja2", "numpy", "onnxruntime", "pooch", "pydantic"),
        *("pyyaml", "rich", "safetensors", "scipy", "tokenizers", "tqdm", "typer"),
    }


def test_extras_give_back_what_the_light_distribution_leaves_out(described: dict[str, Message]) -> None:
    plugin, core = described["plugin"], described["core"]
    extras = set(core.get_all("Provides-Extra", []))
    assert extras == set(plugin.get_all("Provides-Extra", [])) >= set(resources._EXTRAS.values())
    brought = packages(core).union(*(packages(core, extra) for extra in extras - {"dev"}))
    assert packages(plugin) - brought == set()
    of_import = {"sklearn": "scikit-learn"}
    assert {
        name: extra
        for name, extra in resources._EXTRAS.items()
        if canonicalize_name(of_import.get(name, name)) not in packages(core, extra) and name != "accelerate"
    } == {}


@pytest.mark.parametrize("name", ["plugin", "core"])
def test_the_conda_recipe_requires_what_the_distribution_does(described: dict[str, Message], name: str) -> None:
    path = ROOT / "conda/recipe.yaml"
    if not path.exists():
        pytest.skip("a source distribution has no conda recipe")
    recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == dialeval_plugin.__version__
    (output,) = (one for one in recipe["outputs"] if one["package"]["name"] == f"dialeval-{name}")
    of_conda = {"torch": "pytorch"}
    required = {"python": described[name]["Requires-Python"]}
    for one in map(Requirement, described[name].get_all("Requires-Dist", [])):
        if one.marker is None:
            required[of_conda.get(one.name, canonicalize_name(one.name))] = str(one.specifier)
    listed = dict(line.split(" ", 1) for line in output["requirements"]["run"])
    assert {canonicalize_name(package): SpecifierSet(bounds) for package, bounds in listed.items()} == {
        package: SpecifierSet(bounds) for package, bounds in required.items()
    }


@pytest.mark.parametrize("others", [(), ("dialeval_core",)])
def test_the_version_says_that_both_distributions_are_installed(others: tuple[str, ...], tmp_path: Path) -> None:
    for other in others:
        (tmp_path / f"{other}-0.1.dist-info").mkdir()
        (tmp_path / f"{other}-0.1.dist-info" / "METADATA").write_text("Name: dialeval-core\nVersion: 0.1\n", encoding="utf-8")
    code = "import sys; sys.argv = ['dialeval', '--version']; from dialeval_plugin.cli.main import main; main()"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"dialeval {dialeval_plugin.__version__}\n"
    assert done.stderr == "".join(
        "dialeval-plugin and dialeval-core are both installed, and have the same files. "
        "Run `pip uninstall dialeval-plugin dialeval-core`, then install one of them.\n"
        for _ in others
    )


def loaded_by(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code + SHOW_LOADED], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize(
    "code",
    [
        "import dialeval_plugin",
        "import dialeval_plugin.core.registry, dialeval_plugin.core.scorer, dialeval_plugin.corpora.registry",
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


def test_every_public_name_is_listed_and_resolves() -> None:
    """TRIAL section 2: `dir(dialeval_plugin)` had none of them, so that tab completion found nothing."""
    assert dir(dialeval_plugin) == sorted(dialeval_plugin.__all__) == dialeval_plugin.__all__
    for name in dialeval_plugin.__all__:
        assert getattr(dialeval_plugin, name) is not None
    assert set(dialeval_plugin._HOMES) == set(dialeval_plugin.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with refused("module 'dialeval_plugin' has no attribute 'load_scorers'", AttributeError):
        dialeval_plugin.load_scorers  # noqa: B018 - the access is what is tested


def test_the_package_is_typed_and_carries_its_tasks_and_metrics() -> None:
    assert (Path(dialeval_plugin.__file__).parent / "py.typed").is_file()
    assert (tasks_path() / "dstc10_dialog" / "dstc10_dialog.yaml").is_file()
    assert (metrics_path() / "slide" / "slide.py").is_file()


@pytest.mark.long
def test_wheel_and_source_distribution_hold_every_file_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "built").mkdir()
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    files = {name for name in git.stdout.splitlines() if (ROOT / name).is_file()}
    for name in files:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "source" / name)
    code = "from setuptools import build_meta; build_meta.build_wheel('../built'); build_meta.build_sdist('../built')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "source", capture_output=True, check=True)
    (wheel,), (source,) = (list((tmp_path / "built").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    assert wheel.stat().st_size <= 100e6  # what PyPI takes
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    assert b"\nLicense-Expression: Apache-2.0 AND CC-BY-4.0 AND CC-BY-NC-4.0 AND " in zipfile.ZipFile(wheel).read(metadata)
    beside = {f"dialeval_plugin/{name}" for name in files if name.startswith(("tasks/", "metrics/"))}
    assert in_wheel == beside | {name for name in files if name.startswith("dialeval_plugin/")}
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in files - in_source if not name.startswith(ONLY_IN_GIT)} == set()


@pytest.mark.parametrize("metric", sorted(path.parent.name for path in metrics_path().glob("*/app.py")))
def test_a_space_says_the_same_in_all_of_its_files_and_installs_what_its_page_may_use(metric: str) -> None:
    card, page, requirements, shim = (
        (metrics_path() / metric / name).read_text(encoding="utf-8")
        for name in ("README.md", "app.py", "requirements.txt", f"{metric}.py")
    )
    assert f">={dialeval_plugin.__version__}" in requirements
    front, _, body = card.removeprefix("---\n").partition("\n---\n")
    assert "sdk: gradio" in front
    assert "app_file: app.py" in front
    assert f'scorer_name = "{metric}"' in shim or metric == "dbdc"
    # Two have pages of their own.
    assert f'"{metric}"' in page or metric in {"dbdc", "general"}
    assert f'load_metric("{metric}"' in body or f'load("{metric}"' in body
    assert [heading for heading in HEADINGS if f"\n## {heading}\n" not in body] == []
    # TRIAL S1: a page whose DIALEVAL_LLM names a served judge had nothing that brings lm-eval's API models.
    extras = {extra for line in re.findall(r"^dialeval-plugin\[(.*?)\]", requirements, re.M) for extra in line.split(",")}
    assert ("api" in extras) == ("DIALEVAL_LLM" in page)
