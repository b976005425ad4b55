"""The scorer `causalscore` on random weights: the published loop, edge cases, model folders that are wrong."""

from __future__ import annotations

import functools
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.causalscore import classifiers
from dialeval_plugin.methods.causalscore import scorer as causal_scoring
from dialeval_plugin.methods.causalscore.aggregation import Aggregation
from dialeval_plugin.methods.causalscore.model import CAUSAL_FOLDER, CausalModelConfig
from dialeval_plugin.methods.causalscore.scorer import CausalScorer, Dependence
from tests.refusals import refusal, refused
from tests.sealed import change_tensors, poison, seal
from tests.tiny.models import write_tiny_causal_model

Make = Callable[..., CausalScorer]
WORDS = ["tea", "rain", "cats", "music", "bread", "snow", "we", "you", "they", "like", "saw", "had", "the", "a", "no", "yes"]


def example(id: str, context: list[str], response: str) -> Example:
    return Example(id, tuple(Turn(text, "AB"[place % 2]) for place, text in enumerate(context)), Turn(response))


def examples(number: int, longest: int = 9) -> list[Example]:
    generator = np.random.default_rng(5)

    def text() -> str:
        return " ".join(generator.choice(WORDS, size=generator.integers(1, 7)))

    return [example(str(index), [text() for _ in range(generator.integers(0, longest + 1))], text()) for index in range(number)]


@pytest.fixture
def make(tiny_causal_model: Path) -> Make:
    return functools.partial(CausalScorer, str(tiny_causal_model))


@pytest.fixture
def broken(tiny_causal_model: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_causal_model, tmp_path / "model")
    return tmp_path / "model"


def published_loop(scorer: CausalScorer, item: Example) -> float:
    """The steps of the published code, one text at a time."""

    def ask(classifier: classifiers.IndependenceClassifier, *texts: str) -> float:
        rows = classifier.texts.rows(texts, np.array([range(len(texts))]))
        with torch.no_grad():
            return float(classifier.logits([classifier.texts.encode(rows, 0)]).double().softmax(-1)[0, 1])

    history, response = [turn.text for turn in item.context], item.response.text
    chances = [ask(scorer.model.unconditional, text, response) for text in history]
    dependent = [place for place, chance in enumerate(chances) if chance > 0.5]
    if not dependent:
        return 0.0
    means = []
    for cause in dependent:
        others = [history[place] for place in dependent if history[place] != history[cause]]
        if others:
            means.append(np.mean([ask(scorer.model.conditional, history[cause], other, response) for other in others]))
    first = np.mean([chances[place] for place in dependent])
    return float(first + (np.mean(means) if means else first)) / 2


def test_scores_equal_those_of_the_published_loop(make: Make) -> None:
    scorer, items = make(dedupe="text"), examples(40)
    scores = scorer.score(items)
    assert scores.values == pytest.approx([published_loop(scorer, item) for item in items], abs=1e-5)
    assert {0, 1, 2, 3} <= set(scores.columns["n_dependent"])


def test_a_text_that_occurs_again_is_read_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = make()
    n_read: list[int] = []
    logits = classifiers.IndependenceClassifier.logits
    monkeypatch.setattr(
        classifiers.IndependenceClassifier, "logits", lambda self, ids: (n_read.append(len(ids)), logits(self, ids))[1]
    )
    scorer.score([replace(item, id=f"{item.id}{copy}", facts=(copy,)) for item in examples(8) for copy in "ab"])
    n_of_copies = sum(n_read)
    scorer.score(examples(8))
    assert 2 * n_of_copies == sum(n_read) > 0


@pytest.mark.parametrize("variant", ["causalscore", "unconditional", "conditional", "max_ci"])
def test_every_variant_names_its_column_and_itself(variant: str, make: Make) -> None:
    scores = make(variant=variant).score(examples(12))
    assert (scores.main, scores.signature.fields["variant"]) == (variant, variant)
    assert scores.values == pytest.approx(make().score(examples(12)).columns[variant], abs=1e-6)
    assert ("conditional" in scores.columns) == (variant != "unconditional")


def test_options_are_in_the_signature(make: Make) -> None:
    base = make().signature_fields()
    changes: dict[str, Any] = {
        "conditions": 2, "pairs": "unordered", "dedupe": "text", "single": "half", "average": "top_3", "layout": "literal",
        "truncate": "right", "max_tokens": 64,
    }  # fmt: skip
    for name, value in changes.items():
        fields = make(**{name: value}).signature_fields()
        field = {"truncate": "truncation", "max_tokens": "window"}.get(name, name)
        assert {key for key in fields if fields[key] != base[key]} == {field}
        assert fields[field] == value
    assert make(variant="max_ci", max_ci="half").signature_fields()["max_ci"] == "half"


