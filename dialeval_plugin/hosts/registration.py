"""Registration of our names with the hosts, in this process: lm-eval 0.4.13 has no plugins, and `evaluate` looks on its hub.

Functions are idempotent and keep values of the host or the user. If a host is missing, `importing` says what to install.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from dialeval_plugin.core import resources
from dialeval_plugin.core.resources import metrics_path, tasks_path

_HOSTS = {"lm_eval": "a task or a language model of lm-eval", "evaluate": "a metric of evaluate"}

MODELS = {
    "dialogue-metric": "dialeval_plugin.hosts.lm_eval.model:DialogueMetricLM",
    "replay-judge": "dialeval_plugin.hosts.lm_eval.model:ReplayJudgeLM",
    "scripted-judge": "dialeval_plugin.testing.scripted_lm:ScriptedJudgeLM",
}


@contextmanager
def importing(host: Literal["lm_eval", "evaluate"]) -> Iterator[None]:
    """Import a host, or parts of it, inside the `with` block; a failed import says what to install."""
    with resources.importing(_HOSTS[host], host):
        importlib.import_module(host)
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace the value of a host's attribute until the block ends."""
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def register() -> None:
    """Register our models and our task folder with lm-eval."""
    # This comes first: the host fills its metric registry when a metric is requested while the registry is empty. If anything
    # were registered before, it would lack `mean`, `acc` and the rest.
    importlib.import_module("lm_eval.api.metrics")
    register_models()
    include_tasks()
    importlib.import_module("dialeval_plugin.hosts.lm_eval.run").note_runs()


def register_models() -> None:
    """Add our models to the host's registry; names that it already has keep their models."""
    # This import fills the host's registry; it would not fill itself once our models are in it.
    importlib.import_module("lm_eval.models")
    from lm_eval.api.registry import model_registry

    for name, target in MODELS.items():
        if name not in model_registry:
            model_registry.register(name, target=target)


@functools.cache
def include_tasks() -> None:
    """Let every `TaskManager` that indexes the host's own tasks index ours too; a user's folder comes last and overrides both.

    The host takes only one folder for `--include_path`, and the user may need it. The user's tasks may name our scorer.
    """
    from lm_eval.tasks.manager import TaskManager

    from .lm_eval.versions import register_scorer

    register_scorer()

    original = TaskManager.__init__

    @functools.wraps(original)
    def with_our_tasks(
        self: Any, verbosity: str | None = None, include_path: Any = None, include_defaults: bool = True, metadata: Any = None
    ) -> None:
        if include_defaults:
            others = include_path if isinstance(include_path, (list, tuple)) else [include_path] if include_path else []
            ours = tasks_path().resolve()
            include_path = [str(ours), *(path for path in others if Path(path).expanduser().resolve() != ours)]
        original(self, verbosity, include_path, include_defaults, metadata)

    TaskManager.__init__ = with_our_tasks


@functools.cache
def find_metrics() -> None:
    """Let plain `evaluate.load("slide")` find our metrics in this package, without access to the hub.

    As in the host, a local script or folder of that name, a revision, or another module type takes precedence.
    """
    loading: Any = importlib.import_module("evaluate.loading")
    original = loading.evaluation_module_factory

    @functools.wraps(original)
    def factory(path: str, module_type: str | None = None, revision: Any = None, *args: Any, **kwargs: Any) -> Any:
        is_name = path.isidentifier() and not Path(path, f"{path}.py").is_file()
        script = metrics_path().resolve() / path / f"{path}.py"
        if is_name and module_type in {None, "metric"} and revision is None and script.is_file():
            path = str(script)
        return original(path, module_type, revision, *args, **kwargs)

    loading.evaluation_module_factory = factory
