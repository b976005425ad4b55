"""Layouts of chats between people: none of them is known to be an assistant, so the user must name most of these layouts.

They follow published schemas and readers, without a file of the product at hand: Discord Tyrrrz/DiscordChatExporter, Telegram
telegramdesktop/tdesktop, Teams microsoftgraph/microsoft-graph-docs, Matrix element-hq/element-web, Meta MasterScrat/Chatistics,
Slack its API's `conversations.history`, Signal AsamK/signal-cli and carderne/signal-export, Deepgram its API's `listen`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, ROLES, SYSTEM, USER, at, plain_text
from dialeval_plugin.core.errors import InputError

from .layout import Layout, Logged, Value, as_message, ask_who, has, messages_at, said

_BOTS = "its bots are read as the assistant"
_THREADS = f"each thread is a conversation, {_BOTS}"
_SERVICE: dict[str, Any] = {"role": "service"}
"""A message about people who joined or left, which is counted and is no turn."""
_TELEGRAM = ("_chat", "_group", "_supergroup", "_channel", "saved_messages", "replies", "verification_codes")
"""Ends of the types of Telegram's chats."""
_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_TIME = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp]\.?\s?[Mm]\.?)?"
_LINES = {
    "whatsapp": (
        rf"(?:\[{_DAY},?(?: klo)? {_TIME}\] |{_DAY},?(?: klo)? {_TIME} - )(?:(?P<speaker>[^:\n]{{1,80}}?): )?(?P<text>.*)",
    ),
    "irc": (
        rf"(?:\[?(?:{_DAY}[T ])?{_TIME}\]?\s+)?<[ @+%~&]?(?P<speaker>[^<>\s]{{1,40}})> (?P<text>.*)",
        rf"{_DAY} {_TIME}\t[ @+%~&]?(?P<speaker>[^\s<>*=-][^\t]{{0,40}})\t(?P<text>.*)",
    ),
    "line": (rf"(?:[AP]M|午[前後]|[上下]午)?{_TIME}\t(?P<speaker>[^\t]+)\t(?P<text>.*)",),
    "kakaotalk": (
        rf"\[(?P<speaker>[^\]]+)\] \[(?:오[전후] )?{_TIME}\] (?P<text>.*)",
        rf"(?:\d+[.년] ?){{2}}\d+[.일] (?:오[전후] )?{_TIME}, (?P<speaker>[^:]+) : (?P<text>.*)",
    ),
    "zoom": (rf"{_TIME}\s+From\s+(?P<speaker>[^:]{{1,60}}?)(?:\s+to\s+[^:]{{1,60}}?)?\s*:\s*(?P<text>.*)",),
    "wechat-text": (rf"{_DAY} {_TIME} (?P<speaker>\S[^:]{{0,40}})(?P<text>)",),
    "discord-text": (rf"\[(?:{_DAY}|\d\d-\w{{3}}-\d\d) {_TIME}\] (?P<speaker>[^:]{{1,80}})(?P<text>)",),
    "names": (rf"(?:[\[(]?{_TIME}[\])]? +)?(?P<speaker>[^\W\d][\w.'-]{{0,20}}(?: [\w.'-]{{1,20}}){{0,2}}): (?P<text>.*)",),
}
"""The lines with which the messages of texts begin."""
_BETWEEN = {
    "irc": ".*", "line": rf"(?:\w+\.?, )?{_DAY}(?: ?\(\w\))?", "kakaotalk": r"-{5,}.*-{5,}|\d+년 \d+월 \d+일 \w+",
    "discord-text": "={5,}.*|Exported .*",
}  # fmt: skip
"""Lines of no message, such as dates; any other continues one."""
_WHATSAPP_MEDIA = re.compile(
    r"(?:<[^<>\n]*\w\w[: ][^<>\n]*>|[^\n]+ \(file attached\)"
    r"|[^\n]+\.(?:jpe?g|png|webp|gif|mp4|3gp|mov|opus|m4a|mp3|aac|pdf|docx?|xlsx?|pptx?|vcf) \([^()\n]+\)"
    r"|(?:image|video|audio|sticker|GIF|document|Contact card) omitted|null"
    r"|(?:This message was|You) deleted(?: this message)?\.?|(?:Du hast )?[Dd]iese Nachricht (?:wurde )?gelöscht\."
    r"|(?:Se eliminó|Eliminaste) este mensaje\.?|Mensagem apagada|Você apagou esta mensagem\.?"
    r"|(?:Ce message a été supprimé|Vous avez supprimé ce message)\.?"
    r"|(?:Questo messaggio è stato eliminato|Hai eliminato questo messaggio)\.?"
    r"|(?:Dit bericht is verwijderd|Je hebt dit bericht verwijderd)\.?)(?:\n|\Z)"
)
"""The first line of a message without words, in several languages; a caption may follow."""
_WHATSAPP_END = re.compile(r" *<\w+(?:(?: \w+)+\.?|: [^<>\n]+)>\Z")
"""`<This message was edited>` or `<attached: 1.jpg>` at the end of a message, in any language."""
_MARK = re.compile(
    rf"(?:[\[(]?(?:{_DAY},? )?{_TIME}[\])]?(?: -)? +)?(?P<mark>(?:#{{1,6}} *)?(?P<sign>[^\w\s:;.,!?\"'<>()\[\]*#-]{{1,5}} )?"
    rf"(?:_?\*\*|__|\[|<)?(?P<role>you|me|{ROLES})(?: said)?(?:(?:\*\*_?|__|\]|>)?[:：](?:\*\*|__)?|(?:\*\*_?)?(?=\s*$)))",
    re.IGNORECASE,
)
"""The speaker at the beginning of a line: `User:`, `**User:**`, `[User]:`, `You said:`, or a heading `## User`."""
_MATRIX_QUOTE = re.compile(r"(?:> [^\n]*\n)+\n")
"""The quotation of the message that is answered, which Matrix writes before the answer."""
_RULE = re.compile(r"\n-{3,}\s*\Z")
"""A line that Markdown's exports draw after a message."""
_TIME_LINE = re.compile(rf"\n\s*[\[(_*]+(?:\w+: *)?(?:{_DAY}[ T,]*)?{_TIME}[\])_*]+\s*\Z")
"""The time of a message on a line of its own."""
_FIRST_LINE = re.compile(r"[^\n]*\n?")
_CUE = re.compile(r"(?:\d+:)?\d\d:\d\d[.,]\d{3} --> ")
"""The times of a subtitle (SubRip, WebVTT)."""
_PLACEHOLDER = re.compile(r"\[\w[^\[\]\n]{0,20}\]|사진|이모티콘|동영상|<사진 읽지 않음>")
_QUOTED = re.compile(r'"[^"]*\n[^"]*"')
_DIRECTION_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202c\ufeff"))
_WHATSAPP_SPACES = {0x202F: " ", 0xA0: " "}


