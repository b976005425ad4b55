"""What a user says of an input, for every command that reads one; and `dialeval inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast, get_args

import typer

from dialeval_plugin.core.errors import unknown_name
from dialeval_plugin.core.options import pairs_from_text

if TYPE_CHECKING:
    from dialeval_plugin.conversations.reading import ReadingOptions
    from dialeval_plugin.conversations.record import Conversation

Turns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Which turns of a conversation are scored: assistant, all (but the first), last. "
        "Default assistant, and all where there is none."
    ),
]
Columns: TypeAlias = Annotated[
    str,
    typer.Option(
        help="What fields are called: context=NAME,response=NAME or conversation=NAME,speaker=NAME,text=NAME or messages=NAME."
    ),
]
LayoutName: TypeAlias = Annotated[str | None, typer.Option("--layout", help="Layout of the input, where it is not recognised.")]
BranchChoice: TypeAlias = Annotated[
    str | None, typer.Option("--branches", help="Of conversations that branch: shown (the last one) or all (each answer once).")
]
OrderChoice: TypeAlias = Annotated[
    str | None, typer.Option("--order", help="Whether messages were said as they are listed, or as their times say: time.")
]
Keep: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Field of messages, or of conversations, that scores have too; may be repeated.")
]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Refuse an input of which anything is left out.")]


def reading_options(
    turns: str | None = None,
    columns: str = "",
    layout: str | None = None,
    branches: str | None = None,
    order: str | None = None,
    keep: Sequence[str] | None = None,
    *,
    strict: bool = False,
) -> ReadingOptions:
    """Check what a user says of an input.

    Raises:
        InputError: there is no such choice, column or layout; the message names all.
    """
    from dialeval_plugin.conversations.layouts import find
    from dialeval_plugin.conversations.order import Branches, Order
    from dialeval_plugin.conversations.reading import COLUMNS, ReadingOptions
    from dialeval_plugin.conversations.record import check_choice

    for name, value, known in (("--branches", branches, get_args(Branches)), ("--order", order, get_args(Order))):
        if value not in (None, *known):
            raise unknown_name(f"{name}: there is no choice {value!r}", value, known)
    if layout is not None:
        find({}, layout)
    return ReadingOptions(
        choice=check_choice("--turns", turns),
        columns=pairs_from_text(filter(None, columns.split(",")), "--columns", dict.fromkeys(COLUMNS, str)),
        layout=layout,
        branches=cast("Branches | None", branches),
        order=cast("Order | None", order),
        keep=tuple(keep or ()),
        strict=strict,
    )


def option_words(options: ReadingOptions) -> list[str]:
    """Return the words of a command that say the same."""
    named = ",".join(f"{ours}={theirs}" for ours, theirs in options.columns.items())
    given = [("--turns", options.choice), ("--columns", named), ("--layout", options.layout), ("--branches", options.branches)]
    given += [("--order", options.order), *(("--keep", name) for name in options.keep)]
    return [word for name, value in given if value for word in (name, value)] + ["--strict"] * options.strict


def inspect(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="What `dialeval score` takes.")],
    turns: Turns = None,
    columns: Columns = "",
    layout: LayoutName = None,
    branches: BranchChoice = None,
    order: OrderChoice = None,
    strict: Strict = False,
) -> None:
    """Show how an input is read: its layout, who speaks, what is left out, and its first conversation as it will be scored.

    Nothing is scored, and no model is opened.
    """
    from dialeval_plugin.conversations.layouts import LAYOUTS
    from dialeval_plugin.conversations.record import Conversation
    from dialeval_plugin.corpora.scored_input import Source

    options = reading_options(turns, columns, layout, branches, order, strict=strict)
    found = Source(source, options)
    speakers: Counter[str] = Counter()
    first: Conversation | None = None
    n_responses = n_single = 0
    for one in found.conversations():
        if not isinstance(one, Conversation):
            n_single += 1
            continue
        speakers.update(turn.speaker or "nobody" for turn in one.turns)
        n_responses += len(one.responses())
        first = first or (one if one.responses() else None)
    about = {entry.name: f"{entry.name} ({entry.about})" for entry in LAYOUTS}
    for name, n in found.reading.layouts.items():
        typer.echo(f"layout: {about.get(name, name)}: {n}")
    if found.reading.n_conversations:
        typer.echo(f"conversations: {found.reading.n_conversations}, with {n_responses} responses to score")
        typer.echo(f"speakers: {', '.join(f'{name} ({n} turns)' for name, n in speakers.most_common(8))}")
    if n_single:
        typer.echo(f"responses with their contexts: {n_single}")
    typer.echo(found.remarks(), nl=False)
    if first is not None:
        typer.echo(_shown(first))
    if not n_responses + n_single:
        raise typer.Exit(code=1)


def _shown(conversation: Conversation) -> str:
    """The turns of a conversation, those that are scored marked by an arrow."""
    scored = set(conversation.responses())
    lines = [f"conversation {conversation.id!r} ({conversation.sources[0] if conversation.sources else 'given'}); > is scored:"]
    width = max(len(turn.speaker or "?") for turn in conversation.turns)
    for place, turn in enumerate(conversation.turns):
        text = " ".join(turn.text.split())
        mark = ">" if place in scored else " "
        lines.append(
            f"{mark} {conversation.numbers[place]:>3} {turn.speaker or '?':<{width}}  {text[:200]}{'...' * (len(text) > 200)}"
        )
    return "\n".join(lines)
