"""`dialeval validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def validate(
    tasks: Annotated[Path | None, typer.Option(help="Folder of lm-eval task files; this package's by default.")] = None,
    metrics: Annotated[Path | None, typer.Option(help="Folder of metric folders; this package's by default.")] = None,
) -> None:
    """Build every lm-eval task and load every metric; exit with 1 if one of them is wrong."""
    from dialeval_plugin.hosts.lm_eval import validation

    found = validation.validate(tasks, metrics)
    for name, kind, state, detail in found:
        typer.echo(f"{state:6} {kind:6} {name}" + (f": {detail}" if detail else ""))
    counts = {state: sum(result.state == state for result in found) for state in ("ok", "absent", "error")}
    typer.echo(", ".join(f"{number} {state}" for state, number in counts.items()))
    if counts["error"]:
        raise typer.Exit(code=1)
