"""Layouts of logs: traces of observability tools and proxies, and conversations as frameworks for agents save them.

Schemas of traces: open-telemetry/semantic-conventions (gen-ai), Arize-ai/openinference (semantic_conventions.md),
traceloop/openllmetry, langchain-ai/langsmith-sdk, langfuse/langfuse, mlflow/mlflow, wandb/weave, Helicone/helicone,
BerriAI/litellm, Portkey, PostHog's events, Bedrock's model invocation log, aws/bedrock-agentcore-sdk-python#455 (ADOT), qivis'
importer of OpenRouter's orpg.3.0.
Schemas of agents: google/adk-python (`Session`), deepset-ai/haystack (`ChatMessage.to_dict`), pydantic/pydantic-ai
(`ModelMessage`), microsoft/autogen (AgentChat's messages), microsoft/semantic-kernel (`ChatHistory` of Python and .NET),
All-Hands-AI/OpenHands (events), laude-institute/harbor (ATIF), sst/opencode (export); GitHub Copilot's and Gemini's command
lines in jazzyalex/agent-sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, SYSTEM, USER, at, parsed_cell

from .layout import (
    CONVERSATION_IDS,
    Layout,
    Logged,
    Value,
    as_message,
    elements,
    exchange,
    exchange_at,
    has,
    id_of,
    listed,
    plain,
    said,
    thread_of,
)

_SPANS = (
    ("gen_ai.input.messages", "gen_ai.output.messages"), ("gen_ai.prompt", "gen_ai.completion"),
    ("llm.input_messages", "llm.output_messages"), ("mlflow.spanInputs", "mlflow.spanOutputs"),
    ("request_data", "response_data"), ("ai.prompt.messages | ai.prompt", "ai.response.text"),
    ("input.messages", "output.messages"), ("input.value", "output.value"),
)  # fmt: skip
"""Attributes with a request and its answer: OpenTelemetry's new and old, OpenInference's, MLflow's, others', texts."""
_ASIDE = {"TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR"}


def _nested(attributes: Any) -> Any:
    """Return attributes as a tree, split at the dots of names such as `llm.input_messages.0.message.role`; also OTLP lists."""
    if isinstance(attributes, list):  # OTLP: [{"key": ..., "value": {"stringValue": ...}}]
        attributes = {one["key"]: _otlp(one.get("value")) for one in attributes if isinstance(one, Mapping) and "key" in one}
    below: dict[str, dict[str, Any]] = {}
    for path, value in attributes.items() if isinstance(attributes, Mapping) else ():
        name, _, rest = str(path).removeprefix("attributes.").partition(".")
        below.setdefault(name, {})[rest] = value
    tree = {}
    for name, group in below.items():
        own = group.pop("", None)
        group.update(own if isinstance(own, Mapping) else {})
        tree[name] = _nested(group) if group else own
    return [tree[name] for name in sorted(tree, key=int)] if tree and all(map(str.isdecimal, tree)) else tree


def _otlp(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    inner: Any
    kind, inner = next(iter(value.items()), ("", {}))
    if kind == "arrayValue":
        return [_otlp(one) for one in inner.get("values") or ()]
    if kind == "kvlistValue":
        return {one["key"]: _otlp(one.get("value")) for one in inner.get("values") or ()}
    return inner if kind.endswith("Value") else value


def _attributes(value: Value) -> Any:
    return _nested(value.get("attributes", value))


def _messages(value: Any) -> Any:
    """Return messages of OpenInference in the usual form; other values unchanged."""
    if not isinstance(value := parsed_cell(value), list):
        return value
    messages = [at(tree, "message") or tree if (tree := _nested(one)) else one for one in value]
    return [
        {**one, "content": [part.get("message_content", part) for part in one["contents"]]} if "contents" in one else one
        for one in messages
    ]


def _pair(attributes: Any) -> tuple[Any, Any] | None:
    for request, answer in ((at(attributes, first), at(attributes, second)) for first, second in _SPANS):
        if request is not None and answer is not None:
            return _messages(request), _messages(answer)
    whole = listed(at(attributes, "pydantic_ai.all_messages | all_messages_events")) or []
    return (whole[:-1], whole[-1:]) if len(whole) > 1 else None


def _of_events(events: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the request and the answer from a span's events, each event being one message, or one event holding all."""
    request: list[Any] = []
    answer: list[Any] = []
    for event in events:
        attributes = _attributes(event)
        body = _otlp(event["body"]) if "body" in event else attributes
        name = event.get("eventName") or event.get("event_name") or at(attributes, "event.name") or event.get("name") or ""
        kind = str(name).removeprefix("gen_ai.").removesuffix(".message")
        if (pair := _pair(attributes)) is not None:
            return pair
        if kind in ("system", "user", "assistant", "tool"):
            request.append({"role": kind, "content": body.get("content")} if isinstance(body, Mapping) else body)
        elif kind == "choice":
            message = parsed_cell(body.get("message", body.get("content")))
            answer.append({"role": "assistant", **(message if isinstance(message, Mapping) else {"content": message})})
        elif kind == "content.prompt":
            request += listed(at(attributes, "gen_ai.prompt")) or []
        elif kind == "content.completion":
            answer += listed(at(attributes, "gen_ai.completion")) or []
    return request, answer


