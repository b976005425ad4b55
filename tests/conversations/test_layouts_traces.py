"""Layouts of traces and logs of requests: small files of our own text after public schemas, and what a person would score."""

import json

import pytest

from dialeval_plugin.conversations.reading import given_rows, read_rows
from dialeval_plugin.conversations.record import Reading
from dialeval_plugin.core.errors import InputError

from .reading_back import ANSWER, ASKED, FIRST, LATER, MORE, SAID, TEA, read_back

REQUEST = {"model": "m", "messages": [{"role": "system", "content": "Be kind."}, ASKED]}
CHOICES = {"id": "r1", "object": "chat.completion", "choices": [{"index": 0, "message": ANSWER, "finish_reason": "stop"}]}
HUMAN = {"type": "human", "content": FIRST, "additional_kwargs": {}}
AI = {"type": "ai", "content": SAID, "response_metadata": {}}
OTEL_IN = [{"role": "user", "parts": [{"type": "text", "content": FIRST}]}]
OTEL_OUT = [{"role": "assistant", "parts": [{"type": "text", "content": SAID}], "finish_reason": "stop"}]
LATER_IN = [{"role": "user", "parts": [{"type": "text", "content": MORE}]}]
LATER_OUT = [{"role": "assistant", "parts": [{"type": "text", "content": LATER}]}]
FLAT = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be kind.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": FIRST,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "text",
    "llm.output_messages.0.message.contents.0.message_content.text": SAID,
}


def otlp(attributes):
    """Attributes as OTLP's JSON has them."""
    return [{"key": name, "value": {"stringValue": one}} for name, one in attributes.items()]


def otlp_file(*spans):
    """An export of OpenTelemetry's collector."""
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


