"""Scores of Langfuse: `score_observations(client, client.api.observations.get_many(fields="core,io").data)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langfuse import Langfuse

from .evaluation import Evaluator


def score_observations(client: Langfuse, observations: Iterable[Any], name: str = "general", **options: Any) -> int:
    """Score the outputs of observations, each in the light of its input, and send the scores to Langfuse; see `Evaluator`.

    An output without a score gets a category, the reason, under a name of its own, `general_unscored`. What was sent before of
    an observation is replaced. Returns how many scores were sent.
    """
    answers = [one for one in observations if one.output is not None]
    pairs = Evaluator(name, options).of_spans(
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
