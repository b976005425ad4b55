"""What is said where a host is not installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from dialeval_plugin.core.errors import MissingPrerequisite

_HOSTS = {
    "lm_eval": ("lm-eval: the host of the tasks and the language models", "lm-eval[hf]>=0.4.13"),
    "evaluate": ("evaluate: the host of the metrics", "evaluate>=0.4.6"),
}


@contextmanager
def importing(host: Literal["lm_eval", "evaluate"]) -> Iterator[None]:
    """Import a host, and what is imported from it inside the `with`; a failure says what to install."""
    try:
        importlib.import_module(host)
        yield
    except ImportError as error:
        what, requirement = _HOSTS[host]
        raise MissingPrerequisite(f"{what} cannot be imported ({error}). Install it: pip install '{requirement}'.") from error
