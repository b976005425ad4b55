"""The scorer on one real, random model of every family: alignment, batches, windows, and what has no score."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.likelihood.evaluators import (
    Alignment,
    CausalEvaluator,
    Evaluator,
    PermutationEvaluator,
    TurnProbabilities,
)
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from dialeval_plugin.models import language_models as models
from tests.refusals import refused
from tests.tiny.likelihood import N_TOKENS, WINDOW, write_likelihood_model

Folder: TypeAlias = Callable[[str], Path]
"""Makes the folder of the model of an architecture."""

OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("gpt2", "bert", "roberta_decoder", "xlnet")},
    "roberta_pairs": {"next_label": "follows"},
}
TEXTS = ["Hi there.", "Hello! How are you?", "Fine, and you?", "Good.", "Rain again..."]
EXAMPLES = [Example.from_texts(TEXTS[:place], TEXTS[place], id=str(place)) for place in range(1, len(TEXTS))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return functools.cache(lambda name: write_likelihood_model(tmp_path_factory.mktemp(name), name))


def scorer_of(folder: Folder, architecture: str, **options: Any) -> DialogueLikelihoodScorer:
    return DialogueLikelihoodScorer(str(folder(architecture)), device="cpu", **{**OPTIONS[architecture], **options})


def turns_of(evaluator: Evaluator, texts: Sequence[str]) -> list[TurnProbabilities]:
    """Return an evaluator's probabilities of the turns of a dialogue that it can judge."""
    (judged,) = evaluator.judge([texts], last_only=False)
    assert isinstance(judged, list)
    return judged


def dialogue(texts: Sequence[str], id: str = "0") -> Dialogue:
    return Dialogue(id, tuple(map(Turn, texts)))


@pytest.mark.parametrize("architecture", OPTIONS)
def test_every_family_scores_its_columns_add_up_and_a_dialogue_is_the_sum_of_its_turns(
    folder: Folder, architecture: str
) -> None:
    scorer = scorer_of(folder, architecture)
    scores = scorer.score([dialogue(TEXTS)])
    assert (scores.main, scores.level, scores.n_scored) == ("sum_of_means", "dialogue", 1)
    row = {name: values[0] for name, values in scores.columns.items()}
    assert row["n_turns"] == len(TEXTS) - 1
    assert row["n_cut"] == 0
    assert row["mean_of_means"] == pytest.approx(row["sum_of_means"] / 4)  # type: ignore[operator]
    assert 0 < row["mean_of_means"] < 1  # type: ignore[operator]
    if scorer.family != "next_sentence":
        assert row["max_sum_of_means"] > row["sum_of_means"]  # type: ignore[operator]
        assert row["log_product_of_products"] < row["max_log_product_of_products"]  # type: ignore[operator]
    assert scores.signature.fields["family"] == scorer.family
    single = scorer_of(folder, architecture, level="turn").score(EXAMPLES)
    assert scores.values[0] == pytest.approx(math.fsum(map(float, single.values)), abs=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["separated", "plain"])
@pytest.mark.parametrize("context", ["full", "pair"])
def test_the_probability_of_a_token_comes_from_the_place_before_it(folder: Folder, context: str, layout: str) -> None:
    scorer = scorer_of(folder, "gpt2", context=context, layout=layout)
    assert isinstance(scorer.evaluator, CausalEvaluator)
    opened = scorer.evaluator.opened
    end = opened.tokenizer.eos_token_id
    pieces = [[*ids, *([end] if layout == "separated" else [])] for ids in opened.token_ids(TEXTS[:3])]
    for place, turn in enumerate(turns_of(scorer.evaluator, TEXTS[:3]), start=1):
        before = [token for piece in pieces[0 if context == "full" else place - 1 : place] for token in piece]
        before = [end, *before] if layout == "plain" else before
        for number, token in enumerate(pieces[place]):
            with torch.no_grad():
                logits = opened.model(input_ids=torch.tensor([before])).logits[0, -1]
            expected = logits.log_softmax(-1)
            assert turn.log_probabilities[number] == pytest.approx(float(expected[token]), abs=1e-5)
            assert turn.log_maxima[number] == pytest.approx(float(expected.max()), abs=1e-5)
            before.append(token)
        assert len(turn.log_probabilities) == len(pieces[place])


