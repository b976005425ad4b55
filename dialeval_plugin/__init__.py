"""Open-domain dialogue evaluation as a plugin to HuggingFace `evaluate` and lm-evaluation-harness.

Names are imported when they are first used, so that `import dialeval_plugin` loads neither torch nor a host.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from dialeval_plugin.conversations.reading import examples_from
    from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
    from dialeval_plugin.core.registry import load_scorer, register_scorer, scorer_names
    from dialeval_plugin.core.scorer import Scorer
    from dialeval_plugin.core.scores import Reason, Scores, Unscored
    from dialeval_plugin.core.signature import Signature
    from dialeval_plugin.hosts.evaluate.metric import load_metric
    from dialeval_plugin.passport.certify import certify
    from dialeval_plugin.results.agreement import agreement
    from dialeval_plugin.results.comparison import compare
    from dialeval_plugin.results.true_mean import estimate
    from dialeval_plugin.scoring import score
    from dialeval_plugin.streams.batches import ScoreBatches

_HOMES = {
    "Dialogue": "core.dialogue",
    "Example": "core.dialogue",
    "Turn": "core.dialogue",
    "Reason": "core.scores",
    "ScoreBatches": "streams.batches",
    "Scorer": "core.scorer",
    "Scores": "core.scores",
    "Unscored": "core.scores",
    "Signature": "core.signature",
    "agreement": "results.agreement",
    "certify": "passport.certify",
    "compare": "results.comparison",
    "estimate": "results.true_mean",
    "examples_from": "conversations.reading",
    "load_metric": "hosts.evaluate.metric",
    "load_scorer": "core.registry",
    "register_scorer": "core.registry",
    "score": "scoring",
    "scorer_names": "core.registry",
}

__all__ = [
    "Dialogue",
    "Example",
    "Reason",
    "ScoreBatches",
    "Scorer",
    "Scores",
    "Signature",
    "Turn",
    "Unscored",
    "__version__",
    "agreement",
    "certify",
    "compare",
    "estimate",
    "examples_from",
    "load_metric",
    "load_scorer",
    "register_scorer",
    "score",
    "scorer_names",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