def _span(value: Value) -> Logged:
    attributes = _attributes(value)
    kind = str(at(attributes, "openinference.span.kind") or "").upper()
    pair = _pair(attributes)
    if pair is None or kind in _ASIDE or (kind in ("CHAIN", "AGENT") and value.get("parent_id")):
        pair = _of_events(event for event in listed(value.get("events")) or [] if isinstance(event, Mapping))
        if not (pair[0] and pair[1]):
            return Logged([], left_out=f"{kind.lower()} span without messages".strip())
    id = at(value, "context.trace_id | trace_id | traceId | context.span_id | span_id | spanId")
    request, answer = pair
    thread = thread_of(attributes, "session.id | gen_ai.conversation.id | langfuse.session.id")
    return exchange(request, answer, id if id is not None else id_of(value))[0]._replace(once=("trace", id), thread=thread)


def _is_span(value: Value) -> bool:
    """Whether an object is a span of any kind, or has attributes or events with a request and its answer."""
    if at(value, "span_id | spanId | context.span_id") is not None and value.keys() & {"attributes", "events"}:
        return True
    is_flat = any(str(name).startswith(("attributes.", "gen_ai.", "llm.", "mlflow.", "input.", "output.")) for name in value)
    if (is_flat or isinstance(value.get("attributes"), (Mapping, list))) and _pair(_attributes(value)) is not None:
        return True
    events = [one for one in listed(value.get("events")) or () if isinstance(one, Mapping)]
    return bool(events) and all(_of_events(events))


def _otlp_events(value: Value) -> Iterator[Logged]:
    """Yield conversations of spans whose messages are events of a separate log."""
    spans: dict[Any, list[Any]] = {}
    for resource in value["resourceLogs"]:
        for scope in resource.get("scopeLogs") or ():
            for record in scope.get("logRecords") or ():
                spans.setdefault(record.get("spanId"), []).append(record)
    for id, records in spans.items():
        request, answer = _of_events(records)
        yield exchange(request, answer, id)[0] if request and answer else Logged([], left_out="span without messages")


def _mlflow(value: Value) -> list[Logged]:
    spans = listed(at(value, "data.spans")) or []
    roots = (one for one in spans if not any(one.get(name) for name in ("parent_id", "parent_span_id", "parentSpanId")))
    root: Any = next(roots, {})
    request = at(value, "data.request") or at(_attributes(root), "mlflow.spanInputs") or at(value, "info.request_preview")
    answer = at(value, "data.response") or at(_attributes(root), "mlflow.spanOutputs") or at(value, "info.response_preview")
    if answer is None:
        return [Logged([], left_out="request without an answer")]
    return exchange(request, answer, at(value, "info.trace_id") or at(value, "info.request_id"))


