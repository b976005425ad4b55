"""Separation of a model's reply from its reasoning: one table of markups, for judges and for chat logs.

A chat template may open the reasoning in the prompt, so that a reply only closes it; a truncated reply may only open it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"(?:\w+:|ant)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|reflection|scratchpad)"
_MARKUPS = (
    # Tags of most models, brackets of Mistral, triangles of Kimi.
    (rf"<{_NAME}>", rf"</{_NAME}>"),
    (r"\[think\]", r"\[/think\]"),
    ("◁think▷", "◁/think▷"),
    # Tokens of OpenThinker and Sky-T1, Command A, Apertus, MedGemma and Gemma 4.
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"<unused94>(?:thought\b)?", "<unused95>"),
    (r"<\|channel>thought\b", r"<channel\|>"),
)
"""Patterns of the start and of the end of reasoning."""

_HEADING = (
    r"(?:[*_]|💭|\s){0,6}(?:thinking|thoughts?|reasoning|chain of thought)(?: process| steps?)?(?: for [\w. ]{1,20})?"
    r"(?:\.{3}|…|[:*_ ]|\([^()\n]{0,20}\)){0,6}"
)
# Open WebUI, and any block whose heading says so. Other such blocks are part of a reply, so the end of a block alone does not
# end reasoning.
_DETAILS = re.compile(
    r'<details\b(?:[^<>]{0,200}\btype="reasoning"[^<>]{0,200}>|[^<>]{0,200}>\s*<summary>'
    + _HEADING
    + r"</summary>).*?(</details>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Poe: a heading in italics, and the thoughts as a quotation. ChatGPT's page: how long it thought.
_QUOTED = re.compile(
    rf"\A\s*(?:(?:(?=[*_]){_HEADING}\n\s*|>{_HEADING}\n)(?:>[^\n]*(?:\n|\Z))+"
    r"|Thought for (?:a (?:few|couple of)|less than a|\d[\w ]{0,10}?) ?(?:s|m|seconds?|minutes?)\n)",
    re.IGNORECASE,
)

_MARK = re.compile(
    rf"(?P<start>{'|'.join(start for start, _ in _MARKUPS)})|{'|'.join(end for _, end in _MARKUPS)}", re.IGNORECASE
)

# OpenAI's harmony: each message has a channel, and the user reads "final".
_CHANNEL = re.compile(r"<\|channel\|>(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>", re.IGNORECASE)
_WITHOUT_TOKENS = re.compile(r"\A\s*analysis(?:(?=[A-Z\W]).*assistantfinal|(?=[A-Z]).*)", re.DOTALL)
"""Harmony from a server that decoded the text without its special tokens."""
_AFTER_END = re.compile(
    r"(?:<\|(?:im_end|eot_id|end|endoftext|end_of_text|return|call|start)\|>|</s>|<end_of_turn>|<｜end▁of▁sentence｜>).*",
    re.DOTALL,
)
_SOLUTION = re.compile(r"<\|(?:begin|end)_of_solution\|>|<\|(?:start|end)_(?:response|text)\|>", re.IGNORECASE)


class Reply(NamedTuple):
    """A model's reply without its reasoning."""

    text: str
    """Without reasoning, end tokens and the text after them."""
    has_reasoning: bool
    is_open: bool
    """Whether the reply ends within its reasoning."""


def split_reasoning(text: str) -> Reply:
    """Return a model's reply without its reasoning.

    Example:
        >>> split_reasoning("<think>Turn 2 fits.</think>4"), split_reasoning("[THINK]Turn 3").is_open
        (Reply(text='4', has_reasoning=True, is_open=False), True)
        >>> split_reasoning("<|channel|>analysis<|message|>2?<|end|><|channel|>final<|message|>4<|return|>").text
        '4'
    """
    details = list(_DETAILS.finditer(text))
    is_cut = bool(details) and not details[-1][1]
    text, n_quoted = _QUOTED.subn("", _DETAILS.sub("", text))
    if channels := list(_CHANNEL.finditer(text)):
        last = channels[-1]
        is_open = last[1].lower() != "final"
        return Reply("" if is_open else _AFTER_END.sub("", text[last.end() :]).strip(), has_reasoning=True, is_open=is_open)
    if whole := _WITHOUT_TOKENS.match(text):
        return Reply(text[whole.end() :].strip(), has_reasoning=True, is_open=not whole[0].endswith("assistantfinal"))
    parts: list[str] = []
    place, start = 0, None
    has_reasoning = bool(details) or n_quoted > 0
    for mark in _MARK.finditer(text):
        if mark["start"] is None:
            if start is None:
                parts.clear()
            has_reasoning, start, place = True, None, mark.end()
        elif start is None:
            parts.append(text[place : mark.start()])
            start = mark.start()
    # An opening tag alone in the middle of a line is only mentioned.
    is_open = start is not None and text[:start].rstrip(" \t")[-1:] in ("", "\n")
    if not is_open:
        parts.append(text[place if start is None else start :])
    reply = _AFTER_END.sub("", _SOLUTION.sub("", "".join(parts)))
    return Reply(reply.strip(), has_reasoning or is_open, is_open or is_cut)
