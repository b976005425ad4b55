"""An example for each command, with which its help ends, and the next command to run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import typer

from dialeval_plugin.terminal import say

EXAMPLES: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Examples by command."""


def add_examples(app: typer.Typer, *words: str) -> None:
    """Add the example to the help of each command of `app`, which is called by `words`."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__.replace("_", "-") if command.callback is not None else "")
        if (example := EXAMPLES.get(" ".join([*words, name]))) is not None:
            # Lines below a \b keep their breaks.
            command.epilog = f"\b\nExample:\n  {example}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, *words, *([group.name] if isinstance(group.name, str) else []))


_is_step = ContextVar("_is_step", default=False)


@contextmanager
def step() -> Iterator[None]:
    """Run commands as steps of another one, which prints the next command itself."""
    token = _is_step.set(True)
    try:
        yield
    finally:
        _is_step.reset(token)


def say_next(words: str, why: str) -> None:
    """Print the next command to run to stderr, and why."""
    if not _is_step.get():
        say(f"next: {words}  ({why})")
