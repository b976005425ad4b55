"""Table of conversations with the scores of their responses, the worst conversation first."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, write_text
from dialeval_plugin.core.scores import Scores

from .tables import Format, Table, TableRow, named_column

N_SHOWN = 20
"""Number of conversations shown in the terminal."""

_FORMATS: dict[str, Format] = {".csv": "csv", ".json": "json"}


class ConversationTable:
    """Table with one row per conversation, built as scores arrive: mean, worst turn, and the score of that turn.

    Rows are sorted by mean, worst first, then by worst turn, then in reading order; conversations without a score come last.
    All responses of a conversation must arrive together. Without `path`, only the worst `N_SHOWN` rows are kept.

    Args:
        path: file to write; its name ends in .csv or .json.
        input: file or URL that is scored.

    Raises:
        InputError: `path` has another suffix, or is the input.
    """

    def __init__(self, path: Path | None = None, input: str = "") -> None:
        if path is not None and path.suffix not in _FORMATS:
            raise InputError(f"{path}: is neither CSV nor JSON by its name. Give a name that ends in {' or '.join(_FORMATS)}.")
        if path is not None:
            check_output(path, input, "the table of the conversations")
        self.path, self._settings = path, dict[str, str]()
        self._rows: list[tuple[tuple[bool, float, float, int], TableRow]] = []
        self._n, self._id = 0, ""
        self._turns: list[tuple[int, float | None]] = []
        self._sign, self._has_others = 1, False

    def check(self, item: Item | None) -> None:
        """Raise InputError if a file is wanted and the item is not a turn of a conversation."""
        is_turn = item is not None and item.origin is not None and item.origin.message is not None
        if self.path is not None and not is_turn:
            raise InputError(f"{self.path}: what is scored are no turns of conversations. Leave --by-conversation out.")

    def add(self, scores: Scores) -> None:
        """Add the next scores; raises as `check`."""
        self._settings = {"main": scores.main, "orientation": scores.orientation, "signature": str(scores.signature)}
        self._sign = 1 if scores.orientation == "higher" else -1
        for item, value in zip(scores.items, scores.values, strict=True):
            self.check(item)
            if item.origin is None or item.origin.message is None:
                self._has_others = True
                continue
            if item.origin.conversation != self._id:
                self._finish()
                self._id = item.origin.conversation
            self._turns.append((item.origin.message, value))

    def _finish(self) -> None:
        scored = [(value, number) for number, value in self._turns if value is not None]
        if self._turns:
            row: TableRow = {"conversation": self._id, "n_turns": len(self._turns), "n_scored": len(scored)}
            key = (True, 0.0, 0.0, self._n)
            mean, worst, number = None, None, None
            if scored:
                mean = sum(value for value, _ in scored) / len(scored)
                worst, number = min(scored, key=lambda one: self._sign * one[0])
                key = (False, self._sign * mean, self._sign * worst, self._n)
            self._rows.append((key, {**row, "mean": mean, "worst_turn": number, "worst_score": worst}))
            self._n += 1
        if self.path is None and len(self._rows) > 100 * N_SHOWN:
            self._rows = sorted(self._rows, key=lambda one: one[0])[:N_SHOWN]
        self._turns = []

    def report(self) -> Table | None:
        """Write all rows to the file, and return the table of the worst ones; None for a single conversation or other items."""
        self._finish()
        rows = [row for _, row in sorted(self._rows, key=lambda one: one[0])]
        figures = [named_column(name, 0) for name in ("n_turns", "n_scored")]
        figures += [named_column("mean"), named_column("worst_turn", 0), named_column("worst_score")]
        columns = [named_column("conversation", is_number=False), *figures]
        if self.path is not None:
            write_text(self.path, Table(rows, columns, settings=self._settings).render(_FORMATS[self.path.suffix]))
        if self._n < 2 or self._has_others:
            return None
        n_more = self._n - N_SHOWN
        notes = [f"{n_more} more conversations: --by-conversation FILE.csv has all."] if n_more > 0 else []
        return Table(rows[:N_SHOWN], columns, notes)
