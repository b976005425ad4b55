"""Which token sequences a language model reads: contexts, windows, and one pass for sequences that share a beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from dialeval_plugin.core.scores import Reason, Unscored

Context: TypeAlias = Literal["full", "pair"]
Layout: TypeAlias = Literal["separated", "plain"]

T = TypeVar("T")


class Window(NamedTuple):
    """A stretch of a dialogue's tokens that is read in one pass, and the turns that are scored in it."""

    start: int
    """First token."""
    end: int
    """One past the last token."""
    turns: tuple[int, ...]
    """Places of the turns that are scored, ascending; each stands in the window whole, with at least one token before it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens of one turn inside a pass."""

    start: int
    """At least 1: the first token is predicted from something."""
    end: int
    dialogue: int
    turn: int
    is_cut: bool
    """Whether tokens before the turn did not fit into the window."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What the model reads at once."""

    ids: tuple[int, ...]
    spans: tuple[Span, ...]


class Overlong(NamedTuple):
    """A turn that does not fit into the model's window, so that its dialogue has no score."""

    turn: int
    n_tokens: int


def full_windows(lengths: Sequence[int], room: int) -> list[Window] | Overlong:
    """Cover all turns but the first by windows in which each follows the turns before it.

    The first window holds the beginning of the dialogue, as much as fits. A turn that does not fit any more opens the next
    window, after half a window of the tokens before it, or what a longer turn leaves room for. Which window a turn is scored
    in depends on the turns up to it alone, so it has the same score whatever follows; the number of tokens that are read
    is linear in the dialogue's length. No turn's length is 0.

    Example:
        >>> full_windows([3, 3, 3, 3], room=6)
        [Window(start=0, end=6, turns=(1,)), Window(start=3, end=9, turns=(2,)), Window(start=6, end=12, turns=(3,))]
    """
    windows: list[Window] = []
    start, begin, scored = 0, 0, list[int]()
    for turn, length in enumerate(lengths):
        end = begin + length
        if turn and length >= room:
            return Overlong(turn, length)
        if turn and end - start > room:
            if scored:
                windows.append(Window(start, begin, tuple(scored)))
            start, scored = max(begin - room // 2, end - room), []
        if turn:
            scored.append(turn)
        begin = end
    return [*windows, Window(start, begin, tuple(scored))] if scored else windows


def pair_windows(lengths: Sequence[int], room: int) -> list[Window] | Overlong:
    """Give each turn but the first a window with the turn before it, of which the beginning is cut where it does not fit.

    Example:
        >>> pair_windows([9, 3, 2], room=6)
        [Window(start=6, end=12, turns=(1,)), Window(start=9, end=14, turns=(2,))]
    """
    windows = []
    begin = sum(lengths[:1])
    for turn in range(1, len(lengths)):
        end = begin + lengths[turn]
        if lengths[turn] >= room:
            return Overlong(turn, lengths[turn])
        windows.append(Window(max(begin - lengths[turn - 1], end - room), end, (turn,)))
        begin = end
    return windows


def dialogue_passes(
    dialogue: int, pieces: Sequence[Sequence[int]], prefix: Sequence[int], max_tokens: int, *, context: Context, last_only: bool
) -> list[Pass] | Overlong:
    """Return what the model has to read to score a dialogue's turns, or the last only.

    Args:
        dialogue: its number, which comes back in the spans.
        pieces: token ids of each turn, with what ends it in the layout; none is empty.
        prefix: what every pass begins with.
        max_tokens: longest pass.
        context: the turns before a turn that it follows: "full" for all, "pair" for the last one.
        last_only: score no other turn.
    """
    lengths = [len(piece) for piece in pieces]
    room = max_tokens - len(prefix)
    windows = full_windows(lengths, room) if context == "full" else pair_windows(lengths, room)
    if isinstance(windows, Overlong):
        return windows
    if last_only:
        windows = [window._replace(turns=window.turns[-1:]) for window in windows[-1:]]
    ids = [token for piece in pieces for token in piece]
    begins = [0]
    for length in lengths:
        begins.append(begins[-1] + length)
    passes = []
    for window in windows:
        shift = len(prefix) - window.start
        spans = []
        for turn in window.turns:
            is_cut = window.start > (0 if context == "full" else begins[turn - 1])
            spans.append(Span(begins[turn] + shift, begins[turn + 1] + shift, dialogue, turn, is_cut))
        passes.append(Pass((*prefix, *ids[window.start : window.end]), tuple(spans)))
    return passes


def too_long(overlong: Overlong, max_tokens: int) -> Unscored:
    """The reason why a dialogue with an overlong turn has no score."""
    problem = f"turn {overlong.turn} has {overlong.n_tokens} tokens, the model's window {max_tokens}"
    return Unscored(Reason.CONTEXT_TOO_LONG, problem)


def all_passes(
    dialogues: Sequence[Sequence[Sequence[int]]], prefix: Sequence[int], max_tokens: int, *, context: Context, last_only: bool
) -> tuple[list[Pass], dict[int, Unscored]]:
    """Return `dialogue_passes` of several dialogues, and by its number why a dialogue has none."""
    passes: list[Pass] = []
    refused: dict[int, Unscored] = {}
    for number, pieces in enumerate(dialogues):
        found = dialogue_passes(number, pieces, prefix, max_tokens, context=context, last_only=last_only)
        if isinstance(found, Overlong):
            refused[number] = too_long(found, max_tokens)
        else:
            passes += found
    return passes, refused


def share_beginnings(passes: Sequence[Pass]) -> list[Pass]:
    """Merge each pass whose ids begin another one into that one: a causal model gives both the same answers.

    Example:
        >>> short, long = Pass((1, 2), ()), Pass((1, 2, 3), ())
        >>> [merged.ids for merged in share_beginnings([long, short])]
        [(1, 2, 3)]
    """
    merged: list[Pass] = []
    # Sorted, a sequence that begins others stands right before one of them; from the end on, each meets its longest.
    for current in sorted(passes, key=lambda one: one.ids, reverse=True):
        if merged and merged[-1].ids[: len(current.ids)] == current.ids:
            merged[-1] = Pass(merged[-1].ids, (*merged[-1].spans, *current.spans))
        else:
            merged.append(current)
    return merged
