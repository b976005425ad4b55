from __future__ import annotations

from tests.conversations.documented_layouts import PAGE, page


def test_the_page_names_every_layout() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.conversations.documented_layouts writes the page anew"