class Bigrams(torch.nn.Module):
    """A causal model whose answer depends on the last token alone, by a table of the oracle."""

    config = SimpleNamespace(pad_token_id=None)
    device = torch.device("cpu")

    def __init__(self, table: list[list[float]]) -> None:
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(torch.tensor(table))

    def forward(self, input_ids: torch.Tensor, use_cache: bool) -> SimpleNamespace:
        return SimpleNamespace(logits=self.table(input_ids))


class Numbers:
    """A tokenizer of texts that are numbers."""

    bos_token_id = eos_token_id = pad_token_id = 0

    def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [list(map(int, text.split())) for text in texts]}


@pytest.mark.parametrize(("alignment", "prefix"), [("correct", "correct"), ("published", "authors")])
def test_both_alignments_equal_the_oracle(oracles_dir: Path, alignment: Alignment, prefix: str) -> None:
    oracle = json.loads((oracles_dir / "lm_aggregation.json").read_text(encoding="utf-8"))["gpt2_alignment"]
    given = oracle["in"]
    opened = models.OpenedModel("causal_lm", Bigrams(given["next_token_logits"]), Numbers(), Path(), None)
    evaluator = CausalEvaluator(opened, "pair", "plain", alignment, None)
    (judged,) = turns_of(evaluator, [given["context"], given["response"]])
    assert np.exp(judged.log_probabilities) == pytest.approx(oracle[f"{prefix}_word_probs"], abs=1e-6)
    assert np.exp(judged.log_maxima) == pytest.approx(oracle[f"{prefix}_best_word_probs"], abs=1e-6)


def test_the_permutation_model_sees_neither_target_nor_future(folder: Folder) -> None:
    evaluator = scorer_of(folder, "xlnet").evaluator
    assert isinstance(evaluator, PermutationEvaluator)
    opened = evaluator.opened
    (end,) = opened.tokenizer.convert_tokens_to_ids(["<eod>"])
    first, second = opened.token_ids(TEXTS[:2])
    (judged,) = turns_of(evaluator, TEXTS[:2])
    assert len(judged.log_probabilities) == len(second)
    ids = [*first, end, *second]
    for number, token in enumerate(second):
        target = len(first) + 1 + number
        # The published way: the whole sequence, with everything from the target on hidden from everybody.
        hidden = torch.zeros(1, len(ids), len(ids))
        hidden[:, :, target:] = 1
        mapping = torch.zeros(1, 1, len(ids))
        mapping[0, 0, target] = 1
        with torch.no_grad():
            logits = opened.model(input_ids=torch.tensor([ids]), perm_mask=hidden, target_mapping=mapping).logits
        expected = logits[0, 0].log_softmax(-1)
        assert judged.log_probabilities[number] == pytest.approx(float(expected[token]), abs=1e-5)
        assert judged.log_maxima[number] == pytest.approx(float(expected.max()), abs=1e-5)


def test_next_sentence_probabilities_are_the_hosts_own(folder: Folder) -> None:
    scores = scorer_of(folder, "bert").score([dialogue(TEXTS[:3])])
    opened = models.open_model(str(folder("bert")), device="cpu")
    expected = []
    for pair in (TEXTS[:2], TEXTS[1:3]):
        with torch.no_grad():
            logits = opened.model(**opened.tokenizer(*pair, return_token_type_ids=True, return_tensors="pt")).logits
        expected.append(float(logits.softmax(-1)[0, 0]))
    assert scores.values[0] == pytest.approx(sum(expected), abs=1e-5)


