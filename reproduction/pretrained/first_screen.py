"""What the documents show first: ten responses to one context, best to worst by `general`, and scored conversations."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dialeval_plugin import load_metric
from dialeval_plugin.reports.tables import markdown_table

CONTEXT = (
    "Have you been up to anything this weekend?",
    "We went hiking in the mountains. How about you?",
)
RESPONSES = (
    "That sounds lovely! I stayed home and finally finished the novel that I told you about.",
    "Quiet, I mostly stayed home and read a book.",
    "I wanted to come along, but my ankle still hurts from last week's run.",
    "Which mountains? I have never been hiking around here.",
    "I don't know.",
    "That's nice.",
    "The central bank raised its interest rate by half a point.",
    "Home stayed mostly I quiet book a read and.",
    "We went hiking in the mountains. How about you?",
    "asdf qwer zxcv",
)
MARKER, CHAT_MARKER, LOGS_MARKER, SEEN_MARKER = "ten responses", "scored chat", "scored logs", "seen chat"
_JUDGED = re.compile(
    r"^ *(?P<percentile>[\d.]+) +(?P<score>[\d.]+) +(?P<chat>\w+):(?P<place>\d+)\n *> .*\n *< .*\n *(?P<why>.*)$", re.MULTILINE
)
"""What is printed of a response: its place on both scales, its name, what was said, and what pulls it down."""


LOW = 5.0
"""Percentile of people's own responses below which something is wrong."""


def _chat(name: str, *texts: str, system: str = "") -> dict[str, Any]:
    """A conversation of OpenAI's messages, which the user begins."""
    said = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    return {"id": name, "messages": [{"role": "system", "content": system}] * bool(system) + said}


CHAT = {
    "chat.jsonl": (
        _chat(
            "monday",
            *("I finally signed up for a pottery class.", "How exciting! What made you choose pottery?"),
            *("My sister gave me a mug that she had made herself.", "The parking garage closes at ten on weekdays."),
            system="You are a friendly assistant.",
        ),
        _chat(
            "tuesday",
            *(
                "My flight was cancelled and I am stuck at the airport.",
                "Oh no, I am sorry. Did they put you on another flight?",
            ),
            *("Not until tomorrow morning.", "I see."),
        ),
    )
}
"""Conversations by the file that they are in."""
LOGS = {
    "logs/monday.jsonl": (
        _chat(
            "a1",
            *("What can I cook with rice and two eggs?", "Fried rice is quick. Do you have any vegetables left?"),
            *("Only a carrot and half an onion.", "Your parcel left our warehouse this morning and should arrive tomorrow."),
            system="You help in the kitchen.",
        ),
        _chat(
            "a2",
            "My train was cancelled. How do I get to Leeds tonight?",
            "to is at Leeds bus The nine still leaves a from station that the.",
            *("Does it take cards?", "Yes, cards and phones, and you can buy the ticket from the driver."),
        ),
    ),
    "logs/tuesday.jsonl": (
        _chat(
            "b",
            *("I can't sleep before exams.", "That sounds hard. Is it worry that keeps you awake, or the coffee?"),
            *("Worry, mostly.", "Then write down what worries you in the evening, and leave it for the morning."),
        ),
    ),
}


def table() -> str:
    """Return the responses in Markdown with score and percentile, the best first."""
    found = load_metric("general").compute(predictions=list(RESPONSES), contexts=[list(CONTEXT)] * len(RESPONSES))
    rows = sorted(zip(found["scores"], found["percentile"], RESPONSES, strict=True), reverse=True)
    shown = [[f"{score:.2f}", f"{percentile:.0f}", response] for score, percentile, response in rows]
    return markdown_table(["score", "percentile", "response"], shown)


def scored(files: Mapping[str, Sequence[Mapping[str, Any]]], *words: str) -> str:
    """Return what `dialeval score` with some words prints of conversations, by file, as a block in Markdown."""
    with TemporaryDirectory() as folder:
        for name, chats in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(chat) + "\n" for chat in chats), encoding="utf-8")
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "dialeval_plugin", "score", *words], cwd=folder, capture_output=True, text=True, check=True
        )
    # The fields between are those of any run.
    shown = re.sub(r"(?m)^(method:\S*?\|model:[^|]*)\|.*(\|level:)", r"\1|...\2", done.stdout)
    return f"```\n{shown.rstrip()}\n```"


def scored_chat() -> str:
    """Return the README's second example."""
    return scored(CHAT, "chat.jsonl", "--explain")


def scored_logs() -> str:
    """Return the example of docs/chat_logs.md."""
    return scored(LOGS, "logs/", "--output", "scores.jsonl", "--by-conversation", "conversations.csv")


def seen_chat() -> str:
    """Return the conversations of the README's second example as HTML, each answer with what is printed of it."""
    judged = {(found["chat"], int(found["place"])): found for found in _JUDGED.finditer(scored_chat())}
    lines = []
    for chat in CHAT["chat.jsonl"]:
        lines.append('<div class="chat">')
        said = [message for message in chat["messages"] if message["role"] != "system"]
        # Messages are counted from 1, those of the system among them.
        for place, message in enumerate(said, start=1 + len(chat["messages"]) - len(said)):
            lines.append(f'<p class="{message["role"]}">{escape(message["content"])}</p>')
            if (found := judged.get((chat["id"], place))) is not None:
                kind = "low" if float(found["percentile"]) < LOW else "high"
                scale = f"{float(found['score']):.2f}, percentile {float(found['percentile']):.0f}"
                lines.append(f'<p class="judged {kind}"><strong>{scale}</strong> {escape(found["why"])}</p>')
        lines.append("</div>")
    return "\n".join(lines)
