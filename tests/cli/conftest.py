from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last model that was trained is a test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
