"""Layouts of chat applications and of platforms for chatbots and customer service: exports, local files, trackers, tickets.

Schemas: ChatGPT, Open WebUI and LibreChat in danny-avila/LibreChat, `api/server/utils/import/__data__`; DeepSeek in
ceyaima/deepseek-exporter, `samples`; Claude, Copilot, Gemini's activity and Grok in the mappings of portable-ai-memory; LM
Studio in YorkieDev/lm-studio-conversation-converter; SillyTavern in its `public/chats`; Voiceflow in
Tahmidbugs/UIF-chatbot-analytics, `exampleResponse.js`. The others follow their readers and documentation, without a file of the
product at hand.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from dialeval_plugin.conversations.messages import (
    ASSISTANT,
    SYSTEM,
    USER,
    alternating,
    at,
    is_silent,
    parsed_cell,
    plain_text,
    split_dialogue,
)
from dialeval_plugin.conversations.order import current_of

from .layout import Layout, Logged, Value, answered, as_message, elements, flat, has, id_of, listed, messages_at, plain, said

_UNSEEN = {
    "thoughts": "reasoning", "reasoning_recap": "reasoning", "model_editable_context": "developer",
    "user_editable_context": "developer",
}  # fmt: skip
"""Content types of ChatGPT's messages that were shown to nobody, with the kind that is counted."""
_SLASH = re.compile(r"\s*<(?:command-|local-command-|bash-|task-notification|user-prompt-submit-hook)")
"""Beginning of texts that Claude Code writes in the user's name for a command."""
_INJECTED = re.compile(r"\s*(?:<(?:environment_context|user_instructions|permissions|turn_aborted|INSTRUCTIONS)|# AGENTS\.md)")
"""Beginning of texts that Codex writes in the user's name."""
_ACTIVITIES = re.compile(r"(?:Prompted|Said|Asked)\s+")
_NO_REQUEST = "<|BEGIN-VISIBLE-CHAT|>"
"""Stands before a greeting in text-generation-webui."""
_OWN_WORDS = ("isMeta", "isCompactSummary", "isApiErrorMessage")
"""Marks of a message that Claude Code itself wrote."""
_OF_A_SESSION = (
    *("sessionId parentUuid", "summary leafUuid", "messageId snapshot"),
    *(f"sessionId {name}" for name in ("operation", "lastPrompt", "customTitle", "aiTitle")),
)
"""Fields of Claude Code's rows."""
_ROLLOUT_ROWS = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def _mapped(each: Callable[[Any], Any]) -> Callable[[Value], list[Any]]:
    """Return a reader of messages by their ids, each with the id of the one before it."""
    return lambda value: [
        {**each(node.get("message") or {}), "id": key, "parent": node.get("parent")} for key, node in value["mapping"].items()
    ]


def _chatgpt(message: Any) -> Any:
    unseen = _UNSEEN.get(str(at(message, "content.content_type"))) if message else "root"
    if at(message, "content.parts") == [""]:
        message = {**message, "content": None}  # precedes a tool call
    if unseen or message.get("recipient", "all") != "all" or at(message, "metadata.is_visually_hidden_from_conversation"):
        message = {**message, "author": {"role": unseen or "tool"}}  # addressed to a tool, or shown to nobody
    return message


def _in_content(message: Any) -> Any:
    """Return a message without the `text` that duplicates its `content`: Claude's with tools, LibreChat's with thinking."""
    if not isinstance(message, Mapping) or not message.get("content"):
        return message
    return {name: one for name, one in message.items() if name != "text"}


def _deepseek(message: Any) -> Value:
    fragments = message.get("fragments") or []
    role = USER if any(one["type"] == "REQUEST" for one in fragments) else ASSISTANT if fragments else "root"
    return {"role": role, "content": fragments}


def _deepseek_session(value: Value) -> list[Logged]:
    data = value["data"]["biz_data"]
    messages = [{**one, "content": one.get("fragments") or one.get("content")} for one in data["chat_messages"]]
    return [Logged(messages, at(data, "chat_session.id"), current=at(data, "chat_session.current_message_id"))]


