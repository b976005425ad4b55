"""The fenced blocks of the documents: which are commands, which are marked, and the small files that the others read."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

import dialeval_plugin

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARKED = re.compile(r"needs (a GPU|a key|a download|a data set|a model|an extra|a cluster)\b|runs for \d+ minutes\b")
_FENCE = re.compile(r"^```(\w*) ?(?:title=\"([^\"]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(\$ )?(dialeval|lm_eval|pip|python|make|export)\b", re.MULTILINE)
MINI = Path(dialeval_plugin.__file__).parent / "corpora" / "mini" / "dailydialog_pp.jsonl"
CHAT = [
    {"role": "user", "content": "Where is the station?"},
    {"role": "assistant", "content": "Straight on, then left at the bank."},
    {"role": "user", "content": "Is it far?"},
    {"role": "assistant", "content": "No, five minutes on foot."},
]


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
    def script(self) -> str:
        """What is to be typed: all of it, or of a session the lines with a prompt."""
        typed = [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]
        return "\n".join(typed) or self.text


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page from above."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, title, inside = found.groups()
        yield Block(page, text.count("\n", 0, found.start()) + 1, language, title or "", inside)


def write_inputs(folder: Path) -> None:
    """Write what the commands of the documents read, under the names that they have there."""
    responses = [
        {"id": str(number), "context": ["Where is the station?"], "response": response}
        for number, response in enumerate(["Straight on, then left at the bank.", "I don't know.", "Straight on."])
    ]
    lines = "".join(json.dumps(row) + "\n" for row in responses)
    for name in ("responses.jsonl", "in.jsonl"):
        (folder / name).write_text(lines, encoding="utf-8")
    table = pyarrow.table({name: [row[name] for row in responses] for name in responses[0]})
    pyarrow.parquet.write_table(table, folder / "responses.parquet")
    (folder / "contexts.jsonl").write_text('{"context": ["Where is the station?", "Which one?"]}\n', encoding="utf-8")
    chat = json.dumps({"id": "monday", "messages": CHAT}) + "\n"
    (folder / "chat.jsonl").write_text(chat, encoding="utf-8")
    (folder / "logs").mkdir()
    (folder / "logs" / "monday.jsonl").write_text(chat, encoding="utf-8")
    (folder / "rated.csv").write_text("id,score,rating\na,0.1,1\nb,0.5,3\nc,0.6,2\nd,0.9,5\n", encoding="utf-8")
    for name in ("dev.json", "test.json"):
        (folder / name).write_bytes(MINI.read_bytes())
    turns = [["thread_id", "author", "body"], *(["t", turn["role"], turn["content"]] for turn in CHAT)]
    _write_table(folder / "export.csv", turns, ",")
    _write_table(folder / "answers.tsv", [["history", "answer"], ["Where is the station?", "Straight on."]], "\t")
    dialogues = [json.loads(line) for line in MINI.read_text(encoding="utf-8").splitlines()]
    for name, part in (("train", dialogues[:48]), ("validation", dialogues[48:])):
        spoken = [" __eou__ ".join([*row["context"], row["positive_responses"][0]]) + " __eou__\n" for row in part]
        (folder / f"dialogues_{name}.txt").write_text("".join(spoken), encoding="utf-8")


def _write_table(path: Path, rows: list[list[str]], delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
