"""The fenced blocks of the documents: which are commands, which are marked, and which show what a command prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARKED = re.compile(r"needs (a GPU|a key|a download|a data set|a model|an extra|a cluster)\b|runs for \d+ minutes\b")
_FENCE = re.compile(r"^```(\w*) ?(?:title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(\$ )?(dialeval|lm_eval|pip|python|make|export)\b", re.MULTILINE)
_NUMBER = r"-?\d+(?:\.\d+)?"
_PARTS = re.compile(rf"(\.\.\.|(?<![\w.]){_NUMBER}(?!\w))")
"""Numbers, and what stands for anything."""


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def is_marked(self) -> bool:
        """Whether its title says what a reader needs to run it."""
        return _MARKED.match(self.title) is not None

    @property
    def is_command(self) -> bool:
        """Whether a reader would type it."""
        return self.language in {"sh", "python"} or _COMMAND.search(self.text) is not None

    @property
    def is_run(self) -> bool:
        """Whether a test runs it."""
        return self.is_command and not self.is_marked and (self.language == "sh" or not self.title)

    @property
    def needs_data(self) -> bool:
        """Whether it is a session on public data: a command with a prompt, and what it prints."""
        return self.title.startswith("needs a data set") and self.text.startswith("$ ")

    @property
    def is_file(self) -> bool:
        """Whether it is a file, which its title names."""
        return not self.is_marked and Path(self.title).suffix != ""

    @property
    def is_output(self) -> bool:
        """Whether it is what the block that is run before it prints."""
        return not self.is_command and not self.title and self.language in {"", "text"}

    @property
    def script(self) -> str:
        """Text to be typed: all of it, or of a session the lines with a prompt."""
        typed = [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]
        return "\n".join(typed) or self.text


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page from above."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, title, inside = found.groups()
        yield Block(page, text.count("\n", 0, found.start()) + 1, language, title or "", inside)


def prose(page: Path) -> str:
    """Return a page without its blocks, code and comments, line for line."""
    text = page.read_text(encoding="utf-8")
    return re.sub(
        r"^```.*?^```$|`[^`\n]+`|<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )


def is_printed(shown: str, stdout: str, stderr: str) -> bool:
    """Whether a block shows all of a command's output, and of its messages what it likes.

    Blanks do not count, `...` stands for anything, and a number with decimals may be off by one in its last digit, which is the
    machine's.
    """
    said, printed = _lines(stderr), _lines(stdout)
    lines = [line for line in _lines(shown) if not any(_is_same(line, one) for one in said)]
    return len(lines) == len(printed) and all(map(_is_same, lines, printed))


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _is_same(shown: str, printed: str) -> bool:
    parts = _PARTS.split(shown)
    pattern = "".join(
        re.escape(part) if place % 2 == 0 else "(.*)" if part == "..." else f"({_NUMBER})" for place, part in enumerate(parts)
    )
    found = re.fullmatch(pattern, printed)
    return found is not None and all(map(_is_near, parts[1::2], found.groups()))


def _is_near(shown: str, printed: str) -> bool:
    decimals = len(shown.partition(".")[2])
    if shown == "..." or decimals == 0 or len(printed.partition(".")[2]) != decimals:
        return shown in {"...", printed}
    return abs(float(shown) - float(printed)) < 1.5 * 10**-decimals
