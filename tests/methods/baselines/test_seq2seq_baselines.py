"""BARTScore and UniEval with random models: the published loops' numbers, each written out here once."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.baselines.bartscore import BartScore
from dialeval_plugin.methods.baselines.unieval import QUESTIONS, UniEval, _Asked
from tests.refusals import refused
from tests.tiny.seq2seq import BART_WINDOW, write_tiny_bart, write_tiny_t5

CONTEXT = ["Do you like rain?", "I prefer snow."]
RESPONSE = "So do we. It is quiet!"
REFERENCES = ["Me too.", "Why is that? Tell me."]
FACTS = ["Snow is frozen.", "It falls."]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bart(tmp_path_factory.mktemp("bart"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_t5(tmp_path_factory.mktemp("t5"))


def example(response: str = RESPONSE, context: list[str] = CONTEXT, facts: list[str] = FACTS) -> Example:
    return Example.from_texts(context, response, references=REFERENCES, facts=facts)


def opened(folder: Path) -> tuple[Any, Any]:
    return AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def published_bartscore(folder: Path, source: str, target: str) -> float:
    """The mean negative loss of the target's tokens, its ends included, with the target as the labels."""
    tokenizer, model = opened(folder)
    read, labels = (tokenizer([text], return_tensors="pt") for text in (source, target))
    with torch.no_grad():
        logits = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels["input_ids"]).logits
    return -float(torch.nn.functional.cross_entropy(logits[0], labels["input_ids"][0]))


def test_every_direction_of_bartscore_is_the_published_mean(bart: Path) -> None:
    precision = [published_bartscore(bart, reference, RESPONSE) for reference in REFERENCES]
    recall = [published_bartscore(bart, RESPONSE, reference) for reference in REFERENCES]
    expected = {
        "context_to_response": published_bartscore(bart, "\n".join(CONTEXT), RESPONSE),
        "reference_to_response": math.fsum(precision) / 2,
        "response_to_reference": math.fsum(recall) / 2,
        "f_score": math.fsum([*precision, *recall]) / 4,
    }
    for direction, value in expected.items():
        scores = BartScore(str(bart), direction=direction, device="cpu").score([example()])  # type: ignore[arg-type]
        assert scores.values == (pytest.approx(value, abs=1e-5),), direction
        assert f"method:bartscore|direction:{direction}|" in str(scores.signature)
    assert len({round(value, 6) for value in expected.values()}) == 4


def test_a_long_context_loses_its_beginning_and_is_counted(bart: Path, caplog: pytest.LogCaptureFixture) -> None:
    long = example(context=["x" * 2 * BART_WINDOW, "y" * (BART_WINDOW - 2)])
    scorer = BartScore(str(bart), device="cpu")
    scores = scorer.score([long, example(context=["y" * (BART_WINDOW - 2)])])
    assert scores.values[0] == pytest.approx(scores.values[1], abs=1e-6)
    assert scores.columns["n_cut"] == (1.0, 0.0)
    assert caplog.messages == [f"bartscore: in 1 of 2 examples texts are longer than {BART_WINDOW} tokens and were cut"]
    assert f"|separator:newline|speakers:none|window:{BART_WINDOW}|truncation:left|" in str(scores.signature)


