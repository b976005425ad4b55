"""Checks the documents for the terms and sentences that CONTRIBUTING.md asks for: `make lint`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from tests.documented import PAGES, ROOT, prose

GUIDE = ROOT / "CONTRIBUTING.md"
CARDS_AND_NOTES = ("metrics/*/README.md", "reproduction/*/README.md", "reproduction/*/NOTES.md", "benchmarks/NOTES.md")
LONGEST = 35
"""Words of a sentence."""
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)
_END = re.compile(r"[.?!:](?=[\s*)])|\n(?=\s*(?:\n|[-#|<>]|\d+\. ))")
_INVERTED = re.compile(r"[\W\d]*(What|Who|Of (?:an?|each|every|the|those))\b[^?]*$")


def terms() -> dict[str, str]:
    """Return the glossary: what to say in place of each word."""
    table = GUIDE.read_text(encoding="utf-8").partition("| Say | Not |\n|---|---|\n")[2].partition("\n\n")[0]
    return {word: say for say, words in _ROW.findall(table) for word in words.replace("`", "").split(", ")}


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each problem in a page's prose, and what to write instead."""
    for word, say in terms().items():
        for match in re.finditer(rf"(?<![\w-]){word}s?(?![\w-])", text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}. Write {say!r}."
    start = 0
    for end in _END.finditer(f"{text}\n\n"):
        sentence, line = text[start : end.end()], text.count("\n", 0, end.start()) + 1
        start = end.end()
        if not sentence.lstrip().startswith(("|", "#", "<")):
            if (n_words := len(re.findall(r"\w[\w'’-]*", sentence))) > LONGEST:
                yield line, f"a sentence of {n_words} words. Make two of it."
            if opening := _INVERTED.match(sentence):
                yield line, f"{opening[1]!r} begins a sentence that is no question. Begin with the noun."


def all_problems() -> list[str]:
    """Return what is to be changed in the documents, the guide, the changelog, the cards and the notes."""
    pages = [*PAGES, GUIDE, ROOT / "CHANGELOG.md", *(page for name in CARDS_AND_NOTES for page in sorted(ROOT.glob(name)))]
    return [f"{page.relative_to(ROOT)}:{line}: {problem}" for page in pages for line, problem in problems(prose(page))]


if __name__ == "__main__":
    sys.exit("\n".join(all_problems()) or 0)
