"""Has dialeval-plugin add its names to a host's module, right after Python has imported that module.

`dialeval enable` copies this file into the environment's site-packages, beside a line that imports it when a process
imports one of the host's modules below, and no earlier: a process that does not use a host pays nothing. Whatever goes
wrong is kept in `failures` for `dialeval status`, and never stops an import.
"""

from __future__ import annotations

import importlib
import importlib.util

TYPE_CHECKING = False  # the copy has to work without the package, and needs no more than this
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
    """Return what the other finders find under `name`, with a loader that adds our names once the module has been executed."""
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
        # The loader stays the host's own, and is as it was before anything of ours runs.
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
