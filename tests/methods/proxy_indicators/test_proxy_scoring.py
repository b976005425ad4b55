"""The scorer `glue_proxy` on real architectures with random weights."""

from __future__ import annotations

import functools
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import DialevalError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.proxy_indicators.indicators import IndicatorModels
from dialeval_plugin.methods.proxy_indicators.regression import ProxyModel, fit
from dialeval_plugin.methods.proxy_indicators.scorer import GlueProxyScorer
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, SUBSETS, TASKS, Choice, IndicatorSettings
from tests.refusals import refusal
from tests.sealed import change_tensors, poison
from tests.tiny.classifiers import WINDOW, write_classifier

FACTS = ("tea is a plant .", "it grows in hills .")
WORDS = ["do", "you", "like", "green", "tea", "or", "rather", "coffee", "with", "milk", "?"]
EXAMPLES = [
    Example.from_texts(
        [" ".join(WORDS[: 2 + place % 5]), "yes , and you ?"], " ".join(WORDS[place % 7 :]), id=str(place), facts=FACTS
    )
    for place in range(20)
]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def classifiers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Task to the folder of its classifier, of one architecture."""
    base = tmp_path_factory.mktemp(request.param)
    return {
        name: str(write_classifier(base / name, task.labels, architecture=request.param, seed=seed))
        for seed, (name, task) in enumerate(TASKS.items())
    }


def single(classifiers: dict[str, str], feature: str, **options: Any) -> GlueProxyScorer:
    return GlueProxyScorer(variant=feature, models=classifiers, **options)


@functools.cache
def opened(folder: str) -> tuple[Any, Any]:
    return AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def by_hand(folder: str, *texts: str, label: str | None) -> float:
    """One text at a time, as the published code does it."""
    model, tokenizer = opened(folder)
    with torch.no_grad():
        logits = model(**tokenizer(*texts, return_tensors="pt")).logits[0].double()
    return float(logits[0]) if label is None else float(logits.softmax(0)[model.config.label2id[label]])


def write_regression(folder: Path, classifiers: dict[str, str], features: tuple[str, ...] = FEATURES, **options: Any) -> Path:
    settings = IndicatorSettings(features, {name: Choice(model) for name, model in classifiers.items()}, **options)
    models = IndicatorModels(settings)
    columns = models.indicate(EXAMPLES).columns
    table = [[columns[name][place] for name in features] for place in range(len(EXAMPLES))]
    ratings = np.random.default_rng(0).uniform(1, 5, size=len(EXAMPLES))
    path = folder / "proxy.json"
    ProxyModel(settings, fit(features, table, ratings), "Overall", models.hashes).save(path)  # type: ignore[arg-type]
    return path


# Indicators


def test_every_indicator_is_the_classifiers_probability_of_its_label(classifiers: dict[str, str]) -> None:
    scores = single(classifiers, "cola", features="all").score(EXAMPLES[:4])
    assert scores.columns.keys() == {*FEATURES, "n_cut"}
    for place, example in enumerate(EXAMPLES[:4]):
        context = "\n".join(turn.text for turn in example.context)
        for name, task in TASKS.items():
            before = {name: [context], f"fact_{name}": ["\n".join(FACTS)]} if task.is_pair else {name: []}
            for feature, texts in before.items():
                value = by_hand(classifiers[name], *texts, example.response.text, label=task.label)
                assert scores.columns[feature][place] == pytest.approx(value, abs=1e-5), feature


def test_a_special_token_in_a_text_is_letters(classifiers: dict[str, str]) -> None:
    texts = [("a [SEP] b", "c"), ("a", "b [SEP] c"), (f"a [SEP] {'x' * WINDOW}", "c")]
    scorer = single(classifiers, "rte")
    classifier = scorer.indicators._classifier("rte")
    sep = classifier.tokenizer.sep_token_id
    with patch.object(classifier.model, "forward", wraps=classifier.model.forward) as forward:
        scorer.score([Example.from_texts([context], response) for context, response in texts])
    seen = [ids.tolist().count(sep) for call in forward.call_args_list for ids in call.kwargs["input_ids"]]
    assert seen == [classifier.tokenizer("a", "c")["input_ids"].count(sep)] * 3


@pytest.mark.parametrize("task", ["qnli", "rte"])
def test_orientation_is_by_the_name_of_the_label(classifiers: dict[str, str], task: str, tmp_path: Path) -> None:
    entails = single(classifiers, task).score(EXAMPLES).values
    not_entails = single(classifiers, task, entailment="not_entailment").score(EXAMPLES).values
    assert [one + other for one, other in zip(entails, not_entails, strict=True)] == pytest.approx([1.0] * 20)  # type: ignore[operator]
    # The same classifier with its classes the other way round says the same.
    swapped = shutil.copytree(classifiers[task], tmp_path / "swapped")
    config = json.loads((swapped / "config.json").read_text())
    config["id2label"] = {"0": "Not-Entailment", "1": "ENTAILMENT"}
    (swapped / "config.json").write_text(json.dumps(config))
    last = ("classifier.weight", "classifier.bias", "classifier.out_proj")
    change_tensors(swapped / "model.safetensors", lambda name, tensor: tensor.flip(0) if name.startswith(last) else tensor)
    assert single({**classifiers, task: str(swapped)}, task).score(EXAMPLES).values == pytest.approx(list(entails), abs=1e-6)


def test_labels_that_a_classifier_does_not_name_are_given(tmp_path: Path) -> None:
    folder = str(write_classifier(tmp_path / "rte", n_labels=2))
    names = ["entailment", "not_entailment"]
    first, second, from_text = (
        GlueProxyScorer(variant="rte", models=models, labels=labels).score(EXAMPLES)
        for models, labels in (
            ({"rte": folder}, {"rte": names}),
            ({"rte": folder}, {"rte": names[::-1]}),
            (f"rte={folder}", "rte=entailment/not_entailment"),
        )
    )
    assert [one + other for one, other in zip(first.values, second.values, strict=True)] == pytest.approx([1.0] * 20)  # type: ignore[operator]
    assert (from_text.values, str(from_text.signature)) == (first.values, str(first.signature))
    assert str(second.signature) != str(first.signature)


MEANING = "Say what its classes mean, in their order:"


@pytest.mark.parametrize(
    ("task", "written", "given", "text"),
    [
        ("rte", {"n_labels": 2}, None,
         f"its config.json names no labels. {MEANING} labels={{'rte': ['entailment', 'not_entailment']}}."),
        ("rte", {"labels": ("yes", "no")}, None,
         f"has the labels yes, no, of which none is 'entailment'. {MEANING} "
         "labels={'rte': ['entailment', 'not_entailment']}."),
        ("cola", {"n_labels": 2}, ["unacceptable", "borderline", "acceptable"],
         f"has 2 outputs, but the labels unacceptable, borderline, acceptable. {MEANING} "
         "labels={'cola': ['unacceptable', 'acceptable']}."),
        ("stsb", {"labels": ("a", "b")}, None,
         "has 2 outputs, but stsb is a regression with one. Name a model fine-tuned on it."),
    ],
)  # fmt: skip
def test_a_label_is_never_guessed(tmp_path: Path, task: str, written: Any, given: Any, text: str) -> None:
    folder = write_classifier(tmp_path / "model", **written)
    scorer = GlueProxyScorer(variant=task, models={task: str(folder)}, labels=given and {task: given})
    assert refusal(scorer.score, EXAMPLES[:1], error=ModelLoadError) == f"{folder}: {text}"


@pytest.mark.parametrize(("truncate", "is_read"), [("right", (True, False)), ("left", (False, True))])
def test_a_long_text_is_cut_at_the_chosen_end_and_counted(
    classifiers: dict[str, str], truncate: str, is_read: tuple[bool, bool], caplog: pytest.LogCaptureFixture
) -> None:
    turns = [f"turn {place} is here" for place in range(12)]
    contexts = (turns, ["other first turn !!", *turns[1:]], [*turns[:-1], "other last turn !!!"])
    items = [Example.from_texts(context, "so be it", id=str(place), facts=FACTS) for place, context in enumerate(contexts)]
    with caplog.at_level(logging.WARNING):
        scores = single(classifiers, "mrpc", features="all", truncate=truncate).score(items)
    # What is cut away cannot matter: the newest turns at the right, the oldest at the left.
    whole, old, new = scores.values
    assert (old != whole, new != whole) == is_read
    # Context and response are read by five classifiers; facts and response fit.
    assert scores.columns["n_cut"] == (5.0, 5.0, 5.0)
    assert caplog.messages == [
        f"glue_proxy: in 3 of 3 examples texts are longer than a classifier's window and were cut ({truncate})"
    ]


def test_a_text_as_long_as_the_window_is_not_cut(classifiers: dict[str, str]) -> None:
    exact = Example.from_texts(["x" * (WINDOW - 40)], "y" * 30, facts=FACTS)
    assert single(classifiers, "mrpc").score([exact]).columns["n_cut"] == (0.0,)


# Rows without a score


def test_what_cannot_be_read_is_unscored_by_reason(classifiers: dict[str, str]) -> None:
    alone = Example.from_texts([], "hello", facts=FACTS, id="alone")
    factless = Example.from_texts(["hi"], "hello", facts=[" "], id="factless")
    rows = [alone, factless, EXAMPLES[0]]
    # An indicator beside the main one may be absent.
    cola = single(classifiers, "cola", features="all").score(rows)
    assert cola.n_unscored == 0
    assert [value is None for value in cola.columns["mrpc"]] == [True, False, False]
    assert [value is None for value in cola.columns["fact_mrpc"]] == [False, True, False]
    for variant, unscored in (
        ("fact_stsb", {1: Unscored(Reason.EMPTY_INPUT, "there is no fact, which fact_stsb reads")}),
        ("qqp", {0: Unscored(Reason.EMPTY_INPUT, "there is no context, which qqp reads")}),
    ):
        assert single(classifiers, variant).score(rows).unscored == unscored
    assert single(classifiers, "fact_stsb", absent_fact="_nofact").score(rows).n_unscored == 0


def test_a_broken_classifier_leaves_rows_unscored_not_nan(tmp_path: Path) -> None:
    folder = write_classifier(tmp_path / "cola", TASKS["cola"].labels)
    poison(folder / "model.safetensors")
    scores = GlueProxyScorer(variant="cola", models={"cola": str(folder)}).score(EXAMPLES[:2])
    assert scores.values == (None, None)
    assert scores.unscored_by_reason == {"non_finite": 2}


# Combination


def test_the_combination_is_the_stored_regression_of_the_columns(classifiers: dict[str, str], tmp_path: Path) -> None:
    path = write_regression(tmp_path, classifiers)
    scorer = GlueProxyScorer(str(path))
    scores = scorer.score(EXAMPLES)
    table: list[Sequence[Any]] = list(zip(*(scores.columns[name] for name in FEATURES), strict=True))
    expected = ProxyModel.load(path).regression.predict(table)
    assert scores.values == pytest.approx(expected.tolist(), abs=1e-6)
    fields = scores.signature.fields
    assert (scores.main, fields["quality"], "regression" in fields) == ("glue_proxy", "Overall", True)
    factless = Example.from_texts(["hi"], "hello", id="factless")
    assert scorer.score([factless]).unscored[0].detail == "there is no fact, which fact_mrpc reads"


def test_a_regression_needs_its_own_classifiers_only(classifiers: dict[str, str], tmp_path: Path) -> None:
    path = write_regression(tmp_path, classifiers, SUBSETS["single"])
    scores = GlueProxyScorer(str(path)).score([Example.from_texts([], "hello")])
    assert scores.columns.keys() == {"glue_proxy", "cola", "sst", "n_cut"}
    assert scores.n_scored == 1


def test_another_classifier_than_that_of_the_fit_is_refused(classifiers: dict[str, str], tmp_path: Path) -> None:
    path = write_regression(tmp_path, classifiers, SUBSETS["single"])
    moved = shutil.copytree(classifiers["cola"], tmp_path / "moved")
    same = GlueProxyScorer(str(path), models={"cola": str(moved)}).score(EXAMPLES)
    assert same.values == GlueProxyScorer(str(path)).score(EXAMPLES).values
    other = str(write_classifier(tmp_path / "other", TASKS["cola"].labels, seed=99))
    assert refusal(GlueProxyScorer, str(path), models={"cola": other}) == (
        f"glue_proxy: the classifier {other!r} of cola is not the one that the regression was fitted on. "
        "Give that one under models, or train again."
    )


def test_the_regression_is_found_like_other_models(
    classifiers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DIALEVAL_GLUE_PROXY", raising=False)
    assert refusal(GlueProxyScorer, error=MissingPrerequisite) == (
        "glue_proxy: no regression is named. Train one with `dialeval train proxy --data FILE --output proxy.json`, or pass "
        "regression='proxy.json', or set DIALEVAL_GLUE_PROXY; or choose a single indicator, for example variant='cola'."
    )
    monkeypatch.setenv("DIALEVAL_GLUE_PROXY", str(write_regression(tmp_path, classifiers, SUBSETS["single"])))
    assert GlueProxyScorer().columns[0] == "glue_proxy"


# Options and files


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"variant": "mnli"}, f"there is no indicator 'mnli'. Did you mean 'qnli'? Known are: {', '.join(FEATURES)}."),
        ({"variant": "cola", "features": "pairs"},
         "there is no set of indicators 'pairs'. Known are: single, context, fact, all."),
        ({"variant": "cola", "regression": "proxy.json"},
         "a regression was given, but the variant 'cola' needs none. Leave one of them out."),
        ({"regression": "proxy.json", "truncate": "left"},
         "truncate is 'left', but a regression has its own. Leave it out, or train another one."),
        ({"variant": "rte", "entailment": "yes"}, "entailment is 'yes'. Give one of entailment, not_entailment."),
        ({"variant": "rte", "models": {"wnli": "x"}},
         f"models: there is no task 'wnli'. Did you mean 'qnli'? Known are: {', '.join(TASKS)}."),
        ({"variant": "rte", "labels": "rte"},
         "labels: expected TASK=VALUE parts such as rte=entailment/not_entailment, got 'rte'."),
    ],
)  # fmt: skip
def test_wrong_options_are_named(options: dict[str, Any], text: str) -> None:
    assert refusal(GlueProxyScorer, **options) == f"glue_proxy: {text}"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("[]", "is no combination of indicators. Train one with `dialeval train proxy`."),
        ('{"kind": "glue_proxy", "schema_version": 9}',
         "schema_version is 9, this release reads 1. Update dialeval-plugin or train again."),
        ('{"kind": "glue_proxy", "schema_version": 1}', "settings: field required. Copy it again."),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_regression_is_named(tmp_path: Path, written: str, text: str) -> None:
    path = tmp_path / "proxy.json"
    path.write_text(written)
    assert refusal(GlueProxyScorer, str(path)) == f"{path}: {text}"


def test_a_classifier_that_is_unsafe_or_not_whole_is_refused(tmp_path: Path) -> None:
    folder = write_classifier(tmp_path / "cola", TASKS["cola"].labels)
    weights = folder / "model.safetensors"

    def said() -> str:
        scorer = GlueProxyScorer(variant="cola", models={"cola": str(folder)})
        return refusal(scorer.score, EXAMPLES[:1], error=ModelLoadError)

    change_tensors(weights, lambda name, tensor: None if name.startswith("classifier") else tensor)
    assert said() == (
        f"{folder}: as a classifier its weights lack 'classifier.bias', which would be random. "
        "Copy the folder again, or name a classifier that is fine-tuned on cola."
    )
    weights.write_bytes(weights.read_bytes()[:5000])
    assert said().startswith(str(folder))
    assert said().endswith("Copy the model folder again.")
    pickled = weights.rename(folder / "pytorch_model.bin")
    assert said() == (
        f"{pickled}: pickled weights run code when they are read, so they are never opened. Convert them to safetensors where "
        "you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`."
    )


def test_the_default_classifiers_are_looked_for_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    download = Mock(side_effect=OSError("offline"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    for models, name, revision in ((None, "textattack/bert-base-uncased-RTE", None), ("rte=me/rte@v2", "me/rte", "v2")):
        with pytest.raises(DialevalError):
            GlueProxyScorer(variant="rte", models=models).score(EXAMPLES[:1])
        assert (download.call_args.args, download.call_args.kwargs["revision"]) == ((name,), revision)