def _openrouter(value: Value) -> list[Logged]:
    """Return conversations of an export in which messages and their contents are separate, and reasoning has its own item."""
    messages = []
    for message in value["messages"].values():
        for item in message.get("items") or ():
            data = value["items"][item["id"]]["data"]
            role = "reasoning" if data.get("type") == "reasoning" else data.get("role") or message["type"]
            messages.append({"role": role, "content": data.get("content"), "createdAt": message.get("createdAt")})
    return [Logged(messages, id_of(value))]


def _langgraph(value: Value) -> list[Logged]:
    """Return the messages of a state; of a thread's history, which begins with its last state, the earlier ones repeat it."""
    id = at(value, "thread_id | checkpoint.thread_id | config.configurable.thread_id")
    return [Logged(elements(at(value, "values.messages")), id or id_of(value), once=None if id is None else ("thread", id))]


_PYDANTIC_AI = {"system-prompt": SYSTEM, "user-prompt": USER, "text": ASSISTANT, "thinking": "thinking"}


def _semantic_kernel(message: Value) -> Value:
    """Return the message of Python's or .NET's serialization, which differ in the case of the names."""
    own = {name.lower(): one for name, one in message.items()}
    role = next(iter(own["role"].values())) if isinstance(own["role"], Mapping) else own["role"]
    items = [{name.lower(): one for name, one in item.items()} for item in own["items"]]
    texts = "\n".join(item["text"] for item in items if "text" in item)
    return as_message(role, texts, *(item.get("content_type") or item["$type"] for item in items if "text" not in item))


_OF_GEMINI, _NOT_OF_GEMINI = {"user", "gemini", "info", "error", "warning"}, {"role", *CONVERSATION_IDS}
"""Types of the rows of Gemini's command line, and fields that these do not have."""


def _is_autogen(message: Any) -> bool:
    return has(message, "source", "content") and "role" not in message and message["type"].endswith(("Message", "Event"))


def _autogen(message: Any) -> Any:
    """Return a message; an event, such as a call of a tool, is said by nobody."""
    is_said = message["type"].endswith("Message") and isinstance(message["content"], str)
    return as_message(message["source"], message["content"]) if is_said else {"role": "event"}


def _openhands(event: Value) -> Value:
    """Return the message of an event; an action other than to speak or to finish, and its result, are said by nobody."""
    args = event.get("args") or {}
    text = {"message": args.get("content") or event.get("message"), "finish": args.get("final_thought")}
    role = {"user": USER, "agent": ASSISTANT}.get(event["source"])
    is_said = role is not None and event.get("action") in text
    return as_message(role, text[event["action"]], id=event.get("id")) if is_said else {"role": "event"}


def _opencode(message: Any) -> Any:
    parts = [{**one, "type": "attached text"} if one.get("synthetic") else one for one in message["parts"]]
    return {"role": message["info"]["role"], "content": parts or None}


def _gemini_cli(message: Value) -> Value | str:
    """Return the message of a row; a later row with the same id replaces it."""
    if "type" not in message:
        return ""  # the session, or a change of it
    role = {"user": USER, "gemini": ASSISTANT}.get(message["type"], "event")
    return {**message, "role": role, "type": None, "content": message["content"] or None, "replaces": message["id"]}