def test_pruned_conditions_change_scores_of_long_histories_only(make: Make) -> None:
    exact, pruned = (make(conditions=k).score(examples(40)) for k in ("all", 2))
    is_same = [before == pytest.approx(after, abs=1e-6) for before, after in zip(exact.values, pruned.values, strict=True)]
    assert all(same or n > 2 for same, n in zip(is_same, exact.columns["n_dependent"], strict=True))  # type: ignore[operator]
    assert not all(is_same)


def test_edge_cases_have_defined_scores(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    items = [
        example("empty history", [], "yes"),
        example("blank turns", ["", " \n"], "yes"),
        example("one turn", ["Do you like tea?"], "yes"),
        example("all equal", ["we had tea"] * 6, "they saw the rain"),
        example("60 turns", [f"we saw {number} cats" for number in range(60)], "no tea"),
        example("long turn", ["rain " * 200, "tea"], "yes"),
        example("long response", ["tea"], "rain " * 200),
        example("blank response", ["tea"], " \u200b"),
        example("emoji", ["🙂"], "🙂"),
    ]
    with caplog.at_level(logging.WARNING):
        rows = {row["id"]: row for row in make().score(items).rows()}
    assert rows["empty history"]["causalscore"] == rows["blank turns"]["causalscore"] == 0.0
    assert (rows["blank turns"]["n_turns"], rows["60 turns"]["n_turns"]) == (0, 60)
    assert rows["blank response"]["unscored"] == "empty_input"
    assert all(0 <= row["causalscore"] <= 1 for id, row in rows.items() if id != "blank response")
    assert [id for id, row in rows.items() if row["n_cut"]] == ["long turn", "long response"]
    assert caplog.messages[1:] == [
        "causalscore: in 2 of 9 examples turns and response together are longer than 128 tokens and were cut (utterances)"
    ]


def test_a_classifier_that_answers_nan_leaves_no_score(broken: Path) -> None:
    poison(broken / "unconditional" / "model.safetensors")
    scores = CausalScorer(str(seal(broken))).score(examples(3))
    assert scores.unscored_by_reason.get("non_finite") == sum(bool(item.context) for item in examples(3))


def test_the_history_is_shown_with_its_dependent_turns(make: Make) -> None:
    scorer = make()
    item = example("7", ["Hi there", "how are you?", "fine thanks, and you", "what a rainy day it is"], "Good.")
    (found,) = scorer.dependence([item])
    shown = scorer.explain([item, example("8", ["a"], "")])
    dependent = [place for place, chance in enumerate(found.unconditional) if chance > 0.5]
    assert dependent == [0, 1]
    assert shown == [
        "7: 2 of 4 turns are dependent\n"
        f"  * {found.unconditional[0]:.2f} {found.conditional[0]:.2f}  A: Hi there\n"
        f"  * {found.unconditional[1]:.2f} {found.conditional[1]:.2f}  B: how are you?\n"
        f"    {found.unconditional[2]:.2f}       A: fine thanks, and you\n"
        f"    {found.unconditional[3]:.2f}       B: what a rainy day it is\n"
        "  >              Good.",
        "the response has no visible character",
    ]


def test_the_history_is_shown_with_the_means_that_the_score_has() -> None:
    pairs = np.array([[0, place] for place in range(1, 6)])
    found = Dependence(np.arange(6), np.full(6, 0.9), pairs, np.array([0.1, 0.2, 0.6, 0.7, 0.8]), 0)
    assert found.as_cause(0, Aggregation()) == pytest.approx(0.48)
    assert found.as_cause(0, Aggregation(average="top_3")) == pytest.approx(0.7)
    assert found.as_cause(1, Aggregation()) is None


def test_the_model_is_found_where_it_is_named(tiny_causal_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CAUSALSCORE", str(tiny_causal_model))
    assert CausalScorer().model_name == str(tiny_causal_model)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"conditions": "some"}, "conditions is 'some'. Give a whole number from 1 or 'all'."),
        ({"variant": "preceding_2"},
         "the variant 'preceding_2' needs a model that was trained without annotated causes, and this one was not. "
         "Train one with `dialeval train independence --labels preceding_2`, or choose another variant."),
        ({"max_tokens": 257},
         "max_tokens is 257, but the encoder reads 256. Give a smaller number or another backbone."),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(make: Make, options: dict[str, Any], problem: str) -> None:
    assert refusal(make, **options) == f"causalscore: {problem}"


