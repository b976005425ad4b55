"""`dialogue-metric`: a scorer on the tasks of the LLM judges gives its own numbers, and a judge needs one pass a document."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model, metric_registry, model_registry
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks.manager import TaskManager

from dialeval_plugin.core import registry
from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scores import Row
from dialeval_plugin.corpora.readers import dstc10, fed
from dialeval_plugin.hosts.lm_eval import versions
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM, to_unit
from dialeval_plugin.hosts.lm_eval.tasks.documents import FORMS, Verdict, item_columns, verdict_of
from dialeval_plugin.hosts.lm_eval.tasks.ratings import dstc10_dataset
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.version import __version__
from tests.hosts.through_lm_eval import Length, evaluate, metrics
from tests.layouts import fed_rows, write_fed
from tests.refusals import refused


def one(task: str, scorer: Any, **options: Any) -> tuple[dict[str, Any], list[Any]]:
    """Results of a run of one task, and its samples."""
    found = evaluate(DialogueMetricLM(scorer), task, **options)
    return found, found["samples"][task]


def document(text: str = "Hello.", **columns: Any) -> dict[str, Any]:
    return {**item_columns(Example.from_texts(["Hi."], text, id="a")), **columns}


def request(doc: dict[str, Any], continuation: str, kind: str = "loglikelihood", idx: int = 0, task: str = "task") -> Instance:
    return versions.request(kind, doc, ("", continuation), task=task, place=0, idx=idx)


def test_what_has_no_score_is_counted_by_its_reason_and_the_signature_is_in_the_result(use_tiny_data: Path) -> None:
    result, _ = one("dstc10_dialog_ft", Length())
    found = metrics(result, "dstc10_dialog_ft")
    assert (found["n_scored"], found["n_unscored"]) == (11, 1)
    assert result["config"]["scorer_unscored"] == {"dstc10_dialog_ft": {"empty_input": 1}}
    assert result["config"]["scorer_signature"] == f"method:length_for_tests|level:turn|version:{__version__}"


def test_the_tasks_score_is_the_scorers_and_its_answers_are_probabilities(use_tiny_data: Path) -> None:
    _, samples = one("dstc10_dialog_tu", Length())
    values = Length().score(dstc10.read("tu")).values
    assert [sample["spearman"].score for sample in samples] == list(values)
    for value, sample in zip(values, samples, strict=True):
        answers = {form: math.exp(found) for form, ((found, _),) in zip(FORMS, sample["resps"], strict=True)}
        assert answers["Yes"] + answers["yes"] == pytest.approx(0 if value is None else value / 40, abs=1e-9)


def test_all_documents_of_all_tasks_are_scored_in_one_call(use_tiny_data: Path) -> None:
    scorer = Length()
    result = evaluate(DialogueMetricLM(scorer), "dstc10_dialog")
    assert len(scorer.calls) == 1
    tasks = result["results"]
    assert tasks["dstc10_dialog_fd"]["n_scored,none"] == 0  # dialogues, and the scorer works on responses
    assert metrics(result, "dstc10_dialog_fd")["n_unscored"] == 6
    assert tasks["dstc10_dialog_fd"]["spearman,none"].startswith("undefined (")
    assert "spearman,none" not in tasks["dstc10_dialog_dgr"]
    present = [tasks[f"dstc10_dialog_{code}"]["spearman,none"] for code in ("tu", "dz", "pu", "dgu", "ft", "eg")]
    assert tasks["dstc10_dialog"]["spearman,none"] == pytest.approx(sum(present) / 6)


def test_a_rating_is_the_scorers_score_and_its_answers_are_on_the_tasks_scale(own_data: Path) -> None:
    write_fed(own_data, fed_rows(4))
    scorer = Length(skip="rain number 2")
    result = evaluate(DialogueMetricLM(scorer), "fed_dialog_turn_overall", "fed_dialog_turn_understandable")
    items = [response for dialogue in fed.read() for response in dialogue.responses]
    values = Length(skip="rain number 2").score(items).values
    assert len(values) == 12
    assert values.count(None) == 1
    assert scorer.calls == [len({(item.context, item.response) for item in items})]
    for name, highest in (("overall", 4), ("understandable", 1)):
        samples = result["samples"][f"fed_dialog_turn_{name}"]
        assert [sample["spearman"].score for sample in samples] == list(values)
        for value, sample in zip(values, samples, strict=True):
            answers = [math.exp(found) for ((found, _),) in sample["resps"]]
            mean = math.fsum(int(form) * answer for form, answer in zip(sample["doc"]["choices"], answers, strict=True))
            assert mean == pytest.approx(0 if value is None else highest * value / 40, abs=1e-9)
        assert metrics(result, f"fed_dialog_turn_{name}")["n_unscored"] == 1


def test_examples_change_nothing_for_a_scorer(use_tiny_data: Path) -> None:
    plain, shown = (metrics(one(task, Length())[0], task) for task in ("dstc10_dialog_tu", "dstc10_dialog_bm25_c_tu"))
    assert plain == shown


def test_the_command_lines_arguments_reach_the_scorer(use_tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    monkeypatch.setitem(registry._factories, "length_for_tests", Length)
    kind = get_model("dialogue-metric")
    lm = kind.create_from_arg_string("scorer=length_for_tests,skip=music", {"batch_size": 1, "device": "cuda:7"})
    assert (lm.scorer.skip, lm.scorer.given) == ("music", (None, 1))
    lm = kind.create_from_arg_obj({"scorer": "length_for_tests"}, {"batch_size": "8", "device": "cpu"})
    assert lm.scorer.given == ("cpu", 8)
    nothing = {"scorer_signature": None, "scorer_positive_from": None, "scorer_unscored": {}}
    assert lm.get_model_info() == {"scorer": "length_for_tests", **nothing}


def test_a_task_that_asks_for_something_else_is_refused(use_tiny_data: Path) -> None:
    with refused(
        "dialogue-metric: task 'boolq' asks for the continuation ' maybe', and a scorer answers yes or no, positive or "
        "negative only. Run it on the tasks of this package, for example dstc10_dialog."
    ):
        DialogueMetricLM(Length()).loglikelihood([request({}, " maybe", task="boolq")])
    with refused("document: has no 'id', so it is not from a dialogue task of this package. It has: query."):
        DialogueMetricLM(Length()).loglikelihood([request({"query": "x"}, " yes", task="boolq")])


def test_without_arguments_the_scorer_is_the_general_evaluator() -> None:
    assert get_model("dialogue-metric").create_from_arg_string("").scorer.signature_fields()["model"].startswith("general@")


def test_a_further_process_does_not_ask_the_judge_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `accelerate launch` every process scored all documents, and a served judge was paid once for each."""
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "0")
    DialogueMetricLM("response_length")
    monkeypatch.setenv("RANK", "1")
    with refused(
        "dialogue-metric: this is process 2 of 8, and each would score every document, and ask the scorer's judge about it "
        "again. Start lm_eval once, without accelerate launch or torchrun."
    ):
        DialogueMetricLM("response_length")


