"""The scores of responses by the conversations that they are from, the worst conversation first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.dialogue import Level, Origin
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, write_text
from dialeval_plugin.core.scores import Scores

from .tables import Format, Table, TableRow, named_column

N_SHOWN = 20
"""Conversations that the terminal is shown."""

_FORMATS: dict[str, Format] = {".csv": "csv", ".json": "json"}


def conversation_rows(scores: Scores, places: Sequence[Origin]) -> list[TableRow]:
    """Return a row a conversation: its mean, and its worst turn with the turn's score.

    Sorted by the mean, the worst first, then by the worst turn, then as they were read; those without a score stand last.

    Args:
        scores: of responses.
        places: where each stands, in their order.
    """
    sign = 1 if scores.orientation == "higher" else -1
    turns: dict[str, list[tuple[int, float | None]]] = {}
    for place, value in zip(places, scores.values, strict=True):
        turns.setdefault(place.conversation, []).append((place.message or 0, value))
    rows: list[tuple[tuple[bool, float, float], TableRow]] = []
    for conversation, own in turns.items():
        scored = [(value, number) for number, value in own if value is not None]
        row: TableRow = {"conversation": conversation, "n_turns": len(own), "n_scored": len(scored)}
        if not scored:
            rows.append(((True, 0.0, 0.0), {**row, "mean": None, "worst_turn": None, "worst_score": None}))
            continue
        mean = sum(value for value, _ in scored) / len(scored)
        worst, number = min(scored, key=lambda found: sign * found[0])
        rows.append(((False, sign * mean, sign * worst), {**row, "mean": mean, "worst_turn": number, "worst_score": worst}))
    return [row for _, row in sorted(rows, key=lambda found: found[0])]


def check_table_file(path: Path | None, input: Path, places: Sequence[Origin], level: Level) -> None:
    """Refuse a file for the table, before hours of work.

    Raises:
        InputError: it is no CSV or JSON by its name, is the input, or what is scored are no turns of conversations.
    """
    if path is None:
        return
    if path.suffix not in _FORMATS:
        raise InputError(f"{path}: cannot be told to be CSV or JSON. Give a name that ends in {' or '.join(_FORMATS)}.")
    if not places or level != "turn":
        raise InputError(f"{path}: what is scored are no turns of conversations. Leave --by-conversation out.")
    check_output(path, input, "the table of the conversations")


def report_conversations(scores: Scores, places: Sequence[Origin], path: Path | None = None) -> Table | None:
    """Return the table of the worst conversations, None of a single one, and write that of all to `path` where it is given.

    Args:
        scores: of responses, or of whole conversations, which need no table: each is a row already.
        places: as `conversation_rows`; [] of responses that are not of conversations.
        path: CSV or JSON, by its name; see `check_table_file`.
    """
    if not places or scores.level != "turn":
        return None
    rows = conversation_rows(scores, places)
    figures = [named_column(name, 0) for name in ("n_turns", "n_scored")]
    figures += [named_column("mean"), named_column("worst_turn", 0), named_column("worst_score")]
    columns = [named_column("conversation", is_number=False), *figures]
    if path is not None:
        settings = {"main": scores.main, "orientation": scores.orientation, "signature": str(scores.signature)}
        write_text(path, Table(rows, columns, settings=settings).render(_FORMATS[path.suffix]))
    if len(rows) == 1:
        return None
    n_more = len(rows) - N_SHOWN
    notes = [f"{n_more} more conversations: --by-conversation FILE.csv has all."] if n_more > 0 else []
    return Table(rows[:N_SHOWN], columns, notes)
