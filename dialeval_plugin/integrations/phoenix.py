"""Annotations of spans in Phoenix: `annotate_spans(client, client.spans.get_spans(project_identifier="default"))`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from phoenix.client import Client

from .evaluation import Evaluator


def annotate_spans(
    client: Client, spans: Iterable[Mapping[str, Any]], name: str = "general", *, label: str | None = None, **options: Any
) -> int:
    """Score the answers of spans, with the preceding turns as context, and send annotations to Phoenix; see `Evaluator`.

    An answer without a score gets the reason as its label. Earlier annotations of a span are replaced. Returns their number.
    """
    spans = list(spans)
    sent = []
    for span, found in Evaluator(name, options, label=label).of_spans(spans, spans, "spans"):
        result = {"label": found.reason} if found.value is None else {"score": found.value}
        about = {"name": found.name, "span_id": span["context"]["span_id"], "annotator_kind": "CODE", "identifier": "dialeval"}
        sent.append({**about, "result": {"explanation": found.explanation, **result}, "metadata": found.details})
    if sent:
        client.spans.log_span_annotations(span_annotations=sent)
    return len(sent)