def test_a_generation_is_answered_with_the_number(use_tiny_data: Path) -> None:
    documents = dstc10_dataset(dataset="tu")["test"]
    answers = DialogueMetricLM(Length()).generate_until([request(document, "", "generate_until") for document in documents])
    assert answers[0] == repr(len("Then let us talk about tea.") / 40)
    assert answers.count("unscored") == 1


INFINITE = math.inf
RANGES = [((0, 2), (0, 0.5, 2)), ((-INFINITE, 0), (-5, -1, 0)), ((1, INFINITE), (1, 2, 9)), ((-INFINITE, INFINITE), (-9, 0, 9))]


@pytest.mark.parametrize(("bounds", "values"), RANGES)
def test_every_range_maps_to_probabilities_in_order(bounds: tuple[float, float], values: tuple[float, ...]) -> None:
    units = [to_unit(value, *bounds) for value in values]
    assert units == sorted(set(units))
    assert 0 <= units[0] < units[2] <= 1
    assert to_unit(99.0, 0, 2) == 1.0


def test_a_judge_reads_each_document_once(use_tiny_data: Path, tiny_lm: Path) -> None:
    lm = HFLM(pretrained=str(tiny_lm), device="cpu", batch_size=1)
    rows = []
    forward = lm._model_call

    def counted(inputs: Any, **kwargs: Any) -> Any:
        rows.append(len(inputs))
        return forward(inputs, **kwargs)

    lm._model_call = counted
    result = evaluate(lm, "dstc10_dialog_ft")
    assert sum(rows) == 12  # documents, each with four answers
    assert [len(sample["resps"]) for sample in result["samples"]["dstc10_dialog_ft"]] == [4] * 12
    assert result["results"]["dstc10_dialog_ft"]["n_scored,none"] == 12


