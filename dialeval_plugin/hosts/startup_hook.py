"""Lets every Python process of an environment know dialeval-plugin's tasks, models and metrics.

`dialeval enable` copies this file into the environment's site-packages, and `dialeval disable` takes it away. At the start
of a process it only puts a finder in place, which costs nothing to speak of and imports nothing. When a host's module is
imported for the first time, the finder lets Python import it and then has dialeval-plugin add its names to it. Whatever
goes wrong is kept in `failures` for `dialeval status`, and never stops an import.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` would cost every process some milliseconds
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

STEPS = {
    "lm_eval.models": ("dialeval_plugin.hosts.registration", "register_models"),
    "lm_eval.tasks.manager": ("dialeval_plugin.hosts.registration", "include_tasks"),
    "evaluate.loading": ("dialeval_plugin.hosts.registration", "find_metrics"),
}
"""A host's module, and what adds our names to it."""

failures: list[str] = []
"""What went wrong in this process."""


def _add_names(host_module: str) -> None:
    module, function = STEPS[host_module]
    try:
        import importlib

        getattr(importlib.import_module(module), function)()
    except Exception as error:
        failures.append(f"{host_module}: {type(error).__name__}: {error}")


class _Finder:
    """Finds nothing itself; it has the others find a host's module, and waits until that has been executed."""

    def __init__(self) -> None:
        self.asking: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in STEPS or name in self.asking:
            return None
        self.asking.add(name)
        try:
            import importlib.util

            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                self.wrap(name, spec.loader)
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
            return None
        finally:
            self.asking.discard(name)
        return spec

    @staticmethod
    def wrap(name: str, loader: Any) -> None:
        execute = loader.exec_module

        def execute_and_add(module: object) -> None:
            # The loader stays the host's own, and is as it was before anything of ours runs.
            del loader.exec_module
            execute(module)
            _add_names(name)

        loader.exec_module = execute_and_add


if not any(type(finder).__name__ == "_Finder" and type(finder).__module__ == __name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder())
