"""Names the folder of a run's results after model and scorer.

The host looks for a name among a model's arguments, and where there is none draws letters: the results of two scorers then lie
in folders that say nothing, or, where both have the same `model=...`, in one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.core.redaction import without_secrets
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.lm_eval.tasks.documents import DEFAULT_SCORER, SCORER_MODEL

_NAMED_BY = {SCORER_MODEL: "scorer", "replay-judge": "source"}
"""Our models, and the argument that says the most of each."""
_LONGEST = 100


def folder_name(model: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a run's folder: of the model, its scorer, and the options; a hash where they are shortened.

    Example:
        >>> folder_name("dialogue-metric", {}), folder_name("dialogue-metric", {"scorer": "slide", "variant": "slm"})
        ('dialogue-metric_general', 'dialogue-metric_slide_variant=slm')
    """
    options = without_secrets(arguments)
    first = str(options.pop(_NAMED_BY[model], DEFAULT_SCORER))
    whole = [model, first, *(f"{name}={value}" for name, value in sorted(options.items()))]
    # Of a path its last part tells folders apart best.
    short = "_".join([model, first, *(f"{name}={Path(str(value)).name}" for name, value in sorted(options.items()))])
    if short == "_".join(whole) and len(short) <= _LONGEST:
        return short
    return f"{short[:_LONGEST]}_{text_hash(*whole)[:8]}"


@functools.cache
def name_result_folders() -> None:
    """Let the host's writer, in this process, take these names for the results of our models."""
    from lm_eval.loggers.evaluation_tracker import GeneralConfigTracker
    from lm_eval.utils import sanitize_model_name, simple_parse_args_string

    original = GeneralConfigTracker.log_experiment_args

    @functools.wraps(original)
    def named(self: Any, model_source: str, model_args: Any, *others: Any, **options: Any) -> None:
        original(self, model_source, model_args, *others, **options)
        if model_source in _NAMED_BY:
            given = simple_parse_args_string(model_args) if isinstance(model_args, str) else model_args
            self.model_name = folder_name(model_source, given)
            self.model_name_sanitized = sanitize_model_name(self.model_name)

    GeneralConfigTracker.log_experiment_args = named