def test_one_pass_answers_for_a_dialogue_with_its_full_context(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    logits = CausalEvaluator.logits

    def counted(self: CausalEvaluator, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        read.extend(map(len, rows))
        return logits(self, rows)

    monkeypatch.setattr(CausalEvaluator, "logits", counted)
    scorer_of(folder, "gpt2").score([dialogue(TEXTS)])
    scorer_of(folder, "gpt2", level="turn").score(EXAMPLES)
    assert read == [sum(len(text) + 1 for text in TEXTS)] * 2


@pytest.mark.parametrize("architecture", ["gpt2", "bert", "xlnet"])
def test_a_dialogue_longer_than_the_window_loses_its_beginning_and_says_so(
    folder: Folder, architecture: str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"{number} " + "word " * 8 for number in range(6)]
    scores = scorer_of(folder, architecture, max_tokens=64).score([dialogue(texts), dialogue(TEXTS[:2])])
    assert scores.n_scored == 2
    assert scores.columns["n_cut"] == (5.0, 0.0)
    assert caplog.messages == [
        "dialogue_likelihood: in 1 of 2 examples a turn with its context is longer than 64 tokens; the beginning was not read"
    ]
    assert scores.signature.fields["window"] == 64


def test_a_turn_after_a_cut_context_has_the_score_that_its_window_gives(folder: Folder) -> None:
    scorer = scorer_of(folder, "gpt2", level="turn", max_tokens=20)
    (cut,) = scorer.score([Example.from_texts(["a" * 30], "bcde")]).values
    opened = models.open_model(str(folder("gpt2")), device="cpu")
    # The response has 5 tokens with its end, half a window of 10 tokens stands before it.
    ids = [*opened.token_ids(["a" * 9])[0], opened.tokenizer.eos_token_id, *opened.token_ids(["bcde"])[0]]
    ids.append(opened.tokenizer.eos_token_id)
    with torch.no_grad():
        chances = opened.model(input_ids=torch.tensor([ids])).logits[0].softmax(-1)
    expected = np.mean([float(chances[place - 1, ids[place]]) for place in range(10, 15)])
    assert cut == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("architecture", OPTIONS)
def test_what_cannot_be_scored_has_a_reason_and_leaves_the_others_alone(folder: Folder, architecture: str) -> None:
    texts = [TEXTS[:3], ["Alone."], [], ["Hi.", " ", "\u200b"], ["Hi.", "x" * 50, "Yes."], [TEXTS[0], "", *TEXTS[1:3]]]
    scores = scorer_of(folder, architecture, max_tokens=40).score([dialogue(turns) for turns in texts])
    # Next-sentence models put no end behind a turn.
    n_tokens = 50 if architecture in {"bert", "roberta_pairs"} else 51
    assert {place: (missing.reason.value, missing.detail) for place, missing in scores.unscored.items()} == {
        **dict.fromkeys((1, 2, 3), ("empty_input", "fewer than two turns have a visible character")),
        4: ("context_too_long", f"turn 1 has {n_tokens} tokens, the model's window 40"),
    }
    assert scores.values[5] == pytest.approx(scores.values[0], abs=1e-5)


@pytest.mark.parametrize("architecture", OPTIONS)
def test_weights_that_are_not_numbers_leave_no_score(folder: Folder, architecture: str, tmp_path: Path) -> None:
    write_likelihood_model(tmp_path, architecture)
    weights = {name: torch.full_like(tensor, math.nan) for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    scores = DialogueLikelihoodScorer(str(tmp_path), device="cpu", **OPTIONS[architecture]).score([dialogue(TEXTS)])
    assert scores.unscored_by_reason == {"non_finite": 1}


def test_a_special_token_in_a_turn_is_text(folder: Folder) -> None:
    for architecture in ("gpt2", "bert", "xlnet"):
        scorer, forged = scorer_of(folder, architecture), "Yes.<end>[SEP]<eod>No."
        (plain,), (judged,) = (turns_of(scorer.evaluator, ["Hi.", text]) for text in ("Yes.No.", forged))
        if scorer.family != "next_sentence":
            extra = len("<end>[SEP]<eod>")
            assert len(judged.log_probabilities) == len(plain.log_probabilities) + extra
        else:
            (pair,) = scorer.evaluator._pairs.encode_batch([forged], add_special_tokens=False)  # type: ignore[attr-defined]
            assert len(pair.ids) == len(forged)


@pytest.mark.parametrize(
    ("architecture", "options", "message"),
    [
        ("gpt2", {"aggregation": "mean"}, "aggregation is 'mean'. Give one of sum_of_means, sum_of_sums, "
         "mean_of_means, mean_of_sums, product_of_sums, product_of_means, product_of_products."),
        ("gpt2", {"level": "turn", "aggregation": "sum_of_means"},
         "aggregation is 'sum_of_means'. Give one of mean, sum, product, geometric_mean."),
        ("gpt2", {"max_tokens": 4}, "max_tokens is 4. Give a whole number from 8."),
        ("gpt2", {"max_tokens": 97}, "max_tokens is 97, but the model takes 96 at most. Give less."),
        ("roberta_decoder", {"max_tokens": 97}, "max_tokens is 97, but the model takes 96 at most. Give less."),
        ("gpt2", {"next_label": 1}, "causal_lm has no labels. Leave the option next_label out."),
        ("bert", {"context": "full"}, "next_sentence reads pairs of turns. Leave the option context out."),
        ("bert", {"probability": "max"}, "next_sentence has one probability a turn. Leave the option probability out."),
        ("xlnet", {"alignment": "published"},
         "permutation_lm has no published misalignment. Leave the option alignment out."),
        ("xlnet", {"layout": "plain"}, "permutation_lm has one layout. Leave the option layout out."),
        ("roberta_pairs", {"next_label": None},
         "next_label is None. Name the label that stands for a turn that follows: 0 (other), 1 (follows)."),
        ("roberta_pairs", {"next_label": "yes"},
         "next_label is 'yes'. Name the label that stands for a turn that follows: 0 (other), 1 (follows)."),
    ],
)  # fmt: skip
def test_an_option_that_does_not_fit_is_said(folder: Folder, architecture: str, options: dict[str, Any], message: str) -> None:
    with refused(f"dialogue_likelihood: {message}"):
        scorer_of(folder, architecture, **options)


def test_a_model_is_named_by_option_or_variable(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_LANGUAGE_MODEL", str(folder("xlnet")))
    assert load_scorer("dialogue_likelihood").signature_fields()["family"] == "permutation_lm"


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    masked = write_likelihood_model(tmp_path / "masked", "masked_bert")
    foreign = write_likelihood_model(tmp_path / "foreign", "gpt2", vocab_size=N_TOKENS - 1)
    for folder, options, message in (
        (masked, {"family": "causal_lm"}, "is no causal language model, since it sees the tokens that it is asked about. "
         "Choose another model, or train this one with is_decoder=true in its config.json."),
        (masked, {}, "as a language model its weights lack 'bert.pooler.dense.bias', which would be random. "
         "Copy the folder again, or choose another family than next_sentence."),
        (foreign, {}, f"the tokenizer has {N_TOKENS} tokens, the embedding only {N_TOKENS - 1} rows. "
         "The tokenizer belongs to another model; copy the folder again."),
    ):  # fmt: skip
        with refused(f"{folder}: {message}", ModelLoadError):
            DialogueLikelihoodScorer(str(folder), device="cpu", **options)


def test_pickled_damaged_and_missing_weights_are_refused(tmp_path: Path) -> None:
    weights = write_likelihood_model(tmp_path, "gpt2") / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelLoadError, match=r"model\.safetensors: is damaged"):
        DialogueLikelihoodScorer(str(tmp_path), device="cpu")
    pickled = weights.rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelLoadError, match="pickled weights run code when they are read, so they are never opened"):
        DialogueLikelihoodScorer(str(tmp_path), device="cpu")
    pickled.unlink()
    with refused(f"{tmp_path}: has no safetensors. Choose a revision that has them, or convert the model.", ModelLoadError):
        DialogueLikelihoodScorer(str(tmp_path), device="cpu")


def test_the_signature_pins_what_moves_a_number(folder: Folder) -> None:
    base = scorer_of(folder, "gpt2")
    assert base.evaluator.max_tokens == WINDOW
    fields = base.signature_fields()
    assert (fields["family"], fields["context"], fields["layout"], fields["window"]) == ("causal_lm", "full", "separated", 96)
    scores = base.score([dialogue(TEXTS)])
    changes = {"context": "pair", "layout": "plain", "alignment": "published", "probability": "max", "max_tokens": 32}
    for option, value in {**changes, "aggregation": "mean_of_means"}.items():
        other = scorer_of(folder, "gpt2", **{option: value})
        assert other.signature_fields() != fields, option
        assert other.columns[0] != base.columns[0] or other.score([dialogue(TEXTS)]).values != scores.values
    json.dumps(list(scores.rows()), allow_nan=False)
