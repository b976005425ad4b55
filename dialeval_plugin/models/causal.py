"""Reading of dialogues with a causal language model: layouts, windows, shared prefixes, and log probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored

from .language_models import OpenedModel, check_window
from .tensors import padded_tensors
from .texts import length_batches

MaxTokens: TypeAlias = Annotated[int, Ge(8)]
"""Window of a language model, in tokens."""
LONGEST_DEFAULT_WINDOW = 1024

Context: TypeAlias = Literal["full", "pair"]
Layout: TypeAlias = Literal["separated", "plain"]


class Window(NamedTuple):
    """A section of a dialogue's tokens that is read in one pass, and the turns scored in it."""

    start: int
    """First token."""
    end: int
    """One past the last token."""
    turns: tuple[int, ...]
    """Indices of the scored turns, ascending; the window has each whole turn and at least one token before it."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens of one turn inside a pass."""

    start: int
    """First token, at least 1, so that it has a preceding token."""
    end: int
    dialogue: int
    turn: int
    is_cut: bool
    """Whether tokens before the turn were left out because the window was too short."""


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """Token ids of one forward pass, and the turns scored in it."""

    ids: tuple[int, ...]
    spans: tuple[TokenSpan, ...]


class TurnTooLong(NamedTuple):
    """A turn that is longer than the model's window, so that its dialogue has no score."""

    turn: int
    n_tokens: int


