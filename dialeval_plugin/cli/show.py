"""`dialeval scorers` and `dialeval inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval_plugin.terminal import print_entries

from . import options as shared

if TYPE_CHECKING:
    from dialeval_plugin.conversations.record import Conversation


def scorers(
    name: Annotated[str | None, typer.Argument(help="Scorer to show with its options.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the scorers with their level, range and requirements, or show one with its options."""
    from dialeval_plugin.core.files import to_json
    from dialeval_plugin.reports.scorer_cards import option_cards, scorer_card, scorer_cards

    if name is None:
        cards = scorer_cards()
        if json:
            typer.echo(to_json([asdict(card) for card in cards], indent=2))
            return
        print_entries(("scorer", "what it does"), [(card.name, card.lines()) for card in cards])
        return
    from dialeval_plugin.core.registry import scorer_factory
    from dialeval_plugin.hosts.judges import JudgeOptions

    card, options = scorer_card(name), option_cards(scorer_factory(name))
    if options is not None and "llm" in [option.name for option in options]:
        options = [option for option in options if option.name != "llm"] + (option_cards(JudgeOptions) or [])
    if json:
        typer.echo(to_json({**asdict(card), "options": None if options is None else list(map(asdict, options))}, indent=2))
        return
    about = [f"    {line}" for line in card.lines()]
    lines = [name, *about, "    takes any option" if options is None else "options:" if options else "    has no options"]
    typer.echo("\n".join([*lines, *(line for option in options or () for line in option.lines())]))


@shared.takes(reading=shared.Reading)
def inspect(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="Input, as for `dialeval score`.")], reading: shared.Reading
) -> None:
    """Show how an input is read: its layout, its speakers, what is left out, and its first conversation.

    Nothing is scored.
    """
    from dialeval_plugin.conversations.layouts import LAYOUTS
    from dialeval_plugin.conversations.record import Conversation
    from dialeval_plugin.core.dialogue import Dialogue
    from dialeval_plugin.corpora.scored_input import Source

    read = Source(source, reading.options())
    speakers: Counter[str] = Counter()
    heard: set[int] = set()
    first: Conversation | None = None
    n_responses = n_single = n_dialogues = 0
    for one in read.conversations():
        if not isinstance(one, Conversation):
            n_dialogues += isinstance(one, Dialogue)
            n_single += not isinstance(one, Dialogue)
            continue
        said = hash(one.continues or one.id)
        for turn in one.turns:  # a turn that a later row, or another branch, repeats counts once
            said = hash((said, turn.speaker, turn.text))
            speakers[turn.speaker or "nobody"] += said not in heard
            heard.add(said)
        n_responses += len(one.responses())
        first = first or (one if one.responses() else None)
    about = {entry.name: f"{entry.name} ({entry.about})" for entry in LAYOUTS}
    for name, n in read.reading.layouts.items():
        typer.echo(f"layout: {about.get(name, name)}: {n}")
    if read.reading.n_conversations:
        typer.echo(f"conversations: {read.reading.n_conversations}, with {n_responses} responses to score")
        typer.echo(f"speakers: {', '.join(f'{name} ({n} turns)' for name, n in speakers.most_common(8))}")
    if n_single:
        typer.echo(f"responses with their contexts: {n_single}")
    if n_dialogues:
        typer.echo(f"whole dialogues: {n_dialogues}")
    typer.echo(read.reading.remarks(), nl=False)
    if first is not None:
        typer.echo(_turns_text(first))
    if not n_responses + n_single + n_dialogues:
        if not read.reading.n_conversations:
            typer.echo("conversations: none")
        raise typer.Exit(code=1)


def _turns_text(conversation: Conversation) -> str:
    """Return the turns of a conversation, those to score marked by an arrow."""
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