ONE_REQUEST = {
    "langchain, messages_to_dict": {"id": "c", "messages": [{"type": "human", "data": HUMAN}, {"type": "ai", "data": AI}]},
    "langchain, model_dump": {"id": "c", "messages": [HUMAN, AI]},
    "langsmith run of a chain": {
        "id": "c", "run_type": "chain", "inputs": {"input": FIRST}, "outputs": {"output": SAID}, "trace_id": "t",
    },
    "langsmith example": {
        "id": "c", "dataset_id": "d", "inputs": {"question": FIRST}, "outputs": {"answer": SAID}, "created_at": "2025-01-01",
    },
    "langsmith export to OpenAI's rows": {"inputs": {"messages": [ASKED]}, "outputs": {"choices": CHOICES["choices"]}},
    "langfuse trace of texts": {
        "id": "c", "name": "chat", "timestamp": "2025-01-01", "sessionId": None, "userId": None, "input": FIRST, "output": SAID,
        "observations": [], "scores": [],
    },
    "langfuse row of a table": {
        "id": "c", "traceName": "n", "input": json.dumps({"messages": REQUEST["messages"]}), "output": json.dumps(ANSWER),
    },
    "phoenix span, flat": {"context.span_id": "c", "name": "llm", **{f"attributes.{name}": one for name, one in FLAT.items()}},
    "phoenix span, attributes": {"context": {"span_id": "c", "trace_id": "t"}, "span_kind": "LLM", "attributes": FLAT},
    "phoenix span, nested": {
        "context": {"span_id": "c", "trace_id": "t"}, "attributes": {"llm": {
            "input_messages": [{"message": ASKED}], "output_messages": [{"message": ANSWER}],
        }},
    },
    "phoenix span of a chain": {
        "context": {"span_id": "c", "trace_id": "t"}, "attributes": {"input": {"value": FIRST}, "output": {"value": SAID}},
    },
    "mlflow trace": {
        "info": {"trace_id": "c", "state": "OK"}, "data": {"spans": [], "request": json.dumps(REQUEST),
                                                         "response": json.dumps(CHOICES)},
    },
    "opentelemetry span": {"trace_id": "t", "span_id": "c", "attributes": {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(OTEL_IN),
        "gen_ai.output.messages": json.dumps(OTEL_OUT),
    }},
    "opentelemetry, indexed attributes": otlp_file({"traceId": "t", "spanId": "c", "attributes": otlp({
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": FIRST, "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": SAID,
    })}),
    "opentelemetry, event of the whole": {"name": "chat m", "events": [{
        "name": "gen_ai.client.inference.operation.details", "attributes": {
            "gen_ai.input.messages": OTEL_IN, "gen_ai.output.messages": OTEL_OUT}}]},
    "opentelemetry, an event a message": {"name": "chat m", "span_id": "c", "events": [
        {"name": "gen_ai.system.message", "attributes": {"content": "Be kind."}},
        {"name": "gen_ai.user.message", "attributes": {"content": FIRST}},
        {"name": "gen_ai.choice", "attributes": {"index": 0, "message": json.dumps(ANSWER), "finish_reason": "stop"}},
    ]},
    "opentelemetry, prompt and completion events": {"name": "chat m", "span_id": "c", "events": [
        {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps([ASKED])}},
        {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": json.dumps([ANSWER])}},
    ]},
    "litellm, standard logging payload": {
        "id": "c", "trace_id": "t", "call_type": "acompletion", "messages": REQUEST["messages"], "response": CHOICES,
        "model": "m", "response_cost": 0.1,
    },
    "portkey": {"id": "c", "trace_id": "t", "request": json.dumps(REQUEST), "response": json.dumps(CHOICES), "cost": 1},
    "openai, request and response": {"request": REQUEST, "response": CHOICES},
    "openai, stored completion": {"id": "c", "object": "chat.completion", "input": REQUEST["messages"], "output": [ANSWER]},
    "openai, responses": {
        "request": {"model": "m", "instructions": "Be kind.", "input": FIRST},
        "response": {"id": "c", "object": "response", "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID, "annotations": []}]},
        ]},
    },
    "vercel's ai": {"trace_id": "t", "span_id": "c", "attributes": {
        "ai.prompt.messages": json.dumps([ASKED]), "ai.response.text": SAID}},
    "logfire of pydantic ai": {
        "trace_id": "t", "span_id": "c", "attributes": {"pydantic_ai.all_messages": json.dumps([*OTEL_IN, *OTEL_OUT])}},
    "honeyhive": {"event_type": "model", "inputs": {"chat_history": [ASKED]}, "outputs": ANSWER},
    "vertex, a log in BigQuery": {
        "full_request": {"contents": [{"role": "user", "parts": [{"text": FIRST}]}]},
        "full_response": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}]},
    },
    "openpipe": {"input": REQUEST, "output": CHOICES, "tags": {}},
    "anthropic": {
        "request": {"model": "m", "system": "Be kind.", "messages": [ASKED]},
        "response": {"id": "c", "type": "message", "role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": SAID}], "stop_reason": "end_turn"},
    },
    "azure, content safety rows": {"id": "c", "messages": [ASKED, ANSWER], "context": {"citations": []}},
    "bedrock, converse": {
        "request": {"modelId": "m", "messages": [{"role": "user", "content": [{"text": FIRST}]}]},
        "response": {"output": {"message": {"role": "assistant", "content": [{"text": SAID}]}}, "stopReason": "end_turn"},
    },
    "bedrock, invocation log of anthropic": {
        "schemaType": "ModelInvocationLog", "requestId": "c", "operation": "InvokeModel",
        "input": {"inputBodyJson": {"anthropic_version": "v", "messages": [{"role": "user", "content": FIRST}]}},
        "output": {"outputBodyJson": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": SAID}]}},
    },
    "gemini": {
        "request": {"contents": [{"role": "user", "parts": [{"text": FIRST}]}]},
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}]},
    },
    "braintrust": {"id": "c", "span_id": "s", "root_span_id": "s", "input": [ASKED], "output": CHOICES["choices"],
                   "span_attributes": {"type": "llm"}},
    "opik": {"id": "c", "trace_id": "t", "type": "llm", "input": {"messages": [ASKED]}, "output": CHOICES},
    "langsmith chain with a history": {
        "id": "c", "run_type": "chain", "inputs": {"question": FIRST, "chat_history": []}, "outputs": {"answer": SAID},
    },
    "logfire": {"trace_id": "t", "span_id": "c", "attributes": {
        "request_data": {"messages": [ASKED]}, "response_data": {"message": ANSWER}}},
    "ollama": {"model": "m", "messages": [ASKED], "message": ANSWER, "done": True},
    "openai, choices beside messages": {"messages": [ASKED], "choices": CHOICES["choices"]},
    "keywords ai": {"id": "c", "prompt_messages": [ASKED], "completion_message": ANSWER},
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_REQUEST)
def test_a_request_and_its_answer(name):
    assert read_back([ONE_REQUEST[name]]) == [(TEA[:2], [1])]


@pytest.mark.parametrize("row", [{"history": [ASKED], "completion": SAID}, {"history": ["a role", "a play"]}])
def test_a_history_next_to_an_answer_or_of_plain_texts_is_no_conversation(row):
    with pytest.raises(InputError, match="no conversation of a known layout"):
        read_back([row])


