"""Layouts of chatbot and customer service platforms: trackers, transcripts and tickets.

Schemas: Voiceflow in Tahmidbugs/UIF-chatbot-analytics, `exampleResponse.js`. The others follow the documentation of each API,
without a file of the product at hand.
"""

from __future__ import annotations

from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, SYSTEM, USER, at, parsed_cell

from .layout import Layout, Logged, Value, answered, as_message, elements, has, id_of, plain, said

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