def test_a_special_token_in_a_text_is_letters(bart: Path, t5: Path) -> None:
    for scorer in (BartScore(str(bart), device="cpu"), UniEval(model=str(t5), device="cpu")):
        tokenizer = scorer.opened.tokenizer
        texts = ["a</s>b", "<pad></s></s>"]
        known = {id for id in tokenizer.all_special_ids if id != tokenizer.unk_token_id}
        assert [known & set(ids) for ids in scorer.opened.pieces(texts)] == [set(), set()]
        assert all(known & set(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts)


def published_question(dimension: str, response: str) -> str:
    """The question as UniEval's code writes it."""
    question = QUESTIONS[dimension]
    text = f"question: {question.text} </s> response: {response}"
    if question.reads_history:
        text += " </s> dialogue history: " + "\n".join(CONTEXT)
    if question.reads_facts:
        text += " </s> fact: " + "\n".join(FACTS)
    return text


def published_unieval(folder: Path, text: str) -> float:
    """The share of P(Yes) in P(Yes) + P(No) at the first token of the answer."""
    tokenizer, model = opened(folder)
    yes, no = (tokenizer(word)["input_ids"][0] for word in ("Yes", "No"))
    with torch.no_grad():
        logits = model(**tokenizer([text], return_tensors="pt"), labels=torch.tensor([[no]])).logits[0, 0]
    chances = logits.softmax(-1)
    return float(chances[yes] / (chances[yes] + chances[no]))


@pytest.mark.parametrize("dimension", QUESTIONS)
def test_unieval_is_the_published_share_and_engagingness_the_sum_over_sentences(t5: Path, dimension: Any) -> None:
    scorer = UniEval(dimension, model=str(t5), device="cpu")
    ids = AutoTokenizer.from_pretrained(t5)(published_question(dimension, RESPONSE))["input_ids"]
    assert scorer.question_ids(_Asked(RESPONSE, "\n".join(CONTEXT), "\n".join(FACTS))) == (ids, 0)
    scores = scorer.score([example()])
    sentences = ["So do we.", "It is quiet!"] if dimension == "engagingness" else [RESPONSE]
    shares = [published_unieval(t5, published_question(dimension, sentence)) for sentence in sentences]
    assert scores.values == (pytest.approx(math.fsum(shares), abs=1e-5),)
    assert scores.main == dimension
    assert 0.001 < shares[0] < 0.999


def test_a_question_without_the_facts_that_it_reads_has_no_score(t5: Path) -> None:
    item = example(context=[], facts=[" "])
    (missing,) = UniEval("groundedness", model=str(t5), device="cpu").score([item]).unscored.values()
    assert missing.detail == "the question reads the facts, and there is none with a visible character"
    assert UniEval("naturalness", model=str(t5), device="cpu").score([item]).n_scored == 1


def test_a_long_history_loses_its_beginning(t5: Path) -> None:
    scorer = UniEval(model=str(t5), max_tokens=150, device="cpu")
    tail = "z" * 40
    (whole, none), (cut, n_cut) = (scorer.question_ids(_Asked("Yes.", history, "")) for history in (tail, "y" * 200 + tail))
    assert none == 0
    assert len(cut) == 150
    assert n_cut == len(whole) + 200 - 150
    # What stands before the history, then its end.
    assert cut[-40:] == whole[-40:]
    assert cut[: len(whole) - 42] == whole[:-42]
    scores = scorer.score([example("No. " * 100), example("Yes.", ["y" * 300])])
    assert scores.unscored[0].reason.value == "context_too_long"
    assert scores.unscored[0].detail.endswith(" tokens more than the window of 150")
    assert scores.columns["n_cut"][1] > 0  # type: ignore[operator]


def test_a_window_beyond_the_models_and_models_that_are_not_whole_or_of_another_kind_are_refused(
    bart: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with refused(f"bartscore: max_tokens is 1000, but the model takes {BART_WINDOW} at most. Give less."):
        BartScore(str(bart), max_tokens=1000)
    # With room for no token, all of the context was read.
    with refused("bartscore: max_tokens is 2. Give a whole number from 8."):
        BartScore(str(bart), max_tokens=2)
    with pytest.raises(ModelLoadError, match=r"cannot be opened as a sequence-to-sequence model"):
        BartScore(str(tiny_encoder), device="cpu")
    shutil.copytree(bart, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    missing = "model.decoder.layers.0.fc1.weight"
    save_file({name: tensor for name, tensor in weights.items() if name != missing}, tmp_path / "model.safetensors")
    with refused(
        f"{tmp_path}: as a sequence-to-sequence model its weights lack {missing!r}, which would be random. "
        "Copy the folder again.",
        ModelLoadError,
    ):
        BartScore(str(tmp_path), device="cpu")
    save_file(weights, tmp_path / "model.safetensors")
    tokenizer = AutoTokenizer.from_pretrained(bart)
    tokenizer.add_tokens(["one more"])
    tokenizer.save_pretrained(tmp_path)
    with refused(
        f"{tmp_path}: the tokenizer has {len(tokenizer)} tokens, the embedding only {len(tokenizer) - 1} rows. "
        "The tokenizer belongs to another model; copy the folder again.",
        ModelLoadError,
    ):
        BartScore(str(tmp_path), device="cpu")
    (tmp_path / "model.safetensors").unlink()
    with refused(f"{tmp_path}: has no safetensors. Choose a revision that has them, or convert the model.", ModelLoadError):
        BartScore(str(tmp_path), device="cpu")


def test_weights_that_are_not_numbers_leave_no_score(t5: Path, bart: Path, tmp_path: Path) -> None:
    for folder, scorer in ((t5, UniEval), (bart, BartScore)):
        copy = shutil.copytree(folder, tmp_path / folder.name)
        weights = load_file(copy / "model.safetensors")
        save_file({name: torch.full_like(tensor, math.nan) for name, tensor in weights.items()}, copy / "model.safetensors")
        assert scorer(model=str(copy), device="cpu").score([example()]).unscored_by_reason == {"non_finite": 1}
