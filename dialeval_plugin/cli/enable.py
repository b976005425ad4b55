"""`dialeval enable`, `disable` and `status`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dialeval_plugin.hosts.enable import Change


def enable() -> None:
    """Make plain `lm_eval` and `evaluate.load` know this package's tasks, models and metrics, in this Python environment."""
    from dialeval_plugin.hosts import enable as hosts

    _show(hosts.enable())
    typer.echo("Python processes that start from now on know dialeval's names. `dialeval disable` takes this back.")


def disable() -> None:
    """Take back what `dialeval enable` did."""
    from dialeval_plugin.hosts import enable as hosts

    _show(hosts.disable())


def status() -> None:
    """Say whether `dialeval enable` is in force here, and whether it works."""
    from dialeval_plugin.hosts import enable as hosts

    found = hosts.status()
    typer.echo(f"{found.state} in {found.folder}")
    if found.state == "outdated":
        typer.echo("The files are another version's. Type `dialeval enable` to renew them.")
    for problem in found.problems:
        typer.echo(f"problem: {problem}")
    if found.problems:
        raise typer.Exit(code=1)


def _show(changes: Iterable[Change]) -> None:
    for change in changes:
        typer.echo(f"{change.action}: {change.path}")
