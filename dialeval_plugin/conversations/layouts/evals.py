"""Logs of evaluation harnesses: their samples, with the prompt and what the model answered."""

from __future__ import annotations

from .layout import Layout

LAYOUTS: list[Layout] = []