def _open_webui(value: Value) -> list[Logged]:
    history = at(value, "chat.history") or {}
    by_id = history.get("messages")
    messages = list(by_id.values()) if isinstance(by_id, Mapping) else listed(at(value, "chat.messages")) or []
    return [Logged(messages, id_of(value), current=current_of(history))]


def _librechat(value: Value) -> list[Any]:
    messages = listed(value.get("messagesTree") or value["messages"]) or []
    return [_in_content(one) for one in flat(messages, "children", "messageId")]


def _lm_studio(message: Any) -> Any:
    version = message["versions"][message.get("currentlySelected") or 0]
    steps = version.get("steps")
    if steps is None:
        return version
    parts: list[Any] = []
    for step in steps:
        is_shown = step["type"] == "contentBlock" and at(step, "style.type") != "thinking"
        parts += step["content"] if is_shown else [{"type": "thinking" if step["type"] == "contentBlock" else step["type"]}]
    return {"role": version.get("role", ASSISTANT), "content": parts}


def _chatbox(message: Any) -> Any:
    parts = [{"type": "text", "text": at(one, "data.inline")} if "data" in one else one for one in message["contentParts"]]
    return {**message, "content": parts}


def _cherry_studio(value: Value) -> list[Logged]:
    blocks: dict[object, list[Any]] = {}
    for block in value["indexedDB"].get("message_blocks") or ():
        blocks.setdefault(block["messageId"], []).append(block)
    return [Logged(_answers_chosen(topic["messages"], blocks), topic["id"]) for topic in value["indexedDB"]["topics"]]


def _answers_chosen(messages: list[Any], blocks: Mapping[object, list[Any]]) -> list[Any]:
    """Return the messages of a topic; of several models' answers to one message, the unfolded one is the chosen one."""
    n_answers = Counter(one.get("askId") for one in messages)
    found = []
    for one in messages:
        message = {**one, "blocks": None, "content": blocks.get(one["id"]) or one.get("content")}
        if one.get("askId") and n_answers[one["askId"]] > 1:
            message |= {"if_chosen": bool(one.get("foldSelected") or one.get("useful")), "turn": one["askId"]}
        found.append(message)
    return found


def _cursor(value: Value) -> list[Logged]:
    by_id, headers = value.get("conversationMap") or {}, value.get("fullConversationHeadersOnly")
    bubbles = value.get("conversation") or [{**one, **by_id[one["bubbleId"]]} for one in elements(headers)]
    return [Logged([_cursor_message(one) for one in bubbles], value["composerId"])]


def _cursor_message(bubble: Any) -> Any:
    unseen = [kind for name, kind in (("thinking", "thinking"), ("toolFormerData", "tool_call")) if bubble.get(name)]
    role = USER if bubble["type"] in (1, "user") else ASSISTANT
    return as_message(role, bubble.get("text") or bubble.get("rawText"), *unseen)


def _vscode(request: Any) -> list[Value]:
    asked, text, unseen = request["message"], "", []
    for part in request.get("response") or ():
        kind = part.get("kind") or "markdownContent"
        if kind in ("markdownContent", "markdownVuln"):
            text += (part.get("content") or part)["value"]
        elif kind == "inlineReference":
            text += part.get("name") or ""
        else:
            unseen.append(kind)
    return [as_message(USER, asked if isinstance(asked, str) else asked["text"]), as_message(ASSISTANT, text, *unseen)]


def _koboldcpp(value: Value) -> list[Any]:
    """Return the messages of a story, whose pieces begin with marks of an instruction and its answer, or with names."""
    text = "".join([value["prompt"], *elements(value["actions"])])
    for mark, name in (("Human", "chatname"), ("Assistant", "chatopponent")):
        text = re.sub(rf"^{re.escape(str(at(value, f'savedsettings.{name}')))}:", f"\n\n{mark}:", text, flags=re.MULTILINE)
    return elements(split_dialogue(text))


