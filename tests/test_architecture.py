"""The rules of docs/architecture.md: what each folder may import, no circle, no folder with more than 15 modules."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dialeval_plugin
from dialeval_plugin.core.resources import _EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dialeval_plugin"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py") if "static" not in path.parts
}
TABLE = re.findall(r"^\| `(\w+)` \| (.*) \|$", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
ALLOWED = {folder: set(re.findall(r"`(\w+)`", cell.split(";")[0])) for folder, cell in TABLE if cell != "all"}
NOT_LIGHT = tuple(f"dialeval_plugin.{name}" for name in ("cli.train", "cli.demo", "cli.results.plot", "reports.slm"))
"""Commands that an extra brings, and what other commands import for such a part."""
OF_OTHER_METHODS = {"slide": {"judging"}, "augmentation": {"judging"}}


@cache
def imported(module: str, *, lazily: bool = True) -> tuple[str, ...]:
    """The modules of ours that a module imports; with `lazily`, inside functions too."""
    return tuple(_imported(module, lazily=lazily))


def _imported(module: str, *, lazily: bool) -> Iterator[str]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    package = module.removesuffix(".__init__").split(".")[: None if module.endswith("__init__") else -1]
    for node in ast.walk(tree) if lazily else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(PACKAGE.name))
        if not isinstance(node, ast.ImportFrom):
            continue
        base = (
            ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            if node.level
            else node.module or ""
        )
        for alias in node.names if base.startswith(PACKAGE.name) else ():
            yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base


def folder_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or parts[1] in ALLOWED) else ""


def test_the_table_names_every_folder() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert {name for name, _ in TABLE if f"{PACKAGE.name}.{name}" not in MODULES} == folders


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_what_the_table_says(folder: str) -> None:
    wrong = {
        f"{module} imports {other}"
        for module in MODULES
        if folder_of(module) == folder
        for other in imported(module)
        if folder_of(other) not in {"", folder, *ALLOWED[folder]}
    }
    assert not wrong


def test_a_method_imports_no_other() -> None:
    pairs = {
        (module, other)
        for module in MODULES
        for other in imported(module)
        if folder_of(module) == folder_of(other) == "methods" and module.count(".") > 2 and other.count(".") > 2
    }
    wrong = {
        f"{module} imports {other}"
        for module, other in pairs
        if (method := module.split(".")[2]) != (of := other.split(".")[2]) and of not in OF_OTHER_METHODS.get(method, set())
    }
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: {other for other in imported(module) if other != module and other in MODULES} for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("host", ["lm_eval", "evaluate"])
def test_hosts_are_imported_at_the_doors_only(host: str) -> None:
    line = re.compile(rf"^\s*(?:from|import) {host}\b", re.MULTILINE)
    doors = {"lm_eval": ("hosts", "testing"), "evaluate": ("hosts", "cli")}
    wrong = [
        name
        for name, path in MODULES.items()
        if folder_of(name) not in doors[host] and line.search(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


def test_what_the_light_installation_promises_imports_nothing_that_an_extra_brings() -> None:
    """Its commands and public names, and whatever that imports in turn; inside functions all may be imported."""
    commands = [name for name in MODULES if folder_of(name) == "cli" and not name.startswith(NOT_LIGHT)]
    names = [f"{PACKAGE.name}.{home}" for name, home in dialeval_plugin._HOMES.items() if name != "load_metric"]
    names += ["dialeval_plugin.methods.auto.scorer", "dialeval_plugin.methods.slide.scorer"]
    waiting = [(other, name) for name in commands for other in imported(name) if other not in NOT_LIGHT]
    waiting += [(name, PACKAGE.name) for name in names]
    found: dict[str, str] = {}
    while waiting:
        name, importer = waiting.pop()
        if name in MODULES and name not in found:
            found[name] = importer
            waiting += [(other, name) for other in imported(name, lazily=False)]
    wrong = {
        f"{name}, which {importer} imports, imports {package}"
        for name, importer in found.items()
        for package in packages_imported(name) & _EXTRAS.keys()
    }
    assert not wrong


def packages_imported(module: str) -> set[str]:
    """Return the modules that a module imports as soon as it is imported."""
    names = set()
    for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    # The one module of safetensors that is torch's.
    return {name.partition(".")[0] for name in names} | ({"torch"} if "safetensors.torch" in names else set())


def test_no_folder_has_more_than_15_modules() -> None:
    sizes = {str(folder): len(list(folder.glob("*.py"))) for folder in [PACKAGE, *PACKAGE.rglob("*")] if folder.is_dir()}
    assert {folder: size for folder, size in sizes.items() if size > 15} == {}


@pytest.mark.parametrize("folder", ["benchmarks", "reproduction"])
def test_scripts_import_modules_that_are_there(folder: str) -> None:
    missing = {
        f"{path.relative_to(ROOT)} imports {node.module}.{alias.name}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE.name
        for alias in node.names
        if node.module not in MODULES and f"{node.module}.{alias.name}" not in MODULES
        if alias.name not in MODULES.get(f"{node.module}.__init__", Path(os.devnull)).read_text(encoding="utf-8")
    }
    assert not missing