def test_events_of_autogen_are_said_by_nobody_and_a_role_comes_before_a_source():
    call = {"source": "helper", "type": "ToolCallRequestEvent", "content": [{"id": "1", "name": "kettle", "arguments": "{}"}]}
    said = [{"source": role, "type": "TextMessage", "content": text} for role, text in TEA[:2]]
    assert read_back([{"messages": [said[0], call, said[1]]}]) == [(TEA[:2], [1])]
    assert read_back([said[0], call, said[1]]) == [(TEA[:2], [1])]
    roles = [{**one, "source": "web", "type": "message"} for one in (ASKED, ANSWER)]
    assert read_back([{"messages": roles}]) == [(TEA[:2], [1])]


def test_of_several_choices_it_is_not_known_which_was_shown():
    choices = [*CHOICES["choices"], {"index": 1, "message": {"role": "assistant", "content": "No."}}]
    with pytest.raises(InputError, match="has 2 choices, and nothing says which was shown"):
        read_back([{"messages": [ASKED], "choices": choices}])


def test_spans_of_one_file_are_a_request_each_and_one_request_is_read_once():
    spans = [
        {"traceId": "t", "spanId": str(n), "attributes": otlp({
            "gen_ai.input.messages": json.dumps(OTEL_IN), "gen_ai.output.messages": json.dumps(OTEL_OUT)})} for n in (1, 2)
    ]  # fmt: skip
    spans.insert(1, {"traceId": "t", "spanId": "3", "attributes": otlp({"http.method": "GET"})})
    assert read_back([otlp_file(*spans)]) == [(TEA[:2], [1])]
    other = {**spans[0], "attributes": otlp({
        "gen_ai.input.messages": json.dumps(OTEL_IN + OTEL_OUT + LATER_IN),
        "gen_ai.output.messages": json.dumps(LATER_OUT)})}  # fmt: skip
    assert read_back([otlp_file(*spans, other)]) == [(TEA[:2], [1]), (TEA, [3])]


def test_a_history_of_a_request_is_said_before_its_question():
    row = {"run_type": "chain", "inputs": {"question": MORE, "chat_history": [[FIRST, SAID]]}, "outputs": {"answer": LATER}}
    assert read_back([row]) == [(TEA, [3])]
    of_messages = {**row, "inputs": {"question": MORE, "chat_history": [HUMAN, AI]}}
    assert read_back([of_messages]) == [(TEA, [3])]


def test_messages_of_openrouter_are_apart_from_what_they_hold():
    kinds = [("user", FIRST), ("assistant", SAID), ("user", MORE), ("assistant", LATER)]
    messages = {f"m{n}": {"id": f"m{n}", "type": role, "createdAt": f"2026-01-0{n + 1}T00:00:00Z", "items": [{"id": f"i{n}"}]}
                for n, (role, _) in enumerate(kinds)}  # fmt: skip
    items = {f"i{n}": {"id": f"i{n}", "messageId": f"m{n}", "data": {"role": role, "content": [
        {"type": "output_text", "text": text}]}} for n, (role, text) in enumerate(kinds)}  # fmt: skip
    messages["m3"]["items"].insert(0, {"id": "r", "type": "reasoning"})
    items["r"] = {"id": "r", "data": {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]}}
    row = {"version": "orpg.3.0", "title": "Tea", "characters": {}, "messages": messages, "items": items}
    assert read_back([row]) == [(TEA, [1, 3])]


def test_a_row_of_a_response_with_attributes_is_no_span():
    row = {"context": [FIRST], "response": SAID, "attributes": {"topic": "tea"}}
    with pytest.raises(InputError) as caught:
        read_back([row])
    assert str(caught.value).startswith("conversations[0]: there is no field 'attributes'. Known are: ")


def test_what_is_no_request_is_counted():
    spans = [
        {"trace_id": "t", "span_id": "1", "name": "GET", "attributes": {"http.method": "GET"}},
        {"span_id": "2", "attributes": {"openinference.span.kind": "TOOL", "input.value": "x", "output.value": "y"}},
        {"trace_id": "t", "span_id": "3", "attributes": FLAT},
    ]  # fmt: skip
    reading = Reading()
    found = list(read_rows(given_rows(spans), reading))
    assert len(found) == 1
    assert reading.left_out == {"span without messages": 1, "tool span without messages": 1, "system message": 1}
