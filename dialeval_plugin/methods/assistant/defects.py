"""The defects that are judged of an assistant's answer."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Defect(NamedTuple):
    """What may be wrong with an answer."""

    name: str
    """The name of its column."""
    means: str
    """What such an answer does."""
    kind: Literal["rule", "model"]
    """What it is recognised by: by a rule features alone, by a model vectors as well."""
    blame: str
    """What an explanation says of an answer that has it."""


DEFECTS: tuple[Defect, ...] = (
    Defect("cut_off", "ends before it is complete", "rule", "stops in the middle"),
    Defect("looping", "says the same thing over and over", "rule", "repeats itself"),
    Defect("leaked", "shows tokens, templates, system prompts or reasoning", "rule", "shows what only the model should see"),
    Defect("second_voice", "goes on in the user's place", "rule", "speaks for the user too"),
    Defect("refusal", "declines to answer", "rule", "declines to answer"),
    Defect("boilerplate", "consists of set phrases that would fit any question", "model", "says nothing but set phrases"),
    Defect("wrong_language", "is in a language that the user neither writes nor asks for", "rule", "is in another language"),
    Defect("error_message", "is the message of an error, or the raw call of a tool", "rule", "is an error or a raw tool call"),
    Defect("off_topic", "is about something else", "model", "is about something else"),
    Defect("stale", "answers an earlier question", "model", "answers an earlier question"),
    Defect("echo", "gives the user's words back", "rule", "repeats the user's words"),
    Defect("contradiction", "contradicts itself or the context", "model", "contradicts itself or what was said"),
    Defect("gibberish", "is no language: words or letters in disorder", "model", "makes no sense as language"),
    Defect("insult", "insults the user", "model", "insults the user"),
)
