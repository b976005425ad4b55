"""Layouts of conversations as frameworks for agents save them.

Schemas: google/adk-python (`Session`), deepset-ai/haystack (`ChatMessage.to_dict`), pydantic/pydantic-ai (`ModelMessage`),
microsoft/autogen (AgentChat's messages), microsoft/semantic-kernel (`ChatHistory` of Python and .NET), All-Hands-AI/OpenHands
(events), laude-institute/harbor (ATIF), sst/opencode (export); GitHub Copilot's and Gemini's command lines in
jazzyalex/agent-sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, SYSTEM, USER

from .layout import CONVERSATION_IDS, Layout, Value, as_message, has, plain, said

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
