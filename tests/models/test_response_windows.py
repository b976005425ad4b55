"""How long responses are parted, and what becomes of the parts' scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.methods.general.judging import GeneralConfig
from dialeval_plugin.methods.general.scorer import GeneralScorer
from dialeval_plugin.models.encoders import load_encoder
from dialeval_plugin.models.folders import PACKAGED_ENCODER
from dialeval_plugin.models.texts import ResponseParts, ResponseWindows, TextEncoder
from tests.refusals import refused
from tests.tiny.models import write_tiny_general

ROOM = 62
"""Tokens of 64, less two special ones."""
SENTENCES = ["Six is late, since caffeine stays in your body for hours.", "Try stopping after lunch!", "Would that be hard?"]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder(load_encoder(PACKAGED_ENCODER, device="cpu").tokenizer, "plain", 96, 64)


@given(n=st.integers(1, 60), long=st.integers(0, 200), n_windows=st.integers(2, 8))
def test_parts_hold_the_whole_text_in_its_order_up_to_what_is_counted_as_cut(
    encoder: TextEncoder, n: int, long: int, n_windows: int
) -> None:
    text = " ".join([*(SENTENCES[number % 3] for number in range(n)), " ".join(["plum"] * long)]).strip()
    (found,) = encoder.response_windows([text], n_windows)
    tokens = encoder.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    inner = [token for part in found.parts for token in part[1:-1]]
    assert inner == tokens[: len(inner)]
    assert found.n_cut == len(tokens) - len(inner)
    assert not found.n_cut or len(found.parts) == n_windows
    assert all(
        len(part) <= ROOM + 2 and part[0] == found.parts[0][0] and part[-1] == found.parts[0][-1] for part in found.parts
    )


@pytest.mark.parametrize(("text_format", "least"), [("plain", 3), ("doubled", 5)])
def test_a_window_without_room_for_a_token_is_refused(encoder: TextEncoder, text_format: Any, least: int) -> None:
    """A context of one token was read whole."""
    one = TextEncoder(encoder.tokenizer, text_format, least, least)
    assert len(one.contexts([["a long walk"]])[0].ids) == least
    assert len(one.responses(["a long walk"])[0]) == least
    for windows in ((least - 1, 64), (96, least - 1)):
        with refused(f"window: {least - 1} tokens have no room for a token of a text. Give {least} or more."):
            TextEncoder(encoder.tokenizer, text_format, *windows)


def test_a_long_text_is_parted_between_its_sentences(encoder: TextEncoder) -> None:
    (found,) = encoder.response_windows([" ".join(SENTENCES * 5)], 8)
    assert len(found.parts) == 3
    ends = {encoder.tokenizer.convert_ids_to_tokens(part[-2]) for part in found.parts}
    assert ends <= {".", "!", "?"}


def test_of_a_text_of_too_many_parts_the_end_may_be_kept(encoder: TextEncoder) -> None:
    text = " ".join(SENTENCES * 9)
    (whole,), (first,), (both,) = (
        encoder.response_windows([text], n_windows, keep_end=keep_end)
        for n_windows, keep_end in ((9, False), (3, False), (3, True))
    )
    assert len(whole.parts) == 5
    assert first.parts == whole.parts[:3]
    assert both.parts == [*whole.parts[:2], whole.parts[-1]]
    assert both.n_cut == sum(len(part) - 2 for part in whole.parts[2:-1])


def test_one_window_reads_as_many_first_tokens_as_fit(encoder: TextEncoder) -> None:
    text = " ".join(SENTENCES * 4)
    (cut,), (whole,) = encoder.counted_responses([text]), encoder.response_windows([text], 8)
    assert len(cut.ids) == ROOM + 2
    assert cut.n_cut == sum(len(part) - 2 for part in whole.parts) - ROOM


def test_half_of_the_worst_part_and_half_of_the_mean() -> None:
    windows = [ResponseWindows([[7], [8], [9]], 0), ResponseWindows([[4]], 0)]
    parts = ResponseParts.of(windows, [1, 0, 1])
    assert (parts.ids, parts.owners, parts.places) == ([[7], [8], [9], [4]], [0, 1, 1, 1, 2], [3, 0, 1, 2, 3])
    values = np.array([3.0, 1.0, 4.0, -2.0, 5.0])
    assert parts.mean(values) == pytest.approx([3.0, 1.0, 5.0])
    assert parts.mean(values[:, None]) == pytest.approx(parts.mean(values)[:, None])
    assert parts.judged(values) == pytest.approx([3.0, -0.5, 5.0])


def test_what_stands_at_the_end_of_a_long_response_counts(tmp_path: Path) -> None:
    folder = write_tiny_general(tmp_path, GeneralConfig("general", 80, 40, 3, has_knowledge=True))
    scorer = GeneralScorer(str(folder), device="cpu")
    context, parts = ["Any plans?"], ["None yet, or few.", "x" * 30 + ".", "Plums make good jam."]
    together, alone = (
        scorer.log_odds([Example.from_texts(context, text, facts=["Plums."]) for text in texts])
        for texts in ([" ".join(parts)], parts)
    )
    for name, values in together.items():
        assert values[0] == pytest.approx((alone[name].mean() + alone[name].min()) / 2, abs=1e-5)
    assert scorer.score([Example.from_texts(context, " ".join([*parts, "z" * 50]))]).columns["response_tokens_cut"] == (50,)
