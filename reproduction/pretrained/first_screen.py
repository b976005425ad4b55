"""The README's first screen: ten responses to one context, best to worst by the general evaluator."""

from __future__ import annotations

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
MARKER = "ten responses"


def table() -> str:
    """Return the responses in Markdown with score and percentile, the best first."""
    found = load_metric("general").compute(predictions=list(RESPONSES), contexts=[list(CONTEXT)] * len(RESPONSES))
    rows = sorted(zip(found["scores"], found["percentile"], RESPONSES, strict=True), reverse=True)
    shown = [[f"{score:.2f}", f"{percentile:.0f}", response] for score, percentile, response in rows]
    return markdown_table(["score", "percentile", "response"], shown)
