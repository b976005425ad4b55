"""Evaluations as OpenTelemetry events, `gen_ai.evaluation.result`, each attached to the span of its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry._logs import LoggerProvider, get_logger
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from .evaluation import Evaluator


class DialevalExporter(SpanExporter):  # type: ignore[misc]
    """Exporter that scores answers after their spans end, in batches: `BatchSpanProcessor(DialevalExporter("general"))`.

    An answer without a score has `error.type`. Events go to `logger_provider`, by default the global one; see `Evaluator`.
    """

    def __init__(
        self,
        name: str = "general",
        logger_provider: LoggerProvider | None = None,
        *,
        label: str | None = None,
        **options: Any,
    ) -> None:
        self._evaluator = Evaluator(name, options, label=label)
        self._logger = get_logger("dialeval", logger_provider=logger_provider)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Score the answers of spans."""
        for span, found in self._evaluator.of_spans(spans, [json.loads(span.to_json()) for span in spans], "spans"):
            score = {"error.type": found.reason} if found.value is None else {"gen_ai.evaluation.score.value": found.value}
            about = {"gen_ai.evaluation.name": found.name, "gen_ai.evaluation.explanation": found.explanation}
            details = {f"dialeval.{name}": value for name, value in found.details.items()}
            parent = set_span_in_context(NonRecordingSpan(span.get_span_context()))
            self._logger.emit(context=parent, event_name="gen_ai.evaluation.result", attributes={**about, **score, **details})
        return SpanExportResult.SUCCESS
