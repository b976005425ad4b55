"""The `dialeval` command. Exit codes: 0 ok, 1 a gate failed, 2 bad input, 3 something is missing, 130 interrupted."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from dialeval_plugin.core.errors import DialevalError, InputError
from dialeval_plugin.core.resources import importing, installed_distributions
from dialeval_plugin.terminal import LogHandler
from dialeval_plugin.version import __version__

from . import agreement, augment, data, demo, hosts, launch, leaderboard, models, score, show
from .options import Command, add_examples
from .results import bias, certify, compare, estimate, plot, report
from .train import main as train

_RESUMED = frozenset({"score", "launch", "augment", "train", "label"})
"""Commands that resume an interrupted run."""
_COMPARE = "Compare scores with human ratings"
_TRAIN = "Training, models and data"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

logger = logging.getLogger(__name__)


class _Commands(TyperGroup):
    """The commands in groups; Ctrl-C is reported, where typer ends silently."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        width = formatter.width - 6 - max(map(len, self.commands))
        for name in self.list_commands(ctx):
            command: Any = self.commands[name]
            panels.setdefault(command.rich_help_panel or "Commands", []).append((name, command.get_short_help_str(width)))
        for title, commands in panels.items():
            with formatter.section(title):
                formatter.write_dl(commands)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            is_resumed = ctx.invoked_subcommand in _RESUMED
            advice = "; the same command resumes from finished parts, if there are any" if is_resumed else ""
            sys.stderr.write(f"dialeval: interrupted{advice}\n")
            raise typer.Exit(code=130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # markup takes an extra's brackets out of the help
    context_settings={"max_content_width": 128},
)
_SETTINGS: dict[Callable[..., None], dict[str, Any]] = {
    compare.compare: {"cls": compare.OptionalNumber},
    agreement.meta_eval: {"cls": compare.OptionalNumber},
    hosts.lm_eval: {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}},
}
for panel, commands in {
    "Score responses and dialogues": (
        *(show.scorers, show.inspect, score.score, score.merge, launch.launch, score.accuracy),
        demo.demo,
    ),
    "Decide by scores": (compare.compare, report.report),
    _COMPARE: (estimate.estimate, estimate.label, agreement.meta_eval, certify.certify, bias.bias, agreement.rescore),
    _TRAIN: (augment.augment,),
    "Integration with lm-eval and evaluate": (
        *(hosts.lm_eval, hosts.rubric, hosts.enable, hosts.disable, hosts.status, hosts.validate),
        *(hosts.tasks_path, hosts.metrics_path),
    ),
}.items():
    for command in commands:
        app.command(**{"cls": Command, "rich_help_panel": panel, **_SETTINGS.get(command, {})})(command)
for panel, groups in {
    _COMPARE: {"leaderboard": leaderboard.app, "plot": plot.app},
    _TRAIN: {"models": models.app, "train": train.app, "data": data.app},
}.items():
    for name, group in groups.items():
        for registered in group.registered_commands:
            registered.cls = Command
        app.add_typer(group, name=name, rich_help_panel=panel)
add_examples(app)


def _show_version(*, is_given: bool) -> None:
    if is_given:
        typer.echo(f"dialeval {__version__}")
        if len(names := installed_distributions()) > 1:
            advice = f"Run `pip uninstall {' '.join(names)}`, then install one of them."
            typer.echo(f"{' and '.join(names)} are both installed, and have the same files. {advice}", err=True)
        raise typer.Exit


@app.callback()
def settings(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log progress to stderr.")] = False,
) -> None:
    """Evaluate open-domain dialogue: score conversations, compare scores with human ratings, train evaluators."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(message)s", handlers=[LogHandler()]
    )


def main() -> None:
    """Run the command; errors raised on purpose and those of the system are printed without a traceback."""
    _open_closed_streams()
    try:
        _check_words(sys.argv[1:])
        with importing("this command"):
            app()
    except DialevalError as error:
        _end(str(error), error.exit_code)
    except OSError as error:
        logger.info("the system's error", exc_info=True)
        if error.filename is not None:
            # `filename2` is the target of a copy.
            advice = " Make room, and repeat the command." if error.errno in _NO_ROOM else ""
            _end(f"{error.filename2 or error.filename}: {error.strerror}.{advice}", 2)
        if isinstance(error, FileNotFoundError):  # os.getcwd names none
            _end("the working folder is not there any more. Change to another one.", 2)
        if error.errno not in _NO_ROOM:
            raise
        # Else the interpreter would try to write the rest when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _end(f"the output cannot be written ({error.strerror}). Repeat the command when there is room.", 2)


def _end(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"dialeval: {message}\n")
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open the null device for closed standard streams, whose place the next file would take."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InputError(f"{word!r}: is not valid Unicode. Rename the file, or write the word in UTF-8.") from None
