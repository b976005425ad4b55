"""Token ids are those of transformers' tokenizer, whether words are remembered or not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from dialeval_plugin.models.encoders import load_encoder
from dialeval_plugin.models.folders import PACKAGED_ENCODER, PRETRAINED
from dialeval_plugin.models.texts import JsonTokenizer, text_ids

PIECES = (
    *("", "Hello,", "don't", "[SEP]", "[CLS]x", "\u00a0", "\x1c", "\n\t", "\u200b", "\ufffd", "a" * 101, "##s"),
    *("\u0301e", "e\u0301", "\u0130", "\u039f\u03a3", "\u4f60\u597d", "\uac00"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8).map(" ".join)
WORDS = load_encoder(PACKAGED_ENCODER, device="cpu").tokenizer
BYTES = AutoTokenizer.from_pretrained(PRETRAINED / "language-model")


@given(st.lists(TEXTS, min_size=1, max_size=4))
@pytest.mark.parametrize("theirs", [WORDS, BYTES], ids=["words", "bytes"])
def test_ids_are_those_of_transformers(theirs: Any, texts: list[str]) -> None:
    assert JsonTokenizer.of(theirs).text_ids(texts) == text_ids(theirs, texts)


def test_words_are_remembered_where_no_token_reaches_over_a_space() -> None:
    ours = JsonTokenizer.of(WORDS)
    assert ours.text_ids(["a cup of tea", "a cup"])[1] == ours.text_ids(["a cup"])[0]
    assert ours.ids_of_word is not None
    assert ours.ids_of_word.cache_info().misses == 4
    assert JsonTokenizer.of(BYTES).ids_of_word is None


def test_a_token_that_was_added_may_have_a_space_in_it() -> None:
    theirs = copy.deepcopy(WORDS)
    theirs.add_tokens(["cup of tea"])
    ours = JsonTokenizer.of(theirs)
    assert ours.ids_of_word is None
    assert ours.text_ids(["a cup of tea"]) == text_ids(theirs, ["a cup of tea"])
