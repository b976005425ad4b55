"""Writers of a conversation in each layout, as its product writes one: small, for round trips and for what is recognised.

A conversation is a list of (role, text): `system` first or not at all, then `user` and `assistant` in turn, and before an
answer `thinking` or `tool`, which a product that has no such thing leaves out. A writer returns an object, rows, or a text.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

Turns: TypeAlias = list[tuple[str, str]]
Written: TypeAlias = dict[str, Any] | list[dict[str, Any]] | str
Writer: TypeAlias = Callable[[Turns, str], Written]

SPOKEN = ("user", "assistant")
_TIME = "2025-01-02T10:{:02d}:00+00:00"


def spoken(turns: Turns) -> Turns:
    """Return the turns without a prompt, thoughts and tools."""
    return [(role, text) for role, text in turns if role in SPOKEN]


def pairs(turns: Turns) -> list[tuple[str, str]]:
    """Each request with its answer."""
    said = [text for _, text in spoken(turns)]
    return list(zip(said[::2], said[1::2], strict=True))


def _chain(turns: Turns) -> list[tuple[str, str | None, str, str]]:
    """Each message with its id and that of the one before it."""
    return [(f"m{n}", f"m{n - 1}" if n else None, role, text) for n, (role, text) in enumerate(turns)]


def _by_role(turns: Turns, **names: str) -> list[tuple[str, str]]:
    """The turns whose role the product has, by its own name."""
    return [(names[role], text) for role, text in turns if role in names]


def chatgpt(turns: Turns, id: str) -> Written:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for key, parent, role, text in _chain(turns):
        content = {"thinking": {"content_type": "thoughts", "thoughts": [{"summary": text}]}}.get(
            role, {"content_type": "text", "parts": [text]}
        )
        author = {"role": "assistant" if role == "thinking" else role}
        mapping[key] = {"id": key, "parent": parent or "root", "children": [], "message": {"id": key, "author": author,
                        "recipient": "all", "content": content}}  # fmt: skip
    return {"title": "Tea", "conversation_id": id, "mapping": mapping, "current_node": list(mapping)[-1]}


def claude(turns: Turns, id: str) -> Written:
    kinds = {"thinking": "thinking", "tool": "tool_use"}
    messages: list[dict[str, Any]] = []
    unseen: list[dict[str, Any]] = []
    for role, text in turns:
        if role in kinds:
            unseen.append({"type": kinds[role], "thinking": text})
        elif role in SPOKEN:
            content = [*unseen, {"type": "text", "text": text}]
            flat = "".join("This block is not supported." for _ in unseen) + text
            messages.append({"uuid": f"m{len(messages)}", "sender": "human" if role == "user" else role, "text": flat,
                             "content": content, "parent_message_uuid": f"m{len(messages) - 1}"})  # fmt: skip
            unseen = []
    return {"uuid": id, "name": "Tea", "chat_messages": messages}


def deepseek(turns: Turns, id: str) -> Written:
    kinds = {"user": "REQUEST", "assistant": "RESPONSE", "thinking": "THINK"}
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    fragments: list[dict[str, Any]] = []
    for role, text in turns:
        if role in kinds:
            fragments.append({"type": kinds[role], "content": text})
        if role in SPOKEN:
            key = str(len(mapping))
            parent = str(len(mapping) - 1) if len(mapping) > 1 else "root"
            mapping[key] = {"id": key, "parent": parent, "message": {"model": "deepseek-chat", "fragments": fragments}}
            fragments = []
    return {"id": id, "title": "Tea", "inserted_at": _TIME.format(0), "mapping": mapping}


def deepseek_session(turns: Turns, id: str) -> Written:
    kinds = {"user": "REQUEST", "assistant": "RESPONSE"}
    messages = [{"message_id": n, "parent_id": n - 1 or None, "role": role.upper(),
                 "fragments": [{"id": 1, "type": kinds[role], "content": text}]}
                for n, (role, text) in enumerate(spoken(turns), start=1)]  # fmt: skip
    session = {"id": id, "title": "Tea", "current_message_id": len(messages)}
    return {"code": 0, "data": {"biz_code": 0, "biz_data": {"chat_session": session, "chat_messages": messages}}}


def open_webui(turns: Turns, id: str) -> Written:
    messages = {key: {"id": key, "parentId": parent, "role": role, "content": text}
                for key, parent, role, text in _chain([one for one in turns if one[0] in (*SPOKEN, "system")])}  # fmt: skip
    return {"id": id, "chat": {"title": "Tea", "history": {"currentId": list(messages)[-1], "messages": messages}}}


def qwen(turns: Turns, id: str) -> Written:
    messages: dict[str, Any] = {}
    phases: list[dict[str, Any]] = []
    for role, text in turns:
        if role == "thinking":
            phases.append({"phase": "think", "content": text})
        elif role in SPOKEN:
            key, parent = f"m{len(messages)}", f"m{len(messages) - 1}" if messages else None
            said: dict[str, Any] = {"content": text}
            if role == "assistant":
                said = {"content": "", "content_list": [*phases, {"phase": "answer", "content": text}]}
            messages[key] = {"id": key, "parentId": parent, "role": role, **said}
            phases = []
    return {"data": [{"id": id, "chat": {"history": {"currentId": list(messages)[-1], "messages": messages}}}], "success": True}


def ai_studio(turns: Turns, id: str) -> Written:
    roles = {"user": "user", "assistant": "model", "thinking": "model"}
    chunks = [{"role": roles[role], "text": text, **({"isThought": True} if role == "thinking" else {})}
              for role, text in turns if role in roles]  # fmt: skip
    return {"id": id, "chunkedPrompt": {"chunks": chunks}}


def gemini_takeout(turns: Turns, id: str) -> Written:
    found: list[dict[str, Any]] = []
    for number, (role, text) in enumerate(turns):
        if role == "user":
            found.append({"user_turn": {"prompt": text, "turn_index": number}})
        elif role == "assistant":
            thoughts = [{"headline": "Tea"}] if turns[number - 1][0] == "thinking" else []
            found.append({"system_turn": {"text": [{"data": text}], "model_thoughts": thoughts, "turn_index": number}})
    return {"title": "Tea", "id": id, "conversation_turns": found}


def _librechat(key: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    return {"messageId": key, "parentMessageId": parent or "00000000-0000-0000-0000-000000000000", "sender": "GPT",
            "isCreatedByUser": role == "user", "text": text}  # fmt: skip


def librechat_tree(turns: Turns, id: str) -> Written:
    nested: list[dict[str, Any]] = []
    for one in reversed(_chain(spoken(turns))):
        nested = [{**_librechat(*one), "children": nested}]
    return {"conversationId": id, "recursive": True, "messages": nested}


def message_tree(turns: Turns, id: str) -> Written:
    nested: list[dict[str, Any]] = []
    for key, _, role, text in reversed(_chain(spoken(turns))):
        nested = [{"id": key, "role": role, "content": text, "children": nested}]
    return [{**nested[0], "conversation_id": id}]


def llama_cpp(turns: Turns, id: str) -> Written:
    messages: list[dict[str, Any]] = [{"id": "root", "type": "root", "role": "system", "content": "", "parent": None}]
    for key, parent, role, text in _chain([one for one in turns if one[0] in (*SPOKEN, "system")]):
        messages.append({"id": key, "convId": id, "type": "text", "role": role, "content": text, "parent": parent or "root"})
    return {"conv": {"id": id, "name": "Tea", "currNode": messages[-1]["id"]}, "messages": messages}


def lm_studio(turns: Turns, id: str) -> Written:
    messages: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for role, text in turns:
        if role == "thinking":
            steps.append({"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": text}]})
        elif role == "tool":
            steps.append({"type": "toolStatus", "statusState": {"status": text}})
        elif role == "assistant":
            steps.append({"type": "contentBlock", "content": [{"type": "text", "text": text}]})
            answer = {"type": "multiStep", "role": role, "steps": steps}
            messages.append({"versions": [{**answer, "steps": []}, answer], "currentlySelected": 1})
            steps = []
        elif role == "user":
            said = {"type": "singleStep", "role": role, "content": [{"type": "text", "text": text}]}
            messages.append({"versions": [said], "currentlySelected": 0})
    return {"id": id, "name": "Tea", "messages": messages}


def cherry_studio(turns: Turns, id: str) -> Written:
    messages: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    kinds = {"thinking": "thinking", "tool": "tool", "user": "main_text", "assistant": "main_text"}
    for role, text in turns:
        if role in kinds:
            blocks.append({"id": f"b{len(blocks)}", "messageId": f"m{len(messages)}", "type": kinds[role], "content": text})
        if role in SPOKEN:
            messages.append({"id": f"m{len(messages)}", "role": role, "topicId": id})
    return {"time": 1, "version": 5, "localStorage": {}, "indexedDB": {"topics": [{"id": id, "messages": messages}],
            "message_blocks": blocks}}  # fmt: skip


def cursor_headers(turns: Turns, id: str) -> Written:
    bubbles = {f"b{n}": {"type": 1 if role == "user" else 2, "text": text} for n, (role, text) in enumerate(spoken(turns))}
    return {"composerId": id, "conversationMap": bubbles, "fullConversationHeadersOnly": [{"bubbleId": one} for one in bubbles]}


def claude_code(turns: Turns, id: str) -> Written:
    parts = {"thinking": "thinking", "tool": "tool_use", "assistant": "text"}
    rows: list[dict[str, Any]] = [{"type": "summary", "summary": "Tea", "leafUuid": "m0"}]
    for key, parent, role, text in _chain([one for one in turns if one[0] != "system"]):
        content = text if role == "user" else [{"type": parts[role], "text": text}]
        kind = "user" if role == "user" else "assistant"
        rows.append({"type": kind, "uuid": key, "parentUuid": parent, "sessionId": id, "isSidechain": False,
                     "message": {"role": kind, "content": content}})  # fmt: skip
    return rows


def gemini_cli(turns: Turns) -> list[dict[str, Any]]:
    """Rows of Gemini's command line, which has no rows of thoughts and of tools."""
    rows = _by_role(turns, system="info", user="user", assistant="gemini")
    return [{"id": f"m{n}", "timestamp": _TIME.format(n), "type": kind,
             "content": text if kind == "gemini" else [{"text": text}]} for n, (kind, text) in enumerate(rows)]  # fmt: skip