def test_a_model_without_annotated_causes_has_its_own_variant(tmp_path: Path) -> None:
    folder = write_tiny_causal_model(tmp_path, CausalModelConfig("paper", "preceding_2", max_tokens=128))
    scores = CausalScorer(str(folder), variant="preceding_2").score(examples(5))
    assert scores.main == "preceding_2"
    assert scores.values == scores.columns["conditional"]


def test_a_missing_tensor_is_named(broken: Path) -> None:
    folder = broken / "unconditional"
    change_tensors(folder / "model.safetensors", lambda name, tensor: None if name == "classifier.weight" else tensor)
    with refused(f"{folder}: the encoder's weights lack 'classifier.weight'. Copy the model folder again.", ModelLoadError):
        CausalScorer(str(seal(broken)))


def test_a_folder_of_another_kind_or_format_is_named(broken: Path, tiny_slm: Path, tiny_encoder: Path) -> None:
    with refused(
        f"{tiny_slm}: has no causalscore.json, so it is not a trained model of CausalScore (or its training did not end). "
        "Train one with `dialeval train independence`.",
        ModelLoadError,
    ):
        CausalScorer(str(tiny_slm))
    folder = broken / "conditional"
    shutil.rmtree(folder)
    CrossEncoder(str(tiny_encoder), num_labels=1, device="cpu").save_pretrained(str(folder), create_model_card=False)
    with refused(f"{folder}: the classifier has 1 labels, expected 2. Is this another model's folder?", ModelLoadError):
        CausalScorer(str(seal(broken)))
    path = broken / CAUSAL_FOLDER.settings_file
    path.write_text(json.dumps({"format_version": 1}))
    with refused(f"{path}: format_version is 1, this release reads 2. Update dialeval-plugin or train again.", ModelLoadError):
        CausalScorer(str(broken))


def test_d12_a_history_with_too_many_pairs_has_no_score_and_its_neighbours_keep_theirs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS D12, R13: 100,000 turns asked for 2 GiB at a time and ended the run."""
    items = examples(20)
    expected = make().score(items)
    monkeypatch.setattr(causal_scoring, "MOST_PAIRS", 8)
    scores = make().score(items)

    n_dependent = [int(value or 0) for value in expected.columns["n_dependent"]]
    beyond = [place for place, number in enumerate(n_dependent) if number**2 > 8]
    assert 0 < len(beyond) < 15
    assert {place: str(found.detail) for place, found in scores.unscored.items()} == {
        place: f"{n_dependent[place]} dependent turns make up to {n_dependent[place] ** 2} pairs, more than the 8 that are "
        "asked about; with conditions=k they are k times as many as turns"
        for place in beyond
    }
    assert {found.reason for found in scores.unscored.values()} == {Reason.CONTEXT_TOO_LONG}
    kept = [place for place in range(20) if place not in beyond]
    assert [scores.values[place] for place in kept] == pytest.approx([expected.values[place] for place in kept], abs=1e-6)
    assert make(conditions=1).score(items).n_unscored == 0


def test_d12_a_hundred_thousand_turns_are_one_row_without_a_score(make: Make) -> None:
    scorer = make()
    single = [example(word, [word], response) for word in WORDS for response in ("cats", "we")]
    dependent = next(item for item, n in zip(single, scorer.score(single).columns["n_dependent"], strict=True) if n)
    long = replace(dependent, id="long", context=dependent.context * 100_000)
    short = examples(3)
    scores = scorer.score([short[0], long, *short[1:]])

    detail = (
        "100000 dependent turns make up to 10000000000 pairs, more than the 1000000 that are asked about; "
        "with conditions=k they are k times as many as turns"
    )
    assert scores.unscored == {1: Unscored(Reason.CONTEXT_TOO_LONG, detail)}
    assert [scores.values[place] for place in (0, 2, 3)] == pytest.approx(scorer.score(short).values, abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [([], []), ([5], [(0, 1)]), ([11], [(0, 1)]), ([4, 6, 1, 11, 0], [(0, 2), (2, 3), (3, 4), (4, 5)]), ([0, 0], [(0, 2)])],
)
def test_pairs_are_asked_about_in_shares(
    sizes: list[int], shares: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causal_scoring, "MOST_PAIRS", 10)
    assert list(causal_scoring._shares(sizes)) == shares