def test_under_a_chat_template_the_answers_lose_their_space_and_the_history_is_one_message(
    use_tiny_data: Path, tiny_lm: Path
) -> None:
    # R77: the host knows no turns; the whole history stands in one user message, and the result file says so with the
    # template's text and hash.
    lm = HFLM(pretrained=str(tiny_lm), device="cpu", batch_size=1)
    lm.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}<assistant>"
    result = evaluate(lm, "dstc10_dialog_ft", apply_chat_template=True, fewshot_as_multiturn=True, limit=1)
    (sample,) = result["samples"]["dstc10_dialog_ft"]
    assert [arguments[1] for arguments in sample["arguments"]] == ["Yes", "No", "yes", "no"]
    prompt = sample["arguments"][0][0]
    assert prompt.startswith("<system>Instruction: Given a conversation")
    assert prompt.count("<user>") == 1
    assert prompt.endswith("Answer:</user><assistant>")


def test_registering_again_changes_nothing() -> None:
    register()
    before = (TaskManager.__init__, dict(model_registry.items()))
    register()
    assert (TaskManager.__init__, dict(model_registry.items())) == before
    assert "acc" in metric_registry


class Open(Length):
    """Numbers from 40 up, in a range without an upper end."""

    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    positive_from: ClassVar[float | None] = 50.0

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"length": 40.0 + int(item.id.split("-")[1])} for item in items if isinstance(item, Example)]


def test_a_score_without_an_upper_end_reaches_people_as_it_is(use_tiny_data: Path) -> None:
    """TRIAL S1: from 37 words up all were 1.0, and Pearson was that of something else."""
    _, samples = one("dstc10_dialog_tu", "response_length")
    scores = load_scorer("response_length").score(dstc10.read("tu")).values
    assert [sample["spearman"].score for sample in samples] == list(scores)
    _, samples = one("dstc10_dialog_tu", Open())
    found = {sample["spearman"].score for sample in samples}
    assert (len(found), min(found)) == (6, 40.0)


def test_a_decision_is_that_of_the_scorers_own_threshold_where_its_range_saturates(use_tiny_data: Path) -> None:
    doc = document(choices=["Positive", "Negative"])
    requests = [request(doc, f" {choice}", idx=place) for place, choice in enumerate(doc["choices"])]
    for score, is_positive in ((49.0, False), (50.0, True), (51.0, True)):
        lm = DialogueMetricLM(Constantly(score))
        positive, negative = lm.loglikelihood(requests)
        assert (positive[0] >= negative[0]) is is_positive
        assert lm.generate_until(requests[:1]) == ["Positive" if is_positive else "Negative"]


class Constantly(Open):
    def __init__(self, score: float) -> None:
        super().__init__()
        self.score_of_all = score

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"length": self.score_of_all} for _ in items]


def test_an_answer_keeps_its_score_through_filters_and_copies(use_tiny_data: Path) -> None:
    lm = DialogueMetricLM(Constantly(60.0))
    requests = [request(document(choices=list(FORMS)), " Yes")]
    (choice,), (words,) = lm.loglikelihood(requests), lm.generate_until(requests)
    for answer in (choice, words):
        for copied in (copy.copy(answer), copy.deepcopy(answer)):
            assert copied == answer
            assert verdict_of([copied]) == Verdict(60.0, unit=1.0, is_positive=True)
    assert json.loads(json.dumps([choice, words])) == [list(choice), str(words)]
    assert verdict_of([(-1.0, False)]) is None


def test_documents_are_told_apart_by_their_content(use_tiny_data: Path) -> None:
    # Issue G 9: a document was known by its place in the task, or by its address in memory.
    lm = DialogueMetricLM(Length())
    documents = [document(text, choices=list(FORMS)) for text in ("Hello.", "Hello there.")]
    first, second = (lm.loglikelihood([request(doc, " Yes")])[0] for doc in documents)
    assert [verdict_of([answer]) for answer in (first, second)] == [Verdict(6.0, 0.15, unit=0.15), Verdict(12.0, 0.3, unit=0.3)]


def test_a_set_of_another_level_says_so_in_the_hosts_table(use_tiny_data: Path) -> None:
    """TRIAL 10, issue G 12: "0 pairs of score and rating ... Score and rate more examples" was no help."""
    found = evaluate(DialogueMetricLM("chrf"), "dstc10_dialog_fd", "dstc10_dialog_tu")
    for name in ("spearman", "pearson_ci_low", "kendall"):
        assert metrics(found, "dstc10_dialog_fd")[name] == "undefined (scores turns only)"
        assert metrics(found, "dstc10_dialog_tu")[name] == "undefined (needs references)"
    assert found["config"]["scorer_unscored"] == {
        "dstc10_dialog_fd": {"scores_turns_only": 6},
        "dstc10_dialog_tu": {"needs_references": 12},
    }
