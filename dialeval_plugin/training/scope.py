"""Fitting the limits of what a trained model knows, which lie beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dialeval_plugin.core.dialogue import Example, visible_texts
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.scope import STATISTICS, Scope
from dialeval_plugin.core.signature import SCOPE_FILE
from dialeval_plugin.models.manifest import changing

BEYOND = 0.001
"""Share of the items that each limit is to leave out, at most."""
LEAST: Mapping[str, float] = {"code": 0.3, "signs": 0.5, "english": -0.3, "markup": 1.0, "lines": 3.0}
"""What no limit is narrower than, of `STATISTICS`: corpora that were cleaned say nothing of what people write."""


def write_scope(
    folder: Path, items: Sequence[Example], sources: Mapping[str, str], *, leave_out: Collection[str] = ()
) -> Scope:
    """Fit the limits of what a model knows and write them into its folder.

    Args:
        folder: of the model.
        items: responses like those that it was trained on, with their contexts, of no set that figures are reported on.
        sources: name and SHA-256 of each file that they are from.
        leave_out: statistics without a limit.

    Returns:
        What was written.

    Raises:
        InputError: there are no items.
    """
    if not items:
        raise InputError("scope: there are no responses to fit limits on. Give some.")
    texts = [(visible_texts(item.context)[::-1], item.response.text) for item in items]
    responses = _limits([(text, before) for before, text in texts], leave_out)
    # The last turn is read whole, however long it is.
    last_turns = _limits([(before[0], before[1:]) for before, _ in texts if before], {*leave_out, "words"})
    scope = Scope(responses, last_turns, len(items), dict(sorted(sources.items())))
    with changing(folder, SCOPE_FILE):
        write_text(folder / SCOPE_FILE, to_json(asdict(scope), indent=1) + "\n")
    return scope


def _limits(texts: Sequence[tuple[str, Sequence[str]]], leave_out: Collection[str]) -> dict[str, float]:
    limits = {}
    for name, statistic in STATISTICS.items():
        if name in leave_out:
            continue
        values = [statistic.measure(text, before) for text, before in texts]
        wider = min if statistic.is_least else max
        limit = float(np.quantile(values, BEYOND if statistic.is_least else 1 - BEYOND))
        limits[name] = round(wider(limit, LEAST.get(name, limit)), 4)
    return limits
