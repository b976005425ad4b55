"""Help and version of the command line. TRIAL §1: help swallowed `[offline]`, `--version` and `python -m` were unknown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer

from dialeval_plugin.cli.main import app
from dialeval_plugin.cli.options import EXAMPLES
from dialeval_plugin.version import __version__
from tests import smoke
from tests.cli.running import run


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it."""
    yield words, command
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, (*words, name))


COMMANDS = {
    " ".join(words): command
    for words, command in commands(typer.main.get_command(app))
    if words != ("lm-eval",)  # its help is the host's
}


@pytest.mark.parametrize("words", COMMANDS)
def test_help_shows_every_text_as_it_is_written(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = COMMANDS[words]
    monkeypatch.setenv("COLUMNS", "200")
    done = run(*words.split(), "--help")
    assert done.exit_code == 0
    texts = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
    shown = squeezed(done.stdout)
    assert [text for text in texts if text and squeezed(text) not in shown] == []


@pytest.mark.long
def test_every_command_ends_its_help_with_an_example() -> None:
    plain = {words for words, command in COMMANDS.items() if not hasattr(command, "commands")}
    assert plain == set(EXAMPLES)
    for words, example in EXAMPLES.items():
        assert run(*words.split(), "--help").stdout.endswith(f"\n  Example:\n    {example}\n"), words
        assert f"dialeval {words}" in example


@pytest.mark.parametrize("example", [example for example in EXAMPLES.values() if "$(" not in example])
def test_an_example_is_understood(example: str) -> None:
    program, *rest = shlex.split(example)
    command: Any = COMMANDS[""]
    context = command.make_context(program, rest)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    assert not context.args


def test_commands_are_listed_below_what_they_are_for() -> None:
    shown = run("--help").stdout
    titles = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert titles == [
        "Options",
        "Score responses and dialogues",
        "Decide by scores",
        "Compare scores with human ratings",
        "Training, models and data",
        "Integration with lm-eval and evaluate",
    ]
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", shown, re.MULTILINE)
    assert sorted(listed) == sorted({words.split()[0] for words in [*COMMANDS, "lm-eval"] if words})


@pytest.mark.parametrize(
    ("words", "meant"),
    [(("augmnt",), "'augment'"), (("data", "fetchh"), "'fetch'"), (("score", "--scorr", "x"), "--scorer")],
)
def test_a_misspelt_command_or_option_is_answered_with_the_nearest(words: tuple[str, ...], meant: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert meant in done.stderr


def squeezed(text: str) -> str:
    """The text without blanks and without the frames of a table."""
    return re.sub(r"[\s│]", "", text)


def test_the_commands_are_those_that_an_installation_is_tried_with() -> None:
    assert {*COMMANDS, "lm-eval"} == set(smoke.COMMANDS)


@pytest.mark.parametrize(
    ("line", "word", "completed"),
    [
        ("dialeval sc", 1, "scorers\nscore\n"),
        ("dialeval score --by", 2, "--by-conversation\n"),
        ("dialeval launch --scorer ch", 3, "chrf\n"),
    ],
)
def test_the_shell_completes_commands_options_and_scorers(line: str, word: int, completed: str) -> None:
    asked = {"_DIALEVAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'dialeval'; from dialeval_plugin.cli.entry import main; main()"],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (completed, "")


def test_the_package_can_be_run_as_a_module_and_shows_its_version() -> None:
    done = subprocess.run([sys.executable, "-m", "dialeval_plugin", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dialeval {__version__}\n", "")
