"""Layouts of published data sets and of training data.

Schemas: anthropics/hh-rlhf, huggingface/trl, hiyouga/LLaMA-Factory (data/README.md), lm-sys/FastChat, the LMArena data sets,
openbmb/UltraFeedback, LAION-AI/Open-Assistant (oasst-data), HannahKirk/prism-alignment, tatsu-lab/stanford_alpaca,
databrickslabs/dolly, facebookresearch/ParlAI (text, conversations, acute_eval, wizard_of_wikipedia, blended_skill_talk),
budzianowski/multiwoz, alexa/Topical-Chat, thunlp/UltraChat, project-baize/baize-chatbot, CoQA and QuAC as published,
asappresearch/abcd, huggingface/transfer-learning-conv-ai.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialeval_plugin.conversations.messages import (
    ASSISTANT,
    USER,
    alternating,
    at,
    is_message,
    is_role,
    speaker_of,
    split_dialogue,
)
from dialeval_plugin.conversations.order import place_of
from dialeval_plugin.core.errors import InputError

from .layout import (
    ANSWERS,
    CONVERSATION_IDS,
    WHOLE,
    Layout,
    Logged,
    Value,
    answered,
    as_message,
    ask_who,
    elements,
    exchange,
    flat,
    id_of,
    listed,
    logged_in,
    messages_at,
    messages_of,
    plain,
    said,
)
from .messengers import transcript_rows

UNDECIDED = "pair without a preference"
"""Kind of a pair of answers without a human choice."""


def _is_first(winner: object) -> bool | None:
    """Whether the winning side of a battle is the first; None for a tie."""
    if winner in ("model_a", "model_b"):
        return winner == "model_a"
    if "tie" in str(winner) or "both" in str(winner):
        return None
    raise InputError(f"winner is {winner!r}. Write model_a, model_b or tie.")


def _sign(preference: float) -> bool | None:
    """Whether the first is preferred, which a positive number means; None for zero."""
    return preference > 0 if preference else None


_BY_NAME: tuple[tuple[str, str, str, Callable[[Value], bool | None]], ...] = (
    ("chosen", "rejected", "chosen", lambda row: True),
    ("preferred_output", "non_preferred_output", "preferred_output", lambda row: True),
    ("conversation_a", "conversation_b", "winner", lambda row: _is_first(row["winner"])),
    ("response_a", "response_b", "winner_tie", lambda row: _sign(int(row["winner_model_a"]) - int(row["winner_model_b"]))),
    ("response_a", "response_b", "winner", lambda row: _is_first(row["winner"])),
    ("response_0", "response_1", "better_response_id", lambda row: int(row["better_response_id"]) == 0),
    ("response1", "response2", "overall_preference", lambda row: _sign(-float(row["overall_preference"]))),
    ("human_ref_A", "human_ref_B", "labels", lambda row: int(row["labels"]) == 1),
    ("output_1", "output_2", "preference", lambda row: _sign(1.5 - float(row["preference"]))),
    ("answer_0", "answer_1", "score_0", lambda row: _sign(float(row["score_0"]) - float(row["score_1"]))),
)  # fmt: skip
"""Two answers, the field with the human preference, and whether it prefers the first; None for neither."""
_REQUESTS = " | ".join(("prompt", "input", "question.full_text", "question", "instruction", "history", "context", *WHOLE))


def two_answers(value: Value) -> tuple[Any, Any, Callable[[], bool | None]] | None:
    """Return two answers to one request, and a function that tells whether people preferred the first; otherwise None."""
    if (sides := listed(value.get("full_conversation"))) and isinstance(sides[0], Mapping) and "model_side_a" in sides[0]:
        both = [[one for turn in sides for one in (turn["user"], turn[f"model_side_{side}"])] for side in "ab"]
        return both[0], both[1], lambda: _is_first(value.get("winner"))
    for first, second, name, is_first in _BY_NAME:
        if all(value.get(one) is not None for one in (first, second, name)):
            return value[first], value[second], functools.partial(is_first, value)
    return None


def _has_two_answers(value: Value) -> bool:
    if two_answers(value) is None:
        return False
    messages = next((list_ for name in WHOLE if (list_ := listed(value.get(name)))), None)
    # A conversation that ends with an answer is used; the other, less preferred answer is in a separate field.
    last = messages[-1] if messages and isinstance(messages[-1], Mapping) else {}
    role = last.get("role") or last.get("from")
    return not (is_role(role) and str(role).lower() in ("assistant", "gpt", "model"))


def _side(preferred: bool) -> Callable[[Value], list[Logged]]:
    def read(value: Value) -> list[Logged]:
        pair = two_answers(value)
        if pair is None:
            raise InputError("has no pair of answers, as 'chosen' and 'rejected' are.")
        first, second, is_first_preferred = pair
        if (is_first := is_first_preferred()) is None:
            return [Logged([], left_out=UNDECIDED)]
        answer = first if is_first is preferred else second
        questions, answered = listed(value.get("prompt")), listed(answer)
        if questions and answered and all(isinstance(text, str) for text in (*questions, *answered)):
            pairs = zip(questions, answered, strict=True)  # a battle of several turns
            return [Logged(alternating(text for pair in pairs for text in pair), id_of(value))]
        if isinstance(answer, str) and (messages := split_dialogue(answer)) is not None:
            return [Logged(messages, id_of(value), len(messages) - 1)]
        answers = messages_of(answer, ASSISTANT) or []
        if len(answers) > 1:  # includes the previous turns; in a battle of several turns each side has its own
            is_battle = "conversation_a" in value or "full_conversation" in value
            return [Logged(answers, id_of(value), 0 if is_battle else len(answers) - 1)]
        request = at(value, _REQUESTS) or ""
        if "instruction" in value:
            request = "\n\n".join(text for name in ("instruction", "input") if (text := value.get(name)))
        before = messages_of(request, USER) or []
        if isinstance(answer, str) and isinstance(request, str) and split_dialogue(request):
            answers = [{"role": ASSISTANT, "content": answer.strip()}]  # the transcript ends with "Assistant:"
        return [Logged([*before, *answers], id_of(value), len(before))]

    return read


_OF_CHATS = (
    ("question", "query", "human", "user_input", "user_message", "user_query", "user_prompt", "user_utterance", "human_message",
     "customer_message", "message"),
    ("answer", "response", "reply", "assistant_message", "assistant_response", "bot_message", "bot_response",
     "bot_reply", "chatbot_response", "ai_message", "ai_response", "agent_response", "llm_response", "model_response",
     "openai_response", "system_utterance"),
)  # fmt: skip
"""Field names of a question and of its answer."""
_OF_TASKS = (("instruction", "prompt", "input", "request"),
             ("completion", "output", "model_answer", "model_output", "prediction", "generation", "actual_output",
              "actualOutput"))  # fmt: skip
"""Field names of what may be a task and its solution instead."""
_WITH_PASSAGES = {"instruction", "actual_output", "actualOutput"}
"""Fields of Alpaca, Dolly and deepeval, next to which a context is what the question is about."""
_OF_USERS, _OF_PARTNERS = ("user", "customer", "patient"), ("assistant", "bot", "ai", "chatbot", "agent", "doctor")
"""Field names of two speakers, which hold texts only where there is one of each."""


def _fields_of_exchange(value: Value) -> tuple[str, str | None]:
    """Return the only field that may be a question, and the only one that may be its answer, None if that is missing.

    Raises:
        LookupError: several may be either, or none may be the question.
    """
    questions, answers = (
        [name for name in (*of_chats, *of_tasks) if isinstance(value.get(name), str)]
        for of_chats, of_tasks in zip(_OF_CHATS, _OF_TASKS, strict=True)
    )
    answers = answers or [name for name in _OF_PARTNERS if isinstance(value.get(name), str)]
    if answers and set(answers) <= set(_OF_PARTNERS):
        questions += [name for name in _OF_USERS if isinstance(value.get(name), str)]
    if "instruction" in questions and "input" in questions:
        questions.remove("input")  # the second part of Alpaca's question
    if len(questions) != 1 or len(answers) > 1 or ("context" in value and not _WITH_PASSAGES & value.keys()):
        raise LookupError
    return questions[0], answers[0] if answers else None


def _conversation_id(value: Value) -> object:
    return next((value[name] for name in CONVERSATION_IDS if isinstance(value.get(name), (str, int))), None)


def _is_row_of_chat(value: Value) -> bool:
    """Whether a row has a question, its answer if there is one, and their conversation's id."""
    is_other = bool(value.keys() & {"text", "content", "message"} or any(re.search("(?i)history$", name) for name in value))
    return not is_other and bool(_fields_of_exchange(value)) and _conversation_id(value) is not None


