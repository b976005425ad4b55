"""The independence classifiers: how turns and responses become token ids, and the last layer for the first token only."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.causalscore.classifiers import PairTruncation, RowEncoder
from tests.refusals import refusal

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


LONG = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("texts", "truncate", "max_tokens", "expected"),
    [
        (("ab", "yes"), "utterances", 64, "[CLS]ab[SEP]yes[SEP]"),
        (("ab", "c", "yes"), "utterances", 64, "[CLS]ab[SEP]c[SEP]yes[SEP]"),
        # The response survives; of two utterances the longer one is cut first.
        ((LONG, "yes"), "utterances", 16, "[CLS]qrstuvwxyz[SEP]yes[SEP]"),
        (("12", LONG, "yes"), "utterances", 16, "[CLS]12[SEP]tuvwxyz[SEP]yes[SEP]"),
        ((LONG, LONG.upper(), "yes"), "utterances", 16, "[CLS]wxyz[SEP]VWXYZ[SEP]yes[SEP]"),
        # Only what exceeds three quarters of the window is cut from the response.
        ((LONG, LONG), "utterances", 16, "[CLS]wxyz[SEP]abcdefghi[SEP]"),
        (("a", LONG), "utterances", 16, "[CLS]a[SEP]abcdefghijkl[SEP]"),
        # Truncation at the right cuts the response.
        ((LONG, "yes"), "right", 16, "[CLS]abcdefghijklmn[SEP]"),
        (("abcdefghi", "yes, no"), "right", 16, "[CLS]abcdefghi[SEP]yes,[SEP]"),
    ],
)
def test_the_papers_layout(
    letters: Any, texts: tuple[str, ...], truncate: PairTruncation, max_tokens: int, expected: str
) -> None:
    ids = ids_of(RowEncoder(letters, "delimited", truncate, max_tokens), *texts)
    assert "".join(letters.convert_ids_to_tokens(ids)) == expected


@pytest.mark.parametrize("texts", [("Hi there.", "Good, é!"), ("One", "", "three"), ("a", "b", "c")])
@pytest.mark.parametrize("max_tokens", [512, 20, 16])
def test_the_literal_layout_is_the_published_string(bytes_: Any, texts: tuple[str, ...], max_tokens: int) -> None:
    encoder = RowEncoder(bytes_, "literal", "right", max_tokens)
    published = bytes_(" </s> <s> ".join(texts), truncation=True, max_length=max_tokens)["input_ids"]
    assert ids_of(encoder, *texts) == published


def test_special_tokens_in_a_text_are_text(letters: Any, bytes_: Any) -> None:
    for tokenizer, text in ((letters, "a[SEP]b"), (bytes_, "a</s>b")):
        for layout in ("delimited", "literal"):
            ids = ids_of(RowEncoder(tokenizer, layout, "utterances", 64), text, "c")  # type: ignore[arg-type]
            assert ids.count(tokenizer.sep_token_id) == 2


@settings(max_examples=60)
@given(st.lists(st.text("ab ", max_size=40), min_size=2, max_size=3), st.integers(16, 50), st.booleans(), st.booleans())
def test_no_row_is_longer_than_its_window_or_shorter_than_it_need_be(
    letters: Any, texts: list[str], window: int, literal: bool, right: bool
) -> None:
    encoder = RowEncoder(letters, "literal" if literal else "delimited", "right" if right else "utterances", window)
    rows = encoder.rows(texts, np.array([range(len(texts))]))
    assert len(encoder.encode(rows, 0)) == min(window, rows.lengths[0])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("pair", "right", 64), "layout is 'pair'. Give one of delimited, literal."),
        (("literal", "left", 64), "truncate is 'left'. Give one of utterances, right."),
        (("literal", "right", 15), "max_tokens is 15. Give a whole number from 16."),
        (("literal", "right", 64.0), "max_tokens is 64.0. Give a whole number from 16."),
    ],
)
def test_unknown_options_are_refused(letters: Any, options: tuple[Any, ...], problem: str) -> None:
    assert refusal(RowEncoder, letters, *options) == f"causalscore: {problem}"


@pytest.mark.parametrize(
    ("tokenizer", "problem"),
    [
        (SimpleNamespace(is_fast=False),
         "only fast tokenizers (tokenizer.json) are supported. Convert it with transformers' AutoTokenizer."),
        (SimpleNamespace(is_fast=True, cls_token_id=None, bos_token_id=None, sep_token_id=None, eos_token_id=None),
         "has no first or no separating token. Choose an encoder as the backbone."),
    ],
)  # fmt: skip
def test_a_tokenizer_without_borders_is_refused(tokenizer: SimpleNamespace, problem: str) -> None:
    said = refusal(RowEncoder, tokenizer, "delimited", "right", 64, error=ModelLoadError)
    assert said == f"tokenizer SimpleNamespace: {problem}"
