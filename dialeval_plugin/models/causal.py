"""Reading dialogues with a causal language model: layouts, windows, padding, and the probabilities in its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge
from torch import Tensor

from dialeval_plugin.core.errors import ModelLoadError

from .batching import padded
from .language_models import OpenedModel
from .opening import check_window
from .passes import Layout

FloatArray: TypeAlias = npt.NDArray[np.float64]

Window: TypeAlias = Annotated[int, Ge(8)]
"""Of a language model, in tokens."""
LONGEST_DEFAULT_WINDOW = 1024


def as_array(values: object) -> FloatArray:
    """A float64 array from a tensor's or a list's values."""
    return np.asarray(values, dtype=np.float64)


def layout_tokens(opened: OpenedModel, layout: Layout) -> tuple[list[int], list[int]]:
    """Return what every sequence begins with, and what every turn ends with.

    "separated" ends turns by the end-of-text token; only a model that has a beginning of its own, unlike GPT-2, gets it.
    "plain" begins with the beginning-of-text token, or with the end of text where there is none, and ends turns by nothing.
    """
    end, begin = opened.tokenizer.eos_token_id, opened.tokenizer.bos_token_id
    if end is None:
        raise ModelLoadError(f"{opened.folder}: the tokenizer has no end-of-text token. Choose a causal language model.")
    if layout == "plain":
        return [end if begin is None else begin], []
    return ([] if begin in (None, end) else [begin]), [end]


def padded_ids(opened: OpenedModel, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return rows of token ids as a tensor of shape (rows, longest row), on the model's device."""
    # Padding stands on the right, where a causal model does not look, so it needs no mask.
    return padded(rows, opened.pad, opened.device)[0]


def log_probabilities(logits: Tensor, targets: Sequence[Sequence[int]]) -> tuple[FloatArray, FloatArray]:
    """Return the log probability of each target and of the likeliest token in its place, both of shape (rows, places).

    Args:
        logits: of shape (rows, places, vocabulary); they are overwritten.
        targets: token ids of each row, from the first place on. What lies behind them means nothing.
    """
    # The logits are the largest array of a run: the softmax is taken in place, and its maximum is one of the two answers.
    places = logits.shape[1]
    ids = torch.tensor([[*row, *[0] * (places - len(row))] for row in targets], device=logits.device)
    chosen = logits.gather(-1, ids[..., None])[..., 0]
    highest = logits.amax(-1)
    total = logits.sub_(highest[..., None]).exp_().sum(-1).log_()
    return as_array((chosen - highest - total).cpu()), as_array(total.neg_().cpu())


def turn_pieces(
    opened: OpenedModel, dialogues: Sequence[Sequence[str]], end: Sequence[int], *, last_only: bool
) -> list[list[list[int]]]:
    """Tokenise each distinct text once; returns for each dialogue the ids of its turns, each followed by `end`.

    A turn of which the tokenizer leaves nothing is left out; where the last one alone is to be scored, its dialogue is.
    """
    texts = list(dict.fromkeys(text for dialogue in dialogues for text in dialogue))
    ids = dict(zip(texts, opened.token_ids(texts), strict=True))
    return [
        [] if last_only and not ids[dialogue[-1]] else [[*ids[text], *end] for text in dialogue if ids[text]]
        for dialogue in dialogues
    ]


def window(opened: OpenedModel, max_tokens: int | None, scorer: str) -> int:
    """Return the longest sequence to read: what the user asks for, else the model's, 1024 at most."""
    if max_tokens is None:
        return min(opened.max_positions or LONGEST_DEFAULT_WINDOW, LONGEST_DEFAULT_WINDOW)
    return check_window(scorer, max_tokens, opened.max_positions)


def check_causal(opened: OpenedModel) -> None:
    """Refuse a model whose answer for a token changes with a later token: masked language models open as causal ones, too."""
    first, second, *_ = (token for token in range(opened.pad + 3) if token != opened.pad)
    ids = torch.tensor([[first, second, second], [first, second, first]], device=opened.device)
    with torch.inference_mode():
        one, other = opened.model(input_ids=ids, use_cache=False).logits[:, :2]
    # Non-finite weights are not this check's concern: each row that they spoil is left unscored.
    if not torch.allclose(one, other, atol=1e-4, rtol=1e-4, equal_nan=True):
        raise ModelLoadError(
            f"{opened.folder}: is no causal language model, since it sees the tokens that it is asked about. "
            "Choose another model, or train this one with is_decoder=true in its config.json."
        )
