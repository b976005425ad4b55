"""`dialeval enable`: plain `lm_eval` and plain `evaluate.load` know our names in every process of the environment.

Two files in the environment's site-packages do it: a `.pth` line that puts a finder in place when Python starts, and a copy
of `startup_hook.py` that the finder imports when a process imports a host, and not before. Nothing of the hosts is changed
on disk. Each file says who wrote it; a file that does not is left alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import read_text, write_text

from . import startup_hook

HOOK = "_dialeval_plugin_hook"
MARK = "# Written by `dialeval enable`; `dialeval disable` removes it.\n"
FINDER = "_DialevalFinder"
_LINE = f"""\
class {FINDER}:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in {tuple(startup_hook.STEPS)!r}:
            return None
        try:
            import {HOOK} as hook
        except Exception:
            return None
        return hook.find_spec(name)
sys.meta_path.insert(0, {FINDER})
"""
INSTEAD = (
    "Type instead, in place of what is plain after enabling: `dialeval lm-eval --tasks dstc10_dialog ...` for `lm_eval ...` "
    '(or `lm_eval --include_path "$(dialeval tasks-path)"` for the tasks alone), and '
    '`dialeval_plugin.load_metric("slide")` for `evaluate.load("slide")`.'
)

Action: TypeAlias = Literal["written", "unchanged", "removed", "absent"]


class Change(NamedTuple):
    """A file, and what was done to it."""

    path: Path
    action: Action


class Status(NamedTuple):
    """Result of `status`, as `dialeval status` shows it."""

    folder: Path
    state: Literal["enabled", "disabled", "outdated"]
    problems: tuple[str, ...]


def site_folder() -> Path:
    """The site-packages folder of the environment that runs this."""
    return Path(sysconfig.get_path("purelib"))


def enable(folder: Path | None = None) -> list[Change]:
    """Write the files into a site folder, by default the environment's own; those that are as they should be stay.

    Raises:
        InputError: a file of that name is there that we did not write.
        MissingPrerequisite: the folder cannot be written; the message says what to type instead.
    """
    changes = []
    for path, text in _files(folder or site_folder()).items():
        if _owned_text(path) == text:
            changes.append(Change(path, "unchanged"))
            continue
        try:
            write_text(path, text)
        except InputError as error:
            raise MissingPrerequisite(f"{error} {INSTEAD}") from error
        changes.append(Change(path, "written"))
    return changes


def disable(folder: Path | None = None) -> list[Change]:
    """Remove the files again, the line that runs the other one first.

    Raises:
        InputError: a file of that name is there that we did not write, or cannot be removed.
    """
    changes = []
    for path in reversed(_files(folder or site_folder())):
        if _owned_text(path) is None:
            changes.append(Change(path, "absent"))
            continue
        try:
            path.unlink()
            if path.suffix == ".py":
                Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{path}: cannot be removed ({error.strerror}). Remove it by hand.") from error
        changes.append(Change(path, "removed"))
    return changes


def status(folder: Path | None = None) -> Status:
    """Compare the files with what `enable` would write and, where they are in use, import the hosts to see them work."""
    folder = folder or site_folder()
    files = _files(folder)
    present = {path: _owned_text(path) for path in files}
    if all(text is None for text in present.values()):
        return Status(folder, "disabled", ())
    if present != files:
        return Status(folder, "outdated", ())
    if not any(getattr(finder, "__name__", None) == FINDER for finder in sys.meta_path):
        return Status(folder, "enabled", ())  # enabled after this process began
    problems = []
    for module in (*startup_hook.STEPS, HOOK):
        try:
            importlib.import_module(module)
        except Exception as error:  # a host that is damaged may fail with anything, and this is where one looks
            problems.append(f"{module}: {type(error).__name__}: {error}")
    failures = getattr(sys.modules.get(HOOK), "failures", [])
    return Status(folder, "enabled", (*problems, *failures))


def _files(folder: Path) -> dict[Path, str]:
    hook = MARK + Path(startup_hook.__file__).read_text(encoding="utf-8")
    # A line of a .pth file is run if it begins with "import".
    return {folder / f"{HOOK}.py": hook, folder / f"{HOOK}.pth": f"{MARK}import sys; exec({_LINE!r})\n"}


def _owned_text(path: Path) -> str | None:
    if not path.exists():
        return None
    text = read_text(path)
    if not text.startswith(MARK):
        raise InputError(f"{path}: was not written by `dialeval enable`. Move it away first.")
    return text