def _claude_code(value: Value) -> Value | str:
    if "uuid" not in value:
        return ""  # a summary or a snapshot of files, not a message
    if value.get("isSidechain"):
        return "sidechain message"  # an agent's message to an agent that it started
    parent = value.get("parentUuid") or value.get("logicalParentUuid")
    # The session continued from its last row.
    place = {"uuid": value["uuid"], "parentUuid": parent, "current_node": value["uuid"], "conversation": value["sessionId"]}
    message = value.get("message")
    if value["type"] not in (USER, ASSISTANT) or not isinstance(message, Mapping):
        return {**place, "role": "event"}
    content = message.get("content", message.get("parts"))  # Qwen Code writes Gemini's parts
    is_own = any(map(value.get, _OWN_WORDS)) or (isinstance(content, str) and _SLASH.match(content))
    return {**value, **place, "type": None, "role": "event" if is_own else message["role"], "message": content}


def _codex(value: Value) -> Value | str:
    payload = value["payload"]
    if value["type"] != "response_item":
        return ""  # events repeat the items
    if payload["type"] != "message":
        return {"role": payload["type"] if is_silent(payload["type"]) else "event", "timestamp": value.get("timestamp")}
    text = "".join(str(part.get("text", "")) for part in payload["content"])
    role = "developer" if payload["role"] == USER and _INJECTED.match(text) else payload["role"]
    return {**payload, "timestamp": value.get("timestamp"), "role": role}


_codex_item = said("type", "text | content", {"userMessage": USER, "agentMessage": ASSISTANT}, otherwise="event")


def _zed(message: Any) -> Any:
    ((name, inner),) = message.items()
    parts = [{"type": kind.lower(), "text": one} for part in inner["content"] for kind, one in part.items()]
    return {"role": USER if name == "User" else ASSISTANT, "content": parts or None}


_USERS = dict.fromkeys(("user", "User", "human", "Human", "HUMAN"), USER)
"""The user, next to whom the model is called by its name."""


def _takeout_activity(value: Value) -> list[Value] | str:
    named = {one["name"]: one["value"] for one in value.get("details") or ()}
    answer = named.get("Response") or plain_text("\n".join(one["html"] for one in value.get("safeHtmlItem") or ()))
    if not answer:
        return "event message"  # an activity other than a request
    # The latest comes first, and both have the same time: numbers give the order.
    number = 2 * int(1000 * datetime.fromisoformat(value["time"].replace("Z", "+00:00")).timestamp())
    conversation = str(value.get("titleUrl") or "").rpartition("/")[2] or value["time"]
    texts = (USER, named.get("Request") or _ACTIVITIES.sub("", value["title"], count=1)), (ASSISTANT, answer)
    return [as_message(role, text, conversation=conversation, turn_index=number + n) for n, (role, text) in enumerate(texts)]


def _takeout_turn(turn: Any) -> Any:
    if "user_turn" in turn:
        return as_message(USER, turn["user_turn"]["prompt"])
    answer = turn["system_turn"]
    pieces = [piece for one in answer.get("text") or () for piece in (one, *(one.get("cards") or ()))]
    texts = [one.get("data") or one.get("content") for one in pieces]
    return as_message(ASSISTANT, "\n".join(filter(None, texts)), *("thinking" for _ in answer.get("model_thoughts") or ()))


def _character_ai(turn: Any) -> Any:
    shown = {one["candidate_id"]: one for one in turn["candidates"]}[turn["primary_candidate_id"]]
    return as_message(USER if turn["author"].get("is_human") else ASSISTANT, shown["raw_content"], time=turn.get("create_time"))


def _perplexity(entry: Any) -> list[Value]:
    blocks = [at(block, "markdown_block.answer") for block in entry.get("blocks") or ()]
    answer = entry.get("answer") or next(filter(None, blocks), None)
    return [as_message(USER, entry.get("query") or entry["query_str"]), as_message(ASSISTANT, answer)]


