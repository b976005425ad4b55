"""Ids that no two rows of a source share, of any length."""

from __future__ import annotations

import sqlite3


class FirstPlaces:
    """Where each id of a source of any length stood first; on the disk, beyond some megabytes, and gone with this object."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE first (id TEXT PRIMARY KEY, place TEXT, n DEFAULT 1) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def other(self, id: str, place: str) -> str | None:
        """Return where an id stood first; None of a new one, which is kept with its place."""
        if self._database.execute("INSERT OR IGNORE INTO first (id, place) VALUES (?, ?)", (id, place)).rowcount:
            return None
        return str(self._database.execute("SELECT place FROM first WHERE id = ?", (id,)).fetchone()[0])

    def unique(self, id: str, place: str) -> str:
        """Return the id, marked `#2`, `#3`, ... where an earlier one is the same, and keep it."""
        name = id
        while self.other(name, place) is not None:
            self._database.execute("UPDATE first SET n = n + 1 WHERE id = ?", (id,))
            (n,) = self._database.execute("SELECT n FROM first WHERE id = ?", (id,)).fetchone()
            name = f"{id}#{n}"
        return name
