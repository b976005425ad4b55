"""Import hook that adds dialeval-plugin's names to a host's module right after Python has imported it.

`dialeval enable` copies this file into the environment's site-packages, next to a line that imports it only when a process
imports one of the host's modules below; other processes are not slowed down. Errors never stop an import; `failures` keeps them
for `dialeval status`.
"""

from __future__ import annotations

import importlib
import importlib.util

TYPE_CHECKING = False  # the copy must work without the package, and needs nothing else for types
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

STEPS = {
    "lm_eval.models": ("dialeval_plugin.hosts.registration", "register_models"),
    "lm_eval.tasks.manager": ("dialeval_plugin.hosts.registration", "include_tasks"),
    "lm_eval.evaluator": ("dialeval_plugin.hosts.lm_eval.run", "note_runs"),
    "evaluate.loading": ("dialeval_plugin.hosts.registration", "find_metrics"),
}

failures: list[str] = []

_asking: set[str] = set()


def find_spec(name: str) -> ModuleSpec | None:
    """Return the spec that the other finders return for `name`, with a loader that adds our names after the module has run."""
    if name in _asking:
        return None
    _asking.add(name)
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _wrap(name, spec.loader)
    except Exception as error:
        failures.append(f"{name}: {type(error).__name__}: {error}")
        return None
    finally:
        _asking.discard(name)
    return spec


def _wrap(name: str, loader: Any) -> None:
    execute = loader.exec_module

    def execute_and_add(module: object) -> None:
        # The loader stays the host's own, restored before any of our code runs.
        del loader.exec_module
        execute(module)
        _add_names(name)

    loader.exec_module = execute_and_add


def _add_names(host_module: str) -> None:
    module, function = STEPS[host_module]
    try:
        getattr(importlib.import_module(module), function)()
    except Exception as error:
        failures.append(f"{host_module}: {type(error).__name__}: {error}")
