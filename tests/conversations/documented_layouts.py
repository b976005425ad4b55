"""The page of layouts as they are: `python -m tests.conversations.documented_layouts` writes docs/layouts.md anew."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.conversations.layouts import LAYOUTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"
_HEAD = """# Layouts that are read

[`dialeval inspect FILE`](chat_logs.md#what-is-read) says as which of these a file is read. A layout is recognised by its
fields. Where that leaves a question open, as which of two answers is meant or who of several people is the chatbot, the file is
refused with a message that says what to do, and read when its layout is named: `--layout NAME`. That option also settles what
is recognised as another layout.

Many follow published schemas, without a file of the product at hand. What is refused or misread although it is of one of these
is worth an issue, with a file of a few invented messages.

| layout | of | |
|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = dict.fromkeys(
        f"| `{layout.name}` | {layout.about} | {'by its name' if layout.open_question else ''} |" for layout in LAYOUTS
    )
    return _HEAD + "\n".join(sorted(rows)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
