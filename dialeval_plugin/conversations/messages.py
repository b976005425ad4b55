"""One message of any log: its speaker, its text, and its parts that are not speech, which are counted by kind.

Texts of a user and an assistant are turns. Texts of the system, a developer or a tool are not, and neither are messages without
a text, such as an image. From an assistant's text, the reasoning before its answer, tool calls and end tokens are removed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

import numpy as np

from dialeval_plugin.core.dialogue import Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.llm.reasoning import split_reasoning

USER, ASSISTANT, SYSTEM = "user", "assistant", "system"

_USERS = ("usuario", "usuária", "usuário", "utilisateur", "utilisatrice", "nutzer", "nutzerin", "benutzer", "utente",
          "gebruiker", "kullanıcı", "użytkownik", "uživatel", "användare", "käyttäjä", "pengguna", "người_dùng", "пользователь",
          "користувач", "потребител", "utilizator", "felhasználó", "χρήστης", "bruger", "bruker", "korisnik", "کاربر", "صارف",
          "ผู้ใช้", "ব্যবহারকারী", "המשתמש", "משתמש", "المستخدم", "उपयोगकर्ता", "用户", "用戶", "ユーザー", "사용자",
          "👤")  # fmt: skip
_ASSISTANTS = ("asistente", "assistente", "assistent", "asistan", "asystent", "asistent", "avustaja", "asisten", "trợ_lý",
               "ассистент", "помощник", "асистент", "помічник", "asszisztens", "βοηθός", "دستیار", "معاون", "ผู้ช่วย", "সহকারী",
               "עוזר", "المساعد", "सहायक", "助手", "アシスタント", "어시스턴트", "🤖")  # fmt: skip
"""A user and an assistant in other languages, and as signs."""
_SPEAKERS = {
    **dict.fromkeys(("user", "usr", "human", "human_user", "prompter", "localhuman", "human_evaluator", *_USERS), USER),
    **dict.fromkeys(("ai_assistant", "virtual_assistant", "ai_agent", "llm_agent"), ASSISTANT),
    **dict.fromkeys(("assistant", "ai", "gpt", "chatgpt", "chatbot", "model", "bot", "llm", *_ASSISTANTS), ASSISTANT),
    **dict.fromkeys((SYSTEM, "sys"), SYSTEM),
}
_CUSTOMERS = frozenset(
    {"customer", "client", "visitor", "caller", "guest", "contact", "lead", "end_user", "enduser", "consumer", "requester",
     "patient", "seeker", "student", "u", "you", "incoming", "inbound", "cliente", "kunde", "kundin", "klant", "клиент", "客户",
     "顧客", "고객"}
)  # fmt: skip
_AGENTS = frozenset(
    {"agent", "virtual_agent", "automated_agent", "human_agent", "support", "support_agent", "advisor", "atendente", "operator",
     "representative", "rep", "outgoing", "outbound", "wizard", "helper", "supporter", "doctor",
     "therapist", "counselor", "counsellor", "tutor", "agente", "berater", "beraterin",
     "conseiller", "оператор", "客服"}
)  # fmt: skip
_SILENT = frozenset(
    {"developer", "observation", "ipython", "environment", "reasoning", "thinking", "thought", "data", "root", "event",
     "internal", "action", "note", "service", "session_meta", "metadata", "system_prompt", "code_interpreter", "context",
     "scratchpad", "search_results", "retrieval", "retriever", "documents", "heading", "status", "error", "log", "feedback",
     "rating", "evaluator", "evaluation", "summary", "memory", "chain_of_thought", "cot"}
)  # fmt: skip
_ENUMERATION = re.compile(r"\A(?:\w*role\w*\.)?(?:(?:message_)?role_)?(?=\w)")
"""Prefixes of roles in enumerations: `MESSAGE_ROLE_USER`, `ChatRole.USER`."""
_OF_TOOLS = re.compile(r"(?:tool|function)s?(?:_?(?:call|use|response|result|return|output|invocation)s?)*|\w+_call(_output)?")

TEXTLESS = "textless message"
"""Kind of a message without any text, such as a call of a tool or an image."""
THOUGHT = "reasoning passage"

_SPEAKER_FIELDS = (
    "role", "speaker", "from", "sender", "author", "sender_type", "senderType", "sender_class", "sender_role", "senderRole",
    "author_type", "author_role", "authorRole", "speaker_type", "speaker_role", "speakerRole", "actor_type", "user_type",
    "role_type", "roleType", "participant_role", "participantRole", "sender_name", "creator",
)  # fmt: skip
"""Fields of the speaker: one that holds a role comes before one that holds a name."""
_KINDS, _KINDS_OF_PARTS = ("type", "message_type", "messageType"), ("type", "content_type", "block_type", "phase")
"""Fields of a message's kind, which may be a role, and of a part's."""
_PARTS = ("parts", "blocks", "segments", "content_list", "contentChunks")
"""Fields of a message's parts."""
_TEXT_FIELDS = ("content", "text", "value", "message", "message_text", "messageText", "utterance", "mes", *_PARTS)
_TEXTS_OF_PEOPLE, _TEXTS_WITH_A_ROLE = frozenset({"text", "utterance"}), frozenset({"content", "value", "parts"})
"""Fields of a text that may stand without a speaker, and of one that may not."""
_IS_USER = {
    **dict.fromkeys(
        ("isCreatedByUser", "is_user", "isUser", "fromUser", "from_user", "is_human", "isHuman", "is_customer", "isCustomer",
         "is_from_user", "inbound", "is_inbound", "isInbound"), True,
    ),
    **dict.fromkeys(("is_bot", "isBot", "from_bot", "fromBot", "is_assistant", "isAssistant", "is_ai", "is_agent", "isAgent",
                     "from_agent", "fromAgent"), False),
}  # fmt: skip
"""Fields that tell the user from the assistant, with their value for the user."""
_UNSAID = {
    **dict.fromkeys(("internal", "is_internal", "isInternal", "is_note", "isNote"), ("internal message", True)),
    "public": ("internal message", False),
    **dict.fromkeys(("error", "is_error", "isError"), ("error message", True)),
    **dict.fromkeys(("deleted", "is_deleted", "isDeleted", "deleted_at", "deletedAt"), ("deleted message", True)),
    **dict.fromkeys(("is_main", "isMain", "is_active", "isActive", "active", "shown"), ("message that was not shown", False)),
    "status": ("message that was not shown", None),
    **dict.fromkeys(("is_alternative", "isAlternative", "superseded", "hidden"), ("message that was not shown", True)),
}
"""Fields of a message that nobody said to the other side, with its kind, and their value for such a message."""
_MARKS_OF_UNSAID = frozenset({*_UNSAID, "part_type", "message_type", "messageType", "comment_type", "kind", "visibility"})
"""These, and fields that may call a message a note."""
_VALUES_OF_UNSAID = ("internal", "private", "failed", "cancelled", "canceled", "discarded", "superseded", "deleted", "draft")
_PLACEHOLDER = re.compile(r"\[(?:(?:this )?message )?(?:was )?(?:deleted|removed)\.?\]", re.IGNORECASE)
_OF_VERSIONS = frozenset(
    {"status", "state", "version", "variant", "attempt", "retry", "revision", "draft", "candidate", "alternative", "option",
     "branch", "shown", "visible", "visibility", "hidden", "selected", "chosen", "accepted", "preferred", "final", "kind",
     "channel", "audience", "private", "recipient", "to", "target", "regenerated", "replaces", "edit", "edited", "lang",
     "language", "locale", "model"}
)  # fmt: skip
_SHOWN = {"sent", "delivered", "read", "seen", "received", "done", "complete", "completed", "finished", "success", "none", "ok"}
"""Words of fields that may say which of two messages was shown, and values of a message that was."""
ID_WORDS = frozenset({"id", "cid", "sid", "uid", "uuid", "guid"})
_OF_CONVERSATIONS = frozenset({"conversation", "conv", "session", "thread", "chat", "dialogue", "dialog", "call", "ticket"})
_BOOLEANS = {**dict.fromkeys(("true", "1", "yes", "t"), True), **dict.fromkeys(("false", "0", "no", "f"), False)}
_OF_PEOPLE = frozenset(
    {"user", "username", "actor", "agent", "person", "participant", "who", "uid", "author", "sender", "speaker", "role", "nick",
     "nickname", "caller", "me", "mine", "self", "outgoing", "incoming", "direction"}
)  # fmt: skip
"""Words of fields that may name the speaker or mean something else: a message with no other such field is an error."""
_VERSIONS_OF_TEXT = frozenset(
    {"translation", "translated", "original", "redacted", "masked", "anonymized", "anonymised", "corrected", "edited",
     "english", "en", "es", "fr", "de", "it", "pt", "nl", "ru", "zh", "cn", "ja", "jp", "ko", "ar", "hi", "tr", "pl", "cs"}
)  # fmt: skip
"""Words of a field that may hold another version of the text, such as `text_en`."""
_OTHER_TEXTS = (
    "body", "body_text", "msg", "say", "transcript", "response", "answer", "output", "sentence", "line",
    "caption",
)  # fmt: skip
"""Fields that may hold the text or mean something else."""
_WRAPPERS = ("message", "data", "kwargs", "payload", "_source")
_SAYS = re.compile(
    r"send_(?:message|reply|response)|respond|reply|final_answer"
    r"|(?:(?:send|say|speak|talk|respond|reply|message)_to|message|answer)_(?:the_)?(?:user|customer|human)"
)
_SAID = "message | text | content | response | reply | answer"
"""Tools by which an agent speaks to the user, and their arguments."""
_CALLS = frozenset({"tool_call", "tool_calls", "function_call", "toolCalls", "tool_use", "toolInvocations"})
_TEXT_PARTS = frozenset(
    {
        "text",
        "input_text",
        "output_text",
        "refusal",
        "markdown",
        "paragraph",
        "audio_transcription",
        "answer",
        "main_text",
        "request",
        "response",
    }
)
_ASIDES = ("commentary", "analysis")
_LANGCHAIN = re.compile(r"(Human|AI|System|Tool|Function|Chat)Message(?:Chunk)?")
_OF_CLINE = (
    "execute_command|(?:read|write_to|replace_in|new)_(?:file|rule|task)|apply_diff|insert_content|search_(?:and_replace|files)"
    "|list_(?:files|code_definition_names)|browser_action|use_mcp_tool|access_mcp_resource|switch_mode|update_todo_list"
)
_RESULT_OF_TOOL = re.compile(r"\s*\[\w+(?: for '[^\n]*')?\] Result:")
"""Cline's and Roo Code's tools, and the beginning of their results, which they write in the user's name."""
_TOOL_TEXT = re.compile(
    r"<((?:\w{1,20}:)?(?:tool_calls?|tool_response|tool_result|function_calls?))>.*?(?:</\1>|\Z)"
    r"|<functioncall>.*|<function=[^<>]{0,200}>.*?(?:</function>|\Z)"
    r'|<details\b[^<>]{0,200}\btype="(?:tool_calls|code_interpreter|code_execution)"[^<>]{0,200}>.*?(?:</details>|\Z)'
    r'|\A\s*\[\w[\w.]*\(.*\)\]\s*\Z|\A\s*\{\s*"tool_calls": *\[.*\]\s*\}\s*\Z|```tool_code\n.*?(?:```|\Z)'
    r'|\A\s*(?:functools)?\[?\s*\{\s*(?:"type": *"function", *)?"name": *"[^"]+", *"(?:parameters|arguments)": *\{.*\}\]?\s*\Z'
    rf"|<({_OF_CLINE})>\s*<\w+>.*?(?:</\2>|\Z)"
    r"|\[TOOL_CALLS\].*|<\|(?:python_tag|tool_call)\|?>.*|<｜tool▁calls▁begin｜>.*?(?:<｜tool▁calls▁end｜>|\Z)",
    re.DOTALL,
)
_REACT = re.compile(
    r"\A\s*(?:Question:[^\n]*\s+)?Thought:.*?"
    r"^(?:Action:[^\n]*(?:\[|\n\s*Action Input:).*?(?:^Final Answer:|\Z)|Final Answer:)\s*",
    re.DOTALL | re.MULTILINE,
)
"""ReAct's thoughts, and its calls of tools with their results, before the final answer."""
_SAID_BY_CLINE = re.compile(
    r"<(?:attempt_completion|ask_followup_question|plan_mode_respond)>\s*<(\w+)>\s*(.*?)\s*</\1>.*", re.DOTALL
)
_WRAPPED = re.compile(
    r"<(?P<tag>answer|output|response|final_answer)>\s*(?P<text>.*?)\s*</(?P=tag)>"
    r"|<(?:final_)?answer>\s*(?P<begun>[^a-z<\s][^<]*)|(?P<ended>[^<]*[^\s<])\s*</(?:final_)?answer>", re.DOTALL
)  # fmt: skip
"""An answer in tags, of which one may be missing; "<answer> is a tag." speaks of one."""
_ATTACHED = re.compile(
    r"<(environment_details|system[-_](?:reminder|note|message)|additional_data|attached_files|open_and_recently_viewed_files|user_info|"
    r"project_layout|editor_context|reminderInstructions|attachments)>.*?</\1>\s*",
    re.DOTALL,
)
_ASKED = re.compile(r"\s*<(task|user_query|user_message|feedback|userRequest)>\s*(.*?)\s*</\1>\s*", re.DOTALL)
"""Additions of coding assistants to the user's words, and their marks of these words."""
_MEDIA = re.compile(r"\A(?:\s*<(?:image|video|audio)>)+\s*|\s*(?:\n\s*<(?:image|video|audio)>)+\s*\Z")
"""The place of an image in training data, as of LLaVA or LLaMA-Factory."""
_WROTE = r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev)\b[^\n]{0,100}:[ \t]*"
_QUOTED_LINES = r"(?:^>[^\n]*(?:\n|\Z))+"
_QUOTATION = re.compile(rf"(?:^[^\n]{{0,200}}{_WROTE}\n\s*)?(?P<quoted>{_QUOTED_LINES})", re.MULTILINE)
_EARLIER_MAIL = re.compile(
    r"^(?:(?:On|Am|Le|El|Il|Em|Op|Den)\b[^\n]{0,200}\d[:.h]\d\d[^\n]{0,200}(?:\n[^\n]{0,100})?" + _WROTE
    + r"|-{3,} ?(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Message d'origine) ?-{3,}[ \t]*"
    r"|(?:_{10,}\s*\n)?From: [^\n]*\n(?:Sent|Date): [^\n]*)"
    rf"\n(?P<quoted>\s*{_QUOTED_LINES}|.*)", re.DOTALL | re.MULTILINE,
)  # fmt: skip
"""The lines of a mail that quote another, with the line above that says who wrote it; below one with a time, also the rest."""
_N_QUOTED = 20
"""Earlier messages among which a quoted one is looked for."""
ROLES = "|".join(
    ("user", "human", "customer", "assistant", "ai", "bot", "chatbot", "gpt", "chatgpt", "agent", "system", *_USERS,
     *_ASSISTANTS, "cliente", "kunde", "agente", "patient", "doctor", "client", "therapist", "counselor", "student", "tutor",
     "claude", "gemini", "bard", "copilot", "grok", "deepseek", "perplexity", "llama", "qwen", "mistral", "kimi", "cursor")
)  # fmt: skip
"""Roles, and names of assistants, that mark who says a text."""
PREFIX = re.compile(rf"\s*(?:<s>\s*)?(?:\*\*|\[|<)?({ROLES})(?:\*\*|\]|>)?\s*[:：](?:\*\*)?\s*", re.IGNORECASE)
_NAMED = re.compile(r"\s*([A-Z][\w.'-]{0,20}(?: [\w.'-]{1,20}){0,2})(?: ?[(\[][\d:. APM-]+[)\]])?: ")
OWN_TAG = re.compile(r"\A\s*(?:\*\*|\[|<\|?)?(?:assistant|chatbot|bot)(?:\]:?|\|?>:?|(?:\*\*)?:(?:\*\*)?)\s+", re.IGNORECASE)
_CLOCK = re.compile(r"\s*\[(?=[^\]]*\d[:.]\d\d)[\d/.:,T+ APM-]+Z?\]:?\s+")
"""A name, the assistant's own role, or the time of a message, before its text."""
_DIALOGUE = re.compile(r"(?:\A\s*|\n\n[ \t]*)(Human|Assistant|AI):\s*")
_MARKED = tuple(
    map(
        re.compile,
        (
            r"\[\|(Human|AI)\|\]\s*",  # Baize
            r"### (Human|Assistant|Instruction|Response):\s*",  # Guanaco, Alpaca
            r"(?:<\|im_start\|>|<\|(?:start_header_id|header_start)\|>|<start_of_turn>|<｜(?=User|Assistant)"
            r"|<\|(?=(?:system|user|assistant|prompter)\|>))(\w+)(?:<\|(?:end_header_id|header_end)\|>|\|>|｜>)?\s*",
            r"<\|START_OF_TURN_TOKEN\|><\|(\w+)_TOKEN\|>",  # Command
            r"\[(/?INST)\]\s*",
            r"\{\{\[(INPUT|OUTPUT)\]\}\}\s*",  # KoboldCpp
            r"\b(USER|ASSISTANT|FUNCTION RESPONSE):\s*",  # Vicuna, Glaive
        ),
    )
)
"""Marks of the next speaker in chat templates."""
_INSTRUCTED = {
    **dict.fromkeys(("INST", "INPUT", "Instruction"), USER), **dict.fromkeys(("/INST", "OUTPUT", "Response"), ASSISTANT),
}  # fmt: skip
_UNSPOKEN = re.compile(
    r"<\|(?:im_end|eot(?:_id)?|end|endoftext|begin_of_text|END_OF_TURN_TOKEN)\|>|<end_of_turn>|</?s>|<bos>|<eos>|<BOS_TOKEN>"
    r"|<｜(?:begin|end)▁of▁sentence｜>|<<SYS>>.*?<</SYS>>|\[SYSTEM_PROMPT\].*?\[/SYSTEM_PROMPT\]",
    re.DOTALL,
)
_NOTHING = re.compile(r"(?!)")
_SIGNS = ("[|", "###", "<|", "<｜", "<start", "INST", "{{[", "ASSISTANT:")
"""One of these is in any text with marks of a template."""
_PREAMBLES = ("[|", "### Instruction", "USER")
"""Marks before which a template has an introductory line."""