def _earlier(value: Value) -> list[Any]:
    """Return the messages before a question, which rows have in a field called `history` or `chat_history`, for example."""
    name = next((name for name in value if isinstance(name, str) and name.lower().endswith("history") and value[name]), None)
    if name is None:
        return []
    if (messages := listed(value[name]) or (marked(value[name]) if isinstance(value[name], str) else None)) is None:
        raise InputError(f"has a {name!r} that is no list. Write what was said before as a list of messages.")
    return messages_of(messages, USER) or []


def _question_answer(value: Value) -> list[Logged]:
    question, answer = _fields_of_exchange(value)
    if answer is None:
        return [Logged([], left_out="request without an answer")]
    if not value[question].strip():
        raise InputError(
            f"has nothing in {question!r}. If each row is a message of one of two speakers, call the column of their "
            "conversation 'conversation_id', and leave --layout out"
        )
    before = _earlier(value)
    parts = [value[question], value.get("input") if question == "instruction" else None]
    (logged,) = exchange("\n\n".join(filter(None, parts)), value[answer], id_of(value))
    return [logged._replace(messages=[*before, *logged.messages], n_history=len(before) + logged.n_history)]


def _both_messages(value: Value) -> list[Value]:
    if _earlier(value):
        raise InputError("has what was said before next to a question. Read each row alone by --layout question-answer")
    question, answer = _fields_of_exchange(value)
    place = {"conversation": _conversation_id(value), **place_of(value)}
    next_place = {**place, "index": place["index"] + 0.5} if "index" in place else place
    (logged,) = exchange(value[question], value.get(answer or "") or [], None)
    messages: Any = logged.messages if answer and value.get(answer) else [*logged.messages, as_message(ASSISTANT, None)]
    places = (place if n < logged.n_history else next_place for n in range(len(messages)))
    # In a table with a column for each speaker, a row may have a text of one alone.
    return [{**one, "content": one.get("content") or None, **its} for one, its in zip(messages, places, strict=True)]


