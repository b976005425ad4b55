"""Layouts of chatbot and customer service platforms: trackers, transcripts and tickets.

Schemas: Voiceflow in Tahmidbugs/UIF-chatbot-analytics, `exampleResponse.js`. The others follow the documentation of each API,
without a file of the product at hand: Rasa (tracker events), Botpress (listMessages), Amazon Connect (Contact Lens), ElevenLabs
(conversations), Retell (get-call), Vapi (calls), Intercom (conversations), Zendesk (comments), Twilio (messages), Cohere (chat
v1), Chatwoot (messages), LiveChat (chats), Freshchat (messages), HubSpot (threads), Help Scout (threads), Freshdesk
(tickets), Salesforce (entries), Bland (calls), Gorgias (tickets), Front, tawk.to, Hume (chat events), Genesys (transcripts),
FastGPT, Coze and Chainlit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, SYSTEM, USER, Fields, at, plain_text

from .layout import Layout, Logged, Value, as_message, elements, has, id_of, list_at, plain, said

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


def _botpress(value: Value) -> Value:
    payload = value["payload"]
    text = payload.get("text") if value.get("type", "text") in ("text", "choice", "markdown") else None
    role = USER if value["direction"] == "incoming" else ASSISTANT
    thread, when = (value.get("conversationId") or value.get("threadId")), (value.get("createdAt") or value.get("createdOn"))
    return as_message(role, text or payload.get("markdown"), conversation=thread, time=when)


def _voiceflow(value: Value) -> Value:
    payload, text = value["payload"], None
    if value["type"] == "request":
        inner = payload.get("payload")
        text = inner if isinstance(inner, str) else at(inner, "query") or at(inner, "label")
    elif value["type"] in ("text", "speak"):
        text = at(payload, "payload.message") or payload.get("message")
    role = {"request": USER, "text": ASSISTANT, "speak": ASSISTANT}.get(value["type"])
    return as_message(role, text) if role else _RELAYED


def _segment(segment: Any) -> Any:
    role = at(segment, "segmentParticipant.role") or at(segment, "segment_participant.role")
    return as_message(role, segment["text"])


def _dialogflow(value: Value) -> list[Value]:
    result = value["queryResult"]
    texts = [text for one in result.get("responseMessages") or () for text in elements(at(one, "text.text") or [])]
    question = result.get("queryText") or result.get("text")
    answer = result.get("fulfillmentText") or "\n".join(texts)
    session = {"conversation": value.get("session")}
    return [as_message(USER, question, **session), as_message(ASSISTANT, answer, **session)]


def _lex(value: Value) -> list[Value]:
    answers = [one.get("content") for one in value.get("messages") or ()] or [at(value, "botResponse") or value.get("message")]
    answer = "\n".join(one for one in answers if isinstance(one, str))
    session = {"conversation": value.get("sessionId"), "timestamp": value.get("timestamp")}
    return [as_message(USER, value["inputTranscript"], **session), as_message(ASSISTANT, answer, **session)]


def _watson(value: Value) -> Iterator[Logged]:
    """Yield the conversations of logs, which list one request after another, of any user."""
    sessions: dict[object, list[Any]] = {}
    for one in value["logs"]:
        answer = one["response"]
        id = one.get("session_id") or at(answer, "context.conversation_id") or at(one, "request.context.conversation_id")
        texts = answer["output"].get("text") or [part.get("text") for part in answer["output"].get("generic") or ()]
        said = "\n".join(filter(None, texts))
        for role, text, time in ((USER, at(one, "request.input.text"), "request"), (ASSISTANT, said, "response")):
            message = as_message(role, text, timestamp=one.get(f"{time}_timestamp"))
            sessions.setdefault(id, []).append(message)
    for id, messages in sessions.items():
        yield Logged(messages, id)


def _connect(value: Value) -> list[Logged]:
    roles = {one["ParticipantId"]: one.get("ParticipantRole") for one in value.get("Participants") or ()}

    def message(one: Any) -> Any:
        if one.get("Type", "MESSAGE") != "MESSAGE":
            return _RELAYED
        role = one.get("ParticipantRole") or roles.get(one["ParticipantId"]) or one["ParticipantId"]
        return as_message(ASSISTANT if role == "CUSTOM_BOT" else role, one.get("Content"), id=one.get("Id"))

    id = value.get("ContactId") or at(value, "CustomerMetadata.ContactId")
    return [Logged([message(one) for one in value["Transcript"]], id)]


def _intercom(value: Value) -> list[Logged]:
    parts = [{**value["source"], "part_type": "comment"}, *value["conversation_parts"]["conversation_parts"]]
    return [Logged([_intercom_part(one) for one in parts], value.get("id"))]


def _intercom_part(part: Any) -> Any:
    if part["part_type"] not in ("comment", "open", "assignment", "quick_reply") or not part.get("body"):
        return {"role": "note" if part["part_type"] == "note" else "event"}
    kind = part["author"]["type"]
    return as_message(_INTERCOM.get(kind, kind), plain_text(part["body"]))


def _zendesk(value: Value) -> list[Logged]:
    ticket = value.get("ticket") or value
    asks = ticket.get("requester_id", value["comments"][0]["author_id"])  # the author of the ticket wrote its first comment

    def message(comment: Any) -> Any:
        role = "note" if comment.get("public") is False else "customer" if comment["author_id"] == asks else "agent"
        return as_message(role, comment.get("plain_body") or comment["body"], id=comment.get("id"))

    return [Logged([message(one) for one in value["comments"]], ticket.get("id"))]


def _zendesk_chat(message: Any) -> Any:
    kind = message.get("sender_type") or ("Visitor" if message.get("name") == "Visitor" else "Agent")
    is_said = message["type"] == "chat.msg" and kind != "Trigger"
    return as_message(kind, message.get("msg"), timestamp=message.get("timestamp")) if is_said else _RELAYED


def _livechat(value: Value) -> list[Logged]:
    roles = {one["id"]: one["type"] for one in value["users"]}
    events = [one for thread in value["threads"] for one in thread.get("events") or ()]
    messages = [as_message(roles[one["author_id"]], one["text"]) if one["type"] == "message" else _RELAYED for one in events]
    return [Logged(messages, id_of(value))]


def _freshchat(message: Any) -> Any:
    texts = [text for part in message["message_parts"] if (text := at(part, "text.content"))]
    role = message["actor_type"] if message.get("message_type", "normal") == "normal" else "note"
    return as_message(role, "\n".join(texts), timestamp=message.get("created_time"))


def _hubspot(message: Any) -> Any:
    role = {"INCOMING": USER, "OUTGOING": "agent"}.get(message.get("direction"), "event")
    is_said = message["type"] == "MESSAGE"
    return as_message(role if is_said else "note", message.get("text"), timestamp=message.get("createdAt"))


def _freshdesk(value: Value) -> list[Logged]:
    asked = [as_message(USER, value.get("description_text"), timestamp=value.get("created_at"))]
    note = said("incoming", "body_text", {True: USER, False: "agent"}, time="created_at", note="private")
    return [Logged([*asked, *map(note, value["conversations"])], value.get("id"))]


def _helpscout(thread: Any) -> Any:
    role = {"customer": USER, "note": "note", "lineitem": "event"}.get(thread["type"], "agent")
    return as_message(role, plain_text(thread["body"] or ""), timestamp=thread.get("createdAt"))


def _twilio(value: Value) -> Value:
    sides = sorted(str(value[name]) for name in ("from", "to"))
    role = USER if value["direction"] == "inbound" else ASSISTANT
    return as_message(role, value["body"], conversation=" ".join(sides), sent_at=value.get("date_sent"))


def _cohere(value: Value) -> list[Logged]:
    asked = [as_message(USER, value["message"])] if value.get("message") else []
    answer = at(value, "response.text") or value.get("text")
    answered = [as_message(ASSISTANT, answer)] if asked and answer else []  # otherwise it is in the history
    prompt = [as_message(SYSTEM, value["preamble"])] if value.get("preamble") else []
    messages = [*prompt, *list_at(value, "chat_history"), *asked, *answered]
    return [Logged(messages, id_of(value), len(messages) - 1 if answered else 0)]


_phrase = said("participantPurpose", "text", {"external": USER, "internal": "agent"})


def _coze(message: Any) -> Any:
    return {**message, "role": message["role"] if message.get("type") in ("question", "answer") else "event"}


def _activity(value: Value) -> Value:
    place = {"conversation": at(value, "conversation.id"), "timestamp": value.get("timestamp"), "id": value.get("id")}
    if value["type"] != "message":
        return {**_RELAYED, **place}
    sender = value["from"]
    role = {0: ASSISTANT, 1: USER}.get(sender.get("role"), sender.get("role") or sender.get("name") or sender["id"])
    return as_message(role, value.get("text") or value.get("speak"), **place)


_BOT_FRAMEWORK = "Microsoft's Bot Framework or Copilot Studio"

LAYOUTS = [
    Layout(
        "rasa", "a tracker of Rasa", "events[event]", _rasa,
        open_question="is a tracker of Rasa, which holds all sessions of a user. Read each as a conversation by --layout rasa",
    ),
    Layout("botpress", "messages of Botpress", "direction payload{}", message=_botpress),
    Layout(
        "voiceflow", "a transcript of Voiceflow, a trace a row", "turnID type format payload{}", message=_voiceflow
    ),
    plain("ccai", "Google's Contact Center AI", "transcript.transcriptSegments", each=_segment),
    Layout("dialogflow", "answers of Dialogflow to what users said, one a row", "queryResult{}", message=_dialogflow),
    Layout("lex", "conversation logs of Amazon Lex, a request a row", "inputTranscript sessionId", message=_lex),
    Layout("watson", "logs of Watson Assistant", "logs[request,response]", _watson),
    Layout("connect", "transcripts of Amazon Connect's Contact Lens", "Transcript[ParticipantId]", _connect),
    plain("retell", "calls of Retell", "transcript_with_tool_calls", id="call_id"),
    plain("retell", "calls of Retell", "transcript_object", id="call_id"),
    plain("vapi", "calls of Vapi", "artifact.messages"),
    Layout("intercom", "a conversation of Intercom", "source conversation_parts.conversation_parts[]", _intercom),
    Layout("zendesk", "a ticket of Zendesk with its comments", "comments[author_id,body]", _zendesk),
    Layout(
        "chatwoot", "a conversation of Chatwoot", "message_type content sender created_at",
        message=said("message_type", "content", _CHATWOOT, time="created_at", note="private"),
    ),
    Layout("livechat", "a chat of LiveChat", "threads[events] users[id,type]", _livechat),
    plain("freshchat", "a conversation of Freshchat", "messages", "message_parts", "actor_type", each=_freshchat),
    plain("zendesk-chat", "a chat of Zendesk", "history", "type", "channel", each=_zendesk_chat),
    plain(
        "gorgias", "a ticket of Gorgias", "messages", "from_agent", "body_text", fields=Fields(None, "body_text"),
    ),
    plain(
        "front", "messages of a conversation of Front", "_results", "is_inbound", "text",
        each=said("is_inbound", "text", {True: USER, False: "agent"}, time="created_at"),
    ),
    plain(
        "tawk", "a chat of tawk.to", "chat.messages", "sender", "msg",
        each=said("sender.t", "msg", {"v": USER, "a": "agent", "s": "event"}, time="time"),
    ),
    plain("hume", "chats of Hume's voices", "events_page", "role", "message_text", each=said("role", "message_text")),
    Layout(
        "genesys", "transcripts of Genesys Cloud", "transcripts[phrases]",
        lambda value: [
            Logged(list(map(_phrase, part["phrases"])), value.get("conversationId")) for part in value["transcripts"]
        ],
    ),
    plain("fastgpt", "a chat of FastGPT", "data.list", "obj", "value", each=said("obj", "value")),
    plain("coze", "messages of Coze", "data", "role", "content_type", each=_coze),
    plain(
        "chainlit", "a thread of Chainlit", "steps", "type", "output",
        each=lambda step: as_message(step["type"] if step["type"].endswith("_message") else "event", step["output"]),
    ),
    plain(
        "drift", "a conversation of Drift", "data.messages", "author", "body",
        each=said("author.type", "body", {"contact": USER, "user": "agent"}, time="createdAt"),
    ),
    plain(
        "kore", "messages of Kore.ai", "messages", "type", "components",
        each=lambda one: as_message(
            {"incoming": USER, "outgoing": ASSISTANT}[one["type"]],
            "\n".join(text for part in one["components"] if (text := at(part, "data.text"))), timestamp=one.get("createdOn"),
        ),
    ),
    Layout("twilio", "text messages of Twilio, one a row", "sid from to body direction", message=_twilio),
    plain(
        "twilio-conversations", "messages of a conversation of Twilio", "messages", "conversation_sid", "author", "body",
        fields=Fields("author", "body"),
    ),
    plain("hubspot", "a thread of HubSpot's inbox", "results", "conversationsThreadId", "type", each=_hubspot),
    Layout("freshdesk", "a ticket of Freshdesk with its conversations", "conversations[body_text,incoming]", _freshdesk),
    plain("help-scout", "a conversation of Help Scout", "_embedded.threads", "type", "body", each=_helpscout),
    plain(
        "salesforce", "entries of a conversation of Salesforce", "conversationEntries", "sender", "entryPayload",
        each=said("sender.role", "entryPayload.abstractMessage.staticContent.text", {"EndUser": USER, "Chatbot": ASSISTANT}),
    ),
    plain("bland", "calls of Bland", "transcripts", "user", "text", id="call_id", fields=Fields("user", "text")),
    Layout("cohere", "requests of Cohere's API, with the answer", "chat_history[] message | chat_history[] text", _cohere),
    Layout(
        "bot-framework", _BOT_FRAMEWORK, message=_activity,
        recognises=lambda value: "channelId" in value and (value["type"] != "message" or has(value.get("from"))),
    ),
    plain("bot-framework", _BOT_FRAMEWORK, "activities", "type", each=_activity),
]  # fmt: skip
