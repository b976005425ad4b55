"""Open-domain dialogue evaluation as a plugin to HuggingFace `evaluate` and lm-evaluation-harness.

Names are imported when they are first used, so that `import dialeval_plugin` loads neither torch nor a host.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .dialogue import Dialogue, Example, Turn
    from .hosts.evaluate_metric import load_metric
    from .scoring import Reason, Scorer, Scores, Unscored, load_scorer, register_scorer, scorer_names
    from .signature import Signature

_HOMES = {
    "Dialogue": "dialogue",
    "Example": "dialogue",
    "Turn": "dialogue",
    "Reason": "scoring",
    "Scorer": "scoring",
    "Scores": "scoring",
    "Unscored": "scoring",
    "Signature": "signature",
    "load_metric": "hosts.evaluate_metric",
    "load_scorer": "scoring",
    "register_scorer": "scoring",
    "scorer_names": "scoring",
}

__all__ = [
    "Dialogue",
    "Example",
    "Reason",
    "Scorer",
    "Scores",
    "Signature",
    "Turn",
    "Unscored",
    "__version__",
    "load_metric",
    "load_scorer",
    "register_scorer",
    "scorer_names",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
