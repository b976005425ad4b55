"""The tasks `convai_opinion`: documents, joined dialogues, absent challenges, and the host with a model and with a scorer."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from dialeval_plugin.core.dialogue import Dialogue, Example, mean_rating
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import Undefined
from dialeval_plugin.hosts.lm_eval.tasks.documents import item_of
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.lm_eval.tasks.opinions import (
    OPINIONS,
    Opinion,
    continuation,
    dialogue_opinions,
    opinion_dataset,
    process_opinion,
    prompt,
)
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.methods.likelihood.scorer import DialogueLikelihoodScorer
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import evaluate, metrics
from tests.layouts import write_convai
from tests.refusals import refused
from tests.tiny.likelihood import write_likelihood_model


@pytest.fixture
def few(own_data: Path) -> Path:
    """Both challenges with a few dialogues a file."""
    return write_convai(own_data)


def test_a_document_is_a_turn_after_the_turns_before_it(few: Path) -> None:
    documents = list(opinion_dataset(dataset="convai2")["test"])
    dialogue = convai.read_convai2()[1]
    first, second, *_ = documents
    assert (first["dialogue"], first["turn"], second["turn"], first["n_turns"]) == ("0x1", 1, 2, 2)
    item = item_of(second)
    assert isinstance(item, Example)
    assert (item.context, item.response) == (dialogue.turns[:2], dialogue.turns[2])
    assert (first["rating"], first["n_words"]) == (4.0, 6)
    assert prompt(second) == "Hi there. (1)\nHello, do you like tea? (1)"
    assert continuation(second) == "\nI do. (1)"
    (pair, *_) = [document for document in opinion_dataset(dataset="convai2", context="pair")["test"] if document["turn"] == 2]
    assert prompt(pair) == "Hello, do you like tea? (1)"


def test_the_hosts_cache_of_requests_sends_no_prompts_of_other_options(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`--cache_requests` answered the option `context=pair` with the prompts of a run before, of full contexts."""
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))

    def prompts(**options: Any) -> list[str]:
        settings = {"model_args": "scorer=response_length", "cache_requests": True, "limit": 12}
        found = evaluate("dialogue-metric", "convai2_opinion", **settings, **options)
        return [sample["arguments"][0][0] for sample in found["samples"]["convai2_opinion"]]

    whole = prompts()
    pairs = prompts(metadata={"context": "pair"})
    assert pairs == [text.rpartition("\n")[2] for text in whole] != whole
    assert caplog.messages.count(
        "convai2_opinion: --cache_requests has no effect: it would send old prompts after a change of --metadata or of the data"
    ) == 2  # fmt: skip
    assert not (tmp_path / "requests").exists()


def rated_dialogues() -> list[Dialogue]:
    long = [dialogue for dialogue in convai.read_convai2() if len(dialogue.turns) > 2]
    return [dialogue for dialogue in long if mean_rating(dialogue, "eval_score") is not None]


def test_short_and_unrated_dialogues_are_left_out(few: Path) -> None:
    dialogues = rated_dialogues()
    assert 0 < len(dialogues) < 24
    found = opinion_dataset(dataset="convai2")["test"]
    assert list(dict.fromkeys(found["dialogue"])) == [dialogue.id for dialogue in dialogues]


def test_the_rating_is_the_peoples_or_the_published_mean_with_zeros(few: Path) -> None:
    def ratings(**options: Any) -> dict[str, float]:
        found = opinion_dataset(dataset="convai1", **options)["test"]
        return dict(zip(found["dialogue"], found["rating"], strict=True))

    assert ratings()["-1001"] == 1.0
    assert ratings(bot_ratings="as_zero")["-1001"] == 0.5
    assert ratings()["-1002"] == ratings(bot_ratings="as_zero")["-1002"] == 2.0
    assert ratings(rated_quality="breadth")["-1003"] == 3.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": "all"}, "--metadata: context is 'all'. Give one of full, pair."),
        ({"bot_ratings": "no"}, "convai1: bot_ratings is 'no'. Give one of left_out, as_zero."),
    ],
)
def test_an_unknown_option_is_said(few: Path, options: dict[str, str], message: str) -> None:
    with refused(message):
        opinion_dataset(dataset="convai1", **options)


def opinions() -> list[Opinion]:
    """Three dialogues: of two turns, of one, and of one that has no probability."""
    return [
        Opinion("a", 1, 2, math.log(0.25), 2, 1.0),
        Opinion("a", 2, 2, math.log(0.125), 3, 1.0),
        Opinion("b", 1, 1, math.log(0.1), 1, 2.0),
        Opinion("c", 1, 1, None, 1, 3.0),
        Opinion("d", 2, 2, math.log(0.5), 1, 4.0),
    ]


def test_turns_are_joined_by_hand() -> None:
    first, second, third = dialogue_opinions(opinions())
    product = math.log(0.25) + math.log(0.125)
    expected = {"sum_of_means": 1.0, "mean_of_means": 0.5, "product_of_products": product, "length": 2.0}
    assert first.scores == pytest.approx(expected)
    assert second.scores is not None
    assert second.scores["sum_of_means"] == pytest.approx(0.1)
    assert third.scores is None
    assert OPINIONS.counts(opinions()) == (2, 1)
    # A coefficient that has no value says why.
    assert isinstance(OPINIONS.values(opinions()[:1])["spearman"], Undefined)