def _telegram_message(message: Any, chat: Value) -> Any:
    if message.get("type") != "message":
        return {**message, **_SERVICE}
    pieces = message.get("text") or ""
    text = pieces if isinstance(pieces, str) else "".join(one if isinstance(one, str) else one["text"] for one in pieces)
    speaker = message.get("from") or "deleted account"
    if chat.get("type") == "bot_chat":
        speaker = ASSISTANT if speaker == chat.get("name") else USER
    return as_message(speaker, text, date=message.get("date"), id=message.get("id"))


def _text_rows(name: str) -> Callable[[Iterable[str]], Iterator[tuple[int, Value]]]:
    """Return the reader of a text whose messages begin as `_LINES` says; further lines belong to the same message."""
    beginnings, between = tuple(map(re.compile, _LINES[name])), re.compile(_BETWEEN.get(name, r"(?!)"))

    def rows(lines: Iterable[str]) -> Iterator[tuple[int, Value]]:
        begun: tuple[int, dict[str, Any]] | None = None
        for number, given in enumerate(lines, start=1):
            line = given.rstrip("\r\n").translate(_DIRECTION_MARKS)
            plain = line.translate(_WHATSAPP_SPACES)
            match = next((match for one in beginnings if (match := one.fullmatch(plain))), None)
            if match is not None:
                if begun is not None:
                    yield begun
                # This mark begins what WhatsApp itself says of a message in any language: it is an image, or deleted.
                is_note = match["speaker"] is not None and f"{match['speaker']}: \u200e" in given
                begun = number, {"speaker": match["speaker"], "text": line[match.start("text") :], "is_note": is_note}
            elif begun is not None and not between.fullmatch(line):
                begun[1]["text"] = f"{begun[1]['text']}\n{line}"
        if begun is not None:
            yield begun

    return rows


