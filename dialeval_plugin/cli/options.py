"""What commands share: options and the check of their values, and the examples with which each command's help ends."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast, get_args

import typer
from typer.core import TyperCommand

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import check_name
from dialeval_plugin.core.registry import option_kinds, pairs_from_text, scorer_factory, scorer_names
from dialeval_plugin.models.folders import COMMERCIAL
from dialeval_plugin.terminal import say

if TYPE_CHECKING:
    from dialeval_plugin.conversations.record import ReadingOptions


_WRITTEN = ("output", "plot", "disagreements", "by_conversation", "record")
"""Options whose files a command writes; it may read those of all others."""


class Command(TyperCommand):
    """Command that refuses, before any work, an empty name of a file, and to write to a file that it reads."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        typed = [one.partition("=")[2] if one.startswith("--") and "=" in one else one for one in args]
        rest = super().parse_args(ctx, args)
        paths = [one for value in ctx.params.values() for one in (value if isinstance(value, (list, tuple)) else [value])]
        # A path of "" is the working folder.
        if "" in typed and paths.count(Path()) > sum(bool(one) and Path(one) == Path() for one in typed):
            check_name("")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        files = [
            (name, str(one))
            for name, value in ctx.params.items()
            for given in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(given, (str, Path))
            for one in {given, str(given).rpartition("=")[2]}
            if os.path.isfile(one)  # noqa: PTH113 # Path.is_file fails for a long question
        ]
        for name, output in files:
            if name in _WRITTEN and any(Path(output).samefile(one) for other, one in files if other not in _WRITTEN):
                raise InputError(f"{output}: is the input. Choose another name for --{name.replace('_', '-')}.")
        return super().invoke(ctx)


DEFAULT_SCORER = "general"