def openhands(turns: Turns) -> list[dict[str, Any]]:
    actions = {"system": "system", "tool": "run"}
    return [{"id": n, "source": "user" if role == "user" else "agent", "action": actions.get(role, "message"),
             "message": text, "args": {"content": text}}
            for n, (role, text) in enumerate(turns) if role != "thinking"]  # fmt: skip


def codex(turns: Turns, id: str) -> Written:
    items: list[dict[str, Any]] = []
    for role, text in turns:
        if role in SPOKEN:
            kind = "input_text" if role == "user" else "output_text"
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
        else:
            items.append({"type": {"thinking": "reasoning", "tool": "function_call"}.get(role, "ghost_snapshot"), "text": text})
    rows = [{"timestamp": _TIME.format(0), "type": "response_item", "payload": one} for one in items]
    return [{"timestamp": _TIME.format(0), "type": "session_meta", "payload": {"id": id}}, *rows]


def slack(turns: Turns, id: str) -> Written:
    return [{"type": "message", **({"user": "U1"} if role == "user" else {"bot_id": "B1", "subtype": "bot_message"}),
             "user_profile": {"real_name": role}, "text": text, "ts": f"{n}.0", "thread_ts": "0.0"}
            for n, (role, text) in enumerate(spoken(turns))]  # fmt: skip


