"""How turns and responses become token ids: layouts, truncation, special tokens in a text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.causalscore.texts import RowEncoder
from tests.refusals import refused

SPECIAL = {"cls_token": "<s>", "sep_token": "</s>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


@pytest.fixture(scope="module")
def letters(tiny_encoder: Path) -> Any:
    """A tokenizer of single characters, as BERT's with [CLS] and [SEP]."""
    return AutoTokenizer.from_pretrained(str(tiny_encoder))


@pytest.fixture(scope="module")
def bytes_() -> Any:
    """A byte-level tokenizer with RoBERTa's special tokens; without merges, so that each byte is a token."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {token: index for index, token in enumerate([*special, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


def ids_of(encoder: RowEncoder, *texts: str) -> list[int]:
    return encoder.encode(encoder.rows(texts, np.array([range(len(texts))])), 0)


def shown(tokenizer: Any, *texts: str, **options: Any) -> str:
    encoder = RowEncoder(
        tokenizer, options.get("layout", "delimited"), options.get("truncate", "utterances"), options.get("max_tokens", 64)
    )
    return "".join(tokenizer.convert_ids_to_tokens(ids_of(encoder, *texts)))


def test_the_papers_layout(letters: Any) -> None:
    assert shown(letters, "ab", "yes") == "[CLS]ab[SEP]yes[SEP]"
    assert shown(letters, "ab", "c", "yes") == "[CLS]ab[SEP]c[SEP]yes[SEP]"


@pytest.mark.parametrize("texts", [("Hi there.", "Good, é!"), ("One", "", "three"), ("a", "b", "c")])
@pytest.mark.parametrize("max_tokens", [512, 20, 16])
def test_the_literal_layout_is_the_published_string(bytes_: Any, texts: tuple[str, ...], max_tokens: int) -> None:
    encoder = RowEncoder(bytes_, "literal", "right", max_tokens)
    published = bytes_(" </s> <s> ".join(texts), truncation=True, max_length=max_tokens)["input_ids"]
    assert ids_of(encoder, *texts) == published


def test_the_response_survives(letters: Any) -> None:
    long = "abcdefghijklmnopqrstuvwxyz"
    assert shown(letters, long, "yes", max_tokens=16) == "[CLS]qrstuvwxyz[SEP]yes[SEP]"
    # Of two utterances the longer one is cut first.
    assert shown(letters, "12", long, "yes", max_tokens=16) == "[CLS]12[SEP]tuvwxyz[SEP]yes[SEP]"
    assert shown(letters, long, long.upper(), "yes", max_tokens=16) == "[CLS]wxyz[SEP]VWXYZ[SEP]yes[SEP]"
    # Only what exceeds three quarters of the window is cut from the response.
    assert shown(letters, long, long, max_tokens=16) == "[CLS]wxyz[SEP]abcdefghi[SEP]"
    assert shown(letters, "a", long, max_tokens=16) == "[CLS]a[SEP]abcdefghijkl[SEP]"


def test_right_truncation_cuts_the_response(letters: Any) -> None:
    long = "abcdefghijklmnopqrstuvwxyz"
    assert shown(letters, long, "yes", truncate="right", max_tokens=16) == "[CLS]abcdefghijklmn[SEP]"
    assert shown(letters, "abcdefghi", "yes, no", truncate="right", max_tokens=16) == "[CLS]abcdefghi[SEP]yes,[SEP]"


def test_special_tokens_in_a_text_are_text(letters: Any, bytes_: Any) -> None:
    for tokenizer, text in ((letters, "a[SEP]b"), (bytes_, "a</s>b")):
        for layout in ("delimited", "literal"):
            ids = ids_of(RowEncoder(tokenizer, layout, "utterances", 64), text, "c")  # type: ignore[arg-type]
            assert ids.count(tokenizer.sep_token_id) == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab ", max_size=40), min_size=2, max_size=3), st.integers(16, 50), st.booleans(), st.booleans())
def test_no_row_is_longer_than_its_window_or_shorter_than_it_need_be(
    letters: Any, texts: list[str], window: int, literal: bool, right: bool
) -> None:
    encoder = RowEncoder(letters, "literal" if literal else "delimited", "right" if right else "utterances", window)
    rows = encoder.rows(texts, np.array([range(len(texts))]))
    assert len(encoder.encode(rows, 0)) == min(window, rows.lengths[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("pair", "right", 64), "causalscore: layout is 'pair'. Give one of delimited, literal."),
        (("literal", "left", 64), "causalscore: truncate is 'left'. Give one of utterances, right."),
        (("literal", "right", 15), "causalscore: max_tokens is 15. Give a whole number from 16."),
        (("literal", "right", 64.0), "causalscore: max_tokens is 64.0. Give a whole number from 16."),
    ],
)
def test_unknown_options_are_refused(letters: Any, options: tuple[Any, ...], message: str) -> None:
    with refused(message):
        RowEncoder(letters, *options)


def test_a_tokenizer_without_borders_is_refused() -> None:
    slow, bare = (
        SimpleNamespace(is_fast=False),
        SimpleNamespace(is_fast=True, cls_token_id=None, bos_token_id=None, sep_token_id=None, eos_token_id=None),
    )
    with refused(
        "tokenizer SimpleNamespace: only fast tokenizers (tokenizer.json) are supported. "
        "Convert it with transformers' AutoTokenizer.",
        ModelLoadError,
    ):
        RowEncoder(slow, "delimited", "right", 64)
    with refused(
        "tokenizer SimpleNamespace: has no first or no separating token. Choose an encoder as the backbone.", ModelLoadError
    ):
        RowEncoder(bare, "delimited", "right", 64)