def _aider_rows(lines: Iterable[str]) -> Iterator[tuple[int, Value]]:
    """Yield the messages of aider's history, in which `####` marks what the user said and `>` what aider printed."""
    start = "# aider chat started at"
    session, first, role, texts = 0, 0, "event", list[str]()
    for number, line in enumerate(itertools.chain(lines, [start]), start=1):
        starts = line.startswith(start)
        now = "event" if starts or line.startswith(">") else USER if line.startswith("#### ") else ASSISTANT
        if session and (starts or (now != role and line.strip())):
            if "".join(texts).strip():
                yield first, as_message(role, "".join(texts).strip(), conversation=str(session))
            first, role, texts = number, now, []
        first = first or number
        session += starts
        texts.append(line.removeprefix("#### "))


_dust = said("type", "content", {"user_message": USER, "agent_message": ASSISTANT}, otherwise="event")
_DEEPSEEK = "DeepSeek's export, or a chat as its page has it"

_INTERCOM = {"user": USER, "lead": USER, "contact": USER, "bot": ASSISTANT, "admin": "agent", "team": "agent"}
_CHATWOOT = {0: USER, 1: ASSISTANT, 2: "event", 3: ASSISTANT, "incoming": USER, "outgoing": ASSISTANT, "activity": "event",
             "template": ASSISTANT}  # fmt: skip
_RELAYED = {"role": "event"}
"""A message of neither side: somebody joined, a wait, a change of state."""


def _rasa(value: Value) -> list[Logged]:
    sessions: list[list[Any]] = [[]]
    for event in value["events"]:
        kind = event["event"]
        if kind in ("session_started", "restart"):
            sessions.append([])
        elif kind == "rewind":  # takes back the user's last message and everything after it
            while sessions[-1] and sessions[-1].pop()["role"] != USER:
                pass
        elif kind in ("user", "bot"):
            role = USER if kind == "user" else ASSISTANT
            sessions[-1].append(as_message(role, event.get("text"), timestamp=event.get("timestamp")))
    kept = [one for one in sessions if one]
    sender = value.get("sender_id")
    return [Logged(one, sender if len(kept) == 1 else f"{sender}/{number}") for number, one in enumerate(kept, start=1)]


def _connect(value: Value) -> list[Logged]:
    roles = {one["ParticipantId"]: one.get("ParticipantRole") for one in value.get("Participants") or ()}

    def message(one: Any) -> Any:
        if one.get("Type", "MESSAGE") != "MESSAGE":
            return _RELAYED
        role = one.get("ParticipantRole") or roles.get(one["ParticipantId"]) or one["ParticipantId"]
        return as_message(ASSISTANT if role == "CUSTOM_BOT" else role, one.get("Content"), id=one.get("Id"))

    id = value.get("ContactId") or at(value, "CustomerMetadata.ContactId")
    return [Logged([message(one) for one in value["Transcript"]], id)]


def _intercom(value: Value) -> list[Any]:
    parts = [{**value["source"], "part_type": "comment"}, *value["conversation_parts"]["conversation_parts"]]
    return [_intercom_part(one) for one in parts]


_intercom_part = said(
    "author.type", "body", _INTERCOM, only=("part_type", {"comment", "open", "assignment", "quick_reply", "note"}),
    is_html=True, part_type="part_type",
)  # fmt: skip


def _zendesk(value: Value) -> list[Logged]:
    ticket = value.get("ticket") or value
    asks = ticket.get("requester_id", value["comments"][0]["author_id"])  # the author of the ticket wrote its first comment

    def message(comment: Any) -> Any:
        role = "note" if comment.get("public") is False else "customer" if comment["author_id"] == asks else "agent"
        return as_message(role, comment.get("plain_body") or comment["body"], id=comment.get("id"))

    return [Logged([message(one) for one in value["comments"]], ticket.get("id"))]