def _of_text(value: Value) -> Value:
    """Return the message of a row; a word in brackets alone stands for a picture, and LINE quotes a text of several lines."""
    text = value["text"].strip()
    if _PLACEHOLDER.fullmatch(text):
        text = ""
    own = text[1:-1] if _QUOTED.fullmatch(text) else text
    return as_message(value["speaker"].strip(), own, conversation=value.get("conversation"))


def _whatsapp(value: Value) -> Value:
    if not value["speaker"]:
        return _SERVICE
    text = _WHATSAPP_END.sub("", value["text"].strip())
    media = _FIRST_LINE.match(text) if value["is_note"] else _WHATSAPP_MEDIA.match(text)
    return as_message(value["speaker"], text[media.end() :] if media else text)


def transcript_rows(lines: Iterable[str]) -> Iterator[tuple[int, Value]]:
    """Yield the messages of a transcript, each with the line of its speaker, and the text before the first, if there is any.

    All marks are written as the first one is, and two speakers take turns after a system prompt: "Model: X", "  user: root" or
    a third role at the beginning of a line belong to a message.
    """
    first, role, texts = 1, "", [""]
    style, speakers, has_cues = "", set[str](), False
    for number, line in enumerate(lines, start=1):
        if _CUE.match(line) and (has_cues := has_cues or not role):
            if texts and texts[-1].strip().isdecimal():
                texts.pop()  # the number of the subtitle
            continue
        match = _MARK.match(line)
        name = match["role"].lower() if match else ""
        own = _style(match) if match and ("#" in match["mark"] or match["mark"].endswith((":", "：", "*", "_"))) else ""
        is_known = name in speakers or (not speakers if name == SYSTEM else len(speakers - {SYSTEM}) < 2)
        if match is None or not own or own != (style or own) or not is_known:
            texts.append(line)
            continue
        if role or "".join(texts).strip():
            yield first, _transcribed(role, texts)
        style = own
        speakers.add(name)
        first, role, texts = number, name, [line[match.end() :]]
    if role:
        yield first, _transcribed(role, texts)


def _style(mark: re.Match[str]) -> str:
    """Return a mark without a sign such as an emoji, and with "Role" or "role" in place of the role."""
    bare = mark["mark"].replace(mark["sign"] or "", "", 1)
    return bare.replace(mark["role"], "role" if mark["role"].islower() else "Role", 1)


def _transcribed(role: str, texts: list[str]) -> Value:
    text = _TIME_LINE.sub("", _RULE.sub("", "".join(texts))).strip()
    return {"role": USER if role in ("you", "me") else role or "heading", "content": text}


def _is_slack(value: object) -> bool:
    return has(value, "ts", "text") and bool(value.keys() & {"user", "bot_id", "username"})  # type: ignore[attr-defined]


def _slack_message(value: Value) -> Value:
    is_bot = bool(value.get("bot_id")) or value.get("subtype") == "bot_message"
    if value.get("subtype") not in (None, "bot_message", "thread_broadcast", "me_message", "file_share"):
        return {**_SERVICE, "ts": value["ts"], "conversation": "channel"}
    thread = value.get("thread_ts")
    speaker = ASSISTANT if is_bot else value.get("user") or value.get("username")
    return as_message(speaker, value["text"], ts=value["ts"], conversation=f"thread {thread}" if thread else "channel")


def _teams_message(message: Any) -> Any:
    sender = message.get("from") or {}
    if message["messageType"] != "message" or not any(sender.values()):
        return {**_SERVICE, "timestamp": message.get("createdDateTime")}
    person, body = sender.get("user"), message["body"]
    speaker = person.get("displayName") or person["id"] if person else ASSISTANT
    text = plain_text(body["content"]) if body["contentType"] == "html" else body["content"]
    return as_message(speaker, text, timestamp=message.get("createdDateTime"))


