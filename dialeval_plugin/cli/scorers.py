"""`dialeval scorers`: the scorers, their requirements and options."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from dialeval_plugin.terminal.tables import print_entries


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
