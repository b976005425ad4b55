"""Space that shows the leaderboard; if dialeval-plugin is installed, a second tab scores a pasted conversation."""

import html
import importlib.util
from pathlib import Path

import gradio

PAGE = Path(__file__).with_name("index.html")


def frame() -> str:
    """Return the page in a sandboxed frame that may run its own script only."""
    document = html.escape(PAGE.read_text(encoding="utf-8"), quote=True)
    return (
        f'<iframe srcdoc="{document}" sandbox="allow-scripts" title="Leaderboard" '
        'style="width: 100%; height: calc(100vh - 9rem); border: 0"></iframe>'
    )


def page() -> gradio.Blocks:
    """Return the app."""
    with gradio.Blocks(title="Leaderboard", fill_width=True, analytics_enabled=False) as blocks:
        if importlib.util.find_spec("dialeval_plugin") is None:
            gradio.HTML(frame())
            return blocks
        from dialeval_plugin.hosts.evaluate.conversation_page import TITLE, conversation_page

        with gradio.Tab("Leaderboard"):
            gradio.HTML(frame())
        with gradio.Tab(TITLE):
            conversation_page()
    return blocks


if __name__ == "__main__":
    page().launch()