def _matrix_message(event: Any) -> Any:
    content = event["content"]
    if event["type"] != "m.room.message" or at(content.get("m.relates_to"), "rel_type") == "m.replace":
        return {**event, **_SERVICE}  # an edit repeats its message, which has the new text already
    text = content.get("body") if content.get("msgtype") in ("m.text", "m.notice", "m.emote") else None
    if text and has(content.get("m.relates_to"), "m.in_reply_to"):
        text = _MATRIX_QUOTE.sub("", text)
    return as_message(event["sender"], text, id=event["event_id"], timestamp=event.get("origin_server_ts"))


def _meta_message(message: Any) -> Any:
    text = _decoded(message.get("content") or "")
    return as_message(_decoded(message["sender_name"]), text, timestamp_ms=message.get("timestamp_ms"))


def _decoded(text: str) -> str:
    """Return a text in its original encoding: Meta writes each byte of its UTF-8 as a character of Latin-1."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _signal(value: Value) -> Value | str:
    if "envelope" in value:
        envelope = value["envelope"]
        sent = at(envelope, "syncMessage.sentMessage") or envelope.get("dataMessage")
        if not isinstance(sent, Mapping) or not sent.get("message"):
            return "service message"
        chat = at(sent, "groupInfo.groupId") or sent.get("destination") or envelope["source"]
        speaker = "me" if sent.get("destination") else envelope.get("sourceName") or envelope["source"]
        return as_message(speaker, sent["message"], conversation=chat, timestamp=sent.get("timestamp"))
    kind = value.get("type")
    if kind not in (None, "incoming", "outgoing"):
        return {**_SERVICE, "conversation": value.get("conversationId")}
    speaker = value.get("sender") or value.get("source") or value.get("sourceServiceId") or "them"
    speaker = "me" if kind == "outgoing" else speaker
    when = value.get("sent_at") or value.get("date")
    return as_message(speaker, value.get("body"), conversation=value.get("conversationId"), timestamp=when)


def _imessage(value: Value) -> Value:
    other = value.get("handle_id") or value.get("phone_number") or value.get("sender") or "them"
    chat = value.get("chat_identifier") or value.get("chat_id") or value.get("group_chat_name")
    speaker = "me" if str(value["is_from_me"]).lower() in ("1", "true") else str(other)
    return as_message(speaker, value.get("text"), conversation=chat, date=value.get("date"))


def _mattermost(value: Value) -> Value | list[Value] | str:
    """Return the post of a row, and the answers to it; other rows are about teams, channels and users."""
    post = value.get(str(value["type"]))
    if not isinstance(post, Mapping) or "message" not in post:
        return ""
    chat = f"{post.get('team')}/{post['channel']}" if "channel" in post else " ".join(post.get("channel_members") or ())
    place = {"conversation": f"{chat} {post['create_at']}" if post.get("replies") else chat}
    posts = [post, *(post.get("replies") or ())]
    return [as_message(one["user"], one["message"], timestamp=one["create_at"], **place) for one in posts]


def _heard(part: Value) -> Value:
    """Return a part of a transcript, whose text may be the best of several, or in its words."""
    text = part.get("transcript") or "".join(one["value"] for one in part.get("elements") or ())
    text = part["nBest"][0]["display"] if "nBest" in part else text
    if (speaker := at(part, "speaker | speaker_label | media_channel | channel")) is None and text:
        raise InputError(f"nothing says who speaks in {text[:40]!r}. Transcribe it with speakers, or take the part out.")
    return as_message(str(speaker), text, timestamp=at(part, "start | start_time | offsetInTicks"))


_discord = said("author", "content", only=("type", {"Default", "Reply", None}), id="id", timestamp="timestamp")
_mattermost_post = said("user_id", "message", only=("type", {"", None}), timestamp="create_at")
_snapchat = said("From", "Content", only=("Media Type", {"TEXT"}), timestamp="Created")
_of_people: Callable[..., Layout] = functools.partial(Layout, open_question=ask_who())
"""A layout of a chat without a known assistant, which the user must name."""
LAYOUTS = [
    _of_people("discord", "DiscordChatExporter's JSON", "guild channel messages",
               messages_at("messages", id="channel.id", each=_discord), open_question=ask_who(_BOTS)),
    _of_people("meta", "Instagram's or Messenger's export", "participants messages[sender_name]",
               messages_at("messages", id="thread_path", each=_meta_message)),
    Layout("telegram", "Telegram's export, of a chat or of all",
           read=lambda value: [_telegram_message(one, value) for one in value["messages"]],
           recognises=lambda value: isinstance(value["messages"], list) and value["type"].endswith(_TELEGRAM)),
    Layout("transcript", "a text whose lines begin with roles: `User:`, `Assistant:`", rows=transcript_rows,
           message=lambda value: value, may_have_chats=True),
    _of_people("whatsapp", "WhatsApp's export, a text", rows=_text_rows("whatsapp"), message=_whatsapp),
    *(
        _of_people(name, about, rows=_text_rows(name), message=_of_text, told_by=told_by, may_have_chats=name == "names")
        for name, about, told_by in (
            ("irc", "a log of IRC", "line"), ("line", "LINE's export, a text", "line"),
            ("kakaotalk", "KakaoTalk's export, a text", "line"), ("zoom", "Zoom's chat, a text", "line"),
            ("wechat-text", "a text of WeChat or QQ", "speakers"),
            ("discord-text", "DiscordChatExporter's text", "speakers"),
            ("names", "a text whose messages begin with names, `Ann: Hi.`", "speaker again"),
        )
    ),
    _of_people("mattermost", "Mattermost's export, a post a row", message=_mattermost,
               recognises=lambda value: value == {"type": "version", "version": 1}
               or has(value[value["type"]], "message", "user")),
    _of_people("mattermost", "posts of a channel of Mattermost's API", "order[] posts{}",
               lambda value: [*map(_mattermost_post, value["posts"].values())]),
    _of_people("skype", "Skype's export", "MessageList[]", messages_at("MessageList", each=said(
        "from", "content", only=("messagetype", {"Text", "RichText"}), is_html=True, timestamp="originalarrivaltime"))),
    _of_people("wechat", "messages of WeChat's data base, a table", "StrContent IsSender Type",
               message=lambda value: as_message("me" if str(value["IsSender"]) == "1" else value.get("Sender") or "them",
                   value["StrContent"] if str(value["Type"]) == "1" else None,
                   conversation=value.get("StrTalker") or value.get("TalkerId"), timestamp=value.get("CreateTime"))),
    _of_people("slack", "Slack's export or API", _is_slack, message=_slack_message, open_question=ask_who(_THREADS)),
    _of_people("signal", "messages of Signal's desktop, sigexport or signal-cli, one a row",
               "conversationId body type sent_at | sender body date reactions | envelope{source,timestamp}", message=_signal),
    _of_people("imessage", "messages of iMessage, one a row", "is_from_me text", message=_imessage),
    _of_people("rocket-chat", "messages of Rocket.Chat's API", "messages[msg,u,ts]",
               messages_at("messages", each=said("u.name | u.username", "msg", timestamp="ts"))),
    _of_people("snapchat", "chat_history.json of Snapchat, chats by their names",
               lambda value: any(has(chat[0], "From", "Media Type", "Content") for chat in value.values()),
               lambda value: [Logged([*map(_snapchat, chat)], name) for name, chat in value.items()]),
    _of_people("gong", "transcripts of Gong's calls", "callTranscripts[transcript]",
               lambda value: [
                   Logged([as_message(part["speakerId"], " ".join(one["text"] for one in part["sentences"]))
                           for part in call["transcript"]], call["callId"])
                   for call in value["callTranscripts"]]),
    _of_people("otree", "the chat of an experiment in oTree, a message a row",
               "participant_code channel nickname body timestamp",
               message=said("nickname", "body", conversation="channel", timestamp="timestamp")),
    _of_people("teams", "messages of Microsoft Teams from Graph's API", "value[messageType,body]",
               messages_at("value", each=_teams_message), open_question=ask_who(_BOTS)),
    _of_people("matrix", "Element's export of a Matrix room", "messages[event_id,sender,content]",
               messages_at("messages", each=_matrix_message)),
    _of_people("speech", "a transcript with speakers of Deepgram, Amazon, Azure, Rev AI or Twilio",
               " | ".join(("results.utterances[speaker,transcript]", "results.audio_segments[speaker_label,transcript]",
                           "recognizedPhrases[nBest]", "monologues[speaker,elements]", "sentences[media_channel,transcript]")),
               messages_at("results.utterances | results.audio_segments | recognizedPhrases | monologues | sentences",
                           each=_heard)),
]  # fmt: skip
