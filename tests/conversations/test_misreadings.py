"""Inputs that were once misread in silence are read as a person would, or refused with the option that settles it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas
import pytest

from dialeval_plugin.conversations.messages import split_dialogue, turn_of
from dialeval_plugin.conversations.record import Conversation, ReadingOptions
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.registry import identify
from dialeval_plugin.corpora.scored_input import Source
from tests.refusals import refusal
from tests.timing import grows_with_its_length

TEA, LIKE, HOW, BREW = "Do you like tea?", "I do, green tea most of all.", "How do you brew it?", "Two minutes."
Talk = list[tuple[list[str], str]]
ONE: Talk = [([TEA], LIKE)]
TWO: Talk = [([TEA], LIKE), ([TEA, LIKE, HOW], BREW)]
LAST: Talk = [([TEA, LIKE, HOW], BREW)]


def chat(*messages: Any, **beside: Any) -> list[dict[str, Any]]:
    return [{"id": "c", "messages": list(messages), **beside}]


def said(role: str, text: str, **beside: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **beside}


ASKED = [said("user", TEA), said("assistant", LIKE), said("user", HOW)]
ASIDES = (
    "> Tea is nice.\n\nSo it is.\n<details><summary>More</summary>!</details>",
    "**Thinking of tea** is nice.\n> Yes.\n\nSo it is.",
    "<details><summary>Reasoning questions</summary>Why?</details>\nSo.", "Thought for the day:\nbe kind.",
    "<result>5</result> is a tag.", "<answer> is a tag.", "<question>Why?</question>", "<button>OK</button> is HTML.",
    "<svg><path/></svg>", "Thought: I like tea.\nAction: drink it!",
)  # fmt: skip
READ: dict[str, tuple[list[Any], Talk]] = {
    "messages of two conversations in one list": (
        [{"data": [{"conversation_id": id, **said(*one)} for one in (("user", TEA), ("assistant", LIKE)) for id in (1, 2)]}],
        ONE * 2,
    ),
    "what an agent says by a tool": (
        chat(said("user", TEA), said("assistant", "Be nice.", tool_calls=[
            {"function": {"name": "respond_to_user", "arguments": json.dumps({"text": LIKE})}}])), ONE,
    ),
    "the name of its speaker before each text": (
        chat(said("user", f"Tom: {TEA}"), said("assistant", f"Aria: {LIKE}"), said("user", f"Tom: {HOW}"),
             said("assistant", f"Aria: {BREW}")), TWO,
    ),
    "a note of the system in the user's turn": (
        chat(said("user", f"<system_note>Be brief.</system_note>\n{TEA}"), said("assistant", LIKE)), ONE,
    ),
    "a page of questions and answers": ([{"messages": {"data": [{"user_query": TEA, "openai_response": LIKE}]}}], ONE),
    "a page of stored completions": (
        [{"input_messages": [said("user", TEA)], "choices": [{"message": said("assistant", LIKE)}]}], ONE,
    ),
    "an answer to the one in the row above": (
        [{"id": id, "input": asked, "output": [said("assistant", answer)], "previous_response_id": before}
         for id, asked, answer, before in (("resp_1", TEA, LIKE, None), ("resp_2", HOW, BREW, "resp_1"))], TWO,
    ),
    "an answer in a tag of which one is missing": (
        chat(said("user", TEA), said("assistant", f"<answer>\n{LIKE}"), said("user", HOW),
             said("assistant", f"{BREW}</answer>")), TWO,
    ),
    "quotations of mails": (
        chat(said("user", TEA), said("assistant", f"> {TEA}\n\n{LIKE}"),
             said("user", f"{HOW}\n\nOn Monday, Bo wrote:\n> {LIKE}"),
             said("assistant", f"{BREW}\n\nOn Sun, Mar 1, 2026 at 10:00 AM Ann Lee\n<ann@x.org> wrote:\n\n{HOW}")), TWO,
    ),
    "a mail that is asked about": (
        chat(said("user", f"Answer:\nFrom: Ann\nDate: today\n\n{TEA}", edited="not yet"), said("assistant", LIKE)),
        [([f"Answer:\nFrom: Ann\nDate: today\n\n{TEA}"], LIKE)],
    ),
    "quotations of others": (
        chat(said("user", TEA), said("assistant", "On 12 May he wrote:\n> Tea.\n\nSo he did.")),
        [([TEA], "On 12 May he wrote:\n> Tea.\n\nSo he did.")],
    ),
    "a text and the same in English": (chat(said("user", TEA, content_en=TEA), said("assistant", LIKE, content_en=LIKE)), ONE),
    "a wizard who searched the internet": (
        [{"7": {"dialog_history": [
            {"action": "Apprentice => Wizard", "text": TEA}, {"action": "Wizard => SearchAgent", "text": "tea"},
            {"action": "SearchAgent => Wizard", "text": ""}, {"action": "Wizard => Apprentice", "text": LIKE}]}}], ONE,
    ),
    "the sender next to a text in an object": (
        [{"url": "x", "data": [{"sender": {"type": who, "name": "X"}, "message": {"text": text}}
                               for who, text in (("visitor", TEA), ("operator", LIKE))]}], ONE,
    ),
    "a question and its answer as objects in turns of another name": (
        [{"conversationTurns": [{"prompt": {"content": [{"text": TEA}]}, "output": {"text": LIKE, "model": "m"}}]}], ONE,
    ),
    "numbered messages": ([{"message_1": said("user", TEA), "message_2": said("assistant", LIKE), "id": "c"}], ONE),
    "a patient and a doctor": ([{"about": "tea", "utterances": [f"patient: {TEA}", f"doctor: {LIKE}"]}], ONE),
    "a question that its history has already": (
        [{"inputs": {"question": HOW, "chat_history": ASKED}, "outputs": said("assistant", BREW)}], [TWO[1]],
    ),
    "threads next to the messages of all": (
        [{"threads": [{"id": "a"}, {"id": "b"}], "messages": [
            said(role, text, threadId=id) for id in "ab" for role, text in (("user", TEA), ("assistant", LIKE))]}], ONE * 2,
    ),
    "an object next to the text of a message": (
        chat(said("user", TEA, data={"text": "tea.pdf"}), said("assistant", LIKE, payload={"value": "5"})), ONE,
    ),
    "a text under its role": (chat({"user": TEA}, {"assistant": LIKE}), ONE),
    "hits of Elasticsearch": (
        [{"took": 1, "hits": {"total": {"value": 4}, "hits": [
            {"_index": "chat", "_source": {"conversation_id": id, **said(role, text)}}
            for id in "ab" for role, text in (("user", TEA), ("assistant", LIKE))]}}], ONE * 2,
    ),
    "roles in Persian": (chat(said("کاربر", TEA), said("دستیار", LIKE), said("کاربر", HOW)), ONE),
    "a role next to text": (chat({"role": "user", "text": TEA}, {"role": "assistant", "text": LIKE}), ONE),
    "the marks of LangChain's buffer": ([{"text": f"\n\nHuman: {TEA}\n\nAI: {LIKE}"}], ONE),
    "a paragraph that begins with AI:": (
        [{"text": f"\n\nHuman: {TEA}\n\nAssistant: Hm.\n\nAI: {LIKE}"}], [([TEA], f"Hm.\n\nAI: {LIKE}")],
    ),
    "who is a person as a truth value": (
        [{"conversation": [{"message": TEA, "is_human": True}, {"message": LIKE, "is_human": False}]}], ONE,
    ),
    "the role next to the name of the speaker": (
        [{"dialog": [{"sender": "participant1", "text": TEA, "sender_class": "Human"},
                     {"sender": "participant2", "text": LIKE, "sender_class": "Bot"}]}],
        ONE,
    ),
    "reasoning before the first message of an answer": (
        [{"input": TEA, "output": [{"type": "reasoning", "summary": []}, said("assistant", LIKE, type="message")]}], ONE,
    ),
    "an answer next to the messages, by another name": (chat(said("user", TEA), output_message=said("assistant", LIKE)), ONE),
    "chats under two names": ([{"data": {"chats": chat(said("user", TEA), said("assistant", LIKE)), "folders": []}}], ONE),
    "simulations": ([{"simulations": chat(said("user", TEA), said("assistant", LIKE))}], ONE),
    "who wrote it as a truth value": (
        chat({"sender": "User", "text": TEA, "isCreatedByUser": True},
             {"sender": "m", "text": LIKE, "isCreatedByUser": False}),
        ONE,
    ),
    "messages of many conversations": (
        [{"session_id": id, "role": role, "content": text}
         for id in "ab" for role, text in (("user", TEA), ("assistant", LIKE))],
        ONE * 2,
    ),
    "thinking in tags": (chat(said("user", TEA), said("assistant", f"<think>Tea?</think>{LIKE}")), ONE),
    "thinking of Open WebUI": (
        chat(said("user", TEA), said("assistant", f'<details type="reasoning"><summary>x</summary>a</details>\n{LIKE}')),
        ONE,
    ),
    "thinking as an aside of Markdown": (
        [*(chat(said("user", TEA), said("assistant", f"{thought}\n\n{LIKE}"))[0] | {"id": id} for id, thought in (
            ("a", "<details>\n<summary>Thought for 3 s</summary>\n\nTea?\n\n</details>"),
            ("b", "*Thinking...*\n\n> Tea?\n>\n> Yes."), ("c", "> **Thinking**\n> Tea?"), ("d", "Thought for 3 seconds")))],
        ONE * 4,
    ),
    "other asides, marks and pages, which are speech": (
        [{"id": str(n), "messages": [said("user", TEA), said("assistant", text)]} for n, text in enumerate(ASIDES)],
        [([TEA], text) for text in ASIDES],
    ),
    "thoughts and calls of ReAct": (
        chat(said("user", TEA), said("assistant", "Thought: Tea?\nAction: find\nAction Input: tea"),
             said("user", "Observation: 42"), said("assistant", f"Thought: I know.\nFinal Answer: {LIKE}")),
        ONE,
    ),
    "calls of tools of Glaive": (
        [{"system": "SYSTEM: Hush.", "chat": f"USER: {TEA}\n\n\nASSISTANT: <functioncall> {{}} <|endoftext|>\n\n\n"
          f"FUNCTION RESPONSE: 42\n\n\nASSISTANT: {LIKE} <|endoftext|>\n\n\n"}],
        ONE,
    ),
    "a page around a text": (
        chat(said("user", TEA), said("assistant", f"<div><p>{LIKE}</p><button>Copy code</button></div>")), ONE,
    ),
    "an answer next to its request's messages": (
        [{"session_id": "s", "input_messages": [said("user", TEA)], "output_message": said("assistant", LIKE)}], ONE,
    ),
    "the place of an image": (
        [{"conversations": [{"from": "human", "value": f"<image>\n{TEA}"}, {"from": "gpt", "value": LIKE},
                            {"from": "human", "value": f"{HOW}\n<video>"}, {"from": "gpt", "value": BREW}]}],
        TWO,
    ),
    "marks that are spoken of": (
        chat(said("user", "Is <image> or <task>x</task> HTML?"), said("assistant", LIKE)),
        [(["Is <image> or <task>x</task> HTML?"], LIKE)],
    ),
    "what coding assistants add": (
        chat(said("user", f"<task>\n{TEA}\n</task>\n\n<environment_details>\n# Tabs\n</environment_details>"),
             said("assistant", "<read_file>\n<path>tea</path>\n</read_file>"),
             said("user", "[read_file for 'tea'] Result:\n42"),
             said("assistant", f"<attempt_completion>\n<result>\n{LIKE}\n</result>\n</attempt_completion>")),
        ONE,
    ),
    "a reminder to the model": (
        chat(said("user", f"<system-reminder>\nHush.\n</system-reminder>\n{TEA}"), said("assistant", LIKE)), ONE,
    ),
    "a comment of the model to itself": (
        chat(said("user", TEA), said("assistant", "Need to check.", phase="commentary"), said("assistant", LIKE)),
        ONE,
    ),
    "a call of a tool in the text": (
        chat(said("user", TEA), said("assistant", '<tool_call>{"name": "tea"}</tool_call>'),
             said("user", "<tool_response>42</tool_response>"), said("assistant", LIKE)),
        ONE,
    ),
    "an answer next to the messages": (chat(*ASKED, output=said("assistant", BREW)), LAST),
    "an answer of an API": (chat(*ASKED, response={"choices": [{"message": said("assistant", BREW)}]}), LAST),
    "branches, of which one was shown": (
        chat({**said("user", TEA), "id": "1", "parent": None}, {**said("assistant", "No idea."), "id": "2", "parent": "1"},
             {**said("assistant", LIKE), "id": "3", "parent": "1"}, current_node="3"),
        ONE,
    ),
    "histories that grow": (
        [{"id": str(n), "messages": [*ASKED, said("assistant", BREW)][: 2 * n]} for n in (1, 2)],
        TWO,
    ),
    "histories that grow, the latest first": (
        [{"id": str(n), "session_id": "s", "messages": [*ASKED, said("assistant", BREW)][: 2 * n]} for n in (2, 1)],
        TWO,
    ),
    "a file that was put together from two exports": (
        [{"session_id": "s", "messages": [*ASKED, said("assistant", BREW)]}] * 2, TWO,
    ),
    "messages that were exported twice": (
        [{"session_id": "s", "message_id": n, **one} for n, one in enumerate([*ASKED, said("assistant", BREW)])] * 2, TWO,
    ),
    "conversations that begin alike": (
        [{"session_id": id, **one} for id, n in (("s", 2), ("t", 4)) for one in [*ASKED, said("assistant", BREW)][:n]],
        [*ONE, *TWO],
    ),
    "roles as enumerations write them": (
        [*(chat(said(user, TEA), said(assistant, LIKE))[0] | {"id": user} for user, assistant in (
            ("MESSAGE_ROLE_USER", "MESSAGE_ROLE_AGENT"), ("ROLE_USER", "ROLE_ASSISTANT"), ("ChatRole.user", "ChatRole.bot")))],
        ONE * 3,
    ),
    "the role in another field than the name": (
        chat(said("Ann", TEA, role_type="user"), said("Tea Expert", LIKE, role_type="assistant")), ONE,
    ),
    "what kind of sender it is, next to its name": (
        chat({"sender": {"name": "users/1", "type": "HUMAN"}, "text": TEA},
             {"sender": {"name": "users/2", "type": "BOT"}, "text": LIKE}),
        ONE,
    ),
    "a sender who is a bot": (
        chat({"author": {"username": "ann"}, "content": TEA}, {"author": {"username": "tea", "bot": True}, "content": LIKE}),
        ONE,
    ),
    "newest first, by times of other names": (
        [{"id": name, "messages": [{**said("assistant", LIKE), name: late}, {**said("user", TEA), name: early}]}
         for name, early, late in (("createTime", "2025-01-01T10:00:00Z", "2025-01-01T10:01:00Z"), ("sentAt", 1, 2),
                                   ("created", 1, 2), ("inserted_at", {"_seconds": 1}, {"_seconds": 2}))],
        ONE * 4,
    ),
    "newest first, by a date and a time": (
        chat(said("assistant", LIKE, date="2025-01-01", time="10:01"), said("user", TEA, date="2025-01-01", time="10:00")), ONE,
    ),
    "numbers by other names in another order": (
        [{"id": name, "messages": [{**said("assistant", LIKE), name: 2}, {**said("user", TEA), name: 1}]}
         for name in ("turnIndex", "turn_no", "sequence_number", "order")],
        ONE * 4,
    ),
    "answers that were not shown": (
        chat(said("user", TEA), said("assistant", "No.", is_main=False), said("assistant", "No.", is_alternative=True),
             said("assistant", LIKE, is_main=True)),
        ONE,
    ),
    "a text in an object": (
        chat({"role": "user", "text": {"body": TEA}}, {"role": "assistant", "text": {"body": LIKE}}), ONE,
    ),
    "an action among messages": (
        chat({"type": "chat", "sender": "user", "message": TEA}, {"type": "action", "sender": "assistant", "action_id": "a/b"},
             {"type": "chat", "sender": "assistant", "message": LIKE}),
        ONE,
    ),
    "conversations by the ids of their users in an object": (
        [{"store": {id: [said("user", TEA), said("assistant", LIKE)] for id in "ab"}, "class_name": "SimpleChatStore"}],
        ONE * 2,
    ),
    "messages next to rows of another kind": (
        chat(said("user", TEA), said("assistant", LIKE), judged={"results": [{"question": TEA, "answer": "4"}]}), ONE,
    ),
    "newest first": (
        chat(said("assistant", LIKE, created_at="2025-01-01T10:01:00Z"), said("user", TEA, created_at="2025-01-01T10:00:00Z")),
        ONE,
    ),
    "numbered turns in another order": (chat(said("assistant", LIKE, turn_index=1), said("user", TEA, turn_index=0)), ONE),
    "a model's name as the role": (chat(said("user", TEA), said("bing", LIKE)), ONE),
    "customer and agent": (chat(said("customer", TEA), said("agent", LIKE)), ONE),
    "a system that answers": (chat(said("user", TEA), said("system", LIKE)), ONE),
    "roles before the texts": ([{"id": "c", "turns": [f"User: {TEA}", f"Assistant: {LIKE}"]}], ONE),
    "a refusal in a field of its own": (chat(said("user", TEA), {"role": "assistant", "content": None, "refusal": LIKE}), ONE),
    "text in parts, next to an empty content": (
        chat(said("user", TEA), {**said("assistant", ""), "parts": [{"type": "text", "text": LIKE}]}),
        ONE,
    ),
    "annotations next to the messages": (
        chat(said("user", TEA), said("assistant", LIKE), responses=[{"value": 1}], history=[]),
        ONE,
    ),
    "roles as usr and sys": ([{"dialog": [{"speaker": "usr", "text": TEA}, {"speaker": "sys", "text": LIKE}]}], ONE),
    "a notice of the system between people": (
        chat({"from": "system", "text": "Calls are encrypted."}, {"from": "Ann", "text": TEA}, {"from": "Bo", "text": LIKE}),
        ONE,
    ),
    "notes that the customer does not see": (
        chat(said("user", TEA), said("agent", "A nice one.", type="note"), said("agent", "A VIP.", public=False),
             said("agent", "Call her.", part_type="note"), said("agent", LIKE, public=True)),
        ONE,
    ),
    "errors and what was taken back": (
        chat(said("user", TEA), said("assistant", "Something went wrong.", error=True), said("assistant", "No.", deleted=1),
             said("assistant", LIKE, error=False)),
        ONE,
    ),
    "conversations by their ids": (
        [{f"c-{id}": {"messages": [said("user", TEA), said("assistant", LIKE)]} for id in (1, 2)}],
        ONE * 2,
    ),
    "lists of messages by the ids of their conversations": (
        [{f"c-{id}": [said("user", TEA), said("assistant", LIKE)] for id in (1, 2)}], ONE * 2,
    ),
    "messages of LangChain's store": (
        [{"session_id": "s", "message": json.dumps({"type": kind, "data": {"content": text}})}
         for kind, text in (("human", TEA), ("ai", LIKE))],
        ONE,
    ),
    "messages of LangChain's dump": (
        [{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": {"content": text}}
         for kind, text in (("HumanMessage", TEA), ("AIMessage", LIKE))],
        ONE,
    ),
    "messages that contain their answers": (
        [{"id": "1", **said("user", TEA), "children": [{"id": "2", **said("assistant", LIKE), "children": []}]}], ONE,
    ),
    "which side it is, next to the id of a call": (
        [{"call_id": 1, "is_customer": 1 - n, "text": text} for n, text in enumerate((TEA, LIKE))], ONE,
    ),
    "the template of a chat in a field of any name": (
        [{"formatted": f"<|im_start|>user\n{TEA}<|im_end|>\n<|im_start|>assistant\n{LIKE}<|im_end|>\n"},
         {"prompt": f"<｜begin▁of▁sentence｜><｜User｜>{TEA}<｜Assistant｜>{LIKE}<｜end▁of▁sentence｜>"},
         {"prompt": f"<s>[SYSTEM_PROMPT]Hush.[/SYSTEM_PROMPT][INST] {TEA}[/INST] {LIKE}</s>"},
         {"text": f"<|header_start|>user<|header_end|>\n\n{TEA}<|eot|>"
                  f"<|header_start|>assistant<|header_end|>\n\n{LIKE}<|eot|>"},
         {"text": f"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{TEA}<|END_OF_TURN_TOKEN|>"
                  f"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{LIKE}<|END_OF_TURN_TOKEN|>"},
         {"text": f"<|prompter|>{TEA}<|endoftext|><|assistant|>{LIKE}<|endoftext|>"},
         {"text": f"A chat with an assistant. USER: {TEA} ASSISTANT: {LIKE}</s>"},
         {"text": f"Below is an instruction.\n\n### Instruction:\n{TEA}\n\n### Response:\n{LIKE}"}],
        ONE * 8,
    ),
    "messages next to a text with roles": (
        chat(said("user", TEA), said("assistant", LIKE), prompt="<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\nHo."),
        ONE,
    ),
    "roles in other languages": (
        [*(chat(said(user, TEA), said(assistant, LIKE))[0] | {"id": user} for user, assistant in (
            ("Usuario", "Asistente"), ("Nutzer", "Assistent"), ("用户", "助手"), ("Cliente", "Agente"),
            ("Kullanıcı", "Asistan"), ("المستخدم", "المساعد"), ("👤", "🤖"), ("localHuman", "Blender")))],
        ONE * 8,
    ),
    "roles with signs around them": (
        [*(chat(said(user, TEA), said(assistant, LIKE))[0] | {"id": user} for user, assistant in (
            ("[user]", "[assistant]"), ("@user", "@bot"), ("User:", "Assistant:"), ("Ann", "AI Assistant"),
            ("Ann Lee", "Support Bot")))],
        ONE * 5,
    ),
    "what was looked up": (
        chat(said("user", TEA), said("search_results", "Tea."), said("scratchpad", "Hm."), said("assistant", LIKE)), ONE,
    ),
    "messages under another name": ([{"session": {"log": [said("user", TEA), said("operator", LIKE)], "at": 5}}], ONE),
    "roles before the lines of a text": ([{"call": 7, "transcript": f"User: {TEA}\nAgent: {LIKE}\n"}], ONE),
    "a text with roles as the messages": ([{"messages": f"<human>: {TEA}\n<bot>: {LIKE}"}], ONE),
    "what an agent did": (
        [{"id": 0, "source": "user", "action": "message", "args": {"content": TEA}},
         {"id": 1, "source": "agent", "action": "run", "message": "Running a command.", "args": {"thought": "Tea?"}},
         {"id": 2, "source": "agent", "observation": "run", "message": "It ran.", "content": "42", "extras": {}},
         {"id": 3, "source": "agent", "action": "finish", "message": "All done!", "args": {"final_thought": LIKE}}],
        ONE,
    ),
    "what an agent told another": (
        [{"id": str(n), "parentId": None, "timestamp": f"2025-01-02T10:0{n}:00Z", "type": type, "data": data}
         for n, (type, data) in enumerate((("user.message", {"content": TEA}),
                                           ("assistant.message", {"content": "Looked up.", "parentToolCallId": "c"}),
                                           ("assistant.message", {"content": LIKE})))],
        ONE,
    ),
    "a message that is written again when it is whole": (
        [{"id": "1", "timestamp": "2025-01-02T10:00:00Z", "type": "user", "content": [{"text": TEA}]},
         {"id": "2", "timestamp": "2025-01-02T10:01:00Z", "type": "gemini", "content": "I do,"},
         {"id": "2", "timestamp": "2025-01-02T10:01:00Z", "type": "gemini", "content": LIKE}],
        ONE,
    ),
    "turns that have a question and its answer each": (
        [{"transcript": [{"q": TEA, "a": LIKE, "score": None}, {"q": HOW, "a": BREW, "score": 3}]}],
        TWO,
    ),
    "turns that begin with roles under another name": ([{"dialogue": [f"customer: {TEA}", f"agent: {LIKE}"]}], ONE),
    "which side it is, as a truth value": (chat({"is_agent": False, "text": TEA}, {"is_agent": True, "text": LIKE}), ONE),
    "a number that is none": (chat(said("user", TEA), said("assistant", LIKE), score=float("nan")), ONE),
    "HTML of a text editor": (
        chat(said("user", f"<p>{TEA}</p>"), said("assistant", '<div class="a">I <b>do</b>,<br/>green tea.</div>')),
        [([TEA], "I do,\ngreen tea.")],
    ),
    "HTML that is spoken of": (
        chat(said("user", "<p> or <div>?"), said("assistant", "<form><p>A form.</p></form>")),
        [(["<p> or <div>?"], "<form><p>A form.</p></form>")],
    ),
    "roles that end in message": (
        chat({"type": "USER_MESSAGE", "text": TEA}, {"message_type": "ToolCallMessage", "text": "{}"},
             {"messageType": "botMessage", "text": LIKE}),
        ONE,
    ),
    "calls of tools among messages under another name": (
        [{"items": [said("user", TEA), {"type": "function_call", "name": "f"}, said("assistant", LIKE)]}], ONE,
    ),
    "rows of a product in a list": (
        [{"more": False, "data": [{"conversation_id": "c", "query": q, "answer": a}
                                  for q, a in ((TEA, LIKE), (HOW, BREW))]}],
        TWO,
    ),
    "newest first, by times as mails and Google write them": (
        chat(said("user", HOW, date="Tuesday, July 6, 2021 at 3:23:11\u202fPM UTC"),
             said("assistant", LIKE, date="Tue, 06 Jul 2021 15:22:00 +0000"),
             said("user", TEA, date="2021-07-06 15:21:00 UTC"), said("assistant", "Hm.", date="2021/07/06 15:20")),
        [([], "Hm."), (["Hm.", TEA], LIKE)],
    ),
    "newest first, by days and months in either order": (
        chat(said("assistant", LIKE, date="1/2/2025 1:05 PM"), said("user", TEA, date="1/2/2025 11:59 AM")), ONE,
    ),
    "HTML after a thought": (chat(said("user", TEA), said("assistant", f"<think>Hm.</think><p>{LIKE}</p>")), ONE),
    "other calls of tools in a text": (
        chat(said("user", TEA), *(said("assistant", call) for call in (
            "<tool_call>\n<function=find>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
            "<minimax:tool_call><invoke name='find'></invoke></minimax:tool_call>", "```tool_code\nfind()\n```",
            '<|tool_call|>[{"name": "find", "arguments": {}}]', 'functools[{"name": "find", "arguments": {}}]',
            '{"type": "function", "name": "find", "parameters": {}}', '{"tool_calls": [{"function": {"name": "find"}}]}',
        )), said("assistant", LIKE)),
        ONE,
    ),
    "an answer that is marked as one": (
        chat(said("user", TEA), said("assistant", f"<antThinking>Hm.</antThinking><answer>\n{LIKE}\n</answer>")), ONE,
    ),
    "messages as texts of JSON": (
        [{"messages": [json.dumps(said("user", TEA)), json.dumps(said("assistant", LIKE))]}], ONE,
    ),
    "ids and times of MongoDB": (
        [{"_id": {"$oid": "1"}, "messages": [
            said("assistant", LIKE, timestamp={"$date": {"$numberLong": "2"}}), said("user", TEA, timestamp={"$date": "1"})]}],
        ONE,
    ),
    "what was annotated of a text": (
        chat({"speaker": "USER", "text": TEA, "segments": [{"text": "tea", "annotations": []}]},
             {"speaker": "ASSISTANT", "text": LIKE, "segments": []}),
        ONE,
    ),
    "calls of tools as Llama writes them": (
        chat(said("user", TEA), said("assistant", "[find_tea(kind='green')]"), said("ipython", "42"),
             said("assistant", '{"name": "find_tea", "parameters": {"kind": "green"}}'), said("ipython", "42"),
             said("assistant", LIKE)),
        ONE,
    ),
    "deleted as a letter, or by the time": (
        chat(said("user", TEA), said("assistant", "Hm.", deleted="t"), said("assistant", "Hm.", deleted_at="2026-01-01"),
             said("assistant", LIKE, deleted="f", deleted_at=None)),
        ONE,
    ),
    "an error as an object": (
        chat(said("user", TEA), said("assistant", "Too many requests.", error={"code": 429}), said("assistant", LIKE)), ONE,
    ),
    "a transcript of audio": (
        [{"items": [said("user", [{"type": "input_audio", "transcript": TEA}]),  # type: ignore[arg-type]
                    said("assistant", [{"type": "output_audio", "transcript": LIKE}])]}],  # type: ignore[arg-type]
        ONE,
    ),
    "an answer of the Responses API next to its input": (
        [{"input": [said("user", TEA)], "response": {"object": "response", "output": [said("assistant", LIKE)]}}], ONE,
    ),
    "a stored completion": (
        [{"object": "chat.completion", "input": [said("user", TEA)], "choices": [{"message": said("assistant", LIKE)}]}], ONE,
    ),
    "calls of tools of any kind among items": (
        [{"data": [said("user", TEA), {"type": "web_search_call", "id": "w"}, said("assistant", LIKE)]}], ONE,
    ),
    "a search of spans of Datadog": (
        [{"data": [{"type": "span", "attributes": {"input": {"messages": [said("user", TEA)]},
                                                   "output": {"messages": [said("assistant", LIKE)]}}}]}],
        ONE,
    ),
    "a step of a trace that repeats the whole": (
        [{"id": id, "traceId": "t", "type": kind, "input": given, "output": said("assistant", LIKE)}
         for id, kind, given in (("o", "SPAN", TEA), ("p", "GENERATION", [said("system", "Be kind."), said("user", TEA)]))],
        ONE,
    ),
    "a thread's history, which begins with its last state": (
        [{"values": {"messages": [*ASKED, said("assistant", BREW)][:n]}, "config": {"configurable": {"thread_id": "t"}}}
         for n in (4, 3, 2, 1)],
        TWO,
    ),
    "messages as JSON in a table": (
        [{"id": n, "session_id": "s", "message": json.dumps({"type": kind, "content": text})}
         for n, (kind, text) in enumerate((("human", TEA), ("ai", LIKE)))],
        ONE,
    ),
    "what a message says of itself in blocks of another list": (
        [{"indexedDB": {"topics": [{"id": "t", "messages": [
            {"id": "1", "role": "user", "blocks": ["a"]}, {"id": "2", "role": "assistant", "blocks": ["b"]}]}],
            "message_blocks": [{"id": "a", "messageId": "1", "type": "main_text", "content": TEA},
                               {"id": "b", "messageId": "2", "type": "main_text", "content": LIKE}]}}],
        ONE,
    ),
    "parts of a message of Pydantic AI that are a tool's": (
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": TEA}]},
         {"kind": "request", "parts": [{"part_kind": "tool-return", "content": "42"}, {"part_kind": "retry-prompt",
                                                                                      "content": "Again."}]},
         {"kind": "response", "parts": [{"part_kind": "text", "content": LIKE}]}],
        ONE,
    ),
    "turns in an object": ([{"conversation": {"id": "c", "log": [said("user", TEA), said("assistant", LIKE)]}}], ONE),
    "what an agent of MemGPT says by a call of a tool": (
        chat(said("user", json.dumps({"type": "login", "last_login": "Never", "time": "1"})),
             said("user", json.dumps({"type": "user_message", "message": TEA, "time": "2"})),
             said("assistant", "Be kind.", tool_calls=[
                 {"function": {"name": "send_message", "arguments": json.dumps({"message": LIKE})}}
             ])),
        ONE,
    ),
    "what an agent of Letta says by a call of a tool": (
        chat({"message_type": "user_message", "content": TEA}, {"message_type": "reasoning_message", "reasoning": "Be kind."},
             {"message_type": "tool_call_message",
              "tool_call": {"name": "send_message", "arguments": json.dumps({"message": LIKE})}},
             {"message_type": "tool_return_message", "tool_return": "None"}),
        ONE,
    ),
    "a number after each role": (
        chat(*({"speaker": name, "text": text} for name, text in (("User 1", TEA), ("Assistant 1", LIKE), ("User 1", HOW)))),
        ONE,
    ),
    "the assistant's role before its texts alone": (
        chat(said("user", TEA), said("assistant", f"[Bot] {LIKE}"), said("user", HOW), said("assistant", f"Assistant: {BREW}")),
        TWO,
    ),
    "names before plain turns": (
        [{"turns": [f"Ann: {TEA}", f"Bo (10:02): {LIKE}", f"Ann: {HOW}"]}], [*ONE, ([TEA, LIKE], HOW)],
    ),
    "a name of the chatbot in the lines before a response": (
        [{"context": [f"USER: {TEA}", f"MEENA: {LIKE}", f"USER: {HOW}"], "response": f"MEENA: {BREW}"}], LAST,
    ),
    "times before the texts": (
        chat(said("user", f"[2026-03-01 10:00] {TEA}"), said("assistant", f"[2026-03-01 10:01] {LIKE}")), ONE,
    ),
    "messages that were not sent, or not shown": (
        chat(said("user", TEA), said("assistant", "Tea", status="failed"), said("assistant", "No.", shown=False),
             said("assistant", "He is fine.", visibility="internal"), said("assistant", "[message deleted]"),
             said("assistant", "Tea, hm.", kind="thought"), said("assistant", LIKE, status="sent", shown=True)),
        ONE,
    ),
    "whether messages were read": (
        chat(said("user", TEA, status="read"), said("user", HOW, status="sent"), said("assistant", LIKE, status="sent")),
        [([TEA, HOW], LIKE)],
    ),
    "calls of tools as JSON in a table": (
        chat(*ASKED[:2], said("assistant", "", tool_calls='[{"function": {"name": "f", "arguments": "{}"}}]')), ONE,
    ),
    "texts that the other side repeats": (
        [said(role, text) for text in (TEA, LIKE) for role in ("user", "assistant")], [([TEA], TEA), ([TEA, TEA, LIKE], LIKE)],
    ),
    "conversations of a split": ([{"train": chat(*ASKED[:2])}], ONE),
    "You, beside a model's name": (
        chat({"sender": "You", "text": TEA}, {"sender": "llama3", "text": LIKE}, {"sender": "You", "text": HOW}), ONE,
    ),
    "a bot's shortened role": (
        chat(*({"from": name, "text": text} for name, text in (("Me", TEA), ("Rep", LIKE), ("Me", HOW)))), ONE,
    ),
    "which direction, as the speaker": (
        chat({"sender": "inbound", "text": TEA}, {"sender": "outbound", "text": LIKE}, {"sender": "inbound", "text": HOW}), ONE,
    ),
    "feedback as a role": (chat(*ASKED[:2], said("feedback", "thumbs_up"), said("user", HOW), said("assistant", BREW)), TWO),
    "newest first, by the clock": (
        chat(*(said(role, text, at=at) for role, text, at in
               (("assistant", BREW, "9:05"), ("user", HOW, "9:04"), ("assistant", LIKE, "9:03"), ("user", TEA, "9:02")))), TWO,
    ),
    "a clock that passes midnight": (
        chat(*(said(role, text, time=time) for role, text, time in
               (("user", TEA, "23:58"), ("assistant", LIKE, "23:59"), ("user", HOW, "0:01"), ("assistant", BREW, "0:02")))),
        TWO,
    ),
    "newest first, by a time of any name": (
        chat(said("assistant", LIKE, posted="2026-03-01T10:01:00Z"), said("user", TEA, posted="2026-03-01T10:00:00Z")), ONE,
    ),
    "newest first, by the seconds in a call": (
        chat(said("assistant", LIKE, start=2.5), said("user", TEA, start=0.5)), ONE,
    ),
    "how the request went, next to a question": (chat(*ASKED[:2], result="success", message="ok"), ONE),
    "messages of which some look like those of a product": (
        chat({"type": "user", "id": "1", "timestamp": 1, "content": TEA},
             {"type": "assistant", "id": "2", "timestamp": 2, "content": LIKE}),
        ONE,
    ),
}  # fmt: skip
REFUSED: dict[str, tuple[list[Any], str]] = {
    "whether another conversation begins": (
        [said(role, text) for role, text in (("system", "Hush."), ("user", TEA), ("assistant", LIKE)) * 2],
        "again, so that another conversation may begin there. Name the conversation of every message in a column "
        "'conversation', or read all as one by --order listed.",
    ),
    "whether a conversation without an id is there twice": (
        [*ASKED, said("assistant", BREW)] * 2, "log.jsonl:5: says what ",
    ),
    "whether a greeting begins another conversation": (
        [said("assistant", "Hello!"), *ASKED[:2], said("assistant", "Hello!"), *ASKED[:2]], "log.jsonl:4: says what ",
    ),
    "which answer to a message, by a product's name of the one before": (
        chat({**said("user", TEA), "message_id": 1}, {**said("assistant", "No."), "message_id": 2, "parent_message": 1},
             {**said("assistant", LIKE), "message_id": 3, "parent_message": 1}),
        "by --branches all.",
    ),
    "an answer alone": (
        [{"object": "chat.completion", "choices": [{"message": said("assistant", LIKE)}]}],
        'is an answer without its request, and nothing says what was asked. Log both: {"request": {"messages": [...]}, ',
    ),
    "a piece of an answer": (
        [{"object": "chat.completion.chunk", "choices": [{"delta": {"content": "I"}}]}], "is a piece of a streamed answer, and",
    ),
    "columns of other names": (
        [{"case_id": 1, "author_role": "customer", "body": TEA}],
        "It may be read by --columns conversation=case_id,speaker=author_role,text=body.",
    ),
    "fields of other names": (
        [{"log": [{"participant": "customer", "speech": TEA}, {"participant": "agent", "speech": LIKE}]}],
        "It may be read by --columns messages=log,speaker=participant,text=speech.",
    ),
    "fields of other names in a list that is known": (
        chat({"who": "user", "said": TEA}, {"who": "bot", "said": LIKE}),
        "If 'said' is what was said, say so by --columns speaker=who,text=said.",
    ),
    "which of two answers": (
        [{"prompt": TEA, "chosen": LIKE, "rejected": "No."}],
        "Score one of them by --layout preferred or --layout dispreferred",
    ),
    "which of several samples": (
        [{"prompt": [said("user", TEA)], "response": [LIKE, "No."]}],
        "has 2 answers, and nothing says which was shown. Keep one of them.",
    ),
    "which branch": (
        chat({**said("user", TEA), "id": "1", "parent": None}, {**said("assistant", "No idea."), "id": "2", "parent": "1"},
             {**said("assistant", LIKE), "id": "3", "parent": "1"}),
        "by --branches all.",
    ),
    "messages as Python prints them": (
        [{"messages": [f"HumanMessage(content='{TEA}')", f"AIMessage(content='{LIKE}')"]}],
        "messages: has a message as Python prints it, \"HumanMessage(content='",
    ),
    "who says it, in a field of any name": (
        chat({"side": "user", "text": TEA}, {"side": "assistant", "text": LIKE}),
        "'side' may be the speaker. Say so by --columns speaker=side",
    ),
    "numbers that recur": (
        chat(*(said(role, text, turn=turn) for role, text, turn in (
            ("user", TEA, 1), ("assistant", LIKE, 2), ("user", HOW, 1), ("assistant", BREW, 2)))),
        "are not in the order of their numbers ('turn'), some of which recur. Order them, give each of several conversations",
    ),
    "which answer to a message": (
        [{"id": id, "conversation_id": "c", "speaker": who, "text": text, "reply-to": to}
         for id, who, text, to in (("1", "Ann", TEA, None), ("2", "Bo", LIKE, "1"), ("3", "Cy", "No.", "1"))],
        "by --branches all.",
    ),
    "answers without their questions": (
        [{"model": "m", "message": said("assistant", LIKE), "done": True}],
        "has answers alone, and nothing says what was asked. Put each after its request, and name the conversation of every",
    ),
    "a conversation that is named once": (
        [{"conversation_id": id, **said(role, text)} for id, role, text in (("c", "user", TEA), ("", "assistant", LIKE))],
        "has no conversation, which other rows have. Name the conversation of every message.",
    ),
    "which order": (
        chat(*(said(role, text, created_at=f"2025-01-01T10:0{minute}:00Z")
               for role, text, minute in (("user", TEA, 5), ("assistant", LIKE, 9), ("user", HOW, 1), ("assistant", BREW, 2)))),
        "by --order listed or --order time.",
    ),
    "who says it": (
        chat({"username": "ann", "text": TEA}, {"username": "bob", "text": LIKE}),
        "Say so by --columns speaker=username",
    ),
    "who says it, in a name of two words": (
        chat({"senderWorkerId": 1, "text": TEA}, {"senderWorkerId": 2, "text": LIKE}),
        "'senderWorkerId' may be the speaker. Say so by --columns speaker=senderWorkerId, or give a 'role'",
    ),
    "who says it, as a truth value": (chat({"fromMe": True, "text": TEA}), "Say so by --columns speaker=fromMe"),
    "a type that is no role": (chat({"type": "gemini", "content": TEA}), "Say so by --columns speaker=type"),
    "a text in an unknown field": (chat({"role": "user", "pieces": [TEA]}), "by --columns text=NAME"),
    "a table written by its columns": (
        [{"context": [TEA, HOW], "response": [LIKE, BREW]}],
        "has 2 texts, and nothing says which was shown. Keep one; of a table that is written by its columns, write each row",
    ),
    "roles as numbers": (
        chat(said(0, TEA), said(1, LIKE)),  # type: ignore[arg-type]
        "role is 0. Write user or assistant, or read such numbers as names by --columns speaker=role.",
    ),
    "a user and a customer": (chat(said("user", LIKE), said("customer", TEA)), "Call the one who answers 'assistant'."),
    "a text whose turns have names": (
        [{"messages": f"Ann: {TEA}\nBo: {LIKE}"}],
        "messages: is a text without roles. Begin each turn with 'User:' or 'Assistant:', or write a list of turns.",
    ),
    "messages in lists of their own": (chat([said("user", TEA)]), "Write each message as an element of its own."),  # type: ignore[arg-type]
    "which text": (
        chat(said("user", TEA), {**said("assistant", LIKE), "text": "No."}),
        "Say which was said by --columns speaker=role,text=content.",
    ),
    "a text under another name": (chat({"role": "user", "body": TEA}), "say so by --columns text=body."),
    "an answer next to the turns before it": (
        [{"turns": ASKED, "botReply": BREW}], "may be the last answer. Say so by --columns context=NAME,response=botReply. Or",
    ),
    "a question and its answer next to the turns before them": (
        [{"conversation_history": ASKED[:2], "userQuery": HOW, "final_reply": BREW}],
        "has 'userQuery' and 'final_reply' next to its turns, which may be the last two. Add them to the turns. Or read the",
    ),
    "an answer next to turns under a name of their own": (
        [{"so_far": ASKED, "predicted answer": BREW}],
        "by --columns 'context=NAME,response=predicted answer'. Or read the turns alone by --layout other-name.",
    ),
    "which is the day and which the month": (
        chat(said("user", TEA, date="01/02/2025 10:00"), said("assistant", LIKE, date="02/01/2025 10:00")),
        "its times differ in order by whether the day or the month is first. Read it by --order listed.",
    ),
    "how the request went, or the answer": (
        chat(said("user", TEA), message="Rate limited, try again"),
        "has 'message' next to its turns, which may be the last answer. Say so by --columns context=NAME,response=message. Or",
    ),
    "rows of which some look like those of a product": (
        [{"type": role, "id": role, "timestamp": "2025-01-02T10:00:00Z", "content": TEA} for role in ("user", "assistant")],
        "is read as a message of the layout 'gemini-cli', which other rows do not have. Read all rows alike by --layout "
        "gemini-cli, or by --columns speaker=NAME,text=NAME.",
    ),
    "a question and its answer with what was said before in a list": (
        [{"Context": [TEA, LIKE], "Question": HOW, "Answer": BREW, "Turn_no": 2}],
        "Say what its fields are by --columns: messages=NAME of a whole conversation",
    ),
    "a role and a text, as of one message": ([{"messages": ["user", TEA]}], "is one message, a role and a text."),
    "columns in the order of the alphabet": (
        [{"assistant_1": LIKE, "assistant_2": BREW, "user_1": TEA, "user_2": HOW}], "Read it by --layout numbered-turns",
    ),
    "a log of calls": ([{"log": [{"input": "tea.py", "output": "ok"}]}], "is no conversation of a known layout; it has 'log'."),
    "who said one of the messages": (
        chat(said("user", TEA), {"text": LIKE}),
        "message 2: it is not known who said it. Name the field of its speaker by --columns",
    ),
    "which list of messages in an object": (
        [{"conversation": {"a": "Ann", "session_1": [{"speaker": "Ann", "text": TEA}], "session_2": []}}],
        "conversation: is an object. Name the list of messages in it, such as --columns messages=conversation.session_1",
    ),
    "lists of two texts": (
        [{"conversation": [[TEA, LIKE], [HOW, BREW]]}], "If they are the former, read it by --layout pairs.",
    ),
    "a text of one line without roles": (
        [{"messages": TEA}], "messages: is a text without roles. Begin each turn with 'User:'",
    ),
    "which conversation, by its user": (
        [{"user_id": id, "role": role, "text": TEA} for role in ("user", "assistant") for id in (1, 2)],
        "Say so by --columns conversation=user_id,speaker=role,text=text.",
    ),
    "a row for each who judged a message": (
        [{"conversation_id": 1, "judge_id": judge, **one} for one in ASKED[:2] for judge in "ab"],
        "differs in 'judge_id', such as by who judged it. Keep one row of each message, or read all by --order listed.",
    ),
    "which conversation, by a name that each user has": (
        [{"session_id": 1, "user_id": id, **one} for id in (1, 2) for one in (said("user", f"{id}?"), said("assistant", LIKE))],
        "is of a conversation with several users by 'user_id'. Join both columns into one, and name it by --columns",
    ),
    "blocks of rows that begin alike": (
        [{"thread_id": 1, "reviewer": who, **one} for who in "ab" for one in ASKED], "says what",
    ),
    "an answer to another that is elsewhere": (
        [{"input": HOW, "output": [said("assistant", BREW)], "previous_response_id": "r1"}],
        "or read each alone by --columns context=NAME,response=NAME.",
    ),
    "which speaker and conversation, by what they are called": (
        [{"conversation_no": 1, "turn_id": n, "caller": n, "text": text} for n, text in enumerate([TEA, LIKE])],
        "--columns conversation=conversation_no,speaker=caller,text=text",
    ),
    "which columns are the question and the answer": (
        [{"Device": "Echo", "Customer Utterance": TEA, "Alexa Response": LIKE}],
        "be read by --columns 'context=Customer Utterance,response=Alexa Response'.",
    ),
    "which list of messages, next to one of others": (
        [{"topics": [{"topic": "Tea"}], "talk": [{"speaker": "Ann", "content": TEA}]}], "be read by --columns messages=talk.",
    ),
    "a text and who speaks, next to a number of the speaker": (
        [{"sentence": TEA, "speaker_name": "Ann", "speaker_id": 0}], "be read by --columns speaker=speaker_name,text=sentence.",
    ),
    "which of a text and its translation": (
        chat(said("user", TEA, content_en="Tea?"), said("assistant", LIKE, content_en="I like it.")),
        "has a text in 'content' and another in 'content_en'. Say which was said by --columns speaker=role,text=content.",
    ),
    "a page of an API without times": (
        [{"data": [said("assistant", LIKE), said("user", TEA)], "first_id": "2", "last_id": "1"}],
        "Read it so by --layout openai-items, or as it is listed by --columns messages=data.",
    ),
    "a greeting next to the turns": (
        chat(said("user", TEA), said("assistant", LIKE), greeting="Hello!"),
        "has 'greeting' next to its turns, which may have been said before them.",
    ),
    "which of two answers, by their versions": (
        chat(said("user", TEA), said("assistant", "Tea?", version=1), said("assistant", LIKE, version=2)),
        "message 3: differs in 'version' from the one before it, and either may not have been shown. Take one out, or read all "
        "as they are by --columns speaker=role,text=content.",
    ),
    "which of two answers to the same message": (
        chat(said("user", TEA, message_id=1), *(said("assistant", text, message_id=n, reply_to_message_id=1)
                                                for n, text in ((2, "Tea?"), (3, LIKE)))),
        "messages 2 and 3 answer the same one, and either may not have been shown. Read all by --order listed",
    ),
    "a role that is no speaker's": (
        chat(said("user", TEA), said("planner", "Look it up."), said("assistant", LIKE)),
        "message 2: its role is 'planner', which is neither a user's nor an assistant's. Take such messages out, or read all "
        "as they are by --columns speaker=role,text=content.",
    ),
    "the conversation of a message in a list": (
        [{"data": [{"conversation_id": id, **one} for id, one in zip(("c", "d", None), ASKED, strict=True)]}],
        "log.jsonl:1: has messages of several conversations by 'conversation_id', or without one.",
    ),
    "which of two lists": (
        chat(*ASKED, messages_en=[said("user", TEA), said("assistant", BREW)]),
        "has other messages in 'messages_en'. Read these by --columns messages=messages_en. Or read the turns alone by",
    ),
    "an answer in an artifact": (chat(*ASKED, artifacts=[{"text": BREW}]), "has 'artifacts' next to its turns"),
    "a text whose lines begin with names": (
        [{"dialogue": f"Ann: {TEA}\nBo: {LIKE}\nAnn: {HOW}"}], "It may be read by --columns messages=dialogue.",
    ),
    "messages in a list in an object": (
        [{"type": "risuChat", "data": {"message": [{"role": "user", "data": TEA}, {"role": "char", "data": LIKE}]}}],
        "It may be read by --columns messages=data.message,text=data.",
    ),
    "messages inside of rows": (
        [{"_id": 1, "_source": {"conversation_id": "c", "role": "user", "body": TEA}}],
        "--columns conversation=_source.conversation_id,speaker=_source.role,text=_source.body.",
    ),
    "which conversation, by a name that is no id's": (
        [{"room": room, "role": role, "text": TEA} for room in ("a", "b") for role in ("user", "assistant")],
        "Say so by --columns conversation=room,speaker=role,text=text. Or read all rows as one by --order listed.",
    ),
    "which conversation": (
        [{"case_id": id, "role": role, "text": TEA} for id in (1, 2) for role in ("user", "assistant")],
        "Say so by --columns conversation=case_id,speaker=role,text=text.",
    ),
    "what was asked": ([{"prompt": TEA, "response": LIKE}], "Read it by --layout question-answer, or"),
    "a passage next to a question": (
        [{"question": TEA, "context": "Tea is a plant.", "response": LIKE}],
        "Say so by --columns context=question,response=response,facts=context, or by",
    ),
}  # fmt: skip


IGNORED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "a field of a layout that says who speaks": (
        [{"sessionId": "s", "projectHash": "0", "messages": [
            {"id": "1", "type": "user", "timestamp": 1, "content": TEA},
            {"id": "2", "type": "gemini", "timestamp": 2, "content": LIKE}]}],
        {"columns": {"speaker": "type"}},
        "as the layout 'gemini-cli' reads it, has a field 'type', which is to be its speaker. Leave --columns speaker=type "
        "out, or name their list too (messages=NAME,speaker=type).",
    ),
    "a speaker of a response": (
        [{"context": [TEA], "response": LIKE}], {"columns": {"speaker": "who"}},
        "is one response with its context, where --columns has no meaning. Leave it out.",
    ),
    "branches of a response": ([{"context": [TEA], "response": LIKE}], {"branches": "all"}, "where --branches has no meaning."),
    "references of a conversation": (
        chat(*ASKED, gold=LIKE), {"columns": {"messages": "messages", "references": "gold"}},
        "columns: 'messages' and 'references' are not fields of one row. Name those of a response (context, response, id, ",
    ),
    "times that are not there": (
        chat(*ASKED), {"order": "time"}, "message 1 has no time that can be read. Leave --order time out.",
    ),
    "an order of messages that name the one before": (
        chat({**said("user", TEA), "id": "1"}, {**said("assistant", LIKE), "id": "2", "parent": "1"}), {"order": "listed"},
        "each of its messages names the one before it, which is their order. Leave --order out.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", IGNORED)
def test_an_option_that_would_change_nothing_is_refused(kind: str, tmp_path: Path) -> None:
    rows, options, message = IGNORED[kind]
    assert message in refusal(Source(str(written(rows, tmp_path)), ReadingOptions(**options)).read, "turn")


def test_the_same_words_twice_are_said_twice(tmp_path: Path) -> None:
    messages = [said("user", TEA), said("user", TEA), said("assistant", LIKE)]
    rows = [{"thread_id": 1, "msg_id": n, "sent": f"2026-03-01 10:00:0{n}", **one} for n, one in enumerate(messages)]
    assert talk(Source(str(written(rows, tmp_path)))) == [([TEA, TEA], LIKE)]


def test_the_same_words_later_begin_no_conversation(tmp_path: Path) -> None:
    rows = [said("user", "Yes."), said("assistant", TEA), said("user", "Yes."), said("assistant", LIKE)]
    assert len(talk(Source(str(written(rows, tmp_path))))) == 2
    twice = Source(str(written([*ASKED[:2], *ASKED[:2]], tmp_path)), ReadingOptions(order="listed"))
    assert [len(context) for context, _ in talk(twice)] == [1, 3]


def test_roles_before_a_context_and_its_response_are_not_said(tmp_path: Path) -> None:
    rows = [{"context": [f"User: {TEA}"], "response": f"Bot: {LIKE}"}, {"context": [TEA], "response": f"Bot: {LIKE}"}]
    assert talk(Source(str(written(rows, tmp_path)))) == [*ONE, *ONE]


VERSIONS = chat(said("user", TEA), said("assistant", "Tea?", version=1), said("assistant", LIKE, version=2))
ROOMS = [{"Room": room, "Role": role, "Text": text} for room in "ab" for role, text in (("user", TEA), ("assistant", LIKE))]
BODIES = [
    {"_source": {"conversation_id": "c", "role": role, "body": text}} for role, text in (("user", TEA), ("assistant", LIKE))
]


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        (VERSIONS, {"speaker": "role", "text": "content"}, [([TEA], "Tea?"), ([TEA, "Tea?"], LIKE)]),
        (BODIES, {"conversation": "_source.conversation_id", "speaker": "_source.role", "text": "_source.body"}, ONE),
        ([{"dialogue": f"Ann: {TEA}\nBo: {LIKE}\nAnn: {HOW}"}], {"messages": "dialogue"}, [*ONE, ([TEA, LIKE], HOW)]),
        (chat(*ASKED, messages_en=ASKED[:2]), {"messages": "messages_en"}, ONE),
        (
            [{"data": {"message": [{"role": "user", "data": TEA}, {"role": "char", "data": LIKE}]}}],
            {"messages": "data.message", "text": "data"},
            ONE,
        ),
    ],
    ids=["both versions", "messages inside of rows", "names before lines", "other messages", "a list in an object"],
)
def test_what_was_asked_for_is_read_by_the_columns_named(
    rows: list[Any], options: dict[str, str], expected: Talk, tmp_path: Path
) -> None:
    assert talk(Source(str(written(rows, tmp_path)), ReadingOptions(columns=options))) == expected


def test_a_table_whose_conversation_has_another_name_says_its_own_columns(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(
        "Room,Role,Text\n" + "".join(f"{','.join(row.values())}\n" for row in ROOMS).replace("I do, g", "I do g"),
        encoding="utf-8",
    )
    assert "by --columns conversation=Room,speaker=Role,text=Text. Or" in refusal(Source(str(path)).read, "turn")
    columns = {"speaker": "Role", "text": "Text"}
    given = Source(str(path), ReadingOptions(columns=columns))
    assert "by --columns conversation=Room,speaker=Role,text=Text. Or" in refusal(given.read, "turn")
    read = Source(str(path), ReadingOptions(columns={"conversation": "Room", **columns}))
    assert [len(context) for context, _ in talk(read)] == [1, 1]


def test_the_time_below_a_message_of_markdown_is_not_said(tmp_path: Path) -> None:
    turns = "\n\n".join(f"**{role}**: {text}\n[Timestamp: 2026/03/01 10:00:00]" for role, text in (("user", TEA), ("ai", LIKE)))
    (path := tmp_path / "chat.md").write_text(turns + "\n", encoding="utf-8")
    assert talk(Source(str(path))) == ONE


def test_two_bots_are_no_assistant(tmp_path: Path) -> None:
    path = written(chat(said("red_bot", TEA), said("blue_bot", LIKE), said("red_bot", HOW)), tmp_path)
    assert len(talk(Source(str(path)))) == 2


def test_all_that_was_left_out_is_named_where_nothing_is_left(tmp_path: Path) -> None:
    path = written(chat(said("system", "Hush."), said("user", TEA)), tmp_path)
    assert "(no turns, left out: 1 system message; without a turn to score: 1 of 1 conversations)" in refusal(
        Source(str(path)).read, "turn"
    )


def test_pairs_of_texts_are_read_if_they_are_said_to_be(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(f'conversation,flag\n"[[""{TEA}"", ""{LIKE}""]]",Like\n', encoding="utf-8")
    assert talk(Source(str(path), ReadingOptions(layout="pairs"))) == ONE


def written(rows: list[Any], tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def talk(source: Source) -> Talk:
    items = source.read("turn")
    return [([turn.text for turn in one.context], one.response.text) for one in items if isinstance(one, Example)]


@pytest.mark.parametrize("kind", READ)
def test_what_was_misread_is_read(kind: str, tmp_path: Path) -> None:
    rows, expected = READ[kind]
    assert talk(Source(str(written(rows, tmp_path)))) == expected


@pytest.mark.parametrize("blank", [",\n", "\n"])
def test_blank_rows_may_part_conversations(blank: str, tmp_path: Path) -> None:
    rows = "role,content\n" + blank.join(f'user,{text}\nassistant,"{LIKE}"\n' for text in (TEA, HOW))
    (path := tmp_path / "log.csv").write_text(rows + blank, encoding="utf-8")
    assert "log.csv:5: comes after a blank row" in refusal(Source(str(path)).read, "turn")
    assert len(talk(Source(str(path), ReadingOptions(order="listed")))) == 2
    path.write_text(rows.replace("\n", "\n\n"), encoding="utf-8")  # as of Python on Windows
    assert len(talk(Source(str(path)))) == 2


def test_blank_rows_of_a_workbook_may_part_conversations(tmp_path: Path) -> None:
    rows = [[role, text] for role, text in (("user", TEA), ("assistant", LIKE))]
    path = tmp_path / "log.xlsx"
    pandas.DataFrame([*rows, [None, None], *rows], columns=["role", "content"]).to_excel(path, index=False)
    assert "row 5: comes after a blank row" in refusal(Source(str(path)).read, "turn")


@pytest.mark.parametrize(("first", "layout"), [("User", None), ("Ann", "names")])
def test_a_line_may_part_chats_of_a_text(first: str, layout: str | None, tmp_path: Path) -> None:
    chats = [f"{first}: {TEA}\nAssistant: {LIKE}\n{first}: {HOW}\nAssistant: {BREW}\n"] * 2
    (path := tmp_path / "log.txt").write_text("\n=====\n\n".join(chats), encoding="utf-8")
    assert "comes after a rule or more blank lines than others" in refusal(
        Source(str(path), ReadingOptions(layout=layout)).read, "turn"
    )
    assert len(talk(Source(str(path), ReadingOptions(layout=layout, order="listed")))[-1][0]) == 7
    path.write_text("".join(f"### Conversation {n}\n\n{one}\n" for n, one in enumerate(chats)), encoding="utf-8")
    read = Source(str(path), ReadingOptions(layout=layout)).conversations()
    assert [(one.id, len(one.turns)) for one in read if isinstance(one, Conversation)] == [
        ("Conversation 0", 4), ("Conversation 1", 4)
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "layout"), [("User", None), ("Ann", "names")])
@pytest.mark.parametrize("usual", ["", "\n"])
def test_blank_lines_may_part_chats_of_a_text(first: str, layout: str | None, usual: str, tmp_path: Path) -> None:
    options = ReadingOptions(layout=layout)
    chat = usual.join([f"{first}: {TEA}\n", f"Bot: {LIKE}\n\nIt is nice.\n", f"{first}: {HOW}\n", f"Bot: {BREW}\n"])
    (path := tmp_path / "log.txt").write_text(chat, encoding="utf-8")
    assert len([*Source(str(path), options).conversations()]) == 1
    path.write_text(f"{chat}{usual}\n{chat}", encoding="utf-8")
    assert "comes after a rule or more blank lines than others" in refusal(Source(str(path), options).read, "turn")
    assert len([*Source(str(path), ReadingOptions(layout=layout, order="listed")).conversations()]) == 1


def test_a_title_above_the_header_of_a_table_is_no_column(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(
        f"Chats of March,\n,\nrole,content\nuser,{TEA}\nassistant,Yes\n", encoding="utf-8"
    )
    assert talk(Source(str(path))) == [([TEA], "Yes")]


def test_rows_of_one_speaker_are_no_questions_with_answers(tmp_path: Path) -> None:
    rows = [{"customer": TEA, "agent": ""}, {"customer": "", "agent": LIKE}]
    source = Source(str(written(rows, tmp_path)), ReadingOptions(layout="question-answer"))
    assert talk(source) == [([TEA], "")]
    assert "has nothing in 'customer'" in source.reading.remarks()
    assert talk(Source(str(written([{"conversation_id": 1, **row} for row in rows], tmp_path)))) == ONE


def test_a_chat_of_otree_is_read_by_its_channel(tmp_path: Path) -> None:
    head = "session_code,id_in_session,participant_code,channel,nickname,body,timestamp\n"
    rows = "".join(
        f"s,{n % 2},p{n % 2},{n // 2},{'Bo' if n % 2 else 'Ann'},{text},{n}\n" for n, text in enumerate((TEA, "Yes", HOW, BREW))
    )
    (path := tmp_path / "ChatMessages.csv").write_text(head + rows, encoding="utf-8")
    assert "Read it by --layout otree" in refusal(Source(str(path)).read, "turn")
    assert talk(Source(str(path), ReadingOptions(layout="otree"))) == [([TEA], "Yes"), ([HOW], BREW)]


def test_what_was_said_before_a_question_may_be_a_text(tmp_path: Path) -> None:
    row = {"session_id": 1, "chat_history": f"Human: {TEA}\nAI: {LIKE}", "question": HOW, "answer": BREW}
    path = written([row], tmp_path)
    assert talk(Source(str(path), ReadingOptions(layout="question-answer"))) == LAST
    assert "Read each row alone" in refusal(Source(str(path), ReadingOptions(layout="exchange-rows")).read, "turn")


def test_answers_in_rows_of_a_conversation_may_be_objects(tmp_path: Path) -> None:
    rows = [{"thread_id": 1, "prompt": one, "response": json.dumps({"text": two})} for one, two in ((TEA, LIKE), (HOW, BREW))]
    assert talk(Source(str(written(rows, tmp_path)), ReadingOptions(layout="exchange-rows"))) == TWO


@pytest.mark.parametrize("kind", REFUSED)
def test_what_can_be_meant_in_two_ways_is_asked_for(kind: str, tmp_path: Path) -> None:
    rows, way_out = REFUSED[kind]
    assert way_out in refusal(Source(str(written(rows, tmp_path))).read, "turn")


@pytest.mark.parametrize("kind", READ)
def test_a_table_of_the_same_rows_is_read_alike(kind: str) -> None:
    import pandas

    from dialeval_plugin import examples_from

    rows, expected = READ[kind]
    found = examples_from(pandas.DataFrame(rows))
    assert [([turn.text for turn in one.context], one.response.text) for one in found] == expected


@pytest.mark.parametrize(
    "head",
    [
        "Conversation ID,Role,Content",
        "conversationId,role,content",
        "Session-ID,Sender Type,Text",
        "CONVERSATION_ID,ROLE,MESSAGE_TEXT",
        "ConversationID,SenderType,MessageText",
        "chat_id,is_bot,text",
        "thread_id,from_user,message",
    ],
)
def test_names_of_columns_may_have_capitals_spaces_and_hyphens(head: str, tmp_path: Path) -> None:
    user, bot = {"is_bot": ("0", "1"), "from_user": ("True", "False")}.get(head.split(",")[1], ("User", "Bot"))
    (path := tmp_path / "log.csv").write_text(f'{head}\nc,{user},{TEA}\nc,{bot},"{LIKE}"\n', encoding="utf-8")
    assert talk(Source(str(path))) == ONE


@pytest.mark.parametrize(
    ("messages", "columns"),
    [
        ([{"type": "me", "content": TEA}, {"type": "gemini", "content": LIKE}], {"speaker": "type"}),
        ([{"worker": 1, "text": TEA}, {"worker": 2, "text": LIKE}], {"speaker": "worker"}),
        (
            [{"of": {"side": "user"}, "said": {"text": TEA}}, {"of": {"side": "bot"}, "said": {"text": LIKE}}],
            {"speaker": "of.side", "text": "said.text"},
        ),
        (
            [{"turn": who, "data": {"utterance": text, "end": False}} for who, text in (("driver", TEA), ("assistant", LIKE))],
            {"speaker": "turn", "text": "data.utterance"},
        ),
    ],
)
def test_a_named_field_of_messages_may_be_any(messages: list[Any], columns: dict[str, str], tmp_path: Path) -> None:
    path = written([{"messages": messages}], tmp_path)
    assert talk(Source(str(path), ReadingOptions(columns=columns))) == ONE
    assert talk(Source(str(path), ReadingOptions(columns={"messages": "messages", **columns}))) == ONE


def test_a_history_comes_before_its_question(tmp_path: Path) -> None:
    named = ReadingOptions(layout="question-answer")
    for history in ([[TEA, LIKE]], [said("user", TEA), said("assistant", LIKE)]):
        path = written([{"prompt": HOW, "response": BREW, "history": history}], tmp_path)
        assert talk(Source(str(path), named)) == LAST
    path = written([{"prompt": HOW, "response": BREW, "chat_history": TEA}], tmp_path)
    assert "has a 'chat_history' that is no list. Write what was said before as a list" in refusal(
        Source(str(path), named).read, "turn"
    )


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": TEA, "responses": [{"text": LIKE}]},
        {"thread": [said("user", TEA)]},
        {"annotations": [], "dialogue_id": 0},
        {"annotations": [], "system": "Be kind.", "messages": []},
        {"history": [], "prompt": TEA, "response": LIKE},
        {"history": "none", "question": TEA, "answer": LIKE},
        {"history": [{"message": said("user", TEA)}]},
    ],
)
def test_one_usual_field_makes_no_published_corpus_of_an_array(row: dict[str, Any], tmp_path: Path) -> None:
    (path := tmp_path / "log.json").write_text(json.dumps([row]), encoding="utf-8")
    assert identify(path) is None


def test_a_caption_of_whatsapp_is_said_without_the_name_of_its_file(tmp_path: Path) -> None:
    (path := tmp_path / "chat.txt").write_text(
        f"05/02/22, 8:06 pm - Ann: IMG-1.jpg (file attached)\n{TEA}\n05/02/22, 9:08 pm - Bo: {LIKE}\n", encoding="utf-8"
    )
    assert talk(Source(str(path), ReadingOptions(layout="whatsapp"))) == ONE


@pytest.mark.parametrize(
    ("media", "deleted", "edited"),
    [
        ("<Medien ausgeschlossen>", "Diese Nachricht wurde gelöscht.", "<Diese Nachricht wurde bearbeitet.>"),
        ("<Multimedia omitido>", "Eliminaste este mensaje.", "<Se editó este mensaje.>"),
        ("<Mídia oculta>", "Mensagem apagada", "<Mensagem editada>"),
        ("IMG-1.jpg (Datei angehängt)", "Ce message a été supprimé", "<Ce message a été modifié>"),
        ("\u200eBild weggelassen", "\u200eDu hast diese Nachricht gelöscht.", "\u200e<Diese Nachricht wurde bearbeitet.>"),
    ],
)
def test_what_whatsapp_says_in_another_language_is_not_said_by_people(
    media: str, deleted: str, edited: str, tmp_path: Path
) -> None:
    said_by = [("Ann", f"{TEA} {edited}"), ("Bo", media), ("Bo", deleted), ("Bo", LIKE)]
    lines = [f"01.01.26, 10:0{minute} - {who}: {text}" for minute, (who, text) in enumerate(said_by)]
    (path := tmp_path / "chat.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert talk(Source(str(path), ReadingOptions(layout="whatsapp"))) == ONE


@pytest.mark.parametrize(
    ("name", "head", "before"),
    [("call.srt", "", "{0}\n00:00:0{0},000 --> 00:00:09,000\n"), ("call.vtt", "WEBVTT\n\n", "00:0{0}.000 --> 00:09.000\n")],
)
def test_numbers_and_times_of_subtitles_are_not_said(name: str, head: str, before: str, tmp_path: Path) -> None:
    cues = [f"{before.format(n)}{who}: {text}\n\n" for n, (who, text) in enumerate((("User", TEA), ("Agent", LIKE)), start=1)]
    (path := tmp_path / name).write_text(head + "".join(cues), encoding="utf-8")
    assert talk(Source(str(path), ReadingOptions(layout="transcript"))) == ONE


def test_marks_of_botium_tell_who_says_a_text(tmp_path: Path) -> None:
    (path := tmp_path / "tea.convo.txt").write_text(f"Tea talk\n\n#me\n{TEA}\n\n#bot\n{LIKE}\n", encoding="utf-8")
    assert talk(Source(str(path))) == ONE


def test_lines_that_markdown_draws_between_messages_are_not_said(tmp_path: Path) -> None:
    (path := tmp_path / "chat.md").write_text(
        f"**User:**\n\n{TEA}\n\n---\n\n**Assistant:**\n\n{LIKE}\n\n---\n", encoding="utf-8"
    )
    assert talk(Source(str(path), ReadingOptions(layout="transcript"))) == ONE


def test_messages_of_a_table_are_from_me_only_if_they_say_so(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(f'is_from_me,text,handle_id\n0,{TEA},+1\n1,"{LIKE}",\n', encoding="utf-8")
    (one,) = Source(str(path), ReadingOptions(layout="imessage")).conversations()
    assert isinstance(one, Conversation)
    assert [turn.speaker for turn in one.turns] == ["+1", "me"]


def test_a_quotation_of_matrix_is_not_said_again(tmp_path: Path) -> None:
    reply = {"m.in_reply_to": {"event_id": "1"}}
    room = {"messages": [
        {"type": "m.room.message", "sender": who, "event_id": id, "content": {"msgtype": "m.text", "body": text, **more}}
        for who, id, text, more in (("@a:x", "1", TEA, {}), ("@b:x", "2", f"> <@a:x> {TEA}\n\n{LIKE}", {"m.relates_to": reply}))
    ]}  # fmt: skip
    assert talk(Source(str(written([room], tmp_path)), ReadingOptions(layout="matrix"))) == ONE


@pytest.mark.parametrize(
    ("layout", "row"),
    [
        ("ultrachat", {"data": "tea"}),
        ("soda", {"speakers": "ab", "dialogue": "cd"}),
        ("coqa", {"story": "s", "questions": "ab", "answers": "cd"}),
        ("blended-skill-talk", {"personas": [], "previous_utterance": "ab", "free_messages": "c", "guided_messages": "d"}),
        ("text-generation-webui", {"internal": "ab", "visible": "ab"}),
        ("text-generation-webui", {"internal": ["ab"], "visible": ["ab"]}),
        ("mt-bench", {"question_id": 1, "turns": "ab", "choices": [{"turns": "cd"}]}),
        ("abcd", {"convo_id": 1, "original": ["ab", "cd"]}),
        ("persona-candidates", {"utterances": [{"history": "ab", "candidates": ["cd"]}]}),
        ("parlai-conversations", {"dialog": ["ab", "cd"]}),
        ("lm-eval-samples", {"doc_id": 1, "arguments": ["ab"], "resps": [["cd"]]}),
        ("lm-eval-samples", {"doc_id": 1, "arguments": [["ab"]], "resps": ["cd"]}),
    ],
)
def test_letters_of_a_text_are_no_messages(layout: str, row: dict[str, Any], tmp_path: Path) -> None:
    source = Source(str(written([row], tmp_path)), ReadingOptions(layout=layout))
    assert f"is not as the layout {layout!r}" in refusal(source.read, "turn")


def test_usual_names_take_nothing_from_a_table_that_is_read_as_it_is(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(f'ID,role,content\n7,user,{TEA}\n8,assistant,"{LIKE}"\n', encoding="utf-8")
    assert [placed.item.id for placed in Source(str(path)).items("turn")] == ["log_00000:2"]
    path.write_text(f'Question,Response,Context\n{TEA},"{LIKE}",none\n', encoding="utf-8")
    assert "it has 'Question', 'Response', 'Context'" in refusal(Source(str(path)).read, "turn")


def test_a_passage_with_a_question_and_an_answer_is_no_context_without_a_response(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text(f'context,question,answer\nTea is warm.,{TEA},"{LIKE}"\n', encoding="utf-8")
    assert "Say so by --columns context=question,response=answer,facts=context, or" in refusal(Source(str(path)).read, "turn")
    path.write_text(f'context,answer\n{TEA},"{LIKE}"\n', encoding="utf-8")
    assert "If it is 'answer', say so by --columns context=context,response=answer." in refusal(Source(str(path)).read, "turn")
    path.write_text(f"context,response,result\n{TEA},,pass\n", encoding="utf-8")
    assert talk(Source(str(path))) == [([TEA], "")]


def test_a_text_that_begins_with_a_time_in_brackets_is_no_broken_json(tmp_path: Path) -> None:
    (path := tmp_path / "chat.txt").write_text(f"[10:00] <ann> {TEA}\n[10:01] <bot> {LIKE}\n", encoding="utf-8")
    assert "is a chat of people (a log of IRC). Read it by --layout irc" in refusal(Source(str(path)).read, "turn")


def test_what_python_printed_is_named_as_such(tmp_path: Path) -> None:
    for row in ({"messages": [said("user", TEA), said("assistant", LIKE)]}, '{"messages": None}'):
        (path := tmp_path / "t.jsonl").write_text(f"{row}\n", encoding="utf-8")
        assert "but as Python prints it. Write it by json.dumps." in refusal(Source(str(path)).read, "turn")


def test_a_log_of_a_program_is_no_chat(tmp_path: Path) -> None:
    (path := tmp_path / "t.log").write_text("2024-01-01 10:00:00 INFO up\n2024-01-01 10:00:01 ERROR down\n", encoding="utf-8")
    assert "begins with neither an object nor an array of JSON" in refusal(Source(str(path)).read, "turn")


def test_lines_of_a_table_may_end_as_on_an_old_mac(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text(f'role,content\ruser,{TEA}\rassistant,"{LIKE}"\r', encoding="utf-8", newline="")
    assert talk(Source(str(path))) == ONE


def test_objects_in_cells_have_the_layout_of_their_product(tmp_path: Path) -> None:
    cells = "".join(
        f'c,{direction},text,"{{""text"": ""{text}""}}"\n' for direction, text in (("incoming", TEA), ("outgoing", LIKE))
    )
    (path := tmp_path / "t.csv").write_text(f"conversationId,direction,type,payload\n{cells}", encoding="utf-8")
    assert talk(Source(str(path))) == ONE


def test_the_end_of_a_template_is_no_turn(tmp_path: Path) -> None:
    row = {"context": f"\n\nHuman: {TEA}\n\nAssistant:", "response": LIKE}
    (path := tmp_path / "t.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert talk(Source(str(path))) == ONE


def test_a_folder_with_a_message_a_file_is_a_conversation(tmp_path: Path) -> None:
    (folder := tmp_path / "session_1" / "messages").mkdir(parents=True)
    (tmp_path / "session_1" / "session.json").write_text('{"session_id": "1"}', encoding="utf-8")
    for number, message in enumerate([*ASKED, said("assistant", BREW)], start=9):
        row = {"message": {**message, "content": [{"text": message["content"]}]}, "message_id": number}
        (folder / f"message_{number}.json").write_text(json.dumps(row), encoding="utf-8")
    source = Source(str(tmp_path))
    assert talk(source) == TWO
    assert [item.id for item in source.read("turn")] == ["session_1/messages/0:2", "session_1/messages/0:4"]


def test_the_history_of_a_row_is_not_dropped(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text(f"history|response\n{TEA}|{LIKE}\n", encoding="utf-8")
    assert "Say so by --columns context=history,response=response." in refusal(Source(str(path)).read, "turn")
    assert talk(Source(str(path), ReadingOptions(columns={"context": "history", "response": "response"}))) == ONE


def test_json_in_cells_is_not_speech(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(
        'id,input,output\n1,"[{""role"": ""user"", ""content"": ""Do you like tea?""}]",'
        '"{""role"": ""assistant"", ""content"": ""I do, green tea most of all.""}"\n',
        encoding="utf-8",
    )
    for columns in (None, {"context": "input", "response": "output", "id": "id"}):
        (one,) = Source(str(path), ReadingOptions(columns=columns or {})).read("turn")
        assert isinstance(one, Example)
        assert ([turn.text for turn in one.context], one.response.text) == ([TEA], LIKE)


@pytest.mark.parametrize("piece", ["\n", "\n\n", " ", "\n\nHuman:", "<details ", "<function=", "<tool_call>"])
def test_time_grows_with_the_length_of_a_message_and_not_faster(piece: str) -> None:
    assert grows_with_its_length(split_dialogue, piece, length=8000)
    assert grows_with_its_length(lambda text: turn_of(said("assistant", text), "here", Counter()), piece, length=8000)