LAYOUTS = [
    Layout("openai-items", "a page of a conversation of OpenAI's API", read=lambda value: elements(value["data"])[::-1],
           recognises=lambda value: has(value, "first_id") and not any("created_at" in one for one in value["data"]),
           open_question="is {about}, which has no times, and is listed with the newest first unless asked for otherwise. Read "
           "it so by --layout {name}, or as it is listed by --columns messages=data"),
    plain("promptlayer", "requests of PromptLayer", "prompt_blueprint.prompt_template.messages"),
    Layout("langgraph", "states of LangGraph's threads", "values.messages[]", _langgraph),
    # Its `session_id` is that of the project.
    exchange_at("langsmith", "runs of LangSmith, and examples of its data sets", "inputs", "outputs", "run_type | dataset_id",
                thread="extra.metadata.thread_id | extra.metadata.session_id | extra.metadata.conversation_id"),
    exchange_at("langfuse", "traces of Langfuse, and their table", "input", "output", "observations | traceId"),
    exchange_at("posthog", "generations of PostHog", "properties.$ai_input", "properties.$ai_output_choices", "event"),
    exchange_at("datadog", "spans of Datadog", "meta.input.messages", "meta.output.messages"),
    exchange_at("weave", "calls of W&B Weave", "inputs", "output", "op_name"),
    exchange_at("helicone", "requests of Helicone", "request_body", "response_body"),
    exchange_at("litellm", "spend logs of LiteLLM's proxy", "proxy_server_request.messages", "response", "call_type"),
    exchange_at("bodies", "HTTP requests with their answers", "request.body", "response.body"),
    exchange_at("bedrock", "Bedrock's log", "input.inputBodyJson", "output.outputBodyJson"),
    exchange_at("mlflow-table", "MLflow's traces in a table", "request", "response", "trace_id", "state"),
    Layout(name="mlflow", about="traces of MLflow", recognises="info{} data{spans} | info{} data{request}", read=_mlflow),
    Layout(name="openrouter", about="chats of OpenRouter", read=_openrouter,
           recognises=lambda value: str(value.get("version")).startswith("orpg.") and has(value.get("items"))),
    Layout("adot", "bodies of AWS's ADOT", "body.input.messages[] body.output.messages[]",
           lambda value: exchange(value["body"]["input"]["messages"], value["body"]["output"]["messages"][-1:], id_of(value)),
           open_question="is a record of ADOT, whose output may repeat what was said before. Read it by --layout adot: of the "
           "output the last message is scored"),
    Layout("otlp", "spans of OpenTelemetry's collector", "resourceSpans[]",
           lambda value: (_span(span) for resource in value["resourceSpans"]
                          for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ()
                          for span in scope.get("spans") or ())),
    Layout("otlp-events", "events of OpenTelemetry's collector", "resourceLogs[]", _otlp_events),
    Layout("spans", "spans of OpenTelemetry, Phoenix and MLflow", _is_span, lambda value: [_span(value)]),
    Layout("openhands", "events of OpenHands", 'source"" action"" args{} | source"" observation"" extras{}',
           message=_openhands),
    plain("atif", "trajectories of Harbor (ATIF)", "steps", "source", "message",
          each=said("source", "message", {"agent": ASSISTANT})),
    plain("opencode", "sessions of opencode", "messages", "info", "parts", id="info.id", each=_opencode),
    Layout("copilot-cli", "a session of GitHub Copilot's command line, an event a row",
           lambda value: has(value, "id", "timestamp") and has(value["data"])
           and value["type"].partition(".")[0] in ("session", "user", "assistant", "tool", "hook", "subagent", "skill"),
           # An agent that another one started has the call of a tool that started it.
           message=said("type", "data.content", {"user.message": USER, "assistant.message": ASSISTANT}, otherwise="event",
                        only=("data.parentToolCallId", {None, ""}), id="id")),
    Layout("gemini-cli", "a session of Gemini's command line", message=_gemini_cli,
           recognises=lambda value: (value.keys() >= {"sessionId", "projectHash"} and "messages" not in value)
           or [*value] == ["$set"]
           or (value["type"] in _OF_GEMINI and has(value, "id", "timestamp", "content") and not value.keys() & _NOT_OF_GEMINI)),
    plain("adk", "sessions of Google's Agent Development Kit", "events | session.events", "author", "content", id="session.id",
          each=said("author", "content.parts", {USER: USER}, otherwise=ASSISTANT, timestamp="timestamp")),
    plain("haystack", "messages of Haystack", "messages", "_role", "_content", each=said("_role", "_content")),
    Layout("pydantic-ai", "messages of Pydantic AI", "kind parts[part_kind]",
           # Parts that nobody says are thoughts, or calls of tools and their results.
           message=lambda value: [as_message(_PYDANTIC_AI.get(part["part_kind"], "tool"), part.get("content"))
                                  for part in value["parts"]]),
    Layout("autogen", "messages of AutoGen's AgentChat", _is_autogen, message=_autogen),
    Layout("semantic-kernel", "messages of Semantic Kernel", "role items[] | Role Items[]", message=_semantic_kernel),
]  # fmt: skip
