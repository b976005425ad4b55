"""Peculiarities of exports, messengers and platforms: branches, tools, thinking, notes, texts that nobody said."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dialeval_plugin.conversations.layouts import _POSSIBLE, LAYOUTS, find
from dialeval_plugin.conversations.record import Conversation, ReadingOptions
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.scored_input import Source
from tests.conversations.writers import WRITERS, layout_of, text_of

TEA, DO, BREW, TWO, NO = "Do you like tea?", "I do, green tea.", "How do you brew it?", "Two minutes.", "No idea."
TALK = [("user", TEA), ("assistant", DO)]


class Case(NamedTuple):
    """File of a product, and its conversations, each as its id and its turns."""

    written: Any
    expected: dict[str, list[tuple[str, str]]]
    left_out: dict[str, int] = {}  # noqa: RUF012 # nobody changes it
    options: ReadingOptions = ReadingOptions()


def node(key: str, parent: str | None, message: Any) -> dict[str, Any]:
    return {"id": key, "parent": parent, "children": [], "message": message}


def gpt(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    return {"author": {"role": role}, "recipient": "all", "content": content, **fields}


CHATGPT = {"conversation_id": "c", "current_node": "f", "mapping": {
    "root": node("root", None, None),
    "a": node("a", "root", gpt("user", {"content_type": "user_editable_context", "user_profile": "I am Ann."})),
    "b": node("b", "a", gpt("user", {"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "file"},
        {"content_type": "audio_transcription", "text": TEA, "direction": "in"}]})),
    "c": node("c", "b", gpt("assistant", {"content_type": "code", "language": "python", "text": "1 + 1"}, recipient="python")),
    "x": node("x", "c", gpt("assistant", "")),
    "d": node("d", "x", gpt("tool", {"content_type": "execution_output", "text": "2"})),
    "e": node("e", "d", gpt("assistant", NO)),
    "t": node("t", "d", gpt("assistant", {"content_type": "thoughts", "thoughts": []})),
    "f": node("f", "t", gpt("assistant", DO)),
}}  # fmt: skip

CLAUDE = {"uuid": "c", "current_leaf_message_uuid": "m3", "chat_messages": [
    {"uuid": "m1", "sender": "human", "text": TEA, "content": [{"type": "text", "text": TEA}], "attachments": []},
    {"uuid": "m2", "sender": "assistant", "text": NO, "content": [], "parent_message_uuid": "m1"},
    {"uuid": "m3", "sender": "assistant", "parent_message_uuid": "m1",
     "text": f"Let me look. This block is not supported. {DO}", "content": [
        {"type": "text", "text": "Let me look."}, {"type": "tool_use", "name": "search", "input": {}},
        {"type": "tool_result", "content": [{"type": "text", "text": "tea"}]}, {"type": "text", "text": DO}]},
]}  # fmt: skip

LIBRECHAT = {"conversationId": "c", "recursive": True, "messages": [
    {"messageId": "m1", "sender": "User", "isCreatedByUser": True, "text": TEA, "children": [
        {"messageId": "m2", "sender": "GPT", "isCreatedByUser": False, "text": "", "content": [
            {"type": "think", "think": "Hm."}, {"type": "text", "text": DO}], "children": []},
        {"messageId": "m3", "sender": "GPT", "isCreatedByUser": False, "text": NO, "children": []}]},
]}  # fmt: skip

CHERRY = {"indexedDB": {"topics": [{"id": "c", "messages": [
    {"id": "m1", "role": "user"}, {"id": "m2", "role": "assistant", "askId": "m1"},
    {"id": "m3", "role": "assistant", "askId": "m1", "foldSelected": True}]}],
    "message_blocks": [{"messageId": "m1", "type": "main_text", "content": TEA},
                       {"messageId": "m2", "type": "main_text", "content": NO},
                       {"messageId": "m3", "type": "thinking", "content": "Hm."},
                       {"messageId": "m3", "type": "main_text", "content": DO}]}}  # fmt: skip

VSCODE = {"sessionId": "c", "requests": [{"message": {"text": TEA, "parts": []}, "response": [
    {"kind": "thinking", "value": "Hm."}, {"kind": "toolInvocationSerialized", "toolId": "t"},
    {"value": "I do, "}, {"kind": "inlineReference", "name": "green"},
    {"kind": "markdownContent", "content": {"value": " tea."}},
]}]}  # fmt: skip


def session(key: str, parent: str | None, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": key, "parentUuid": parent, "sessionId": "c", **fields,
            "message": {"role": kind, "content": content}}  # fmt: skip


CLAUDE_CODE = [
    {"type": "file-history-snapshot", "messageId": "a", "snapshot": {}},
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "c", "content": TEA},
    session("a", None, "user", "<command-name>/clear</command-name>"),
    session("b", "a", "user", TEA),
    session("c", "b", "assistant", [{"type": "text", "text": NO}]),
    session("d", "b", "assistant", [{"type": "thinking", "thinking": "Hm."}]),
    session("e", "d", "assistant", [{"type": "tool_use", "name": "Task", "input": {}}]),
    session("s", None, "user", "Find tea.", isSidechain=True),
    session("t", "s", "assistant", [{"type": "text", "text": "Found."}], isSidechain=True),
    session("f", "e", "user", [{"type": "tool_result", "content": "Found."}]),
    {"type": "system", "uuid": "g", "parentUuid": None, "logicalParentUuid": "f", "sessionId": "c"},
    session("h", "g", "user", "This session goes on from another.", isCompactSummary=True),
    session("i", "h", "assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True),
    session("j", "i", "assistant", [{"type": "text", "text": DO}]),
]


def item(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2025-01-02T10:00:00Z", "type": kind, "payload": payload}


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **fields})


CODEX = [
    item("session_meta", {"id": "c"}), item("turn_context", {"cwd": "."}), said("developer", "Be kind."),
    said("user", "<environment_context>\n  <cwd>.</cwd>\n</environment_context>"), said("user", TEA),
    item("event_msg", {"type": "user_message", "message": TEA}), item("response_item", {"type": "reasoning", "summary": []}),
    said("assistant", "I look it up.", phase="commentary"), item("response_item", {"type": "function_call", "name": "shell"}),
    item("event_msg", {"type": "agent_message", "message": DO}), said("assistant", DO, phase="final_answer"),
]  # fmt: skip

DISCORD = {"guild": {}, "channel": {"id": "c"}, "messages": [
    {"id": "m1", "type": "GuildMemberJoin", "content": "Joined the server.", "author": {"name": "ann", "isBot": False}},
    {"id": "m2", "type": "Default", "content": TEA, "author": {"name": "ann", "nickname": "Ann", "isBot": False}},
    {"id": "m3", "type": "Reply", "content": DO, "author": {"name": "helper", "isBot": True}}]}  # fmt: skip

META = {"participants": [{"name": "Ann"}], "thread_path": "inbox/c", "messages": [
    {"sender_name": "BjÃ¶rn", "timestamp_ms": 3, "content": "Gern ð\x9f\x98\x80"},
    {"sender_name": "Ann", "timestamp_ms": 2, "photos": [{}]},
    {"sender_name": "Ann", "timestamp_ms": 1, "content": TEA}]}  # fmt: skip

TELEGRAM = {"chats": {"about": "All chats.", "list": [
    {"name": "Tea Bot", "type": "bot_chat", "id": 1, "messages": [
        {"id": 1, "type": "service", "actor": "Ann", "action": "phone_call", "text": ""},
        {"id": 2, "type": "message", "from": "Ann", "text": ["Do you like ", {"type": "bold", "text": "tea"}, "?"]},
        {"id": 3, "type": "message", "from": "Tea Bot", "text": DO}]},
    {"name": "Bob", "type": "personal_chat", "id": 2, "messages": [
        {"id": 1, "type": "message", "from": "Ann", "text": TEA},
        {"id": 2, "type": "message", "from": "Bob", "text": "Yes."}]}]}}  # fmt: skip

WHATSAPP = (
    "12/31/24, 9:59 PM - Messages and calls are end-to-end encrypted.\n"
    "12/31/24, 10:00 PM - Ann Lee: Do you like\r\ntea: green?\n"
    "12/31/24, 10:01 PM - Bob: <Media omitted>\n12/31/24, 10:02\u202fPM - Bob: I do. <This message was edited>\n"
)
WHATSAPP_PHONE = (
    "[31.12.24, 22:00:00] Ann: \u200eMessages are encrypted.\n[31.12.24, 22:00:01] Ann: Tea?\n\n[31.12.24, 22:01:00] Bob: No\n"
)

SLACK: list[dict[str, Any]] = [
    {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> has joined", "ts": "1.0"},
    {"type": "message", "user": "U1", "user_profile": {"real_name": "Ann"}, "text": TEA, "ts": "2.0", "thread_ts": "2.0"},
    {"type": "message", "user": "U2", "text": "Lunch?", "ts": "3.0"},
    {"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": DO, "ts": "4.0", "thread_ts": "2.0"},
    {"type": "message", "user": "U1", "text": "Yes.", "ts": "5.0"},
]

TRANSCRIPT = f"""# Tea