_HTML, _END_OF_HTML = re.compile(r"\s*<(?:p|div)[\s>]", re.IGNORECASE), re.compile(r"</\w+>\s*\Z")
_CONTROLS = re.compile(r"<(button|svg)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
"""Parts of a page around a text, such as "Copy code"."""
_TAG = re.compile(r"</?([A-Za-z]\w*)")
_TAGS_OF_TEXT = frozenset(
    {"p", "br", "div", "span", "b", "strong", "i", "em", "u", "s", "del", "mark", "small", "sub", "sup", "a", "img", "ul", "ol",
     "li", "blockquote", "code", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "td", "th"}
)  # fmt: skip
"""Tags of HTML that a text in a chat may have; a page has others too."""


class Fields(NamedTuple):
    """Names of a message's fields, given by a layout or the user."""

    speaker: str | None = None
    text: str | None = None


USUAL = Fields()


def at(value: Any, path: str) -> Any:
    """Return the value at a name or a path of names and dots, or at the first of several that has one, `a | b.c`; or None."""
    if " | " in path:
        return next((found for one in path.split(" | ") if (found := at(value, one)) or found == 0), None)
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


@functools.lru_cache(maxsize=1024)
def role_of(name: str) -> str:
    """Return a role in the spelling of this module's tables.

    Example:
        >>> role_of(" Tool-Call "), role_of("END USER"), role_of("HumanMessage")
        ('tool_call', 'end_user', 'human')
    """
    role = _ENUMERATION.sub("", (name.strip(" \t\n[]<>()|*@:") or name).lower().replace("-", "_").replace(" ", "_"))
    return role.removesuffix("message").rstrip("_") or role


def speaker_of(name: str | None) -> str | None:
    """Return the speaker for a log's `name`: "user" and "assistant" for their synonyms, any other name unchanged.

    Example:
        >>> speaker_of("Human"), speaker_of("gpt"), speaker_of("Ann")
        ('user', 'assistant', 'Ann')
    """
    return None if name is None else _SPEAKERS.get(role_of(name), name.strip()) or None


def is_role(name: object) -> bool:
    """Whether a text is a known role."""
    return isinstance(name, str) and (is_silent(name) or is_side(name))


def is_side(name: object) -> bool:
    """Whether a text is a role of somebody who speaks."""
    return isinstance(name, str) and any(role_of(name) in known for known in (_SPEAKERS, _CUSTOMERS, _AGENTS))


@functools.lru_cache(maxsize=1024)
def is_silent(name: str) -> bool:
    """Whether texts of a role were addressed to nobody: by a tool, a developer, or in thought."""
    return (role := role_of(name)) in _SILENT or _OF_TOOLS.fullmatch(role) is not None


def answering(turns: Iterable[Turn]) -> str | None:
    """Return the speaker who answers: the assistant; otherwise the only partner of a user or a customer; otherwise the agent.

    Example:
        >>> answering([Turn("A room.", "customer"), Turn("For when?", "Ann")])
        'Ann'
    """
    speakers = {turn.speaker: role_of(turn.speaker) for turn in turns if turn.speaker}
    if ASSISTANT in speakers:
        return ASSISTANT
    asking = {name for name, role in speakers.items() if name == USER or role in _CUSTOMERS}
    others = [name for name in speakers if name not in asking]
    if asking:
        return others[0] if len(others) == 1 else next((name for name in others if speakers[name] in _AGENTS), None)
    agents = [name for name in others if speakers[name] in _AGENTS or speakers[name].endswith(("_bot", "_assistant"))]
    return agents[0] if len(agents) == 1 and len(others) > 1 else None


def assistant(turns: Iterable[Turn]) -> str | None:
    """Return the assistant among the speakers, as the turns call it; None if none is known.

    Example:
        >>> assistant([Turn("Hi.", "Human"), Turn("Hello.", "Chatbot")])
        'Chatbot'
    """
    speakers = {role_of(turn.speaker): turn.speaker for turn in turns if turn.speaker}
    return next((name for role, name in speakers.items() if _SPEAKERS.get(role) == ASSISTANT), speakers.get(SYSTEM))


def judged_turns(turns: Sequence[Turn]) -> np.ndarray:
    """Return which of the n visible turns but the first are judged, of shape (n - 1,), booleans.

    They are the assistant's, see `assistant`; or all, if no assistant is known or only the first turn is the assistant's.
    """
    speakers = [turn.speaker for turn in turns if not is_blank(turn.text)][1:]
    name = assistant(turns)
    chosen = np.array([name is not None and speaker == name for speaker in speakers], dtype=bool)
    return chosen if chosen.any() else np.ones(len(speakers), dtype=bool)


def is_message(value: object) -> bool:
    """Whether `value` is an object with the two fields of a chat message."""
    return (
        isinstance(value, Mapping)
        and any(name in value for name in _TEXT_FIELDS)
        and (any(name in value for name in (*_SPEAKER_FIELDS, *_IS_USER)) or any(is_role(value.get(name)) for name in _KINDS))
    )


def words_of(value: Mapping[str, Any]) -> list[Any]:
    """Return the usual fields of a message that say who speaks, and what."""
    value = unwrapped(value)
    return [value[name] for name in (*_SPEAKER_FIELDS, *_KINDS, *_IS_USER, *_TEXT_FIELDS) if name in value]


def sides_of(messages: Sequence[object]) -> set[str]:
    """Return who speaks in messages, or texts that begin with roles, users and assistants as such; empty if one is neither."""
    marks = [isinstance(one, str) and PREFIX.match(one) for one in messages]
    roles = {role_of(mark[1]) for mark in marks if mark} if all(marks) else set()
    for one in messages if not roles else ():
        value = unwrapped(one) if isinstance(one, Mapping) else {}
        if not (is_message(value) or value.keys() & _CALLS or is_silent(str(value.get("type")))):
            return set()
        with contextlib.suppress(InputError):
            roles.add(role_of(_speaker(value, "", USUAL)[0] or ""))
    return {_SPEAKERS.get(role, USER if role in _CUSTOMERS else ASSISTANT if role in _AGENTS else role) for role in roles}


def turn_of(value: object, where: str, left_out: Counter[str], fields: Fields = USUAL) -> Turn | None:
    """Return a string or a chat message as a turn; None if it is none, which is counted in `left_out`.

    Raises:
        InputError: `value` is neither, a part has another type, or a text has an unknown meaning; begins with `where`.
    """
    # Text is checked first: the other check takes ten times as long.
    if isinstance(value, str):
        return _plain_turn(_without_tags(check_text(value, where), left_out))
    if not isinstance(value, Mapping):
        if isinstance(value, Sequence) and len(value) == 2 and all(isinstance(one, str) for one in value) and is_role(value[0]):
            value = {"role": value[0], "content": value[1]}
        elif isinstance(value, Sequence) and any(isinstance(one, Mapping) for one in value):
            raise InputError(
                f"{where}: expected a message, got a list, {value!r:.60}. Write each message as an element of its own."
            )
        else:
            return _plain_turn(check_text(value, where))
    if fields == USUAL or not any(name in value or at(value, name) is not None for name in fields if name):
        value = unwrapped(value)
    given, is_named = _speaker(value, where, fields)
    if (silent := _silent(value, given)) is not None:
        if silent:
            left_out[silent] += 1
        return None
    if not (is_named or fields.text or value.keys() & _TEXTS_OF_PEOPLE) and value.keys() & _TEXTS_WITH_A_ROLE:
        raise InputError(f"{where}: has no 'role'. {_who_said(value)}")
    text = _text(value, where, left_out, fields)
    if given is None and not is_named and text is not None and _possible_speakers(value):
        raise InputError(f"{where}: it is not known who said it. {_who_said(value)}")
    # Many servers write "" with a tool call.
    if text is None or (not text.strip() and any(map(value.get, _CALLS))):
        left_out[TEXTLESS] += 1
        return None
    speaker = speaker_of(given)
    answer = _spoken(text, speaker, left_out)
    return None if answer is None else Turn(_without_tags(answer, left_out), speaker)


def _silent(value: Mapping[str, Any], given: str | None) -> str | None:
    """Return the kind of a message that was addressed to nobody, "" for one that is not counted; None for any other."""
    if given is not None and is_silent(given):
        return f"{role_of(given)} message" if role_of(given) != "root" else ""  # the root of a tree is nobody's message
    is_aside = str(value.get("phase")) in _ASIDES or str(value.get("channel")) in _ASIDES
    if value.get("isThought") is True or value.get("thought") is True or is_aside:
        return THOUGHT
    for name in sorted(_MARKS_OF_UNSAID & value.keys()):
        of_unsaid, is_set = _UNSAID.get(name, ("internal message", None))
        given_there = str(value[name]).strip().lower()
        is_so = _BOOLEANS.get(given_there)
        if is_so is None and (name.startswith("deleted") or isinstance(value[name], Mapping)):  # when, or which error
            is_so = bool(value[name]) and given_there not in ("none", "null", "nan")
        if (given_there.endswith("note") or given_there in _VALUES_OF_UNSAID) if is_set is None else is_so is is_set:
            return of_unsaid
    if value.get("synthetic_reason"):
        return "internal message"
    kinds = map(value.get, ("type", "kind", "message_kind"))
    return next((f"{role_of(kind)} message" for kind in kinds if isinstance(kind, str) and is_silent(kind)), None)


_plain_turn = functools.lru_cache(maxsize=1024, typed=True)(Turn)
"""Cached `Turn`: a file repeats a context for each of its responses."""


def unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message inside an envelope; LangChain's are known by their class names."""
    if not _CALLS.isdisjoint(value) and (sent := _sent(value)):
        return {"role": ASSISTANT, "content": sent}
    if len(value) == 1 and is_side(name := next(iter(value))) and isinstance(value[name], str):
        return {"role": name, "content": value[name]}
    if any(name.startswith("message.") for name in value):
        value = {name.removeprefix("message."): one for name, one in value.items()}
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, Mapping) and _has_own_text(value):
            return value  # the object is about the message, such as an attachment
        if isinstance(inner, Mapping) and any(field in inner for field in (*_TEXT_FIELDS, *_WRAPPERS)):
            kind = value.get("type")
            if isinstance(path := value.get("id"), list) and path and (match := _LANGCHAIN.fullmatch(str(path[-1]))):
                kind = match[1]
            outer = {one: value[one] for one in (*_SPEAKER_FIELDS, *_IS_USER) if one in value}
            return unwrapped({**({} if kind is None else {"type": kind}), **outer, **inner})
    return value


