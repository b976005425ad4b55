"""`dialeval enable`: plain `lm_eval` and plain `evaluate.load` know our names in every process of the environment.

It writes two files to the environment's site-packages: a `.pth` line that installs a finder when Python starts, and a copy of
`startup_hook.py`, which the finder imports only when a process imports a host. The hosts' files are not changed. Each of our
files names its author; a file of that name by anyone else is left alone.
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
    """Result of `status`, shown by `dialeval status`."""

    folder: Path
    state: Literal["enabled", "disabled", "outdated"]
    problems: tuple[str, ...]


def site_folder() -> Path:
    """Return the site-packages folder of the running environment."""
    return Path(sysconfig.get_path("purelib"))


def enable(folder: Path | None = None) -> list[Change]:
    """Write the files into a site folder, by default the environment's own; correct files stay unchanged.

    Raises:
        InputError: a file of that name exists that we did not write.
        MissingPrerequisite: the folder cannot be written; the message gives the command to use instead.
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
    """Remove the files, first the line that runs the other one.

    Raises:
        InputError: a file of that name exists that we did not write, or cannot be removed.
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
    """Compare the files with those that `enable` would write and, if they are in use, check them by importing the hosts."""
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
        except Exception as error:  # a damaged host may raise anything, and `status` is there to report it
            problems.append(f"{module}: {type(error).__name__}: {error}")
    failures = getattr(sys.modules.get(HOOK), "failures", [])
    return Status(folder, "enabled", (*problems, *failures))


def _files(folder: Path) -> dict[Path, str]:
    hook = MARK + Path(startup_hook.__file__).read_text(encoding="utf-8")
    # Python runs a line of a .pth file if it begins with "import".
    return {folder / f"{HOOK}.py": hook, folder / f"{HOOK}.pth": f"{MARK}import sys; exec({_LINE!r})\n"}


def _owned_text(path: Path) -> str | None:
    if not path.exists():
        return None
    text = read_text(path)
    if not text.startswith(MARK):
        raise InputError(f"{path}: was not written by `dialeval enable`. Move it away first.")
    return text
