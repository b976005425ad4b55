"""The tasks over DailyDialog++: documents, prompts, accuracies, a real model, and a scorer in the judge's place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from lm_eval.models.huggingface import HFLM

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM, recenter
from dialeval_plugin.hosts.lm_eval.samplers import PrintedExamples
from dialeval_plugin.hosts.lm_eval.tasks.classification import (
    ACCURACIES,
    Classified,
    dailydialog_pp_dataset,
    mini_dataset,
    process_choice,
    process_generation,
)
from dialeval_plugin.hosts.lm_eval.tasks.documents import item_of
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.methods.judging.classification import PRINTED_EXAMPLES, ClassificationPrompt
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.statistics.means import balanced_mean_interval, mean_interval
from tests.hosts.through_lm_eval import Length, evaluate, metrics
from tests.refusals import refused

FORMS = ("dailydialog_pp_mini", "dailydialog_pp_generate_mini")
ROW = {
    "id": 7,
    "context": ["Is there something wrong?", "I enjoy having your daughter in my class.", "I'm glad to hear it."],
    "positive_responses": ["She is so brilliant.", "Thank you."],
    "adversarial_negative_responses": ["The class has a camera."],
    "random_negative_responses": ["Two tickets to Leeds, please."],
}


class Recorder(Length):
    """Scorer with a range in whose middle responses begin to be positive."""

    range = (0.0, 80.0)

    def __init__(self) -> None:
        super().__init__(skip="you")


@pytest.fixture
def own_row(own_data: Path) -> None:
    (own_data / "dailydialog_pp").mkdir()
    (own_data / "dailydialog_pp" / "test.json").write_text(json.dumps(ROW) + "\n", encoding="utf-8")


def test_a_document_is_a_response_with_its_kind_and_label(own_row: None) -> None:
    documents = list(dailydialog_pp_dataset()["test"])
    assert [(doc["id"], doc["kind"], doc["answer"], doc["choices"][doc["label"]]) for doc in documents] == [
        ("7p0", "positive", "Positive", "Positive"),
        ("7p1", "positive", "Positive", "Positive"),
        ("7r0", "random", "Negative", "Negative"),
        ("7a0", "adversarial", "Negative", "Negative"),
    ]
    assert len({doc["cluster"] for doc in documents}) == 1
    assert item_of(documents[3]) == Example.from_texts(ROW["context"], "The class has a camera.", id="7a0")  # type: ignore[arg-type]


@pytest.mark.real_data
def test_the_real_test_set_has_fifteen_responses_a_context(data_dir: Path) -> None:
    documents = dailydialog_pp_dataset()["test"]
    assert (len(documents), len(set(documents["cluster"]))) == (8325, 555)
    # Printed example 4 is of a test context, whose own fifteen documents are shown the other four.
    shown = [len(ClassificationPrompt().shown_for(item_of(doc))) for doc in documents.select(range(0, 8325, 15))]  # type: ignore[arg-type]
    assert (shown.count(5), shown.count(4)) == (554, 1)


@pytest.mark.long
@pytest.mark.parametrize("n", [0, 2, 5])
def test_the_host_sends_the_papers_prompt(n: int) -> None:
    result = evaluate(DialogueMetricLM(Recorder()), *FORMS, limit=2, num_fewshot=n, log_samples=True)
    prompt = ClassificationPrompt(PRINTED_EXAMPLES[:n])
    for task in FORMS:
        for sample in result["samples"][task]:
            assert {arguments[0] for arguments in sample["arguments"]} == {prompt.render(item_of(sample["doc"]))}
    asked = [arguments[1] for arguments in result["samples"][FORMS[0]][0]["arguments"]]
    assert asked == [" Positive", " Negative", " positive", " negative"]


def test_examples_of_the_tested_dialogue_are_left_out_of_its_prompt(own_row: None) -> None:
    result = evaluate(DialogueMetricLM(Recorder()), "dailydialog_pp", log_samples=True)
    prompts = {sample["arguments"][0][0] for sample in result["samples"]["dailydialog_pp"]}
    assert len(prompts) == 4
    assert all("The following is one example of" in prompt for prompt in prompts)
    assert all(prompt.count("daughter") == 1 for prompt in prompts)


def test_more_examples_than_are_printed_are_refused() -> None:
    with refused("few-shot examples: 6 were asked for, but the paper prints 5. Ask for fewer (--num_fewshot)."):
        PrintedExamples([]).sample(6)


def test_a_choice_is_the_label_with_the_larger_sum_over_its_spellings() -> None:
    document = mini_dataset()["test"][0]
    assert document["kind"] == "positive"
    for shares, hit in (((0.2, 0.3, 0.2, 0.0), 1.0), ((0.3, 0.2, 0.0, 0.2), 0.0), ((0.2, 0.2, 0.1, 0.1), 1.0)):
        results = [(math.log(share) if share else -math.inf, False) for share in shares]
        assert set(process_choice(document, results).values()) == {Classified("positive", hit, document["cluster"])}
    impossible = process_choice(document, [(-math.inf, False)] * 4)
    assert tuple(impossible) == KINDS["classification"].printed
    assert {item.hit for item in impossible.values()} == {None}


def test_an_answer_that_cannot_be_read_is_unscored_and_not_wrong_and_an_echo_of_the_prompt_is_none() -> None:
    document = mini_dataset()["test"][0]
    prompt = ClassificationPrompt().render(item_of(document))  # type: ignore[arg-type]
    unread = dict.fromkeys(("Perhaps.", "", "positive or negative", prompt))
    for answer, hit in {"Positive": 1.0, " negative.": 0.0, prompt + " Positive": 1.0, **unread}.items():
        assert {item.hit for item in process_generation(document, [answer]).values()} == {hit}, answer


def classified() -> list[Classified]:
    """Positive 3 of 4, adversarial 1 of 2 with one unscored, random 2 of 3, over three contexts."""
    hits = {"positive": (1.0, 1.0, 0.0, 1.0), "adversarial": (0.0, 1.0, None), "random": (1.0, 0.0, 1.0)}
    return [Classified(kind, hit, "abc"[i % 3]) for kind, values in hits.items() for i, hit in enumerate(values)]


def test_accuracies_are_over_the_scored_and_overall_is_the_mean_of_two() -> None:
    overall = (3 / 4 + 1 / 2) / 2
    expected = {"positive": 3 / 4, "adversarial": 1 / 2, "random": 2 / 3, "overall": overall}
    found = ACCURACIES.values(classified())
    assert {name: found[f"accuracy_{name}"] for name in expected} == pytest.approx(expected)
    assert (found["n_scored"], found["n_unscored"]) == (9, 1)
    few = [Classified("positive", 1.0, "a"), Classified("adversarial", None, "a")]
    assert ACCURACIES.values(few)["accuracy_random"] == "undefined (none of 0 rows has a value)"
    assert ACCURACIES.values(few)["accuracy_overall"] == "undefined (no row of group 'adversarial' has a value)"


def test_intervals_depend_neither_on_order_nor_on_the_hosts_plain_tuples() -> None:
    items = [item._replace(cluster=f"{item.cluster} {number}") for number in range(9) for item in classified()]
    assert isinstance(ACCURACIES.values(items)["accuracy_overall_ci_low"], float)
    assert ACCURACIES.values(items) == ACCURACIES.values([tuple(item) for item in reversed(items)])


def test_the_hf_backend_runs_both_forms(tiny_lm: Path) -> None:
    lm = HFLM(pretrained=str(tiny_lm), device="cpu", batch_size=4, max_length=1024)
    ran = evaluate(lm, *FORMS, limit=15, num_fewshot=0)
    json.dumps(ran["results"], allow_nan=False)
    choice, text = (metrics(ran, task) for task in FORMS)
    # A choice always has an answer; random weights do not write one.
    assert [(one["n_scored"], one["n_unscored"]) for one in (choice, text)] == [(15, 0), (0, 15)]
    assert text["accuracy_overall"].startswith("undefined (")


@pytest.mark.long
@pytest.mark.parametrize("variant", ["slm", "slm_probability", "slm_distance"])
def test_a_scorer_gives_both_forms_the_accuracies_of_its_own_rule(variant: str, tiny_slm: Path) -> None:
    ran = evaluate("dialogue-metric", *FORMS, model_args=f"scorer=slide,variant={variant},slm={tiny_slm},device=cpu")
    scorer = SlideScorer(str(tiny_slm), variant=variant, device="cpu")  # type: ignore[arg-type]
    examples = mini.read_examples("test")
    cut, sign = scorer.positive_from, -1 if scorer.orientation == "lower" else 1
    assert cut is not None
    hits = [
        float((sign * value >= sign * cut) == bool(example.ratings[mini.QUALITY][0]))
        for value, example in zip(scorer.score(examples).values, examples, strict=True)
        if value is not None
    ]
    rows = [(hit, one.system, context_key(one)) for hit, one in zip(hits, examples, strict=True)]
    of_kinds = {kind: [row for row in rows if row[1] == kind] for kind in ("positive", "adversarial", "random")}
    expected = {
        kind: mean_interval([hit for hit, *_ in of], clusters=[cluster for *_, cluster in of]) for kind, of in of_kinds.items()
    }
    balanced = [row for row in rows if row[1] != "random"]
    expected["overall"] = balanced_mean_interval([hit for hit, *_ in balanced], [kind for _, kind, _ in balanced])
    for task in FORMS:
        found = metrics(ran, task)
        for kind, direct in expected.items():
            assert found[f"accuracy_{kind}"] == pytest.approx(direct.value, abs=1e-12), (task, kind)
        assert (found["n_scored"], found["n_unscored"]) == (len(examples), 0)


def test_a_scorer_without_a_rule_is_cut_in_the_middle_and_its_gaps_stay_gaps() -> None:
    ran = evaluate(DialogueMetricLM(Recorder()), *FORMS)
    examples = mini.read_examples("test")
    positive = [len(e.response.text) >= 40 for e in examples if e.system == "positive" and "you" not in e.response.text]
    n_gaps = sum("you" in example.response.text for example in examples)
    for task in FORMS:
        found = metrics(ran, task)
        assert found["accuracy_positive"] == pytest.approx(sum(positive) / len(positive))
        assert found["n_unscored"] == n_gaps > 0


def test_a_scorer_without_a_rule_and_a_middle_classifies_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ran = evaluate("dialogue-metric", *FORMS, model_args="scorer=response_length")
    for task in FORMS:
        found = metrics(ran, task)
        assert (found["n_scored"], found["n_unscored"]) == (0, 180)
        assert found["accuracy_overall"] == "undefined (no scores: no verdict 180)"
    assert "response_length: its range has no middle from which a response is positive" in caplog.text


@pytest.mark.parametrize("cut", [0.0, 0.25, 0.5, 1.0])
def test_moving_the_cut_keeps_the_order_and_the_ends(cut: float) -> None:
    units = [recenter(unit, cut, is_positive=unit >= cut) for unit in sorted((0.0, 0.2, cut, 0.9, 1.0))]
    assert sorted(units) == units
    assert recenter(cut, cut, is_positive=True) == 0.5 > recenter(cut, cut, is_positive=False)
    assert all(0 <= unit <= 1 for unit in units)
