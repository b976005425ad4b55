"""Layouts of conversations as frameworks for agents save them.

Schemas: google/adk-python (`Session`), deepset-ai/haystack (`ChatMessage.to_dict`), pydantic/pydantic-ai (`ModelMessage`),
microsoft/autogen (AgentChat's messages, `chat_history` of version 0.2), run-llama/llama_index (`ChatMessage`).
"""

from __future__ import annotations

from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, SYSTEM, USER, Fields

from .layout import Layout, Logged, Value, as_message, list_at, plain

_PYDANTIC_AI = {"system-prompt": SYSTEM, "user-prompt": USER, "text": ASSISTANT}
_REQUESTS = {"message", "text", "input", "query", "question", "prompt", "output", "response", "answer"}
"""Fields of a request or an answer, before which a history was."""
_PARTS = "kind parts[part_kind]"


def _adk(event: Any) -> Any:
    """Return the message of an event; an event without content changes a state."""
    content = event.get("content") or {}
    role = USER if event["author"] == USER else ASSISTANT
    parts = [one if "text" in one else {"type": next(iter(one), "event")} for one in content.get("parts") or ()]
    return {"role": role, "content": parts or None, "timestamp": event.get("timestamp")}


def _haystack(message: Any) -> Any:
    return {
        "role": message["_role"],
        "content": [one if "text" in one else {"type": next(iter(one))} for one in message["_content"]],
    }


def _pydantic_ai(message: Value) -> list[Value]:
    """Return the parts of a message; those that nobody says, such as calls of tools, have their kind as role."""
    return [
        as_message(_PYDANTIC_AI.get(part["part_kind"], part["part_kind"]), part.get("content")) for part in message["parts"]
    ]


def _with_blocks(message: Any) -> Any:
    """Return a message whose parts have the names of LlamaIndex's `blocks`, if it has any, under their usual names."""
    if not message.get("blocks"):
        return message
    return {"role": message["role"], "content": [{"type": one["block_type"], **one} for one in message["blocks"]]}


def _history(value: Value) -> list[Any]:
    return list_at(value, "chat_history" if "chat_history" in value else "history")


def _is_autogen(value: Value) -> bool:
    return isinstance(value["source"], str) and isinstance(value["content"], str) and value["type"].endswith("Message")


LAYOUTS = [
    plain("adk", "sessions of Google's Agent Development Kit", "events", "author", "content", each=_adk),
    plain("adk", "sessions of Google's Agent Development Kit", "session.events", id="session.id", each=_adk),
    plain("haystack", "messages of Haystack", "messages", "_role", "_content", each=_haystack),
    Layout("pydantic-ai", "messages of Pydantic AI", _PARTS, message=_pydantic_ai),
    Layout(
        "pydantic-ai", "messages of Pydantic AI", "messages[kind,parts]",
        lambda value: [Logged([part for one in list_at(value, "messages") for part in _pydantic_ai(one)], value.get("id"))],
    ),
    plain("autogen", "messages of AutoGen's AgentChat", "messages", "source", "type", fields=Fields("source", "content")),
    Layout(
        "autogen", "messages of AutoGen's AgentChat", _is_autogen,
        message=lambda value: as_message(value["source"], value["content"]),
    ),
    Layout(
        "chat-history", "messages under 'chat_history' or 'history', as of LlamaIndex, AutoGen or Gemini's chats",
        lambda value: not value.keys() & _REQUESTS and "role" in _history(value)[0],
        lambda value: [Logged([_with_blocks(one) for one in _history(value)], value.get("id"))],
    ),
]  # fmt: skip