_HALVES = (
    {*_OF_CHATS[0], "user", "user utterance", "usr", "input", "prompt", "q"},
    {*_OF_CHATS[1], *_OF_PARTNERS, "system response", "sys", "output", "a"},
)
"""Field names of a question and of its answer in a turn that has both."""


def _of_halves(value: Value) -> list[Any]:
    """Return the messages of turns that have a question and its answer each; raise a LookupError or the like for others."""
    names = (*WHOLE, "transcript", "history", "dialogue", "log", "messages.data", "interactions", "conversationTurns", "conv")
    turns = next((turns for name in names if (turns := listed(at(value, name)))), [])
    (question,), (answer,) = (half & turns[0].keys() for half in _HALVES)
    if "role" in turns[0] or ("log" in value and question == "input"):  # a log of calls
        raise LookupError
    return alternating(turn[name] or None for turn in turns for name in (question, answer))


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, kind) for one in value)


_NUMBERED = re.compile(r"([a-z]+)[ _-]?(\d+)(?:[ _-]([a-z]+))?")
_TURNS = ("turn", "utterance", "message")


def _numbered(value: Value) -> list[tuple[int, str, Any]]:
    """Return number, name and text of fields such as `user_1`, `a1` and `turn_1_prompt`, in the order of the numbers."""
    known, found = {*_TURNS}.union(*_HALVES), []
    for field, text in value.items():
        name, number, half = match.groups() if (match := _NUMBERED.fullmatch(field.lower())) else ("", "0", None)
        if half is not None:
            sides = zip((USER, ASSISTANT), _HALVES, strict=True)
            name = next((side for side, names in sides if name in _TURNS and half in names), "")
        if name in known or is_role(name):
            found.append((int(number), name, text))
    return sorted(found, key=lambda turn: turn[0])


def _has_numbered_turns(value: Value) -> bool:
    """Whether an object has texts `turn_1`, `turn_2`, ..., or `q1`, `a1`, `q2`, ..., of which each question has an answer."""
    names = [name for _, name, _ in _numbered(value)]
    halves = [sum(name in half for name in names) for half in _HALVES]
    return (len(names) > 1 and set(names) in ({name} for name in _TURNS)) or (halves == [len(names) / 2] * 2 and len(names) > 2)