def check_share(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option that is a share, None without one; the range of a `typer.Option` accepts nan."""
    if value is not None and not 0 <= value <= 1:
        raise InputError(f"{parameter.opts[0]} is {value}. Give a number from 0 to 1.")
    return value


def _allow_open_models_only(*, is_given: bool) -> None:
    if is_given:
        os.environ[COMMERCIAL] = "1"  # processes that this one starts inherit it


Commercial: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--commercial",
        callback=_allow_open_models_only,
        help=f"Use only bundled weights whose licence allows commercial use; the same as {COMMERCIAL}=1.",
    ),
]
ScorerNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Name of the scorer; auto chooses general or assistant for each conversation. Default: general.",
        autocompletion=scorer_names,
    ),
]
ScorerOptions: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the scorer; may be repeated.")
]
Rubric: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Question that the llm answers about each response, or a file of questions (.yaml, .json)."),
]
RubricScale: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Answers to the question: pass-fail, yes-no, 1-5, or words from worst to best, as bad,ok,good."),
]
Llm: TypeAlias = Annotated[
    str | None, typer.Option(help="lm-eval model to use as the judge: hf, vllm, local-chat-completions, ...")
]
LlmArgs: TypeAlias = Annotated[str, typer.Option(help="Arguments of the model in lm-eval's form: pretrained=...")]
Answers: TypeAlias = Annotated[
    Path | None, typer.Option(help="File in which the llm's answers are cached. Default: a file in the user's cache folder.")
]
NoAnswers: TypeAlias = Annotated[bool, typer.Option("--no-answers", help="Do not cache the llm's answers.")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Print how much the llm would be asked, and ask nothing.")]
MaxUnscored: TypeAlias = Annotated[
    float, typer.Option(callback=check_share, help="Exit with 1 if a larger share has no score.")
]
WithText: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--with-text",
        help="Include the text of the turns with the scores; in a .csv, a spreadsheet may take texts for formulas.",
    ),
]


def refuse(options: Mapping[str, object], problem: str) -> None:
    """Raise an InputError for the first option that has a value."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"{option}: {problem}")


def scorer_options(name: str, pairs: Sequence[str] | None, **more: Any) -> dict[str, Any]:
    """Convert the values of `--option` for the scorer `name`; `more` are annotations of options that it lacks."""
    kinds = option_kinds(scorer_factory(name))
    return pairs_from_text(pairs or (), "--option", kinds and {**kinds, **more})


def with_named(options: Mapping[str, Any], **named: Any) -> dict[str, Any]:
    """Add to the values of `--option` those that have options of their own, if given; InputError: one is given in both ways."""
    given = {name: value for name, value in named.items() if value is not None}
    if twice := next((name for name in given if name in options), None):
        raise InputError(f"--option {twice}: is given a second time, by an option of its own. Leave one of them out.")
    return {**options, **given}


def chosen_scorer(names: Sequence[str] | None, rubric: str | None, rubric_scale: str | None) -> str:
    """Return the one scorer that is meant: rubric where there is one, general where none is named."""
    names = names or ()
    if rubric is None and rubric_scale is not None:
        raise InputError("--rubric-scale: needs a question. Add --rubric, or leave it out.")
    if rubric is not None:
        if others := [name for name in names if name != "rubric"]:
            raise InputError(f"--rubric: cannot be combined with --scorer {others[0]}. Leave one of them out.")
        return "rubric"
    if len(names) > 1:
        raise InputError(
            f"--scorer: is given {len(names)} times, {', '.join(names)}. Run the command once for each, with its own "
            "--output, or name auto, which chooses general or assistant for each conversation."
        )
    return names[0] if names else DEFAULT_SCORER


def check_judge(llm: str | None, *, dry_run: bool, answers: Path | None = None, no_answers: bool = False) -> None:
    """Refuse options of a language model that contradict each other."""
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: cannot be combined. Leave one of them out.")
    if dry_run and llm is None:
        raise InputError("--dry-run: there is no language model to ask. Name one with --llm.")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading an input."""

    turns: Annotated[
        str | None,
        typer.Option(
            help="Turns of a conversation to score: assistant, all (but the first), or last. "
            "Default: assistant, or all where there is no assistant."
        ),
    ] = None
    columns: Annotated[
        str,
        typer.Option(
            help="Names of fields: context=NAME,response=NAME or conversation=NAME,speaker=NAME,text=NAME or messages=NAME."
        ),
    ] = ""
    layout: Annotated[str | None, typer.Option(help="Layout of the input, where it is not recognised.")] = None
    branches: Annotated[
        str | None, typer.Option(help="Branch of conversations that have several: shown (the last one) or all (each answer).")
    ] = None
    order: Annotated[str | None, typer.Option(help="Order of messages: listed, or time (by their time stamps).")] = None
    strict: Annotated[bool, typer.Option("--strict", help="Fail where any part of the input would be left out.")] = False
    keep: Annotated[
        list[str] | None, typer.Option(help="Field of messages or conversations to keep with the scores; may be repeated.")
    ] = None

    def options(self) -> ReadingOptions:
        """Check the options.

        Raises:
            InputError: there is no such choice, column or layout; the message names all.
        """
        from dialeval_plugin.conversations.layouts import find
        from dialeval_plugin.conversations.order import Branches, Order
        from dialeval_plugin.conversations.reading import COLUMNS
        from dialeval_plugin.conversations.record import ReadingOptions, check_choice

        choices = ("--branches", self.branches, get_args(Branches)), ("--order", self.order, get_args(Order))
        for name, value, known in choices:
            if value not in (None, *known):
                raise unknown_name(f"{name}: there is no choice {value!r}", value, known)
        if self.layout is not None:
            find({}, self.layout)
        return ReadingOptions(
            choice=check_choice("--turns", self.turns),
            columns=pairs_from_text(filter(None, self.columns.split(",")), "--columns", dict.fromkeys(COLUMNS, str)),
            layout=self.layout,
            branches=cast("Branches | None", self.branches),
            order=cast("Order | None", self.order),
            keep=tuple(self.keep or ()),
            strict=self.strict,
        )

    def words(self) -> list[str]:
        """Return the options as words of a command."""
        pairs = [("--turns", self.turns), ("--columns", self.columns), ("--layout", self.layout), ("--branches", self.branches)]
        pairs += [("--order", self.order), *(("--keep", name) for name in self.keep or ())]
        return [word for name, value in pairs if value for word in (name, value)] + ["--strict"] * self.strict


def takes(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of dataclasses, each of which it gets as the parameter of that name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        shared = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

        @functools.wraps(command)
        def run(**values: Any) -> None:
            made = {name: group(**{one: values.pop(one) for one in shared[name]}) for name, group in groups.items()}
            command(**values, **made)

        parameters = [one for name, one in own.parameters.items() if name not in groups]
        parameters += [one for group in shared.values() for one in group.values()]
        keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
        run.__signature__ = own.replace(parameters=keyword_only)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


EXAMPLES: dict[str, str] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
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