def botpress(turns: Turns, id: str) -> Written:
    said = _by_role(turns, user="incoming", assistant="outgoing")
    return [{"id": f"m{n}", "conversationId": id, "direction": side, "type": "text", "payload": {"type": "text", "text": text}}
            for n, (side, text) in enumerate(said)]  # fmt: skip


def intercom(turns: Turns, id: str) -> Written:
    said = _by_role(turns, user="user", assistant="bot")
    found = [{"author": {"type": kind}, "body": f"<p>{html.escape(text)}</p>"} for kind, text in said]
    parts = [{**one, "part_type": "comment"} for one in found[1:]]
    return {"type": "conversation", "id": id, "source": found[0], "conversation_parts": {"conversation_parts": parts}}


def cohere(turns: Turns, id: str) -> Written:
    said = _by_role(turns, user="USER", assistant="CHATBOT")
    history = [{"role": role, "message": text} for role, text in said]
    return {"conversation_id": id, "chat_history": history[:-2], "message": said[-2][1], "response": {"text": said[-1][1]},
            "preamble": "Be kind."}  # fmt: skip


def bot_framework(turns: Turns, id: str) -> Written:
    said = _by_role(turns, user="user", assistant="bot")
    place = {"channelId": "webchat", "conversation": {"id": id}, "recipient": {"id": "r"}}
    activities = [{"type": "message", "id": f"a{n}", "from": {"id": role, "role": role}, "text": text, **place}
                  for n, (role, text) in enumerate(said)]  # fmt: skip
    return [{"type": "conversationUpdate", "id": "a", **place}, *activities]