def _has_numbered(value: Value) -> bool:
    """Whether an object has texts `user_1`, `assistant_1`, ..., or messages with their roles under such names."""
    roles = [(speaker_of(role), number) for number, role, _ in _numbered(value)]
    if len(roles) > 1 and all(is_message(one) for _, _, one in _numbered(value)):
        return True
    # Names in the order of the alphabet do not say who begins.
    return roles.index((USER, 1)) < roles.index((ASSISTANT, 1)) and len(roles) == len(set(roles))


def _blended(value: Value) -> list[Any]:
    seeds = elements(value.get("previous_utterance") or [value[f"{who}_turker_utterance"] for who in ("free", "guided")])
    if "dialog" in value:
        texts = [text for _, text in map(elements, value["dialog"])]
    else:
        both = (elements(value[f"{who}_messages"]) for who in ("free", "guided"))
        texts = [text for pair in zip(*both, strict=True) for text in pair]
    return alternating([*seeds, *texts], ("free", "guided"))


def _coqa(value: Value) -> list[Any]:
    answers = at(value, "answers.input_text | answers")
    said = (text for pair in zip(elements(value["questions"]), elements(answers), strict=True) for text in pair)
    return alternating(text["input_text"] if isinstance(text, Mapping) else text for text in said)


def _acute(value: Value) -> list[Logged]:
    found = []
    for own, dialogue in zip(value["speakers_to_eval"], value["dialogue_dicts"], strict=False):
        turns = [(turn.get("id", turn.get("speaker")), turn["text"]) for turn in dialogue["dialogue"]]
        messages = [{"role": ASSISTANT if speaker == own else USER, "content": text} for speaker, text in turns]
        found.append(Logged(messages, dialogue.get("conversation_id") or dialogue.get("id")))
    return found


def _marked(value: Value) -> list[dict[str, str]] | None:
    """Return the messages of a text with marks of who speaks: those of chat templates, or roles before the lines."""
    if "context" in value or any(value.get(name) is not None for name in ANSWERS) or any(listed(value.get(n)) for n in WHOLE):
        return None  # the text is a request, or there are messages
    texts = {name: text for name, text in value.items() if isinstance(text, str)}
    read = (marked(text) if name in _OF_MARKED_TEXTS else split_dialogue(text) for name, text in texts.items())
    found = [messages for messages in read if messages is not None]
    return found[0] if len(found) == 1 else None


_OF_MARKED_TEXTS = (
    "text", "transcript", "conversation", "dialogue", "dialog", "chat", "content", "messages", "input", "history",
)  # fmt: skip


def marked(text: str) -> list[Any] | None:
    """Return the messages of a text in which each is marked by its role; None if it is no such text."""
    if (found := split_dialogue(text)) is not None:
        return found
    rows = [row for _, row in transcript_rows(text.splitlines(keepends=True))] if ":" in text else []
    roles = {row["role"] for row in rows}
    return rows if len(roles) > 1 and "heading" not in roles else None


def _batch(value: Value) -> list[Logged]:
    request, answer = value.get("body", value.get("params")), at(value, "response.body") or at(value, "result.message")
    if request is None or answer is None:
        raise InputError(
            f"is {'a request' if answer is None else 'an answer'} alone, and the other half is not in this file. "
            "Put both files together: cat REQUESTS ANSWERS > both.jsonl"
        )
    return exchange(request, answer, value["custom_id"])


def _parlai_lines(lines: Iterable[str]) -> Iterator[tuple[int, Value]]:
    """Yield the episodes of a file in ParlAI's text layout, one row each."""
    texts: list[str] = []
    first = 0
    for number, line in enumerate(lines, start=1):
        fields = dict(field.partition(":")[::2] for field in line.rstrip("\n").split("\t"))
        if not {"text", "labels"} & fields.keys():
            continue
        first = first or number
        texts += [fields[name].replace("\\n", "\n") for name in ("text", "labels", "eval_labels") if name in fields]
        if fields.get("episode_done") == "True":
            yield first, {"parlai": alternating(texts)}
            texts, first = [], 0
    if texts:
        yield first, {"parlai": alternating(texts)}


