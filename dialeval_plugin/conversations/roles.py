"""Roles of speakers: user, assistant, a named speaker, or no speaker, such as tools and system prompts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dialeval_plugin.core.dialogue import Turn, is_blank

USER, ASSISTANT, SYSTEM = "user", "assistant", "system"

_SPEAKERS = {
    **dict.fromkeys(("user", "human", "prompter", "humanmessage", "user_message"), USER),
    **dict.fromkeys(
        ("assistant", "ai", "gpt", "chatgpt", "chatbot", "model", "bot", "aimessage", "assistant_message", "llm"), ASSISTANT
    ),
}
_CUSTOMERS = frozenset(
    {"customer", "client", "visitor", "caller", "guest", "end_user", "enduser", "consumer", "requester", "patient",
     "seeker", "u"}
)  # fmt: skip
_AGENTS = frozenset(
    {"agent", "virtual_agent", "automated_agent", "human_agent", "support", "support_agent", "advisor", "operator",
     "representative", "wizard", "helper", "supporter"}
)  # fmt: skip
_SILENT = frozenset(
    {"developer", "tool", "tools", "tool_call", "tool_calls", "tool_response", "tool_result", "tool_results", "toolresult",
     "tool_use", "tool_output", "toolmessage", "function", "function_call", "function_call_output", "function_response",
     "functionmessage", "observation", "ipython", "environment", "reasoning", "thinking", "thought", "data", "root", "event",
     "internal", "note", "service", "session_meta", "metadata", "tool_call_result",
     "tool_call_invocation", "systemmessage", "system_prompt", "code_interpreter"}
)  # fmt: skip


def role_of(name: str) -> str:
    """Return a role in the spelling of this module's tables.

    Example:
        >>> role_of(" Tool-Call "), role_of("END USER")
        ('tool_call', 'end_user')
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def speaker_of(name: str | None) -> str | None:
    """Return the speaker for a log's `name`: "user" and "assistant" for their synonyms, any other name unchanged.

    Example:
        >>> speaker_of("Human"), speaker_of("gpt"), speaker_of("Ann")
        ('user', 'assistant', 'Ann')
    """
    return None if name is None else _SPEAKERS.get(role_of(name), name.strip()) or None


def is_role(name: object) -> bool:
    """Whether a text is a known role."""
    return isinstance(name, str) and (
        (role := role_of(name)) == SYSTEM or role in _SPEAKERS or role in _SILENT or role in _CUSTOMERS or role in _AGENTS
    )


def is_silent(name: str) -> bool:
    """Whether texts of a role were addressed to nobody: by a tool, a developer, or in thought."""
    return role_of(name) in _SILENT


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
    agents = [name for name in others if speakers[name] in _AGENTS]
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
