"""Shows the leaderboard, which is one self-contained HTML file, as a Space: `python app.py`."""

import html
from pathlib import Path

import gradio

PAGE = Path(__file__).with_name("index.html")


def frame() -> str:
    """Return the page inside a frame of its own, which may run its script and nothing else."""
    document = html.escape(PAGE.read_text(encoding="utf-8"), quote=True)
    return (
        f'<iframe srcdoc="{document}" sandbox="allow-scripts" title="Leaderboard" '
        'style="width: 100%; height: 92vh; border: 0"></iframe>'
    )


def page() -> gradio.Blocks:
    """Return the app."""
    with gradio.Blocks(title="Leaderboard", fill_width=True) as blocks:
        gradio.HTML(frame())
    return blocks


if __name__ == "__main__":
    page().launch()
