"""Answers without the reasoning before them (F2, F3 and F9 of the second attack): every markup, closed and cut."""

from __future__ import annotations

import pytest

from dialeval_plugin.llm.reasoning import Reply, split_reasoning
from tests.timing import grows_with_its_length

SAID = "Negative"
MARKUPS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("<reasoning>", "</reasoning>"),
    ("<THOUGHT>", "</THOUGHT>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("analysis", "assistantfinal"),
    ('<details type="reasoning" done="true"><summary>Thought</summary>', "</details>"),
]


@pytest.mark.parametrize(("start", "end"), MARKUPS)
def test_reasoning_is_left_out(start: str, end: str) -> None:
    reasoning = "Is it positive? Could be 2.\n\nHmm."
    assert split_reasoning(f"{start}{reasoning}{end}\n{SAID}") == Reply(SAID, has_reasoning=True, is_open=False)
    assert split_reasoning(f"{start}{reasoning}") == Reply("", has_reasoning=True, is_open=True)


@pytest.mark.parametrize("end", [end for _, end in MARKUPS[:12]])
def test_an_end_alone_ends_reasoning_that_began_in_the_prompt(end: str) -> None:
    assert split_reasoning(f"Is it positive?{end}{SAID}") == Reply(SAID, has_reasoning=True, is_open=False)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("4<|im_end|>\n<|im_start|>user\n2", "4"),
        ("4</s>", "4"),
        ("<|channel|>final<|message|>4<|return|>", "4"),
        ("<|START_THINKING|>2?<|END_THINKING|><|START_RESPONSE|>4<|END_RESPONSE|>", "4"),
        ("<think>One.</think>First. <think>Two.</think>Second.", "First. Second."),
        ("<think>\n\n</think>\n\n0.8", "0.8"),
        ("First.<think>One.</think>Second.</think>4", "4"),
    ],
)
def test_what_is_said_is_kept(reply: str, text: str) -> None:
    assert split_reasoning(reply).text == text


@pytest.mark.parametrize(
    "text",
    [
        "Use the <think> tag.",
        "<details><summary>More</summary>It is tea.</details> Yes.",
        "Analysis of turn 2: it fits.",
        "analysis: it fits",
        "a < b > c",
        "I think so",
        "",
        "[thinking]",
    ],
)
def test_plain_text_is_no_reasoning(text: str) -> None:
    assert split_reasoning(text) == Reply(text, has_reasoning=False, is_open=False)


def test_a_tool_call_in_a_channel_is_no_reply() -> None:
    call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    assert split_reasoning(call) == Reply("", has_reasoning=True, is_open=True)


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<think>\n",
        "<|channel|>",
        "<|channel|>final<|message|>",
        "analysisA",
        "<details ",
        '<details type="reasoning">',
        '<details type="reasoning"></details>',
    ],
)
def test_time_grows_with_the_length_and_not_faster(piece: str) -> None:
    assert grows_with_its_length(split_reasoning, piece, length=8000)