WRITERS: dict[str, Writer] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "deepseek": deepseek,
    "deepseek of its page": deepseek_session,
    "open-webui": open_webui,
    "open-webui of Qwen": qwen,
    "ai-studio": ai_studio,
    "gemini-activity": lambda turns, id: [{"header": "Gemini Apps", "title": f"Prompted {asked}",
        "titleUrl": f"https://gemini.google.com/app/{id}", "time": f"2025-01-02T10:{n:02d}:00.123Z",
        "safeHtmlItem": [{"html": f"<p>{html.escape(answer)}</p>"}]}
        for n, (asked, answer) in enumerate(pairs(turns))][::-1],
    "gemini-activity in details": lambda turns, id: [{"header": "Gemini", "title": "Used Gemini Apps",
        "titleUrl": f"https://gemini.google.com/app/c/{id}", "time": f"2025-01-02T10:{n:02d}:00.123Z",
        "details": [{"name": "Request", "value": asked}, {"name": "Response", "value": answer}]}
        for n, (asked, answer) in enumerate(pairs(turns))],
    "gemini-takeout": gemini_takeout,
    "copilot": lambda turns, id: [{"Conversation": id, "Time": _TIME.format(n), "Author": role, "Message": text}
        for n, (role, text) in enumerate(_by_role(turns, user="Human", assistant="AI"))],
    "copilot, a chat": lambda turns, id: [{"CreatedAt": f"1/2/2025 10:{n:02d}:00 +00:00", "MessageContent": text,
        "Author": role, "ChatName": id}
        for n, (role, text) in enumerate(_by_role(turns, user="user", assistant="Copilot"))],
    "perplexity": lambda turns, id: {"id": id, "entries": [{"query": asked, "answer": answer}
        for asked, answer in pairs(turns)]},
    "grok in a list": lambda turns, id: {"conversations": [{"conversation": {"id": id},
        "responses": [{"response": {"_id": f"r{n}", "sender": role, "message": text}}
        for n, (role, text) in enumerate(_by_role(turns, user="human", assistant="ASSISTANT"))]}]},
    "librechat": lambda turns, id: {"conversationId": id, "recursive": False, "messages": [_librechat(*one)
        for one in _chain(spoken(turns))]},
    "librechat as a tree": librechat_tree,
    "llama.cpp": llama_cpp,
    "koboldcpp": lambda turns, id: {"gamestarted": True, "prompt": "", "savedsettings": {"chatname": "Ann",
        "chatopponent": "Bo"}, "actions": [f"\nAnn: {asked}\nBo: {said}" for asked, said in pairs(turns)]},
    "koboldcpp of instructions": lambda turns, id: {"gamestarted": True, "prompt": "", "actions": [
        f"{{{{[INPUT]}}}}{asked}{{{{[OUTPUT]}}}}{said}" for asked, said in pairs(turns)]},
    "cody": lambda turns, id: {"id": id, "interactions": [{"humanMessage": {"text": asked}, "assistantMessage": {"text": said}}
        for asked, said in pairs(turns)]},
    "cline-ui": lambda turns, id: [{"ts": n, "type": "say", "say": kind, "text": text} for n, (kind, text) in enumerate(
        _by_role(turns, user="task", thinking="reasoning", tool="tool", assistant="completion_result"))],
    "character-ai of its first version": lambda turns, id: {"histories": [{"id": id, "msgs": [{"text": text,
        "src": {"is_human": role == "user"}, "is_alternative": False} for role, text in spoken(turns)]}]},
    "message-tree": message_tree,
    "messages of Chatbot UI": lambda turns, id: {"version": 4, "history": [{"id": id, "name": "Tea", "messages": [{"role": role,
        "content": text} for role, text in spoken(turns)], "prompt": "Be kind."}], "folders": []},
    "lm-studio": lm_studio,
    "sillytavern": lambda turns, id: [{"user_name": "Ann", "character_name": "Seraphina", "chat_metadata": {}},
        *[{"name": "Ann" if role == "user" else "Seraphina", "is_user": role == "user", "is_system": False, "mes": text,
        "swipes": ["Another.", text], "swipe_id": 1} for role, text in spoken(turns)]],
    "cherry-studio": cherry_studio,
    "cursor": lambda turns, id: {"composerId": id, "conversation": [{"bubbleId": f"b{n}",
        "type": 1 if role == "user" else 2, "text": text} for n, (role, text) in enumerate(spoken(turns))]},
    "cursor with headers": cursor_headers,
    "cursor-tabs": lambda turns, id: {"tabs": [{"tabId": id, "bubbles": [{"type": role, "text": text}
        for role, text in _by_role(turns, user="user", assistant="ai")]}]},
    "vscode-chat": lambda turns, id: {"sessionId": id, "requesterUsername": "ann", "responderUsername": "GitHub Copilot",
        "requests": [{"requestId": f"r{n}", "message": {"text": asked, "parts": []}, "response": [{"value": answer}]}
        for n, (asked, answer) in enumerate(pairs(turns))]},
    "claude-code": claude_code,
    "claude-code of Qwen": lambda turns, id: [{"uuid": f"m{n}", "parentUuid": f"m{n - 1}" if n else None, "sessionId": id,
        "type": role, "message": {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}}
        for n, (role, text) in enumerate(spoken(turns))],
    "chatbox": lambda turns, id: {"id": id, "messages": [{"id": f"m{n}", "role": role, "contentParts": [{"type": "text",
        "text": text}]} for n, (role, text) in enumerate(turns) if role in ("system", *SPOKEN)]},
    "chatbox of a backup": lambda turns, id: {"__exported_items": ["conversations"], "chat-sessions-list": [{"id": id}],
        f"session:{id}": {"id": id, "messages": [{"role": "user" if role == "user" else "assistant", "contentParts": [
        {"type": "reasoning" if role == "thinking" else "text", "text": text}]} for role, text in turns
        if role in ("thinking", *SPOKEN)]}},
    "big-agi": lambda turns, id: {"id": id, "systemPurposeId": "Generic", "messages": [{"id": f"m{n}", "role": role,
        "created": n, "fragments": [{"ft": "content", "fId": "f", "part": {"pt": "text", "text": text}}]}
        for n, (role, text) in enumerate(turns) if role in ("system", *SPOKEN)]},
    "zed": lambda turns, id: {"id": id, "version": "0.3.0", "messages": [{"User" if role == "user" else "Agent": {"content": [
        {"Thinking": {"text": text, "signature": None}} if role == "thinking" else {"ToolUse": {"id": "t", "name": text}}
        if role == "tool" else {"Text": text}], "tool_results": {}}} for role, text in turns if role != "system"]},
    "amazon-q": lambda turns, id: {"conversation_id": id, "next_message": None, "transcript": ["> tea"], "history": [
        {"user": {"content": {"Prompt": {"prompt": asked}}}, "assistant": {"Response": {"message_id": "m", "content": said}}}
        for asked, said in pairs(turns)]},
    "codex of its app server": lambda turns, id: {"thread": {"id": id, "preview": "Tea", "turns": [{"id": "1", "items": [
        {"user": {"type": "userMessage", "content": [{"type": "text", "text": text}]}, "thinking": {"type": "reasoning",
        "summary": [text]}, "tool": {"type": "commandExecution", "command": text}}.get(role, {"type": "agentMessage",
        "text": text}) for role, text in turns if role != "system"]}]}},
    "chatbox of UiPath": lambda turns, id: {"id": id, "messages": [{"role": role, "contentParts": [{"mimeType": "text/plain",
        "data": {"inline": text}}]} for role, text in spoken(turns)]},
    "copilot-cli": lambda turns, id: [{"type": kind, "data": {"content": text, "sessionId": id}, "id": f"e{n}",
        "timestamp": _TIME.format(n), "parentId": f"e{n - 1}"} for n, (kind, text) in enumerate(_by_role(turns,
        system="session.start", user="user.message", tool="tool.execution_complete", assistant="assistant.message"))],
    "gemini-cli": lambda turns, id: {"sessionId": id, "projectHash": "0", "messages": gemini_cli(turns)},
    "gemini-cli in rows": lambda turns, id: [{"sessionId": id, "projectHash": "0", "startTime": _TIME.format(0)},
        *gemini_cli(turns), {"$set": {"lastUpdated": _TIME.format(9)}}, *gemini_cli(turns)[-1:]],
    "openhands": lambda turns, id: {"id": id, "history": openhands(turns)},
    "openhands in rows": lambda turns, id: openhands(turns),
    "atif": lambda turns, id: {"schema_version": "ATIF-v1.6", "session_id": id, "steps": [{"step_id": n, "source": source,
        "message": text} for n, (source, text) in enumerate(_by_role(turns, system="system", user="user", assistant="agent"))]},
    "opencode": lambda turns, id: {"info": {"id": id}, "messages": [{"info": {"id": f"m{n}", "role": role},
        "parts": [{"type": "step-start"}, {"type": "text", "text": text}]} for n, (role, text) in enumerate(spoken(turns))]},
    "other-name of Continue": lambda turns, id: {"id": id, "history": [{"message": {"role": role, "content": text},
        "contextItems": []} for role, text in turns if role != "tool"]},
    "gorgias": lambda turns, id: {"id": id, "messages": [{"from_agent": role == "assistant", "body_text": text, "public": True}
        for role, text in spoken(turns)]},
    "other-name of Front": lambda turns, id: {"id": id, "_results": [
        {"is_inbound": role == "user", "text": text, "body": f"<p>{text}</p>"} for role, text in spoken(turns)]},
    "tawk": lambda turns, id: {"id": id, "chat": {"messages": [{"sender": {"t": side}, "type": "msg", "msg": text}
        for side, text in _by_role(turns, user="v", assistant="a", tool="s")]}},
    "other-name of Hume": lambda turns, id: {"id": id, "events_page": [
        {"role": role, "type": f"{role}_MESSAGE", "message_text": text}
        for role, text in _by_role(turns, system="SYSTEM", user="USER", assistant="AGENT")]},
    "genesys": lambda turns, id: {"conversationId": id, "transcripts": [{"phrases": [{"text": text, "participantPurpose": side}
        for side, text in _by_role(turns, user="external", assistant="internal")]}]},
    "fastgpt": lambda turns, id: {"id": id, "data": {"list": [{"obj": role, "value": [{"text": {"content": text}}]}
        for role, text in _by_role(turns, system="System", user="Human", assistant="AI")]}},
    "coze": lambda turns, id: {"id": id, "data": [{"role": "user" if kind == "question" else "assistant", "type": kind,
        "content": text, "content_type": "text"}
        for kind, text in _by_role(turns, user="question", assistant="answer", tool="function_call")]},
    "chainlit": lambda turns, id: {"id": id, "steps": [{"id": f"s{n}", "type": kind, "output": text, "parentId": None}
        for n, (kind, text) in enumerate(_by_role(turns, user="user_message", tool="run", assistant="assistant_message"))]},
    "chatgpt-exporter": lambda turns, id: {"id": id, "messages": [{"role": role, "say": text}
        for role, text in _by_role(turns, user="Prompt", assistant="Response")]},
    "aider": lambda turns, id: "\n# aider chat started at 2025-01-02 10:00:00\n\n> Added it to .gitignore\n\n" + "\n".join(
        f"{mark}{text}\n" for mark, text in _by_role(turns, user="#### ", tool="> ", assistant="")),
    "hubspot": lambda turns, id: {"id": id, "results": [{"conversationsThreadId": id, "type": "MESSAGE", "direction": side,
        "text": text} for side, text in _by_role(turns, user="INCOMING", assistant="OUTGOING")]},
    "freshdesk": lambda turns, id: {"id": id, "description_text": spoken(turns)[0][1], "conversations": [{"id": n,
        "body_text": text, "incoming": role == "user", "private": role == "tool"}
        for n, (role, text) in enumerate([one for one in turns if one[0] in ("tool", *SPOKEN)]) if n or role == "tool"]},
    "help-scout": lambda turns, id: {"id": id, "_embedded": {"threads": [{"type": kind, "body": html.escape(text)}
        for kind, text in _by_role(turns, user="customer", tool="note", assistant="message")]}},
    "salesforce": lambda turns, id: {"id": id, "conversationEntries": [{"sender": {"role": role}, "entryPayload": {
        "abstractMessage": {"staticContent": {"text": text}}}}
        for role, text in _by_role(turns, user="EndUser", assistant="Chatbot")]},
    "voiceflow of its API": lambda turns, id: {"transcript": {"id": id, "logs": [{"type": kind, "data": {"type": "text",
        "payload": text if kind == "action" else {"message": text}}, "createdAt": _TIME.format(n)}
        for n, (kind, text) in enumerate(_by_role(turns, user="action", assistant="trace"))]}},
    "liveperson": lambda turns, id: {"conversationHistoryRecords": [{"info": {"conversationId": id}, "messageRecords": [
        {"sentBy": role, "messageData": {"msg": {"text": text}}, "timeL": n}
        for n, (role, text) in enumerate(_by_role(turns, user="Consumer", assistant="Agent"))]}]},
    "bland": lambda turns, id: {"call_id": id, "transcripts": [{"id": n, "user": role, "text": text}
        for n, (role, text) in enumerate(spoken(turns))]},
    "teams": lambda turns, id: {"id": id, "value": [{"messageType": "message", "createdDateTime": _TIME.format(n),
        "from": {"user": {"id": "u", "displayName": "Ann"}} if role == "user" else {"application": {"id": "b"}},
        "body": {"contentType": "html", "content": f"<p>{html.escape(text)}</p>"}}
        for n, (role, text) in enumerate(spoken(turns))][::-1]},
    "codex": codex,
    "text-generation-webui": lambda turns, id: {"internal": [list(pair) for pair in pairs(turns)],
        "visible": [[html.escape(text) for text in pair] for pair in pairs(turns)]},
    "discord": lambda turns, id: {"guild": {"id": "1"}, "channel": {"id": id}, "messages": [{"id": f"m{n}",
        "type": "Default", "content": text, "author": {"name": role, "isBot": role != "user"}}
        for n, (role, text) in enumerate(spoken(turns))]},
    "meta": lambda turns, id: {"participants": [{"name": "user"}], "messages": [{"sender_name": role, "timestamp_ms": n,
        "content": text.encode().decode("latin-1")} for n, (role, text) in enumerate(spoken(turns))][::-1],
        "thread_path": id},
    "telegram": lambda turns, id: {"name": "Ann", "type": "personal_chat", "id": id, "messages": [{"id": n,
        "type": "message", "from": role, "text": [text[:1], {"type": "bold", "text": text[1:]}]}
        for n, (role, text) in enumerate(spoken(turns))]},
    "whatsapp": lambda turns, id: "".join(f"1/2/25, 10:{n:02d} - {role}: {text}\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "irc": lambda turns, id: "".join(f"[10:{n:02d}] <{role}> {text}\n" for n, (role, text) in enumerate(spoken(turns))),
    "line": lambda turns, id: "[LINE] Chat history with Ann\n\n2025/01/02(Thu)\n" + "".join(
        f"10:{n:02d}\t{role}\t{text}\n" for n, (role, text) in enumerate(spoken(turns))),
    "kakaotalk": lambda turns, id: "".join(f"[{role}] [오전 10:{n:02d}] {text}\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "zoom": lambda turns, id: "".join(f"10:{n:02d}:00\t From  {role} : {text}\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "wechat-text": lambda turns, id: "".join(f"2025-01-02 10:{n:02d}:00 {role}\n{text}\n\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "discord-text": lambda turns, id: "====\nGuild: Tea\n" + "".join(f"[02-Jan-25 10:{n:02d} AM] {role}\n{text}\n\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "names": lambda turns, id: "".join(f"{role}: {text}\n" for role, text in spoken(turns)),
    "whatsapp of a phone": lambda turns, id: "".join(f"[02.01.25, 10:{n:02d}:00] {role}: {text}\n"
        for n, (role, text) in enumerate(spoken(turns))),
    "transcript": lambda turns, id: "".join(f"{role}: {text}\n\n"
        for role, text in _by_role(turns, user="User", assistant="AI")),
    "transcript in Markdown": lambda turns, id: "".join(f"**{role}:** {text}\n\n"
        for role, text in _by_role(turns, user="Human", assistant="Assistant")),
    "slack": slack,
    "slack of the API": lambda turns, id: {"ok": True, "messages": list(reversed(slack(turns, id)))},
    "signal": lambda turns, id: [{"conversationId": id, "type": "incoming", "source": role, "body": text, "sent_at": n}
        for n, (role, text) in enumerate(spoken(turns))],
    "imessage": lambda turns, id: [{"is_from_me": 0, "handle_id": role, "text": text, "date": n, "chat_identifier": id}
        for n, (role, text) in enumerate(spoken(turns))],
    "matrix": lambda turns, id: {"id": id, "messages": [{"type": "m.room.message", "sender": role, "event_id": f"m{n}",
        "content": {"msgtype": "m.text", "body": text}} for n, (role, text) in enumerate(spoken(turns))]},
    "dust": lambda turns, id: {"conversation": {"sId": id, "content": [
        [{"type": "agent_message", "content": "Older."}] * (kind == "agent_message") + [{"type": kind, "content": text}]
        for kind, text in _by_role(turns, user="user_message", assistant="agent_message", tool="content_fragment")]}},
    "chatkit": lambda turns, id: {"id": id, "object": "chatkit.thread", "items": {"data": [
        {"type": f"chatkit.{kind}", "thread_id": id, "created_at": n, "content": [{"type": "text", "text": text}]}
        for n, (kind, text) in enumerate(_by_role(turns, user="user_message", assistant="assistant_message", tool="task"))]}},
    "rasa, its events": lambda turns, id: [
        {"sender_id": id, "type_name": kind, "timestamp": n, "data": {"event": kind, "text": text}}
        for n, (kind, text) in enumerate(_by_role(turns, user="user", assistant="bot", tool="action"))],
    "dialogflow of CX": lambda turns, id: {"name": id, "interactions": [
        {"request": {"queryInput": {"text": {"text": asked[1]}}},
         "response": {"queryResult": {"responseMessages": [{"text": {"text": [answer[1]]}}]}}}
        for asked, answer in zip(spoken(turns)[::2], spoken(turns)[1::2], strict=True)]},
    "pyrit": lambda turns, id: [
        {"role": role, "conversation_id": id, "sequence": n, "original_value": "Tea.", "converted_value": text}
        for n, (role, text) in enumerate(_by_role(turns, system="system", user="user", assistant="assistant"))],
    "speech": lambda turns, id: {"id": id, "results": {"utterances": [{"speaker": role, "transcript": text,
        "start": n} for n, (role, text) in enumerate(spoken(turns))]}},
    "rasa": lambda turns, id: {"sender_id": id, "events": [{"event": "action", "name": "action_listen"}, *[{"event": kind,
        "text": text, "timestamp": n} for n, (kind, text) in enumerate(_by_role(turns, user="user", assistant="bot"))]]},
    "botpress": botpress,
    "botpress as a list": lambda turns, id: {"id": id, "messages": botpress(turns, id)},
    "voiceflow": lambda turns, id: [{"turnID": f"t{n}", "type": "request" if role == "user" else "text", "format": "trace",
        "payload": {"type": "text", "payload": text if role == "user" else {"message": text}}}
        for n, (role, text) in enumerate(spoken(turns))],
    "other-name of CCAI": lambda turns, id: {"id": id, "entries": [{"text": text, "role": role, "user_id": 1}
        for role, text in _by_role(turns, user="CUSTOMER", assistant="AUTOMATED_AGENT")]},
    "ccai in segments": lambda turns, id: {"id": id, "transcript": {"transcriptSegments": [{"text": text,
        "segmentParticipant": {"role": role}}
        for role, text in _by_role(turns, user="END_USER", assistant="AUTOMATED_AGENT")]}},
    "dialogflow": lambda turns, id: [{"session": id, "queryResult": {"queryText": asked, "fulfillmentText": answer}}
        for asked, answer in pairs(turns)],
    "lex": lambda turns, id: [{"sessionId": id, "inputTranscript": asked, "messages": [{"contentType": "PlainText",
        "content": answer}]} for asked, answer in pairs(turns)],
    "connect": lambda turns, id: {"ContactId": id, "Participants": [], "Transcript": [{"ParticipantId": role,
        "ParticipantRole": role, "Type": "MESSAGE", "Content": text}
        for role, text in _by_role(turns, user="CUSTOMER", assistant="CUSTOM_BOT")]},
    "other-name of ElevenLabs": lambda turns, id: {"conversation_id": id, "agent_id": "a", "transcript": [
        {"role": role, "message": text}
        for role, text in _by_role(turns, user="user", assistant="agent")]},
    "retell": lambda turns, id: {"call_id": id, "transcript": "Agent: ...", "transcript_with_tool_calls": [{"role": role,
        "content": text} for role, text in _by_role(turns, user="user", assistant="agent", tool="tool_call_invocation")]},
    "retell without tools": lambda turns, id: {"call_id": id, "transcript_object": [{"role": role, "content": text,
        "words": []} for role, text in _by_role(turns, user="user", assistant="agent")]},
    "other-name of Vapi": lambda turns, id: {"id": id, "artifact": {"messages": [{"role": role, "message": text}
        for role, text in _by_role(turns, user="user", assistant="bot", system="system", tool="tool_call_result")]}},
    "intercom": intercom,
    "zendesk": lambda turns, id: {"ticket": {"id": id, "requester_id": 1}, "comments": [{"id": n,
        "author_id": 1 if role == "user" else 2, "body": text, "public": True}
        for n, (role, text) in enumerate(spoken(turns))]},
    "chatwoot": lambda turns, id: {"id": id, "messages": [{"id": n, "message_type": kind, "content": text, "private": False,
        "created_at": n, "sender": {"type": sender}} for n, (role, text) in enumerate(spoken(turns))
        for kind, sender in [{"user": (0, "contact"), "assistant": (1, "user")}[role]]]},
    "zendesk-chat": lambda turns, id: {"id": id, "history": [{"type": "chat.msg", "channel": "#tea", "sender_type": kind,
        "msg": text} for kind, text in _by_role(turns, user="Visitor", assistant="Agent")]},
    "twilio": lambda turns, id: [{"sid": f"SM{n}", "body": text, **dict(zip(("from", "to", "direction"), {"user": ("+1", id,
        "inbound"), "assistant": (id, "+1", "outbound-api")}[role], strict=True))}
        for n, (role, text) in enumerate(spoken(turns))],
    "twilio-conversations": lambda turns, id: {"id": id, "messages": [{"sid": f"IM{n}", "conversation_sid": id,
        "author": role, "body": text, "index": n} for n, (role, text) in enumerate(spoken(turns))], "meta": {}},
    "cohere": cohere,
    "bot-framework": bot_framework,
    "bot-framework of Copilot Studio": lambda turns, id: {"id": id, "activities": [{"type": "trace"}, *[{"type": "message",
        "from": {"id": "x", "role": int(role)}, "text": text} for role, text in _by_role(turns, user="1", assistant="0")]]},
    "adk": lambda turns, id: {"id": id, "app_name": "tea", "user_id": "u", "events": [{"author": author, "timestamp": n,
        "content": {"parts": [{"text": text, "thought": True} if role == "thinking" else {"text": text}], "role": "model"}}
        for n, (role, text) in enumerate(turns)
        if (author := {"user": "user", "assistant": "me", "thinking": "me"}.get(role))]},
    "adk in an answer of its API": lambda turns, id: {"session": {"id": id, "events": [{"author": role,
        "content": {"parts": [{"text": text} if role != "tool" else {"functionCall": {"name": text}}]}}
        for role, text in turns if role in (*SPOKEN, "tool")]}},
    "haystack": lambda turns, id: {"id": id, "messages": [{"_role": role, "_content": [{"text": text}], "_name": None,
        "_meta": {}} for role, text in turns if role in (*SPOKEN, "system")]},
    "pydantic-ai": lambda turns, id: _pydantic_ai(turns),
    "pydantic-ai in an object": lambda turns, id: {"id": id, "messages": _pydantic_ai(turns)},
    "autogen": lambda turns, id: {"id": id, "messages": [{"source": role, "type": "TextMessage", "models_usage": None,
        "content": text} for role, text in spoken(turns)], "stop_reason": None},
    "autogen, a message a row": lambda turns, id: [{"source": role, "type": "TextMessage", "content": text}
        for role, text in spoken(turns)],
    "other-name of AutoGen": lambda turns, id: {"id": id, "chat_history": [{"role": role, "content": text, "name": "n"}
        for role, text in spoken(turns)]},
    "other-name of LlamaIndex": lambda turns, id: {"id": id, "chat_history": [{"role": role, "additional_kwargs": {},
        "blocks": [{"block_type": "text", "text": text}]} for role, text in spoken(turns)]},
    "other-name of Gemini": lambda turns, id: {"id": id, "history": [{"role": role, "parts": [{"text": text}]}
        for role, text in _by_role(turns, user="user", assistant="model")]},
    "semantic-kernel": lambda turns, id: {"id": id, "messages": [{"role": role, "content_type": "message", "items": [
        {"content_type": "text", "text": text} if role != "tool" else {"content_type": "function_call", "name": text}]}
        for role, text in turns if role != "thinking"]},
    "semantic-kernel of .NET, a message a row": lambda turns, id: [{"Role": {"Label": role}, "Items": [
        {"$type": "TextContent", "Text": text}]} for role, text in spoken(turns)],
    "character-ai": lambda turns, id: {"id": id, "turns": [{"author": {"name": role, **({"is_human": True} if role == "user"
        else {})}, "primary_candidate_id": "1", "candidates": [{"candidate_id": "2", "raw_content": "No."},
        {"candidate_id": "1", "raw_content": text}]} for role, text in spoken(turns)]},
    "watson": lambda turns, id: {"logs": [{"log_id": f"l{n}", "session_id": id, "request": {"input": {"text": asked}},
        "response": {"output": {"generic": [{"response_type": "text", "text": answer}]}}}
        for n, (asked, answer) in enumerate(pairs(turns))]},
    "watson of its first version": lambda turns, id: {"logs": [{"request": {"input": {"text": asked}}, "response": {
        "output": {"text": [answer]}, "context": {"conversation_id": id}}} for asked, answer in pairs(turns)]},
    "drift": lambda turns, id: {"data": {"messages": [{"author": {"type": "contact" if role == "user" else "user"},
        "body": text, "createdAt": n} for n, (role, text) in enumerate(spoken(turns))]}, "id": id},
    "kore": lambda turns, id: {"id": id, "messages": [{"type": kind, "components": [{"cT": "text", "data": {"text": text}}]}
        for kind, text in _by_role(turns, user="incoming", assistant="outgoing")]},
    "skype": lambda turns, id: {"conversations": [{"id": id, "MessageList": [{"from": role, "content": text,
        "messagetype": "Text", "originalarrivaltime": _TIME.format(n)} for n, (role, text)
        in enumerate(spoken(turns))][::-1]}]},
    "mattermost": lambda turns, id: [{"type": "post", "post": {"team": "t", "channel": id, "user": role, "message": text,
        "create_at": n}} for n, (role, text) in enumerate(spoken(turns))],
    "mattermost of its API": lambda turns, id: {"order": [], "id": id, "posts": {str(n): {"user_id": role, "message": text,
        "create_at": n, "type": ""} for n, (role, text) in enumerate(spoken(turns))}},
    "wechat": lambda turns, id: [{"StrTalker": id, "IsSender": int(role == "user"), "Type": 1, "StrContent": text, "Sender":
        role, "CreateTime": n} for n, (role, text) in enumerate(spoken(turns))],
    "livechat": lambda turns, id: {"id": id, "users": [{"id": "ann@x", "type": "customer"}, {"id": "bot", "type": "agent"}],
        "threads": [{"id": f"t{n}", "events": [{"type": "message", "author_id": author, "text": text},
        {"type": "system_message", "text": "routed"}]} for n, (author, text) in enumerate(_by_role(turns, user="ann@x",
        assistant="bot"))]},
    "freshchat": lambda turns, id: {"id": id, "messages": [{"actor_type": role, "message_type": "normal", "message_parts": [
        {"text": {"content": text}}]} for role, text in _by_role(turns, user="user", assistant="agent")]},
    "wizard-of-internet": lambda turns, id: {id: {"dialog_history": [{"action": action, "text": text} for action, text in
        _by_role(turns, user="Apprentice => Wizard", assistant="Wizard => Apprentice", tool="Wizard => SearchAgent")]}},
    "rocket-chat": lambda turns, id: {"messages": [{"_id": str(n), "rid": id, "msg": text, "u": {"username": role}, "ts": n}
        for n, (role, text) in enumerate(spoken(turns))], "id": id},
    "snapchat": lambda turns, id: {id: [{"From": role, "Media Type": "TEXT", "Content": text, "Created": n}
        for n, (role, text) in enumerate(spoken(turns))]},
    "gong": lambda turns, id: {"callTranscripts": [{"callId": id, "transcript": [
        {"speakerId": role, "sentences": [{"text": text}]} for role, text in spoken(turns)]}]},
    "otree": lambda turns, id: [{"participant_code": role, "channel": id, "nickname": role, "body": text, "timestamp": n}
        for n, (role, text) in enumerate(spoken(turns))],
    "abcd": lambda turns, id: {"convo_id": id, "scenario": {}, "original": [[role, text] for role, text in
        _by_role(turns, user="customer", assistant="agent", tool="action")]},
    "exchange-rows": lambda turns, id: [{"conversation_id": id, "turn": n, "question": asked, "answer": answer}
        for n, (asked, answer) in enumerate(pairs(turns))],
    "exchange-rows by speaker": lambda turns, id: [{"session_id": id, "user": asked, "assistant": answer}
        for asked, answer in pairs(turns)],
    "message rows of Jan": lambda turns, id: [{"object": "thread.message", "thread_id": id, "id": f"m{n}", "role": role,
        "created_at": n, "content": [{"type": "text", "text": {"value": text, "annotations": []}}]}
        for n, (role, text) in enumerate(spoken(turns))],
}  # fmt: skip
"""By the name of the layout, and, after a space, of its shape."""


def _pydantic_ai(turns: Turns) -> list[dict[str, Any]]:
    kinds = {"system": "system-prompt", "user": "user-prompt", "assistant": "text", "tool": "tool-call", "thinking": "thinking"}
    return [{"kind": "request" if role in ("system", "user") else "response",
             "parts": [{"part_kind": kinds[role], "content": text}]} for role, text in turns]  # fmt: skip


def layout_of(name: str) -> str:
    """The layout that a writer writes."""
    return "message rows" if name.startswith("message rows") else re.split("[ ,]", name)[0]


def text_of(written: Written) -> str:
    """The file that holds it."""
    if isinstance(written, str):
        return written
    return "".join(json.dumps(row) + "\n" for row in (written if isinstance(written, list) else [written]))
