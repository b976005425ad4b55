"""False alarms of the rules on real good answers: the shares that were reached on the development data are their bounds."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.methods.assistant import rules
from dialeval_plugin.methods.assistant.rules import RULE_FEATURES, rule_features

BOUNDS = {
    "open_end": 0.01,
    "unlike_lines": 0.02,
    "unclosed_code": 0.01,
    "unclosed": 0.01,
    "missing_items": 0.01,
    "looping_tail": 0.02,
    "repeated_ngrams": 0.02,
    "repeated_sentences": 0.02,
    "longest_run": 0.01,
    "special_tokens": 0.005,
    "reasoning": 0.005,
    "system_prompt": 0.005,
    "spoken_reasoning": 0.01,
    "speaker_labels": 0.01,
    "user_voice": 0.01,
    "other_script": 0.01,
    "other_language": 0.01,
    "foreign_part": 0.02,
    "error_phrase": 0.01,
    "raw_data": 0.01,
    "repeated_answer": 0.01,
    "contradicting_twin": 0.02,
    "takes_back": 0.01,
    "odd_letters": 0.02,
    "list_disorder": 0.01,
    "insult": 0.01,
    "rude_words": 0.01,
}
"""Shares of good answers on which a feature is above a half; of the others, a good answer may have any value."""


@pytest.fixture(scope="module")
def features(data_dir: Path) -> FloatArray:
    """Features of 600 answers of strong models, people's choices and rated texts, drawn evenly from their sources."""
    if not (data_dir / "assistant").is_dir():
        pytest.skip("the data folder has no folder 'assistant'")
    from reproduction.assistant import data

    sources: list[list[Example]] = [
        [pair.preferred for pair in data.dpo_pairs()],
        [pair.preferred for pair in data.oasst_pairs()],
        *(
            [answers[model].answer for answers in data.alpaca_eval_answers().values()]
            for model in ("reference", "gpt4_1106_preview")
        ),
    ]
    drawn = itertools.chain.from_iterable(random.Random(46).sample(source, 150) for source in sources)
    return np.array([rule_features([turn.text for turn in one.context], one.response.text) for one in drawn])


@pytest.mark.real_data
@pytest.mark.parametrize("name", BOUNDS)
def test_good_answers_set_off_few_false_alarms(features: FloatArray, name: str) -> None:
    assert np.mean(features[:, RULE_FEATURES.index(name)] > 0.5) <= BOUNDS[name]


@pytest.mark.real_data
def test_the_tables_of_pairs_are_those_that_the_script_fits(data_dir: Path) -> None:
    if not (data_dir / "assistant").is_dir():
        pytest.skip("the data folder has no folder 'assistant'")
    from reproduction.assistant.pairs_of_words import tables

    assert tables() == {name: Path(rules.__file__).with_name(name).read_text("utf-8") for name in tables()}


@pytest.mark.real_data
@pytest.mark.exhaustive
def test_the_classifier_of_sentences_is_the_one_that_the_script_fits(data_dir: Path) -> None:
    """A weight may be rounded the other way on another machine."""
    if not (data_dir / "assistant").is_dir():
        pytest.skip("the data folder has no folder 'assistant'")
    from reproduction.assistant.sentence_kinds import fitted

    stored = np.load(Path(rules.__file__).with_name("sentence_kinds.npy"))
    assert np.abs(fitted().astype(int) - stored).max() <= 1
