"""`Conversation`: the type that every layout is read into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Origin, Turn
from dialeval_plugin.core.errors import InputError

from .roles import USER, answering

TurnChoice: TypeAlias = Literal["assistant", "all", "last"]
"""Turns that are responses to score: those of the assistant; all but the first; or the assistant's last one, which without a
known assistant is the last turn.
"""

Kept: TypeAlias = tuple[tuple[str, object], ...]
"""Names and values of fields to keep next to the score."""


def check_choice(where: str, choice: str | None) -> TurnChoice | None:
    """Return the user's choice of turns, or None; an InputError begins with `where` and lists the choices."""
    if choice not in (None, *get_args(TurnChoice)):
        raise InputError(f"{where}: there is no choice {choice!r}. Known are: {', '.join(get_args(TurnChoice))}.")
    return cast("TurnChoice | None", choice)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A logged conversation, and which of its turns are scored."""

    id: str
    turns: tuple[Turn, ...]
    numbers: tuple[int, ...]
    """The number of each turn's message in the log, from 1, including messages that are no turns."""
    choice: TurnChoice | None = None
    """None: the assistant's turns if the log has a user or an assistant, otherwise all but the first."""
    n_history: int = 0
    """Number of first turns that are only context: they were scored elsewhere, or are the request."""
    sources: tuple[str, ...] = ()
    """Location of each turn's message; () if unknown."""
    kept: tuple[Kept, ...] = ()
    """The kept fields of each turn; () if nothing is kept."""

    def examples(self) -> list[Example]:
        """Return an example for each turn to score, with the conversation's id, a colon and the turn's number as its id."""
        return [
            Example(f"{self.id}:{self.numbers[place]}", self.turns[:place], self.turns[place], origin=self._origin(place))
            for place in self.responses()
        ]

    def items(self, level: Level) -> list[Item]:
        """Return the input of a scorer of this level: the examples, or the conversation as one dialogue."""
        if level == "turn":
            return list(self.examples())
        if self.choice is not None:
            raise InputError("turns: chooses responses, and this scorer scores whole dialogues. Leave it out.")
        origin = Origin(self.id, None, next(iter(self.sources), None), next(iter(self.kept), ()))
        return [Dialogue(self.id, self.turns, origin=origin)]

    def responses(self) -> list[int]:
        """Return the positions of the turns to score."""
        answerer = answering(self.turns)
        has_roles = answerer is not None or any(turn.speaker == USER for turn in self.turns)
        if self.choice == "assistant" and not has_roles and self.turns:
            named = ", ".join(sorted({repr(turn.speaker) for turn in self.turns if turn.speaker is not None}))
            raise InputError(
                f"conversation {self.id!r}: has neither a user nor an assistant, only {named or 'turns of nobody'}. "
                "Choose the turns all or last, or call the chatbot 'assistant'."
            )
        places = list(range(max(1, self.n_history), len(self.turns)))
        if self.choice == "all" or (self.choice is None and not has_roles):
            return places
        if has_roles:
            places = [
                place
                for place in range(self.n_history, len(self.turns))
                if answerer is not None and self.turns[place].speaker == answerer
            ]
        return places[-1:] if self.choice == "last" else places

    def _origin(self, place: int) -> Origin:
        source = self.sources[place] if self.sources else None
        return Origin(self.id, self.numbers[place], source, self.kept[place] if self.kept else ())