## You said:
{TEA}

## ChatGPT said:

I do,
and note: green tea.
"""

RASA = {"sender_id": "c", "events": [
    {"event": "session_started"}, {"event": "action", "name": "action_listen"}, {"event": "user", "text": "Tee?"},
    {"event": "bot", "text": NO}, {"event": "rewind"}, {"event": "user", "text": TEA}, {"event": "slot", "name": "x"},
    {"event": "bot", "text": DO, "data": {}}, {"event": "bot", "text": None, "data": {"attachment": {}}},
    {"event": "session_started"}, {"event": "user", "text": BREW}, {"event": "bot", "text": TWO}]}  # fmt: skip

INTERCOM = {"type": "conversation", "id": "c", "source": {"author": {"type": "user"}, "body": f"<p>{TEA}</p>"},
    "conversation_parts": {"conversation_parts": [
        {"part_type": "note", "author": {"type": "admin"}, "body": "<p>Be quick.</p>"},
        {"part_type": "close", "author": {"type": "admin"}, "body": None},
        {"part_type": "comment", "author": {"type": "admin"}, "body": "<p>I do,<br>green &amp; black.</p>"}]}}  # fmt: skip

DEEPSEEK = {"data": {"biz_data": {"chat_session": {"id": "c", "current_message_id": 3}, "chat_messages": [
    {"message_id": 1, "parent_id": None, "role": "USER", "fragments": [{"type": "REQUEST", "content": TEA}]},
    {"message_id": 2, "parent_id": 1, "role": "ASSISTANT", "fragments": [{"type": "RESPONSE", "content": NO}]},
    {"message_id": 3, "parent_id": 1, "role": "ASSISTANT", "fragments": [
        {"type": "THINK", "content": "Hm."}, {"type": "RESPONSE", "content": DO}]}]}}}  # fmt: skip

GROK = {"conversations": [{"conversation": {"id": "c"}, "responses": [
    {"response": {"_id": "m1", "sender": "human", "message": TEA}},
    {"response": {"_id": "m2", "sender": "grok-3", "message": DO, "parent_response_id": "m1", "thinking_trace": "Hm."}},
]}]}  # fmt: skip

COPILOT = [  # newest first
    {"CreatedAt": "1/2/2025 10:01:00 +00:00", "MessageContent": DO, "Author": "Copilot", "ChatName": "Tea"},
    {"CreatedAt": "1/2/2025 9:59:00 +00:00", "MessageContent": TEA, "Author": "user", "ChatName": "Tea"},
]

SIGNAL = [
    {"envelope": {"source": "+1", "sourceName": "Ann", "timestamp": 1, "dataMessage": {"timestamp": 1, "message": TEA}}},
    {"envelope": {"source": "+1", "sourceName": "Ann", "timestamp": 2, "receiptMessage": {"when": 2}}},
    {"envelope": {"source": "+2", "timestamp": 3,
                  "syncMessage": {"sentMessage": {"destination": "+1", "timestamp": 3, "message": "Yes."}}}},
]  # fmt: skip

MATRIX = {"room_name": "Tea", "messages": [
    {"type": "m.room.member", "sender": "@ann:x", "content": {"membership": "join"}, "event_id": "$0"},
    {"type": "m.room.message", "sender": "@ann:x", "content": {"msgtype": "m.text", "body": TEA}, "event_id": "$1"},
    {"type": "m.room.message", "sender": "@ann:x", "content": {"msgtype": "m.image", "body": "tea.png"}, "event_id": "$2"},
    {"type": "m.room.message", "sender": "@bob:x", "content": {"msgtype": "m.text", "body": "Yes."}, "event_id": "$3"},
    {"type": "m.room.message", "sender": "@bob:x", "event_id": "$4", "content": {
        "msgtype": "m.text", "body": "* Yes.", "m.relates_to": {"rel_type": "m.replace", "event_id": "$3"}}},
]}  # fmt: skip

DEEPGRAM = {
    "metadata": {},
    "results": {
        "channels": [],
        "utterances": [
            {"speaker": 0, "transcript": TEA, "start": 0.1, "end": 1.0},
            {"speaker": 1, "transcript": "Yes.", "start": 1.1, "end": 2},
        ],
    },
}

ZENDESK = {"ticket": {"id": 7, "requester_id": 1}, "comments": [
    {"id": 1, "author_id": 1, "body": TEA, "public": True}, {"id": 2, "author_id": 2, "body": "Be quick.", "public": False},
    {"id": 3, "author_id": 2, "body": DO, "plain_body": DO, "public": True}]}  # fmt: skip

CASES: dict[str, Case] = {
    "chatgpt": Case(CHATGPT, {"c": TALK}, {
        "developer message": 1, "image_asset_pointer part": 1, "tool message": 2, "textless message": 1,
        "reasoning message": 1}),
    "claude": Case(CLAUDE, {"c": [TALK[0], ("assistant", f"Let me look.\n{DO}")]}, {"tool_use part": 1, "tool_result part": 1}),
    "claude, branches": Case({**CLAUDE, "current_leaf_message_uuid": None}, {
        "c": [TALK[0], ("assistant", NO)], "c/2": [TALK[0], ("assistant", f"Let me look.\n{DO}")]},
        {"tool_use part": 1, "tool_result part": 1}, ReadingOptions(branches="all")),
    "deepseek of its page": Case(DEEPSEEK, {"c": TALK}, {"THINK part": 1}),
    "grok": Case(GROK, {"c": TALK}),
    "librechat": Case(LIBRECHAT, {"c": TALK, "c/2": [TALK[0], ("assistant", NO)]}, {"think part": 1},
                      ReadingOptions(branches="all")),
    "cherry-studio": Case(CHERRY, {"c": TALK}, {"thinking part": 1}, ReadingOptions(branches="shown")),
    "vscode-chat": Case(VSCODE, {"c": TALK}, {"thinking part": 1, "toolInvocationSerialized part": 1}),
    "claude-code": Case(CLAUDE_CODE, {"c": TALK}, {
        "sidechain message": 2, "event message": 4, "thinking part": 1, "textless message": 3, "tool_use part": 1,
        "tool_result part": 1}),
    "codex": Case(CODEX, {"0": TALK}, {
        "developer message": 2, "reasoning message": 1, "reasoning passage": 1, "function_call message": 1}),
    "discord": Case(DISCORD, {"c": [("Ann", TEA), ("assistant", DO)]}, {"event message": 1},
                    ReadingOptions(layout="discord")),
    "meta": Case(META, {"inbox/c": [("Ann", TEA), ("Björn", "Gern 😀")]}, {"textless message": 1},
                 ReadingOptions(layout="meta")),
    "copilot": Case(COPILOT, {"Tea": TALK}),
    "signal": Case(SIGNAL, {"+1": [("Ann", TEA), ("me", "Yes.")]}, {"service message": 1}, ReadingOptions(layout="signal")),
    "telegram": Case(TELEGRAM, {"1": TALK, "2": [("Ann", TEA), ("Bob", "Yes.")]}, {"service message": 1}),
    "whatsapp": Case(WHATSAPP, {"chat_00000": [("Ann Lee", "Do you like\ntea: green?"), ("Bob", "I do.")]},
                     {"service message": 1, "textless message": 1}, ReadingOptions(layout="whatsapp")),
    "whatsapp of a phone": Case(WHATSAPP_PHONE, {"chat_00000": [("Ann", "Tea?"), ("Bob", "No")]}, {"textless message": 1},
                                ReadingOptions(layout="whatsapp")),
    "transcript": Case(f"\n[User]: {TEA}\n[Assistant]: <think>Hm.</think>{DO}\n", {"chat_00000": TALK},
                       {"reasoning passage": 1}),
    "slack": Case(SLACK, {"channel": [("U2", "Lunch?"), ("U1", "Yes.")], "thread 2.0": [("U1", TEA), ("assistant", DO)]},
                  {"service message": 1}, ReadingOptions(layout="slack")),
    "slack of the API": Case({"ok": True, "messages": SLACK[::-1]}, {
        "channel": [("U2", "Lunch?"), ("U1", "Yes.")], "thread 2.0": [("U1", TEA), ("assistant", DO)]},
        {"service message": 1}, ReadingOptions(layout="slack")),
    "rasa": Case(RASA, {"c/1": TALK, "c/2": [("user", BREW), ("assistant", TWO)]}, {"textless message": 1},
                 ReadingOptions(layout="rasa")),
    "intercom": Case(INTERCOM, {"c": [TALK[0], ("assistant", "I do,\ngreen & black.")]},
                     {"internal message": 1, "event message": 1}),
    "matrix": Case(MATRIX, {"0": [("@ann:x", TEA), ("@bob:x", "Yes.")]},
                   {"service message": 2, "textless message": 1}, ReadingOptions(layout="matrix")),
    "speech": Case(DEEPGRAM, {"0": [("0", TEA), ("1", "Yes.")]}, {},
                     ReadingOptions(layout="speech")),
    "zendesk": Case(ZENDESK, {"7": [("customer", TEA), ("agent", DO)]}, {"note message": 1}),
}  # fmt: skip


def read(written: Any, options: ReadingOptions, folder: Path) -> tuple[Source, list[Conversation]]:
    if isinstance(written, str):
        (folder / "chat.txt").write_text(written, encoding="utf-8", newline="")
        source = Source(str(folder / "chat.txt"), options)
    else:
        source = Source("conversations", options, given=written if isinstance(written, list) else [written])
    return source, [one for one in source.conversations() if isinstance(one, Conversation)]


@pytest.mark.parametrize("name", CASES)
def test_what_was_said_is_told_from_what_was_not(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    source, found = read(case.written, case.options, tmp_path)
    assert {one.id: [(turn.speaker, turn.text) for turn in one.turns] for one in found} == case.expected
    assert dict(source.reading.left_out) == case.left_out


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].options.layout])
def test_a_layout_with_an_open_question_is_refused_and_names_the_way_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Read (it|each as a conversation) by --layout ") as refused:
        read(CASES[name].written, ReadingOptions(), tmp_path)
    layout = re.findall(r"--layout ([\w-]+)", str(refused.value))
    assert layout == [layout_of(name)]
    _, found = read(CASES[name].written, ReadingOptions(layout=layout[0]), tmp_path)
    assert [one.id for one in found] == list(CASES[name].expected)


def test_a_transcript_without_speakers_is_refused(tmp_path: Path) -> None:
    """They were one speaker called None."""
    phrases = [{"channel": 0, "nBest": [{"display": TEA}]}, {"nBest": [{"display": "Yes."}]}]
    with pytest.raises(InputError) as refused:
        read({"recognizedPhrases": phrases}, ReadingOptions(layout="speech"), tmp_path)
    advice = "Transcribe it with speakers, or take the part out."
    assert str(refused.value) == f"conversations[0]: nothing says who speaks in 'Yes.'. {advice}"
    silent = [{**phrases[1], "channel": 1}, {"nBest": [{"display": ""}]}]
    _, (found,) = read({"recognizedPhrases": [phrases[0], *silent]}, ReadingOptions(layout="speech"), tmp_path)
    assert [(turn.speaker, turn.text) for turn in found.turns] == [("0", TEA), ("1", "Yes.")]


def test_an_archive_is_read_as_a_folder_of_its_files(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "calls.zip", "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, f"Speaker,Text\nuser,{TEA}\nassistant,Yes.\n")
        archive.writestr("users.json", "[]")
    for path in (tmp_path / "calls.zip", tmp_path):
        source = Source(str(path))
        below = "" if path.suffix else "calls.zip/"
        assert [(item.id, item.origin and item.origin.source) for item in source.read("turn")] == [
            (f"{below}{name}/0:2", f"{tmp_path}/calls.zip/{name}:3") for name in ("a.csv", "b.csv")
        ]
        assert source.reading.passed_over == [f"no conversations, left out: {tmp_path}/calls.zip/users.json"]


def test_what_a_folder_or_an_archive_has_of_text_is_read_by_its_layout(tmp_path: Path) -> None:
    import zipfile

    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "Ann.txt").write_text(WHATSAPP)
    (tmp_path / "chats" / "notes.md").write_text("Tea.")
    source = Source(str(tmp_path / "chats"), ReadingOptions(layout="whatsapp"))
    (found,) = [placed.item for placed in source.items("turn")]
    assert (found.id, found.origin.source) == ("Ann.txt/0:4", f"{tmp_path}/chats/Ann.txt:5")  # type: ignore[union-attr]
    assert source.reading.passed_over == [f"no conversations, left out: {tmp_path}/chats/notes.md"]
    with zipfile.ZipFile(tmp_path / "chats.zip", "w") as archive:
        archive.writestr("_chat.txt", WHATSAPP)
        archive.writestr("users.json", "[]")
    assert [one.turns[1].text for one in Source(str(tmp_path / "chats.zip"), source.options).conversations()] == ["I do."]  # type: ignore[union-attr]


def test_a_text_that_is_not_of_the_named_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Buy tea.\n")
    with pytest.raises(InputError) as refused:
        list(Source(str(path), ReadingOptions(layout="whatsapp")).conversations())
    assert str(refused.value) == (
        f"{path}: has no line as the layout 'whatsapp' (WhatsApp's export, a text) has them. Name another by --layout."
    )


@pytest.mark.parametrize("layout", [layout.name for layout in LAYOUTS])
def test_an_object_of_another_layout_is_refused_by_name_without_a_crash(layout: str) -> None:
    source = Source("conversations", ReadingOptions(layout=layout), given=[{"messages": 3, "mapping": {"a": 1}, "chat": []}])
    with pytest.raises(InputError):
        list(source.items("turn"))


def _changed(value: Any, other: Any) -> list[Any]:
    """The value with each of its parts in turn replaced by another."""
    found = [other]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        for changed in _changed(part, other):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = changed
            found.append(copy)
    return found


@pytest.mark.long  # all of them together
@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_conversation_is_an_input_error_or_read(name: str) -> None:
    written = WRITERS[name]([("user", TEA), ("thinking", "Hm."), ("assistant", DO)], "c")
    if isinstance(written, str):
        return
    named = None if layout_of(name) == "message rows" else layout_of(name)
    for changed in itertools.chain.from_iterable(_changed(written, other) for other in (None, 3, "tea", [None], {"tea": None})):
        rows = [row for row in (changed if isinstance(changed, list) else [changed]) if isinstance(row, dict)]
        for layout in {None, named}:
            source = Source("conversations", ReadingOptions(layout=layout), given=rows)
            with contextlib.suppress(InputError):
                assert all(len(one.turns) <= 3 for one in source.conversations() if isinstance(one, Conversation))


def test_messages_before_one_that_is_not_there_are_not_lost_in_silence() -> None:
    written: Any = WRITERS["open-webui"]([*TALK, ("user", BREW), ("assistant", TWO)], "c")
    del written["chat"]["history"]["messages"]["m2"]
    with pytest.raises(InputError) as refused:
        list(Source("conversations", given=[written]).conversations())
    assert str(refused.value) == (
        "conversations[0]: conversation 'c': message 3 answers one that is not there ('m2'), so that what was said before is "
        "lost. Read each piece as a conversation by --branches all."
    )
    _, found = read(written, ReadingOptions(branches="all"), Path())
    assert [[turn.text for turn in one.turns] for one in found] == [[TEA, DO], [TWO]]


def test_a_session_of_twenty_thousand_messages_is_read() -> None:
    rows = WRITERS["claude-code"](TALK * 10_000, "c")
    _, (found,) = read(rows, ReadingOptions(), Path())
    assert len(found.turns) == 20_000


def test_names_of_layouts_are_named_where_one_is_not_known() -> None:
    with pytest.raises(InputError, match=r"^layout: there is no 'xyz'\. Known are: discord, meta, telegram, "):
        find({}, "xyz")
    assert text_of([{"a": 1}]) == '{"a": 1}\n'


@pytest.mark.parametrize("name", WRITERS)
def test_a_layout_is_the_same_whatever_was_asked_before(name: str) -> None:
    written = WRITERS[name](TALK, "c")
    rows = [row for row in (written if isinstance(written, list) else [written]) if isinstance(row, dict)]
    for row in rows:
        find(dict.fromkeys(row))  # other objects with the same names of fields are of no layout, or of another
        found = find(row)
        _POSSIBLE.clear()
        assert (found and found.name) == ((afresh := find(row)) and afresh.name)


def test_a_heading_comes_before_a_transcript(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no line as the layout 'transcript'"):
        read("Dear Ann,\nhello.\n", ReadingOptions(layout="transcript"), tmp_path)
    for options in (ReadingOptions(), ReadingOptions(layout="transcript")):
        source, (found,) = read(TRANSCRIPT, options, tmp_path)
        assert dict(source.reading.left_out) == {"heading message": 1}
        assert [(turn.speaker, turn.text) for turn in found.turns] == [TALK[0], ("assistant", "I do,\nand note: green tea.")]


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("Usuario", "Asistente"),
        ("Nutzer", "Assistent"),
        ("用户", "助手"),
        ("You", "ChatGPT"),
        ("Human", "Claude"),
        ("[00:05] User", "[01:05] Bot"),
    ],
)
def test_roles_before_lines_are_read_in_other_languages(user: str, assistant: str, tmp_path: Path) -> None:
    for colon in (": ", "："):
        _, (found,) = read(f"{user}{colon}{TEA}\n{assistant}{colon}{DO}\n", ReadingOptions(), tmp_path)
        assert [turn.text for turn in found.turns] == [TEA, DO]
        assert found.responses() == [1]


_A_DAY = "2024-01-02"
TEXTS = {
    "irc": (f"[10:00] <ann> {TEA}\n", f"[10:01] <@bob> {DO}\n"),
    "irc of irssi": (f"--- Log opened\n10:00 < ann> {TEA}\n10:00 -!- bob joined\n", f"10:01 <+bob> {DO}\n"),
    "irc of WeeChat": (f"{_A_DAY} 10:00:00\t@ann\t{TEA}\n{_A_DAY} 10:00:00\t-->\tbob joined\n",
                       f"{_A_DAY} 10:01:00\tbob\t{DO}\n"),
    "line": (f"[LINE] Chat history with Bob\n\nTue, 01/02/2024\n10:00\tann\t{TEA}\n10:00\tann\t[Sticker]\n",
             f"10:01\tbob\t{DO}\n"),
    "kakaotalk": (f"Bob 님과 카카오톡 대화\n\n--- 2024 ---\n[ann] [오전 10:00] {TEA}\n", f"[bob] [오후 1:00] {DO}\n"),
    "kakaotalk of a phone": (f"2024년 1월 2일 화요일\n2024. 1. 2. 오전 10:00, ann : {TEA}\n",
                             f"2024. 1. 2. 오전 10:01, bob : {DO}\n"),
    "zoom": (f"10:00:00\t From  ann : {TEA}\n", f"10:01:00\t From  bob to  Everyone : {DO}\n"),
    "wechat-text": (f"{_A_DAY} 10:00:00 ann\n{TEA}\n\n", f"{_A_DAY} 10:01:00 bob\n{DO}\n"),
    "discord-text": (f"=====\nGuild: Tea\n=====\n\n[{_A_DAY} 10:00] ann\n{TEA}\n\n", f"[{_A_DAY} 10:01] bob\n{DO}\n"),
    "names": (f"ann: {TEA}\n", f"bob: {DO}\nann: {TEA}\nbob: {DO}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_people_are_read_once_their_layout_is_named(name: str, tmp_path: Path) -> None:
    layout, written = name.partition(" ")[0], "".join(TEXTS[name])
    with pytest.raises(InputError, match=f"Read it by --layout {layout}: each message but the first is scored"):
        read(written, ReadingOptions(), tmp_path)
    _, (found,) = read(written, ReadingOptions(layout=layout), tmp_path)
    assert [(turn.speaker, turn.text) for turn in found.turns][:2] == [("ann", TEA), ("bob", DO)]


@pytest.mark.parametrize("mark", ["{}:", "**{}:**", "[{}]:", "## {}", "{} said:"])
def test_lines_of_a_message_that_look_like_marks_belong_to_it(mark: str, tmp_path: Path) -> None:
    answer = f"{DO}\nModel: a kettle\n  User: root\nuser: root\nCustomer: Ann\n### Agent\nAssistant, {TWO}"
    user, assistant = mark.format("User"), mark.format("Assistant")
    written = f"{mark.format('System')}\nBe kind.\n{user}\n{TEA}\n\n{assistant}\n{answer}\n{user}\n{BREW}\n"
    source, (found,) = read(written, ReadingOptions(), tmp_path)
    assert [(turn.speaker, turn.text) for turn in found.turns] == [("user", TEA), ("assistant", answer), ("user", BREW)]
    assert dict(source.reading.left_out) == {"system message": 1}


@pytest.mark.parametrize("written", [
    "12/31/24, 10:00 PM - ", "12/31/24, 10:00\u202fPM - ", "31/12/2024, 10:00 p. m. - ", "31/12/24 22:00 - ",
    "31.12.24, 22:00 - ", "31-12-2024 22:00 - ", "2024/12/31 22:00 - ", "2024-12-31, 22:00 - ",
    "31.12.2024 klo 22.00 - ", "[31/12/24 22:00:00] ",
    "[31.12.24, 22:00:00] ", "[2024-12-31, 10:00:00 PM] ", "\u200e[12/31/24, 10:00:00\u202fPM] ",
])  # fmt: skip
def test_whatsapp_writes_times_as_people_in_many_places_do(written: str, tmp_path: Path) -> None:
    text = f"{written}Ann: {TEA}\nTruly: no?\n{written}Bob: {DO}\n"
    _, (found,) = read(text, ReadingOptions(layout="whatsapp"), tmp_path)
    assert [(turn.speaker, turn.text) for turn in found.turns] == [("Ann", f"{TEA}\nTruly: no?"), ("Bob", DO)]
    with pytest.raises(InputError, match="by --layout whatsapp"):
        read(text, ReadingOptions(), tmp_path)
