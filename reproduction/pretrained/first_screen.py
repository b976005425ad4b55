"""First examples of the documents: ten responses to one context, best to worst by `general`, and scored conversations."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html import escape
from tempfile import TemporaryDirectory

from dialeval_plugin import load_metric
from dialeval_plugin.corpora import mini
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
MARKER, CHAT_MARKER, SEEN_MARKER = "ten responses", "scored chat", "seen chat"
_JUDGED = re.compile(
    r"^ *(?P<percentile>[\d.]+) +(?P<score>[\d.]+) +(?P<chat>\w+):(?P<place>\d+)\n *> .*\n *< .*\n *(?P<why>.*)$", re.MULTILINE
)
"""A printed response: its place on both scales, its name, its text, and its weakness."""


LOW = 5.0
"""Percentile of people's own responses below which something is wrong."""


EXAMPLES = mini.folder().with_name("examples")
"""The files that the documents' commands read."""


def table() -> str:
    """Return the responses in Markdown with score and percentile, the best first."""
    found = load_metric("general").compute(predictions=list(RESPONSES), contexts=[list(CONTEXT)] * len(RESPONSES))
    shown = [
        (f"{score:.2f}", "out of scope" if percentile is None else f"{percentile:.0f}", response)
        for score, percentile, response in zip(found["scores"], found["percentile"], RESPONSES, strict=True)
    ]
    shown.sort(key=lambda row: row[0], reverse=True)
    return markdown_table(["score", "percentile", "response"], shown)


def scored_chat() -> str:
    """Return what `dialeval score chat.jsonl --explain` prints, as a block in Markdown."""
    with TemporaryDirectory() as folder:
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
        words = [sys.executable, "-m", "dialeval_plugin", "score", "chat.jsonl", "--explain"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    # The signature changes with each release.
    shown = re.sub(r"(?m)^(\w+)#[0-9a-f]{8} \(dialeval .*$", r"\1#...", done.stdout)
    return f"```\n{shown.rstrip()}\n```"


def seen_chat(printed: str) -> str:
    """Return the conversations of that example as HTML, each answer with what is printed of it there."""
    judged = {(found["chat"], int(found["place"])): found for found in _JUDGED.finditer(printed)}
    lines = []
    for chat in map(json.loads, (EXAMPLES / "chat.jsonl").read_text(encoding="utf-8").splitlines()):
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
