"""Scores of Langfuse: `score_observations(client, client.api.observations.get_many(fields="core,io").data)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langfuse import Langfuse

from .evaluation import Evaluator


def score_observations(
    client: Langfuse, observations: Iterable[Any], name: str = "general", *, label: str | None = None, **options: Any
) -> int:
    """Score the outputs of observations, with their inputs as context, and send the scores to Langfuse; see `Evaluator`.

    An output without a score gets the reason as a category under a separate name, `general_unscored`. Scores sent before for an
    observation are replaced. Returns the number of scores sent.
    """
    answers = [one for one in observations if one.output is not None]
    pairs = Evaluator(name, options, label=label).of_spans(
        answers, [{"input": one.input, "output": one.output} for one in answers], "exchange"
    )
    for one, found in pairs:
        sent: dict[str, Any] = {"name": found.name, "value": found.value, "data_type": "NUMERIC"}
        if found.value is None:
            sent = {"name": f"{found.name}_unscored", "value": found.reason, "data_type": "CATEGORICAL"}
        ids = {"trace_id": one.trace_id, "observation_id": one.id, "score_id": f"dialeval-{sent['name']}-{one.id}"}
        client.create_score(**sent, **ids, comment=found.explanation, metadata=found.details)
    client.flush()
    return len(pairs)