def full_windows(lengths: Sequence[int], room: int) -> list[Window] | TurnTooLong:
    """Cover all turns but the first by windows in which each follows the turns before it.

    The first window has as much of the dialogue's beginning as fits. A turn that no longer fits opens the next window, after
    half a window of preceding tokens, or fewer if the turn is longer. A turn's window depends only on the turns up to it, and
    so its score does not depend on later turns; the number of tokens read is linear in the dialogue's length. Every length is
    positive.

    Example:
        >>> full_windows([3, 3, 3, 3], room=6)
        [Window(start=0, end=6, turns=(1,)), Window(start=3, end=9, turns=(2,)), Window(start=6, end=12, turns=(3,))]
    """
    windows: list[Window] = []
    start, begin, scored = 0, 0, list[int]()
    for turn, length in enumerate(lengths):
        end = begin + length
        if turn and length >= room:
            return TurnTooLong(turn, length)
        if turn and end - start > room:
            if scored:
                windows.append(Window(start, begin, tuple(scored)))
            start, scored = max(begin - room // 2, end - room), []
        if turn:
            scored.append(turn)
        begin = end
    return [*windows, Window(start, begin, tuple(scored))] if scored else windows


def pair_windows(lengths: Sequence[int], room: int) -> list[Window] | TurnTooLong:
    """Give each turn but the first a window with the turn before it, whose beginning is left out if both do not fit.

    Example:
        >>> pair_windows([9, 3, 2], room=6)
        [Window(start=6, end=12, turns=(1,)), Window(start=9, end=14, turns=(2,))]
    """
    windows = []
    begin = sum(lengths[:1])
    for turn in range(1, len(lengths)):
        end = begin + lengths[turn]
        if lengths[turn] >= room:
            return TurnTooLong(turn, lengths[turn])
        windows.append(Window(max(begin - lengths[turn - 1], end - room), end, (turn,)))
        begin = end
    return windows


def dialogue_passes(
    dialogue: int, pieces: Sequence[Sequence[int]], prefix: Sequence[int], max_tokens: int, *, context: Context, last_only: bool
) -> list[ForwardPass] | TurnTooLong:
    """Return the forward passes that score a dialogue's turns, or only the last one.

    Args:
        dialogue: index of the dialogue, repeated in the spans.
        pieces: token ids of each turn, with the layout's end of a turn; none is empty.
        prefix: token ids at the beginning of every pass.
        max_tokens: longest pass.
        context: turns before a turn that are read: "full" for all, "pair" for the last one.
        last_only: score the last turn only.
    """
    lengths = [len(piece) for piece in pieces]
    room = max_tokens - len(prefix)
    windows = full_windows(lengths, room) if context == "full" else pair_windows(lengths, room)
    if isinstance(windows, TurnTooLong):
        return windows
    if last_only:
        windows = [window._replace(turns=window.turns[-1:]) for window in windows[-1:]]
    ids = [token for piece in pieces for token in piece]
    begins = [0, *accumulate(lengths)]
    passes = []
    for window in windows:
        shift = len(prefix) - window.start
        spans = []
        for turn in window.turns:
            is_cut = window.start > (0 if context == "full" else begins[turn - 1])
            spans.append(TokenSpan(begins[turn] + shift, begins[turn + 1] + shift, dialogue, turn, is_cut))
        passes.append(ForwardPass((*prefix, *ids[window.start : window.end]), tuple(spans)))
    return passes


def too_long(overlong: TurnTooLong, max_tokens: int) -> Unscored:
    """Return the reason why a dialogue with an overlong turn has no score."""
    problem = f"turn {overlong.turn} has {overlong.n_tokens} tokens, the model's window {max_tokens}"
    return Unscored(Reason.CONTEXT_TOO_LONG, problem)


def all_passes(
    dialogues: Sequence[Sequence[Sequence[int]]], prefix: Sequence[int], max_tokens: int, *, context: Context, last_only: bool
) -> tuple[list[ForwardPass], dict[int, Unscored]]:
    """Return the `dialogue_passes` of several dialogues, and the reason by index for each dialogue without a score."""
    passes: list[ForwardPass] = []
    refused: dict[int, Unscored] = {}
    for number, pieces in enumerate(dialogues):
        passes_of_dialogue = dialogue_passes(number, pieces, prefix, max_tokens, context=context, last_only=last_only)
        if isinstance(passes_of_dialogue, TurnTooLong):
            refused[number] = too_long(passes_of_dialogue, max_tokens)
        else:
            passes += passes_of_dialogue
    return passes, refused


def share_beginnings(passes: Sequence[ForwardPass]) -> list[ForwardPass]:
    """Merge each pass into one that begins with the same ids, if there is one: a causal model gives both the same answers.

    Example:
        >>> short, long = ForwardPass((1, 2), ()), ForwardPass((1, 2, 3), ())
        >>> [merged.ids for merged in share_beginnings([long, short])]
        [(1, 2, 3)]
    """
    merged: list[ForwardPass] = []
    # In sorted order, a prefix comes directly before a longer pass; in reverse order, each meets the longest one first.
    for current in sorted(passes, key=lambda one: one.ids, reverse=True):
        if merged and merged[-1].ids[: len(current.ids)] == current.ids:
            merged[-1] = ForwardPass(merged[-1].ids, (*merged[-1].spans, *current.spans))
        else:
            merged.append(current)
    return merged


Answers = TypeVar("Answers")


def read_spans(
    opened: OpenedModel, passes: Sequence[ForwardPass], answer: Callable[[Sequence[Sequence[int]]], Answers]
) -> Iterator[tuple[TokenSpan, int, Answers]]:
    """Run `answer` on passes, with shared prefixes merged, in batches of about one length.

    Yields each span of the passes with the answers to its batch, and its row in them.
    """
    shared = share_beginnings(passes)
    for places in length_batches([len(one.ids) for one in shared], opened.batch_tokens):
        batch = [shared[place] for place in places]
        answers = answer([one.ids for one in batch])
        for row, one in enumerate(batch):
            for span in one.spans:
                yield span, row, answers


def as_array(values: object) -> FloatArray:
    """Return a float64 array of the values of a tensor or list."""
    return np.asarray(values, dtype=np.float64)


def layout_tokens(opened: OpenedModel, layout: Layout) -> tuple[list[int], list[int]]:
    """Return the ids at the beginning of every sequence, and at the end of every turn.

    "separated" ends turns with the end-of-text token, and begins with the beginning-of-text token if the model has a separate
    one (GPT-2 has not). "plain" begins with the beginning-of-text token, or else the end-of-text token, and adds no end of
    turn.
    """
    end, begin = opened.tokenizer.eos_token_id, opened.tokenizer.bos_token_id
    if end is None:
        raise ModelLoadError(f"{opened.folder}: the tokenizer has no end-of-text token. Choose a causal language model.")
    if layout == "plain":
        return [end if begin is None else begin], []
    return ([] if begin in (None, end) else [begin]), [end]


def padded_ids(opened: OpenedModel, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return rows of token ids as a tensor of shape (rows, longest row), on the model's device."""
    # Padding is on the right, where a causal model does not look, so that no mask is needed.
    return padded_tensors(rows, opened.pad, opened.device)[0]


def log_probabilities(logits: Tensor, targets: Sequence[Sequence[int]]) -> tuple[FloatArray, FloatArray]:
    """Return the log probability of each target and of the likeliest token in its place, both of shape (rows, places).

    Args:
        logits: of shape (rows, places, vocabulary); overwritten.
        targets: token ids of each row, from the first place on; the results beyond them are meaningless.
    """
    # The logits are the largest array of a run: the softmax is computed in place, and its maximum is one of the results.
    places = logits.shape[1]
    ids = torch.tensor([[*row, *[0] * (places - len(row))] for row in targets], device=logits.device)
    chosen = logits.gather(-1, ids[..., None])[..., 0]
    highest = logits.amax(-1)
    total = logits.sub_(highest[..., None]).exp_().sum(-1).log_()
    return as_array((chosen - highest - total).cpu()), as_array(total.neg_().cpu())


def turn_pieces(
    opened: OpenedModel, dialogues: Sequence[Sequence[str]], end: Sequence[int], *, last_only: bool
) -> list[list[list[int]]]:
    """Tokenise each distinct text once; return for each dialogue the ids of its turns, each followed by `end`.

    A turn without tokens is left out; if only last turns are scored, the whole dialogue is.
    """
    texts = list(dict.fromkeys(text for dialogue in dialogues for text in dialogue))
    ids = dict(zip(texts, opened.token_ids(texts), strict=True))
    return [
        [] if last_only and not ids[dialogue[-1]] else [[*ids[text], *end] for text in dialogue if ids[text]]
        for dialogue in dialogues
    ]


def window(opened: OpenedModel, max_tokens: int | None, scorer: str) -> int:
    """Return the longest sequence to read: the user's `max_tokens`, else the model's limit, at most 1024."""
    if max_tokens is None:
        return min(opened.max_positions or LONGEST_DEFAULT_WINDOW, LONGEST_DEFAULT_WINDOW)
    return check_window(scorer, max_tokens, opened.max_positions)


def check_causal(opened: OpenedModel) -> None:
    """Refuse a model whose output for a token depends on later tokens: masked language models can be opened as causal ones."""
    first, second, *_ = (token for token in range(opened.pad + 3) if token != opened.pad)
    ids = torch.tensor([[first, second, second], [first, second, first]], device=opened.device)
    with torch.inference_mode():
        one, other = opened.model(input_ids=ids, use_cache=False).logits[:, :2]
    # Non-finite weights are not checked here: rows that they affect are left unscored.
    if not torch.allclose(one, other, atol=1e-4, rtol=1e-4, equal_nan=True):
        raise ModelLoadError(
            f"{opened.folder}: is no causal language model, since it sees the tokens that it is asked about. "
            "Choose another model, or train this one with is_decoder=true in its config.json."
        )
