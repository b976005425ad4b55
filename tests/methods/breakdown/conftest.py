"""What the user's own models are stays out of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    for variable in ("DIALEVAL_LANGUAGE_MODEL", "DIALEVAL_ODIN_MODEL", "DIALEVAL_BACKGROUND_MODEL"):
        monkeypatch.delenv(variable, raising=False)
