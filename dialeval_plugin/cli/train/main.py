"""`dialeval train` and its commands."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import typer

from dialeval_plugin.core.resources import optional

from .assistant import assistant
from .causalscore import independence
from .general import acceptance, general, mixing
from .language_model import breakdown, language_model
from .proxy import proxy
from .reconstruction import reconstruction
from .slm import slm

app = typer.Typer(help="Train evaluators.", no_args_is_help=True)
app.command("language-model")(language_model)
app.command()(breakdown)
app.command()(general)
app.command()(assistant)
app.command()(acceptance)
app.command()(mixing)
app.command()(proxy)
app.command()(reconstruction)
app.command()(slm)
app.command()(independence)


@app.callback()
def models() -> None:
    """Train a small model on your own dialogues. A run that was killed resumes with the same command."""
    if importlib.util.find_spec("accelerate") is None:
        optional("accelerate", "training")  # every training needs all that this one's extra brings
    if os.environ.get("RANK", "0") != "0":
        # Of several processes that train together the first one prints.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
