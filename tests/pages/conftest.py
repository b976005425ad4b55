"""A score file as `dialeval score --with-text --keep` writes it, with hostile texts, ids and kept fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import write_rows
from tests.leaderboard_files import HOSTILE

META = {
    "schema_version": 1,
    "main": "general",
    "level": "turn",
    "orientation": "higher",
    "signature": "method:general|model:general@f9fc|level:turn",
    "left_out": {"system message": 3, "tool message": 12},
}
WORDS = ["Leeds", "a carrot", "ten days"]


def score_rows(n: int, *, text: bool = True) -> list[dict[str, Any]]:
    """`n` conversations of two responses; the later a conversation, the better; each seventh has one that is unscored."""
    rows = []
    for number in range(n):
        name = f"{HOSTILE}/{number}" if number == 3 else f"logs/monday.jsonl/{number}"
        for message in (2, 4):
            row: dict[str, Any] = {
                "id": f"{name}:{message}",
                "conversation": name,
                "message": message,
                "role": "bot" if number == 4 else "assistant",
                "source": "javascript:window.hacked=1" if number == 3 else f"logs/monday.jsonl:{number + 1}",
                "model": f"v{number % 2}",
                "tags": ["refund", HOSTILE] if number == 3 else ["travel"],
                "user": f"user {number} {'' if number != 3 else HOSTILE[:10]}",
                "__proto__": "p",
                HOSTILE: "q",
            }
            if text:
                said = HOSTILE if number == 3 else f"About {WORDS[number % 3]}, {number}?"
                row["preceding"] = [{"role": "user", "text": said}]
                row["text"] = HOSTILE if number == 3 else f"Answer {message} to {number}."
            if number % 7 == 6 and message == 4:
                row |= {"text": ""} if text else {}
                row |= {"general": None, "fit": None, "unscored": "empty_input", "detail": HOSTILE, "percentile": None}
            else:
                score = round((number + message / 8) / (n + 1), 4)
                row |= {"general": score, "fit": 1 - score, "explanation": f"because {number}", "percentile": 100 * score}
            rows.append(row)
    return rows


Writer = Callable[..., Path]


@pytest.fixture
def score_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    """Write rows, and `META` beside them, into the working folder, where the log that they name lies, too."""
    monkeypatch.chdir(tmp_path)

    def write(rows: list[dict[str, Any]], name: str = "scores.jsonl", **meta: Any) -> Path:
        return write_score_file(tmp_path, rows, name, **meta).relative_to(tmp_path)

    return write


def write_score_file(folder: Path, rows: list[dict[str, Any]], name: str = "scores.jsonl", **meta: Any) -> Path:
    """Write rows, what belongs to all of them, and the log that they were read from."""
    (folder / "logs").mkdir(exist_ok=True)
    write_rows(folder / "logs" / "monday.jsonl", [{}])
    (folder / f"{name}.meta.json").write_text(json.dumps({**META, **meta}), encoding="utf-8")
    return write_rows(folder / name, rows)