def _livechat(value: Value) -> list[Any]:
    roles = {one["id"]: one["type"] for one in value["users"]}
    events = [one for thread in value["threads"] for one in thread.get("events") or ()]
    return [as_message(roles[one["author_id"]], one["text"]) if one["type"] == "message" else _RELAYED for one in events]


def _freshdesk(value: Value) -> list[Any]:
    asked = as_message(USER, value.get("description_text"), timestamp=value.get("created_at"))
    note = said("incoming", "body_text", {True: USER, False: "agent"}, timestamp="created_at", internal="private")
    return [asked, *map(note, value["conversations"])]


def _twilio(value: Value) -> Value:
    sides = sorted(str(value[name]) for name in ("from", "to"))
    role = USER if value["direction"] == "inbound" else ASSISTANT
    return as_message(role, value["body"], conversation=" ".join(sides), sent_at=value.get("date_sent"))


def _cohere(value: Value) -> list[Logged]:
    asked = [as_message(USER, value["message"])] if value.get("message") else []
    answer = at(value, "response.text") or value.get("text")
    answered = [as_message(ASSISTANT, answer)] if asked and answer else []  # otherwise it is in the history
    prompt = [as_message(SYSTEM, value["preamble"])] if value.get("preamble") else []
    messages = [*prompt, *elements(value["chat_history"]), *asked, *answered]
    return [Logged(messages, id_of(value), len(messages) - 1 if answered else 0)]


_phrase = said("participantPurpose", "text", {"external": USER, "internal": "agent"})


_activity = said(
    "from.role | from.name | from.id", "text | speak", {0: ASSISTANT, 1: USER}, only=("type", {"message"}),
    conversation="conversation.id", timestamp="timestamp", id="id",
)  # fmt: skip
_BOT_FRAMEWORK = "Microsoft's Bot Framework or Copilot Studio"