def test_a_turn_without_a_finite_probability_is_unscored(few: Path) -> None:
    document = opinion_dataset(dataset="convai1")["test"][0]
    for value in (math.nan, -math.inf):
        assert process_opinion(document, [(value, False)])["spearman"].log_probability is None
    assert set(process_opinion(document, [(-1.0, False)])) == set(KINDS["opinion"].printed)


@pytest.mark.long
def test_a_real_model_gives_its_opinion_through_the_host(few: Path, tiny_lm: Path) -> None:
    found = evaluate("hf", "convai2_opinion", model_args=f"pretrained={tiny_lm},dtype=float32", device="cpu")
    results = metrics(found, "convai2_opinion")
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_lm), AutoModelForCausalLM.from_pretrained(tiny_lm)
    judged = []
    for document in opinion_dataset(dataset="convai2")["test"]:
        before, whole = tokenizer.encode(prompt(document)), tokenizer.encode(prompt(document) + continuation(document))
        with torch.no_grad():
            logs = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        log = math.fsum(float(logs[place - 1, whole[place]]) for place in range(len(before), len(whole)))
        judged.append(process_opinion(document, [(log, False)])["spearman"])
    for name, expected in OPINIONS.values(judged).items():
        assert results[name] == pytest.approx(expected, abs=1e-4), name
    assert results["spearman_ci_low"] <= results["spearman"] <= results["spearman_ci_high"]
    assert results["n_scored"] == len({opinion.dialogue for opinion in judged})


def test_a_group_leaves_out_the_challenge_that_is_absent(few: Path, tiny_lm: Path) -> None:
    for path in (few / "convai1").iterdir():
        path.unlink()
    found = evaluate("hf", "convai_opinion", model_args=f"pretrained={tiny_lm},dtype=float32", device="cpu")
    assert "spearman,none" not in found["results"]["convai1_opinion"]
    assert found["results"]["convai_opinion"]["spearman,none"] == found["results"]["convai2_opinion"]["spearman,none"]


def test_a_scorer_gives_the_opinion_that_it_has_of_whole_dialogues(few: Path, tmp_path: Path) -> None:
    folder = write_likelihood_model(tmp_path / "model", "gpt2", n_positions=512)
    arguments = f"scorer=dialogue_likelihood,model={folder},level=turn"
    found = metrics(evaluate("dialogue-metric", "convai2_opinion", model_args=arguments, device="cpu"), "convai2_opinion")
    dialogues = rated_dialogues()
    direct = DialogueLikelihoodScorer(str(folder), device="cpu").score(dialogues)
    ratings = [mean_rating(dialogue, "eval_score") for dialogue in dialogues]
    for column, prefix in (("sum_of_means", ""), ("mean_of_means", "mean_of_means_")):
        clusters = [dialogue.id for dialogue in dialogues]
        expected = correlations(direct.columns[column], ratings, clusters=clusters, bootstrap=NO_RESAMPLES)
        assert found[f"{prefix}pearson"] == pytest.approx(expected["pearson"].value, abs=1e-4)
        assert found[f"{prefix}spearman"] == pytest.approx(expected["spearman"].value, abs=1e-4)
    assert found["n_scored"] == len(dialogues)


@pytest.mark.real_data
def test_the_published_dialogues_are_those_of_the_thesis(data_dir: Path) -> None:
    counts = {}
    for challenge in ("convai1", "convai2"):
        documents = opinion_dataset(dataset=challenge)["test"]  # type: ignore[arg-type]
        counts[challenge] = (len(set(documents["dialogue"])), len(documents))
    assert counts == {"convai1": (2154, 27331), "convai2": (2095, 34725)}


def test_a_scorer_without_an_upper_end_is_summed_as_it_is_and_has_no_product(few: Path, tmp_path: Path) -> None:
    """Issue G 2: a number of words is no probability."""
    ran = evaluate("dialogue-metric", "convai2_opinion", model_args="scorer=response_length", output=tmp_path / "run")
    assert [run.about.variant for run in read_runs([tmp_path / "run"])] == ["", "mean_of_means", "length"]
    found = metrics(ran, "convai2_opinion")
    words: dict[str, list[float]] = {}
    ratings: dict[str, float] = {}
    for document in opinion_dataset(dataset="convai2")["test"]:
        words.setdefault(document["dialogue"], []).append(len(document["response"]["text"].split()))
        ratings[document["dialogue"]] = document["rating"]
    for prefix, joined in (("", math.fsum), ("mean_of_means_", statistics.fmean)):
        scores = [joined(of_dialogue) for of_dialogue in words.values()]
        expected = correlations(scores, list(ratings.values()), bootstrap=NO_RESAMPLES)
        assert found[f"{prefix}pearson"] == pytest.approx(expected["pearson"].value, abs=1e-9)
    assert found["product_pearson"] == "undefined (the scores are no probabilities)"
    assert found["n_scored"] == len(words)
