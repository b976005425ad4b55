"""Traces and logs of requests to language models, as observability tools and proxies keep them."""

from __future__ import annotations

from collections.abc import Mapping

from .layout import Layout, Logged, Value, exchange, id_of, is_chat, plain

_SPANS = (
    ("gen_ai.input.messages", "gen_ai.output.messages"), ("gen_ai.prompt", "gen_ai.completion"),
    ("llm.input_messages", "llm.output_messages"), ("input.value", "output.value"), ("mlflow.spanInputs", "mlflow.spanOutputs"),
)  # fmt: skip


def _attributes(value: Value) -> Value:
    attributes = value.get("attributes", value)
    if isinstance(attributes, list):  # OTLP: [{"key": ..., "value": {"stringValue": ...}}]
        attributes = {one.get("key"): next(iter((one.get("value") or {None: None}).values())) for one in attributes}
    return (
        {name.removeprefix("attributes."): one for name, one in attributes.items()} if isinstance(attributes, Mapping) else {}
    )


def _span_names(value: Value) -> tuple[str, str] | None:
    found = _attributes(value)
    return next((pair for pair in _SPANS if found.get(pair[0]) is not None and found.get(pair[1]) is not None), None)


def _read_span(value: Value) -> list[Logged]:
    names, attributes = _span_names(value) or _SPANS[0], _attributes(value)
    id = value.get("trace_id", value.get("context.span_id", id_of(value)))
    return exchange(attributes[names[0]], attributes[names[1]], id)


def _langsmith(value: Value) -> list[Logged]:
    return exchange(value["inputs"], value["outputs"], id_of(value))


LAYOUTS = [
    plain("gemini", "requests of Gemini's API", "contents"),
    Layout(
        name="langsmith",
        about="runs of LangSmith",
        recognises=lambda value: "run_type" in value and is_chat(value.get("inputs")),
        read=_langsmith,
    ),
    Layout(
        name="spans",
        about="spans of OpenTelemetry, Phoenix and MLflow",
        recognises=lambda value: _span_names(value) is not None,
        read=_read_span,
    ),
]