_OF_WIZARD = ("Wizard", ASSISTANT), ("Apprentice", USER)
_WITHOUT_SPEAKERS = (
    "has texts without a word of who speaks ({about}). Read it by --layout {name}: the user and the assistant take turns"
)
_OF_A_PASSAGE = "has questions about a passage, and answers of a few words. Read it by --layout {name}: the answers are scored"
_OPEN_PREFERENCE = (
    "each row has two answers, as 'chosen' and 'rejected' are. Score one of them by --layout preferred or "
    "--layout dispreferred; "
    "`dialeval compare FILE` says how often the preferred one scores higher"
)

LAYOUTS = [
    *(
        Layout(name=name, about=about, recognises=_has_two_answers, read=_side(side), open_question=_OPEN_PREFERENCE)
        for name, about, side in (
            ("preferred", "the preferred one of two answers", True),
            ("dispreferred", "the other one of two answers", False),
        )
    ),
    Layout(name="batch", about="requests and answers of a batch of OpenAI, Azure, vLLM or Anthropic", joined_by="custom_id",
           recognises=lambda value: "custom_id" in value and bool(value.keys() & {"body", "params", "response", "result"}),
           read=_batch,
           open_question="is of a batch, whose requests and answers are files of their own. Put them together, "
           "cat REQUESTS ANSWERS > both.jsonl, and read both.jsonl by --layout batch"),
    Layout("completions", "several answers to one request, as of UltraFeedback or Nectar",
           read=lambda value: (
               exchange(value.get("instruction", value.get("prompt")), one.get("response", one.get("answer")), id_of(value))[0]
               for one in value.get("completions") or value["answers"]),
           recognises=lambda value: bool(value.keys() & {"instruction", "prompt"})
           and any(_is_list_of(value.get(name, [None])[:1], Mapping) for name in ("completions", "answers")),
           open_question="has several answers to one request. Read each by --layout completions"),
    plain("fastchat", "logs of FastChat's server", "state.messages", id="state.conv_id"),
    plain("camrest", "CamRest676", "dial", "usr", "sys", each=answered("usr.transcript", "sys.sent"), id="dialogue_id"),
    plain("kvret", "KVRET, of a driver and an assistant", "dialogue", "turn", "data", each=said("turn", "data.utterance")),
    plain("woz", "WOZ 2.0, and MultiWOZ as prepared for TRADE", "dialogue", "system_transcript", "transcript",
          id="dialogue_idx",
          each=lambda turn: [as_message(role, turn[name])
                             for role, name in ((ASSISTANT, "system_transcript"), (USER, "transcript")) if turn[name]]),
    plain("tweetsumm", "TweetSumm", "dialog.turns", "is_agent", "sentences", id="dialog.dialog_id",
          each=lambda turn: as_message("agent" if turn["is_agent"] else USER, "\n".join(turn["sentences"]))),
    Layout("multiwoz", "MultiWOZ 2.1", "log[text]", lambda value: alternating(turn["text"] for turn in value["log"])),
    Layout("wizard-of-wikipedia", "Wizard of Wikipedia, whose wizard is read as the assistant", "chosen_topic dialog[]",
           messages_at("dialog", each=said(
               "speaker", "text", {f"{n}_{name}": role for n in (0, 1) for name, role in _OF_WIZARD}))),
    plain("wizard-of-internet", "Wizard of Internet, whose wizard is read as the assistant", "dialog_history", "action", "text",
          each=said("action", "text", {"Apprentice => Wizard": USER, "Wizard => Apprentice": ASSISTANT}, otherwise="event")),
    Layout("abcd", "ABCD, with its agents' actions", "convo_id original[]",
           messages_at("original", id="convo_id", each=lambda turn: tuple(elements(turn)))),
    Layout("persona-candidates", "Persona-Chat with candidates, of which the last is the reply",
           "utterances[candidates,history]", lambda value: alternating([*elements(value["utterances"][-1]["history"]),
                                      elements(value["utterances"][-1]["candidates"])[-1]]),
           open_question=ask_who("every second message is scored")),
    Layout("topical-chat", "Topical-Chat", "content[agent,message]", messages_at("content", each=said("agent", "message")),
           open_question=ask_who()),
    Layout("blended-skill-talk", "Blended Skill Talk",
           "personas previous_utterance | personas free_messages | personas free_turker_utterance", _blended,
           open_question=ask_who()),
    Layout("dailydialog", "DailyDialog", lambda value: _is_list_of(value["dialog"], str), messages_at("dialog"),
           open_question=ask_who()),
    Layout("empathetic-dialogues", "EmpatheticDialogues, a message a row", "conv_id utterance speaker_idx",
           message=lambda value: as_message(f"speaker {value['speaker_idx']}", value["utterance"].replace("_comma_", ","),
               conversation=value["conv_id"]), open_question=ask_who()),
    Layout("soda", "SODA", lambda value: _is_list_of(value["dialogue"], str) and _is_list_of(value["speakers"], str),
           lambda value: [as_message(*one)
                          for one in zip(elements(value["speakers"]), elements(value["dialogue"]), strict=True)],
           open_question=ask_who()),
    Layout("parlai-conversations", "conversations that ParlAI saves", lambda value: _is_list_of(value["dialog"][:1], list),
           messages_at("dialog", each=lambda pair: list(map(said("id", "text"), elements(pair))))),
    Layout("parlai", "ParlAI's text", "parlai[]", messages_at("parlai"), rows=_parlai_lines,
        open_question="is ParlAI's text, where people and models speak alike. Read it by --layout parlai: labels are scored"),
    Layout("acute", "pairs of dialogues for ParlAI's ACUTE-Eval", "dialogue_dicts[]", _acute,
           open_question="is a pair of dialogues (ACUTE-Eval). Read both by --layout acute: those to be evaluated are scored"),
    Layout("coqa", "CoQA", "story questions answers", _coqa, open_question=_OF_A_PASSAGE),
    Layout("quac", "QuAC", "qas[question,orig_answer]", messages_at("qas", each=answered("question", "orig_answer.text")),
           open_question=_OF_A_PASSAGE),
    Layout("ultrachat", "UltraChat as it was first published", lambda value: _is_list_of(value["data"], str),
           lambda value: alternating(elements(value["data"])), open_question=_WITHOUT_SPEAKERS),
    Layout("oasst", "trees of OpenAssistant", "prompt{replies}",
           lambda value: [logged_in(value, flat([value["prompt"]], "replies", "message_id"), "message_tree_id")]),
    Layout("exchanges", "turns with a question and its answer each, as of Firefly, MOSS, XTuner or DialogStudio",
           lambda value: bool(_of_halves(value)), _of_halves),
    Layout("marked-text", "texts with marks of who speaks: templates of chats, Baize, Guanaco, HH-RLHF",
           lambda value: _marked(value) is not None, lambda value: _marked(value) or []),
    Layout("numbered", "columns user_1, assistant_1, user_2, ...", _has_numbered,
           lambda value: [one if isinstance(one, Mapping) else as_message(role, one)
                          for _, role, one in _numbered(value) if one]),
    Layout("numbered-turns", "columns turn_1, turn_2, ..., or q1, a1, q2, ...",
           _has_numbered_turns,
           lambda value: alternating(
               text for _, _, text in sorted(_numbered(value), key=lambda turn: (turn[0], turn[1] in _HALVES[1])) if text),
           open_question=_WITHOUT_SPEAKERS),
]  # fmt: skip
LAST = [
    Layout("exchange-rows", "a question with its answer a row, with the id of their conversation",
           lambda value: _is_row_of_chat(value) and not any(map(set(_fields_of_exchange(value)).intersection, _OF_TASKS)),
           message=_both_messages),
    Layout("exchange-rows", "a question with its answer a row, with the id of their conversation",
        _is_row_of_chat, message=_both_messages,
        open_question="has a question and an answer that are texts, and the id of a conversation. Read rows of the same id as "
        "one conversation by --layout exchange-rows, or each alone by --layout question-answer"),
    Layout(
        "question-answer", "a question and an answer that are texts, as of Alpaca, Dolly, ragas or deepeval",
        lambda value: _fields_of_exchange(value)[1] is not None,
        _question_answer,
        open_question="has a question and an answer that are texts. Read it by --layout question-answer, or say which fields "
        "they are by --columns context=NAME,response=NAME"),
]  # fmt: skip