def _has_own_text(value: Mapping[str, Any]) -> bool:
    texts = (value[name] for name in _TEXT_FIELDS if name in value and name not in _WRAPPERS)
    return is_message(value) and any(isinstance(one, (str, list)) and one for one in texts)


def _sent(value: Mapping[str, Any]) -> list[Any]:
    """Return as parts what an agent, as of MemGPT or Letta, says by a call of a tool, and its thought; [] for others."""
    calls = parsed_cell(value.get("tool_calls") or [value.get("tool_call")])
    inner = [call.get("function", call) for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    named = ((str(one.get("name")), parsed_cell(one.get("arguments"))) for one in inner if isinstance(one, Mapping))
    said = [at(of, _SAID) or "" for name, of in named if _SAYS.fullmatch(name) and (name == "send_message" or at(of, _SAID))]
    thought = [{"type": "thinking"}] if said and value.get("content") else []
    return [*thought, *({"type": "text", "text": one} for one in said)]


def _speaker(value: Mapping[str, Any], where: str, fields: Fields) -> tuple[str | None, bool]:
    """Return the speaker, and whether the message has a field for it."""
    for name, of_user in () if fields.speaker else _IS_USER.items():
        if name in value and (is_so := _BOOLEANS.get(str(value[name]).strip().lower())) is not None:
            return (USER if is_so is of_user else ASSISTANT), True
    if fields.speaker is not None:
        given = name_in(at(value, fields.speaker))
        given = str(given) if isinstance(given, int) else given
        is_named = given is not None or fields.speaker in value
        return (None if given is None else check_text(given, f"{where}: {fields.speaker}").strip() or None), is_named
    names = [name for name in (*_SPEAKER_FIELDS, *_KINDS) if name in value]
    names.sort(key=lambda name: not is_role(name_in(value[name])))
    for name in names:
        given = name_in(value[name])
        if name in _KINDS and not (isinstance(given, str) and is_role(given)):
            if isinstance(given, str) and (match := _LANGCHAIN.fullmatch(given)):
                return match[1], True
            continue
        if given is None and name != "speaker":
            if name != "role" and len(names) > 1:
                continue
            raise InputError(f"{where}: has no {name!r}. {_who_said(value)}")
        if isinstance(given, int):
            raise InputError(
                f"{where}: {name} is {given!r}. Write user or assistant, or read such numbers as names by "
                f"--columns speaker={name}."
            )
        return (None if given is None else check_text(given, f"{where}: {name}").strip() or None), True
    return None, False


def _possible_speakers(value: Mapping[str, Any]) -> list[str]:
    """Return the fields of a message whose names may mean its speaker, and whose values may be one."""
    return [
        name for name, one in value.items()
        if name not in _TEXT_FIELDS and isinstance(one, (str, int)) and str(one).strip()[-1:] not in (".", "?", "!")
        and (words_in(name) == {"name"} or may_be_people(name) or is_side(one))
    ]  # fmt: skip


def may_be_people(name: str) -> bool:
    """Whether a field, by its name, may name who speaks."""
    return not words_in(name).isdisjoint(_OF_PEOPLE)


@functools.lru_cache(maxsize=1024)
def words_in(name: str) -> frozenset[str]:
    """Return the words of a field's name, in lower case."""
    return frozenset(re.split(r"[\W_]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def conversation_in(names: Iterable[str]) -> str | None:
    """Return the first field that is called after a conversation, or else has its own id; None without one."""
    ids = [
        one for one in names if words_in(one) & ID_WORDS and one.lower() not in ("id", "message_id") and not may_be_people(one)
    ]
    return next((one for one in names if words_in(one) & _OF_CONVERSATIONS), next(iter(ids), None))


def columns_of(value: Mapping[str, Any], known: Mapping[str, str] | None = None) -> str:
    """Return the value of `--columns` by which a message, or a row that is one, is read by its own fields."""
    own = {words_in(name): name for name in reversed([*value])}  # a table's, which come before their aliases
    row = {own[words_in(name)]: one for name, one in value.items()}
    found = (("conversation", name) for name in row if words_in(name) & _OF_CONVERSATIONS and known is None)
    named = known or dict(itertools.islice(found, 1))
    likely = "" if "text" in named else likely_columns(row, is_row=True) or "speaker=NAME,text=NAME"
    return shlex.quote(",".join(filter(None, [*(f"{ours}={name}" for ours, name in named.items()), likely])))


def likely_columns(value: Mapping[str, Any], *, is_row: bool = False) -> str:
    """Return the columns by which a message may be read, as for `--columns`; "" without a likely text.

    They name the speaker if the message's own fields do not, or if it is a row, of which only the named fields are read.
    """
    usual = [own for name in _SPEAKER_FIELDS for own in value if str(own).lower() == name.lower()]
    speakers = [*(usual if is_row else []), *([] if usual else _possible_speakers(value))]
    named = [name for name in value if str(name).lower() in (*_OTHER_TEXTS, *_TEXT_FIELDS) and isinstance(value[name], str)]
    is_spoken = re.compile(r"(?!\s*[{\[]).*[^\W\d].*\s.*", re.DOTALL).fullmatch
    spoken = [name for name, one in value.items() if isinstance(one, str) and is_spoken(one.strip()) and name not in speakers]
    text = named[0] if named else spoken[0] if len(spoken) == 1 else None
    return "" if text is None else "".join(f"speaker={name}," for name in speakers[:1]) + f"text={text}"


def _who_said(value: Mapping[str, Any]) -> str:
    """Return what can be done about a message without a speaker."""
    possible = [*_possible_speakers(value), *(["type"] if isinstance(value.get("type"), str) else [])]
    name = possible[0] if possible else "NAME"
    may_be = f"{name!r} may be the speaker. Say so" if possible else "Name the field of its speaker"
    return f"{may_be} by --columns speaker={name}, or give a 'role': user, assistant, system, or a speaker's name."


def name_in(value: Any) -> Any:
    """Return the role or the name in a speaker's object; other values unchanged."""
    if not isinstance(value, Mapping):
        return value
    if True in map(value.get, ("bot", "is_bot", "isBot")):
        return ASSISTANT
    names = [value[one] for one in ("role", "nickname", "name", "username", "type") if value.get(one) is not None]
    return next((one for one in names if is_role(one)), next(iter(names), None))


def _text(value: Mapping[str, Any], where: str, left_out: Counter[str], fields: Fields) -> str | None:
    if fields.text is not None:
        return _content(at(value, fields.text), f"{where}: {fields.text}", left_out)
    names = [name for name in _TEXT_FIELDS if name in value]
    if not names:
        if value.get("refusal") or value.keys() & _CALLS or isinstance(value.get("audio"), Mapping):
            return _spoken_elsewhere(value, where)
        if not (likely := likely_columns(value)) and isinstance(value.get("type"), str):
            return None  # such as an action, without anything that may be a text
        known = ", ".join(map(repr, value)) or "nothing"
        advice = (
            f"If {likely.rpartition('=')[2]!r} is what was said, say so by --columns {likely}."
            if likely
            else "Name the field of its text by --columns text=NAME, or give 'role' and 'content', as OpenAI's have them."
        )
        raise InputError(f"{where}: is no chat message, it has only {known}. {advice}")
    texts: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    for name in names:
        of_field: Counter[str] = Counter()
        text = _content(value[name], f"{where}: {name}", of_field)
        kinds |= of_field  # the message may be there twice, as a text and in parts
        if text is not None:
            texts[name] = text
    left_out.update(kinds)
    visible = {name: text for name, text in texts.items() if text.strip()}
    if len(visible) > 1:
        visible.pop("segments", None)  # Taskmaster's are what was annotated of the text
    versions = (name for name in value if visible and name not in texts and _may_be_version(name, next(iter(visible))))
    visible |= {name: one for name in versions if isinstance(one := value[name], str) and " " in one}
    if len({" ".join(text.split()) for text in visible.values()}) > 1:
        first, second = list(visible)[:2]
        raise InputError(
            f"{where}: has a text in {first!r} and another in {second!r}. Say which was said by --columns {columns_of(value)}."
        )
    if visible:
        return next(iter(visible.values()))
    return _spoken_elsewhere(value, where) or next(iter(texts.values()), None)


@functools.lru_cache(maxsize=1024)
def _may_be_version(name: str, of_text: str) -> bool:
    """Whether a field may have another version of the text in the field `of_text`, such as its translation."""
    others = words_in(name) - _VERSIONS_OF_TEXT
    return name in ("translation", "original") or (others != words_in(name) and set() < others <= words_in(of_text) | {"text"})


def _spoken_elsewhere(value: Mapping[str, Any], where: str) -> str | None:
    """Return the refusal or transcript of a message that has one instead of a content."""
    refusal, audio = value.get("refusal"), value.get("audio")
    given = refusal or (audio.get("transcript") if isinstance(audio, Mapping) else None)
    return None if given is None else check_text(given, f"{where}: {'refusal' if refusal else 'audio'}")


def _content(content: Any, where: str, left_out: Counter[str]) -> str | None:
    """Return the text of a content, its parts joined by line breaks; None if it has none."""
    if content is None or isinstance(content, str):
        return content if content is None else check_text(content, where)
    if hasattr(content, "tolist"):
        content = content.tolist()
    if isinstance(content, Mapping):
        names = ("parts", "text", "content", "value", "body")
        return _content(next((content[name] for name in names if content.get(name) is not None), None), where, left_out)
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InputError(
            f"{where}: expected a string or a list of parts, got {content!r:.80} ({type(content).__name__}). "
            "Give text, or parts as {'type': 'text', 'text': ...}."
        )
    texts = []
    for index, part in enumerate(content):
        place = f"{where}[{index}]"
        if isinstance(part, str):
            texts.append(check_text(part, place))
        elif not isinstance(part, Mapping):
            raise InputError(f"{place}: expected a part as {{'type': 'text', 'text': ...}}, got {part!r:.80}. Give text.")
        elif part.get("thought") is True or part.get("isThought") is True:
            left_out["thought part"] += 1
        elif (kind := str(next(filter(None, map(part.get, _KINDS_OF_PARTS)), None) or _kind_of(part))).lower() in _TEXT_PARTS:
            name = next((one for one in ("text", "refusal", "content", "value") if one in part), "text")
            inner = part.get(name)  # or {"value": ..., "annotations": [...]}
            inner = _content(inner, f"{place}: {name}", left_out) if isinstance(inner, Mapping) else inner
            texts.append(check_text(inner, f"{place}: {name}"))
        elif isinstance(part.get("transcript"), str):  # of audio
            texts.append(check_text(part["transcript"], f"{place}: transcript"))
        else:
            left_out[f"{check_text(kind, place)} part"] += 1
    return "\n".join(texts) if texts else None


def plain_text(html: str) -> str:
    r"""Return the plain text of HTML.

    Example:
        >>> plain_text("<p>Tea &amp; cake.</p><p>Or <b>rain</b>?</p>")
        'Tea & cake.\nOr rain?'
    """
    text = re.sub(r"(?i)<br\s*/?>|</(?:p|div|li|h\d|tr|pre)>", "\n", html)
    return unescape(re.sub(r"<[^>]*>", "", text)).strip()


def _without_tags(text: str, left_out: Counter[str]) -> str:
    """Return the plain text of a message that is written as HTML throughout, in paragraphs and without parts of a page."""
    if not text.lstrip().startswith("<") or not _HTML.match(text):
        return text
    bare = _CONTROLS.sub("", text)
    tags = _TAG.findall(bare)
    if not _END_OF_HTML.search(bare[-20:]) or not {tag.lower() for tag in tags} <= _TAGS_OF_TEXT:
        return text
    left_out["HTML tag"] += len(tags)
    return plain_text(bare)


def _kind_of(part: Mapping[str, Any]) -> str:
    return "text" if part.keys() & {"text", "content", "value"} else str(next(iter(part), ""))


_MARKS = ("<", "[", "{", "◁", "```tool_code", "Thought", "\n>")
"""One of these is in any text that is not all speech."""


def _spoken(text: str, speaker: str | None, left_out: Counter[str]) -> str | None:
    """Return what was said in a text; None if that is nothing."""
    if text[:1] == "[" and _PLACEHOLDER.fullmatch(text):
        left_out["deleted message"] += 1
        return None
    return _answer(text, left_out) if speaker == ASSISTANT else _asked(text, left_out) if speaker == USER else text


def _asked(text: str, left_out: Counter[str]) -> str | None:
    """Return the user's own words; None if there is only the result of a tool, or what a program added to them."""
    if ("<tool_re" in text and is_blank(_TOOL_TEXT.sub("", text))) or _RESULT_OF_TOOL.match(text):
        left_out["tool result"] += 1
        return None
    if text.startswith('{"type":') and isinstance(packed := parsed_cell(text), dict) and "time" in packed:  # by MemGPT
        if packed["type"] == "user_message":
            return str(packed.get("message"))
        left_out["event message"] += 1
        return None
    if "<" not in text:
        return text
    for kind, pattern in (("attached text", _ATTACHED), ("media mark", _MEDIA)):
        rest, n = pattern.subn("", text)
        if n:
            left_out[kind] += n
            text = rest.strip()
            if not text:
                return None
    return asked[2] if (asked := _ASKED.fullmatch(text)) else text


def _answer(text: str, left_out: Counter[str]) -> str | None:
    """Return the text shown to the user; "" if it was truncated during the reasoning, None if it only calls a tool."""
    if not any(mark in text for mark in _MARKS) and not text.lstrip().startswith("analysis"):
        return text
    if react := _REACT.match(text):
        left_out["tool call" if "\nAction:" in react[0] else THOUGHT] += 1
        return text[react.end() :].strip() if "Final Answer:" in react[0] else None
    text = _SAID_BY_CLINE.sub(r"\2", text)
    rest = _TOOL_TEXT.sub("", text)
    if rest != text:
        left_out["tool call"] += 1
        if is_blank(rest):
            return None
        text = rest.strip()
    if wrapped := _WRAPPED.fullmatch((reply := split_reasoning(text)).text):
        reply = reply._replace(text=wrapped[wrapped.lastgroup or ""])
    if not reply.has_reasoning and reply.text == text.strip():
        return text
    left_out[THOUGHT if reply.has_reasoning else "end token"] += 1
    return reply.text


def numbered_turns(
    messages: Iterable[tuple[str, object]], left_out: Counter[str], fields: Fields = USUAL
) -> list[tuple[int, Turn]]:
    """Return the turns of messages, each with its message's number, from 1; messages come with their location for errors."""
    read, places, values = [], [], []
    for number, (where, value) in enumerate(messages, start=1):
        if (turn := turn_of(value, where, left_out, fields)) is None:
            continue
        if turn.speaker == USER and turn.text.startswith("Observation:") and left_out["tool call"]:  # of ReAct
            left_out["tool result"] += 1
        else:
            read.append((number, turn))
            places.append(where)
            values.append(value)
    numbers = [number for number, _ in read]
    turns = _speakers_told_apart(_without_quotations([turn for _, turn in read], left_out), left_out, next(iter(places), ""))
    speakers = {turn.speaker for turn in turns if turn is not None}
    if None in speakers and speakers & {USER, ASSISTANT}:
        place = next(place for place, turn in zip(places, turns, strict=True) if turn is not None and turn.speaker is None)
        raise InputError(f"{place}: it is not known who said it. {_who_said({})}")
    sides = [turn.speaker for turn in turns if turn is not None]
    if fields == USUAL and (len(speakers) > 2 or any(one == other for one, other in itertools.pairwise(sides))):
        _check_meaning(zip(places, values, turns, strict=True), has_both={USER, ASSISTANT} <= speakers)
    return [(number, turn) for number, turn in zip(numbers, turns, strict=True) if turn is not None]


def _without_quotations(turns: list[Turn], left_out: Counter[str]) -> list[Turn]:
    """Return turns without the earlier ones that they quote, as mails do, unless nothing else is in them."""
    own = turns[:1]
    for place, turn in enumerate(turns[1:], start=1):
        text = turn.text
        if "\n" in text and (text.startswith(">") or "\n>" in text or _EARLIER_MAIL.search(text)):
            earlier = [_unquoted(one.text) for one in turns[max(0, place - _N_QUOTED) : place]]
            for pattern in (_EARLIER_MAIL, _QUOTATION):
                quoted = [_unquoted(found["quoted"]) for found in pattern.finditer(text)]
                if all(any(one in said or (" " in said and said in one) for said in earlier) for one in quoted):
                    text = pattern.sub("", text)
        is_changed = text != turn.text and bool(text.strip())
        if is_changed:
            left_out["quotation"] += 1
        own.append(Turn(text.strip(), turn.speaker) if is_changed else turn)
    return own


def _unquoted(text: str) -> str:
    """Return a text in one line, without the marks of quoted lines."""
    return " ".join(re.sub(r"^[> \t]+", "", text, flags=re.MULTILINE).split())


def _check_meaning(messages: Iterable[tuple[str, object, Turn | None]], *, has_both: bool) -> None:
    """Raise an error for a message that may not be a turn: of an unknown role, or one of two answers to the same message."""
    before: Mapping[str, Any] = {}
    speaker = None
    for where, value, turn in messages:
        given, message = turn and turn.speaker, value if isinstance(value, Mapping) else {}
        names = (one for one in message if before and _tells_apart(one, str(message[one]), str(before.get(one))))
        # A role is in lower case, a name begins with a capital letter.
        if has_both and given and given.islower() and not is_side(given) and unwrapped(message).get("role") == given:
            doubt = f"its role is {given!r}, which is neither a user's nor an assistant's. Take such messages out"
        elif given == speaker and (name := next(names, None)):
            doubt = f"differs in {name!r} from the one before it, and either may not have been shown. Take one out"
        else:
            before, speaker = message if given in (USER, ASSISTANT) else {}, given
            continue
        raise InputError(f"{where}: {doubt}, or read all as they are by --columns {columns_of(message)}.")


def _tells_apart(name: str, value: str, other: str) -> bool:
    """Whether a field, by its name and two values, may say that only one of two messages was shown."""
    is_known = name in (*_SPEAKER_FIELDS, *_TEXT_FIELDS) or {value.lower(), other.lower()} <= _SHOWN
    return value != other and len(value) < 40 and not is_known and bool(words_in(name) & _OF_VERSIONS)


def _speakers_told_apart(turns: list[Turn], left_out: Counter[str], where: str) -> list[Turn | None]:
    """Return turns with speakers inferred from the whole conversation; None for each that is no turn.

    If all texts begin with a role ("User: "), that is their speaker. A `system` that answers is the assistant, and so is the
    only partner of a user; any other `system` is a prompt.
    """
    if turns and (prefixes := _prefixes(turns)):
        left_out["speaker tag"] += len(prefixes)
        turns = [
            Turn(turn.text[match.end() :], turn.speaker or speaker_of(match[1]))
            for turn, match in zip(turns, prefixes, strict=True)
        ]
    is_timed = all(_CLOCK.match(turn.text) for turn in turns)
    mark = _CLOCK if is_timed else OWN_TAG
    marks = [mark.match(turn.text) if is_timed or turn.speaker == ASSISTANT else None for turn in turns]
    if any(marks):
        left_out["time mark" if is_timed else "speaker tag"] += sum(map(bool, marks))
        turns = [Turn(one.text[at.end() :], one.speaker) if at else one for one, at in zip(turns, marks, strict=True)]
    numbered = {turn.speaker for turn in turns if turn.speaker and turn.speaker[-1].isdigit()}
    bare = {name: speaker_of(name.rstrip("0123456789 _-")) for name in numbered}
    if len(bare) == 2 and set(bare.values()) == {USER, ASSISTANT}:  # such as "User 1" and "Assistant 1"
        turns = [Turn(turn.text, turn.speaker and bare[turn.speaker]) for turn in turns]
    speakers = {turn.speaker for turn in turns}
    answers = SYSTEM in speakers and ASSISTANT not in speakers and len(speakers) == 2
    if answers and turns[0].speaker == SYSTEM:  # a prompt, unless the system speaks again
        answers = sum(turn.speaker == SYSTEM for turn in turns) > 1 or USER not in speakers
    if SYSTEM in speakers and not answers:
        left_out["system message"] += sum(turn.speaker == SYSTEM for turn in turns)
        speakers.discard(SYSTEM)
    others = speakers - {USER}
    if USER in speakers and len(others) == 1 and (partner := str(*others)) and role_of(partner) in _CUSTOMERS:
        raise InputError(
            f"{where}: its conversation has turns of 'user' and of {partner!r}, and either may be who asks. "
            "Call the one who answers 'assistant'."
        )
    only = SYSTEM if answers else (next(iter(others)) if USER in speakers and len(others) == 1 else None)
    return [
        Turn(turn.text, ASSISTANT) if only is not None and turn.speaker == only else None if turn.speaker == SYSTEM else turn
        for turn in turns
    ]


def _prefixes(turns: Sequence[Turn]) -> list[re.Match[str]]:
    """Return the marks before the texts, if each has its message's role or, without any, a role or recurring name."""
    matches = [*itertools.takewhile(bool, (tag_of(turn.text) for turn in turns))]
    if len(matches) < len(turns) or len(turns) < 2:
        return []
    named, speakers = [speaker_of(match[1]) for match in matches], [turn.speaker for turn in turns]  # type: ignore[index]
    is_told = len(set(named)) < len(turns) or any(PREFIX.match(turn.text) for turn in turns)
    # Each speaker may have a name, too, that begins all texts.
    n_names, n_pairs = len(set(named)), len({*zip(named, speakers, strict=True)})
    are_named = named == speakers or (1 < n_names < len(turns) and n_names == n_pairs == len(set(speakers)))
    are_speakers = is_told and len(set(named)) > 1 if set(speakers) == {None} else are_named
    return matches if are_speakers else []  # type: ignore[return-value]


def named_lines(text: str) -> list[Any] | None:
    """Return the lines of a text in which each begins with a name and a colon, and somebody speaks again."""
    tags = [tag_of(line) for line in text.splitlines() if line.strip()]
    names = {tag[1] for tag in tags if tag}
    return [tag.string for tag in tags if tag] if all(tags) and 1 < len(names) < len(tags) else None


def tag_of(text: str) -> re.Match[str] | None:
    """Return the matched role, or a name and a colon, at the start of a text."""
    return PREFIX.match(text) or _NAMED.match(text) if ":" in text or "：" in text else None


def split_dialogue(text: str) -> list[dict[str, str]] | None:
    r"""Return the messages of a text written like HH-RLHF or a chat template; None if it is not.

    Example:
        >>> split_dialogue("\n\nHuman: Hi.\n\nAssistant: Hello!")
        [{'role': 'Human', 'content': 'Hi.'}, {'role': 'Assistant', 'content': 'Hello!'}]
    """
    for pattern in _MARKED if any(sign in text for sign in _SIGNS) else ():
        marks, unspoken = list(pattern.finditer(text)), _UNSPOKEN
        has_preamble = len(marks) > 1 and marks[0][0].startswith(_PREAMBLES)
        if marks and (has_preamble or not _UNSPOKEN.sub("", text[: marks[0].start()]).strip()):
            break
    else:
        marks, unspoken = list(_DIALOGUE.finditer(text)), _NOTHING
        if not marks or marks[0].start() > 0 or (len(marks) == 1 and not text.startswith("\n\n")):
            return None
        if any(mark[1] == "Assistant" for mark in marks):  # then a paragraph may begin with "AI:"
            marks = [mark for mark in marks if mark[1] != "AI"]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    texts = [unspoken.sub("", text[mark.end() : end]).strip() for mark, end in zip(marks, ends, strict=True)]
    messages = [{"role": _INSTRUCTED.get(mark[1], mark[1]), "content": one} for mark, one in zip(marks, texts, strict=True)]
    # After the last mark of a template the answer begins.
    return messages if texts[-1] or len(messages) == 1 else messages[:-1]


def alternating(texts: Iterable[Any], speakers: tuple[str, str] = (USER, ASSISTANT)) -> list[dict[str, Any]]:
    """Return the messages of two speakers who take turns."""
    return [{"role": speakers[place % 2], "content": text} for place, text in enumerate(texts)]


def parsed_cell(value: Any) -> Any:
    """Return a table cell's JSON value: messages, parts, or a text with escapes; other cells unchanged."""
    if not isinstance(value, str):
        return value
    ends = value.strip()[:1] + value.strip()[-1:]
    if ends not in ("[]", "{}") and not (ends == '""' and "\\" in value):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, (list, dict, str)) else value


def left_out_text(left_out: Mapping[str, int]) -> str:
    """Return the counts of parts left out as text.

    Example:
        >>> left_out_text({"system message": 2, "image_url part": 1})
        '2 system messages, 1 image_url part'
    """
    return ", ".join(f"{n} {what}{'s' if n != 1 else ''}" for what, n in left_out.items() if n)
