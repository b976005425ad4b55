"""Isolation of the tests from the user's own models."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_named_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("DIALEVAL_LANGUAGE_MODEL", "DIALEVAL_ODIN_MODEL", "DIALEVAL_BACKGROUND_MODEL"):
        monkeypatch.delenv(variable, raising=False)