LAYOUTS = [
    Layout("deepseek", _DEEPSEEK, lambda value: any(at(one, "message.fragments") for one in value["mapping"].values()),
           _mapped(_deepseek)),
    Layout("deepseek", _DEEPSEEK, "data.biz_data.chat_messages[]", _deepseek_session),
    Layout("chatgpt", "conversations.json of ChatGPT's export", "mapping{}", _mapped(_chatgpt)),
    plain("claude", "conversations.json of Claude's export", "chat_messages", each=_in_content),
    Layout("open-webui", "the exports of Open WebUI and of Qwen Chat", "chat{history} | chat.messages[role]", _open_webui),
    # AI Studio writes an attached file as a chunk without a text.
    plain("ai-studio", "Google AI Studio", "chunkedPrompt.chunks", each=lambda chunk: {"text": None, **chunk}),
    Layout("gemini-activity", "MyActivity.json of Gemini or Bard, a request and its answer a row", message=_takeout_activity,
           recognises=lambda value: has(value, "title", "time")
           and any(name in value["header"] for name in ("Gemini", "Bard"))),
    plain("gemini-takeout", "a conversation of Gemini in Google Takeout", "conversation_turns", each=_takeout_turn),
    Layout("copilot", "the activity of Microsoft Copilot, a table with a message a row",
           "Author Conversation Message | Author ChatName MessageContent CreatedAt",
           message=said("Author", "Message | MessageContent", _USERS, otherwise=ASSISTANT, timestamp="Time | CreatedAt",
               conversation="Conversation | ChatName")),
    plain("character-ai", "a chat of Character.AI", "turns", "author", "candidates", each=_character_ai),
    plain("character-ai", "a chat of Character.AI", "msgs", "src",
          each=said("src.is_human", "text", {True: USER}, otherwise=ASSISTANT, only=("is_alternative", {False, None}))),
    Layout("cline-ui", "ui_messages.json of Cline or Roo Code", 'ts type"" say"" | ts type"" ask""',
           message=said("say", "text", {"task": USER, "user_feedback": USER, "text": ASSISTANT, "completion_result": ASSISTANT},
                        otherwise="event", timestamp="ts"),
           open_question="is what the window of Cline or Roo Code showed, where the task may look like an answer. Read "
           "api_conversation_history.json, which is next to it"),
    Layout("dust", "a conversation of Dust, with all versions of each message", "conversation{sId} conversation.content[]",
           messages_at("conversation.content", id="conversation.sId", each=lambda versions: _dust(versions[-1]))),
    plain("cody", "chats of Cody", "interactions", "humanMessage", each=answered("humanMessage.text", "assistantMessage.text")),
    plain("big-agi", "chats of big-AGI", "messages", "role", "fragments", each=lambda one: {
        "role": one["role"], "created_at": one.get("created"),
        "content": [{"type": part["part"]["pt"], **part["part"]} for part in one["fragments"]] or None}),
    plain("zed", "a thread of Zed", "messages", "User", each=_zed),
    Layout("amazon-q", "chats of the command lines of Amazon Q and Kiro",
           lambda value: has(value["history"][0]["user"], "content") and "assistant" in value["history"][0],
           messages_at("history", each=answered("user.content.Prompt.prompt", "assistant.Response.content"))),
    plain("codex", "a thread of Codex's app server", "thread.turns", "items", id="thread.id",
          each=lambda turn: list(map(_codex_item, turn["items"]))),
    Layout("perplexity", "a thread of Perplexity", "entries[query] | entries[query_str]",
           messages_at("entries", each=_perplexity)),
    plain("grok", "a conversation of Grok's export", "responses", "response", id="conversation.id",
          each=said("response.sender", "response.message", _USERS, otherwise=ASSISTANT, id="response._id",
              parent="response.parent_response_id", created_at="response.create_time")),
    plain("chatgpt-exporter", "a chat of ChatGPT Exporter", "messages", "role", "say",
          each=said("role", "say", {"Prompt": USER, "Response": ASSISTANT})),
    Layout("aider", "a history of aider", rows=_aider_rows, message=lambda value: value),
    Layout("chatbox", "a backup of Chatbox", "__exported_items",
           lambda value: (Logged([_chatbox(message) for message in session["messages"]], session.get("id"))
                          for name, session in value.items() if name.startswith("session:"))),
    plain("chatbox", "a session of Chatbox, or messages of UiPath", "messages", "role", "contentParts", each=_chatbox),
    Layout("librechat", "LibreChat's export", "messagesTree[] | messages[isCreatedByUser]", _librechat),
    Layout("llama.cpp", "the export of llama.cpp's web page", "conv{} messages[]", messages_at("messages", id="conv.id")),
    Layout("text-generation-webui", "a chat of text-generation-webui", "internal[] visible[] | data[] data_visible[]",
           lambda value: [
               one for one in alternating(text for pair in value.get("internal") or value["data"] for text in elements(pair))
               if one["content"] != _NO_REQUEST
           ]),
    Layout("koboldcpp", "a saved story of KoboldCpp", "gamestarted prompt actions[]", _koboldcpp),
    plain("lm-studio", "a conversation of LM Studio", "messages", "versions", each=_lm_studio),
    Layout("sillytavern", "a chat of SillyTavern, a message a row", "mes is_user | user_name character_name",
           # The first row describes the chat as a whole.
           message=lambda value: "" if "mes" not in value else {"role": "event"} if value.get("is_system") else value),
    Layout("message-tree", "messages that contain their answers", "role content children[id]",
           message=lambda value: [{**one, "conversation": value.get("conversation_id") or value["id"]}
                                  for one in flat([value], "children", "id")]),
    Layout("cherry-studio", "a backup of Cherry Studio", "indexedDB.topics[]", _cherry_studio),
    Layout("cursor", "a composer of Cursor", "composerId conversation | composerId conversationMap", _cursor),
    plain("cursor-tabs", "a chat tab of Cursor", "bubbles", "type", id="tabId", each=_cursor_message),
    plain("vscode-chat", "a chat with Copilot in VS Code", "requests", "message", each=_vscode),
    Layout("claude-code", "a session of Claude Code, a message a row", message=_claude_code,
           recognises=" | ".join(f'type"" {names}' for names in _OF_A_SESSION)),
    Layout("codex", "a rollout of Codex, an item a row", message=_codex,
           recognises=lambda value: value["type"] in _ROLLOUT_ROWS and has(value["payload"])),
    Layout("rasa", "a tracker of Rasa", "events[event]", _rasa,
        open_question="is a tracker of Rasa, which holds all sessions of a user. Read each as a conversation by --layout rasa"),
    Layout("rasa", "events of a tracker of Rasa, a table", "sender_id type_name data",
        message=lambda value: as_message({"user": USER, "bot": ASSISTANT}.get(value["type_name"], "event"),
            at(parsed_cell(value["data"]), "text"), conversation=value["sender_id"], timestamp=value.get("timestamp"))),
    Layout("botpress", "messages of Botpress", "direction payload{}",
           message=said("direction", "payload.text | payload.markdown", {"incoming": USER}, otherwise=ASSISTANT,
                        only=("type", {"text", "choice", "markdown", None}), conversation="conversationId | threadId",
                        timestamp="createdAt | createdOn")),
    Layout("voiceflow", "a transcript of Voiceflow, a trace a row", "turnID type payload{}",
           message=said("type",
               "payload.payload.query | payload.payload.label | payload.payload.message | payload.message | payload.payload",
               {"request": USER}, otherwise=ASSISTANT, only=("type", {"request", "text", "speak"}))),
    plain("voiceflow", "a transcript of Voiceflow", "transcript.logs", "type", "data", id="transcript.id",
          each=said("type", "data.payload.message | data.payload.query | data.payload", {"action": USER, "trace": ASSISTANT},
              only=("data.type", {"text", "speak", "intent"}), timestamp="createdAt")),
    plain("ccai", "Google's Contact Center AI", "transcript.transcriptSegments",
          each=said("segmentParticipant.role | segment_participant.role", "text")),
    Layout("dialogflow", "answers of Dialogflow to what users said, one a row", "queryResult{}",
           message=answered("queryResult.queryText | queryResult.text",
               "queryResult.fulfillmentText | queryResult.responseMessages", conversation="session")),
    plain("dialogflow", "conversations of Dialogflow CX", "interactions", "request", "response", id="name",
          each=answered("request.queryInput.text.text", "response.queryResult.responseMessages", timestamp="createTime")),
    Layout("lex", "conversation logs of Amazon Lex, a request a row", "inputTranscript sessionId",
           message=answered("inputTranscript", "messages | botResponse | message", conversation="sessionId",
               timestamp="timestamp")),
    Layout("watson", "logs of Watson Assistant, a request a row", "request.input{} response.output{}",
           message=answered("request.input.text", "response.output.text | response.output.generic",
               timestamp="request_timestamp",
               conversation="session_id | response.context.conversation_id | request.context.conversation_id")),
    Layout("connect", "transcripts of Amazon Connect's Contact Lens", "Transcript[ParticipantId]", _connect),
    plain("retell", "calls of Retell", "transcript_with_tool_calls | transcript_object", id="call_id"),
    Layout("intercom", "a conversation of Intercom", "source conversation_parts.conversation_parts[]", _intercom),
    Layout("zendesk", "a ticket of Zendesk with its comments", "comments[author_id,body]", _zendesk),
    Layout("chatwoot", "a conversation of Chatwoot", "message_type content sender created_at",
           message=said("message_type", "content", _CHATWOOT, timestamp="created_at", internal="private")),
    Layout("livechat", "a chat of LiveChat", "threads[events] users[id,type]", _livechat),
    plain("freshchat", "a conversation of Freshchat", "messages", "message_parts", "actor_type",
          each=said("actor_type", "message_parts", only=("message_type", {"normal", None}), timestamp="created_time")),
    plain("zendesk-chat", "a chat of Zendesk", "history", "type", "channel",
          each=said("sender_type | name", "msg", {"Trigger": "event"}, only=("type", {"chat.msg"}), timestamp="timestamp")),
    plain("gorgias", "a ticket of Gorgias", "messages", "from_agent", "body_text",
          each=said("from_agent", "body_text", {True: "agent", False: USER}, public="public", timestamp="sent_datetime")),
    plain("chatkit", "a thread of OpenAI's ChatKit", "data | items.data", "thread_id", "type", "created_at",
          each=said("type", "content", {"chatkit.user_message": USER, "chatkit.assistant_message": ASSISTANT},
              otherwise="event", timestamp="created_at", id="id")),
    plain("tawk", "a chat of tawk.to", "chat.messages", "sender", "msg",
          each=said("sender.t", "msg", {"v": USER, "a": "agent", "s": "event"}, timestamp="time")),
    Layout("genesys", "transcripts of Genesys Cloud", "transcripts[phrases]",
           lambda value: [Logged(list(map(_phrase, part["phrases"])), value.get("conversationId"))
                          for part in value["transcripts"]]),
    plain("fastgpt", "a chat of FastGPT", "data.list", "obj", "value", each=said("obj", "value")),
    plain("coze", "messages of Coze", "data", "role", "content_type",
          each=said("role", "content", only=("type", {"question", "answer"}), timestamp="created_at")),
    plain("chainlit", "a thread of Chainlit", "steps", "type", "output",
          each=said("type", "output", only=("type", {"user_message", "assistant_message", "system_message"}))),
    plain("drift", "a conversation of Drift", "data.messages", "author", "body",
          each=said("author.type", "body", {"contact": USER, "user": "agent"}, timestamp="createdAt")),
    plain("kore", "messages of Kore.ai", "messages", "type", "components",
          each=lambda one: as_message({"incoming": USER, "outgoing": ASSISTANT}[one["type"]],
              "\n".join(text for part in one["components"] if (text := at(part, "data.text"))),
              timestamp=one.get("createdOn"))),
    Layout("twilio", "text messages of Twilio, one a row", "sid from to body direction", message=_twilio),
    plain("twilio-conversations", "messages of a conversation of Twilio", "messages", "conversation_sid", "author", "body",
          each=said("author", "body", index="index", timestamp="date_created")),
    plain("hubspot", "a thread of HubSpot's inbox", "results", "conversationsThreadId", "type",
          each=said("direction", "text", {"INCOMING": USER, "OUTGOING": "agent", None: "event"}, only=("type", {"MESSAGE"}),
              timestamp="createdAt")),
    Layout("freshdesk", "a ticket of Freshdesk with its conversations", "conversations[body_text,incoming]", _freshdesk),
    plain("help-scout", "a conversation of Help Scout", "_embedded.threads", "type", "body", each=said(
        "type", "body", {"customer": USER, "note": "note", "lineitem": "event"}, otherwise="agent", is_html=True,
        timestamp="createdAt")),
    plain("salesforce", "entries of a conversation of Salesforce", "conversationEntries", "sender", "entryPayload",
          each=said("sender.role", "entryPayload.abstractMessage.staticContent.text", {"EndUser": USER, "Chatbot": ASSISTANT})),
    plain("liveperson", "conversations of LivePerson", "messageRecords", "messageData", id="info.conversationId",
          each=said("sentBy", "messageData.msg.text", {"Consumer": USER, "Agent": "agent"}, timestamp="timeL")),
    plain("bland", "calls of Bland", "transcripts", "user", "text", id="call_id",
          each=said("user", "text", timestamp="created_at")),
    Layout("cohere", "requests of Cohere's API, with the answer", "chat_history[] message | chat_history[] text", _cohere),
    Layout("bot-framework", _BOT_FRAMEWORK, message=_activity,
           recognises=lambda value: "channelId" in value and (value["type"] != "message" or has(value.get("from")))),
    plain("bot-framework", _BOT_FRAMEWORK, "activities", "type", each=_activity),
]  # fmt: skip
