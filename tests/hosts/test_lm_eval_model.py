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

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.scorer import Scorer, load_scorer, register_scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.corpora.items import context_key, mean_rating
from dialeval_plugin.corpora.readers import dstc10, fed
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM, to_unit
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.judgement_tasks.documents import FORMS, item_columns
from dialeval_plugin.judgement_tasks.scorer_answers import Verdict, verdict_of
from dialeval_plugin.statistics.correlation import correlations
from tests.fed_files import fed_rows, write_fed
from tests.hosts.through_lm_eval import evaluate, metrics
from tests.refusals import refused


@register_scorer("length_for_tests")
class Length(Scorer):
    """Length of the response on [0, 40], and no score for a response that mentions trains."""

    name: ClassVar[str] = "length_for_tests"
    range: ClassVar[tuple[float, float]] = (0.0, 40.0)

    def __init__(self, device: str | None = None, batch_size: int = 1, skip: str = "trains") -> None:
        self.given = (device, batch_size)
        self.skip = skip
        self.calls: list[int] = []

    @property
    def columns(self) -> tuple[str, ...]:
        return ("length",)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.calls.append(len(items))
        rows: list[Row] = []
        for item in items:
            assert isinstance(item, Example)
            text = item.response.text
            rows.append(Unscored(Reason.EMPTY_INPUT) if self.skip in text else {"length": float(len(text))})
        return rows

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": self.name}


class Distance(Length):
    orientation: ClassVar[Any] = "lower"


@pytest.mark.parametrize("kind", [Length, Distance])
def test_the_coefficients_are_those_of_the_scorer(kind: type[Length], use_tiny_data: Path) -> None:
    scorer = kind()
    result = evaluate(DialogueMetricLM(scorer), "dstc10_dialog_ft")
    items = dstc10.read("ft")
    sign = -1 if scorer.orientation == "lower" else 1
    scores = [None if value is None else sign * value for value in kind().score(items).values]
    direct = correlations(
        scores, [mean_rating(item, "Overall") for item in items], clusters=[context_key(item) for item in items]
    )
    found = metrics(result, "dstc10_dialog_ft")
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        assert found[name] == pytest.approx(direct[coefficient].value, abs=1e-9)
    assert (found["n_scored"], found["n_unscored"]) == (11, 1)
    assert result["config"]["scorer_unscored"] == {"dstc10_dialog_ft": {"empty_input": 1}}
    assert direct["spearman"].n_unscored == 1


def test_the_tasks_score_is_the_scorers_and_its_answers_are_probabilities(use_tiny_data: Path) -> None:
    result = evaluate(DialogueMetricLM(Length()), "dstc10_dialog_tu")
    values = Length().score(dstc10.read("tu")).values
    samples = result["samples"]["dstc10_dialog_tu"]
    assert [sample["spearman"].score for sample in samples] == list(values)
    for value, sample in zip(values, samples, strict=True):
        answers = {form: math.exp(found) for form, (found, _) in zip(FORMS, sample["filtered_resps"], strict=True)}
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


def test_a_rating_is_the_scorers_score_and_its_answers_are_on_the_tasks_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fed(tmp_path, fed_rows(4))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
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
            answers = [math.exp(found) for found, _ in sample["filtered_resps"]]
            mean = math.fsum(int(form) * answer for form, answer in zip(sample["doc"]["choices"], answers, strict=True))
            assert mean == pytest.approx(0 if value is None else highest * value / 40, abs=1e-9)
        assert metrics(result, f"fed_dialog_turn_{name}")["n_unscored"] == 1


def test_examples_change_nothing_for_a_scorer(use_tiny_data: Path) -> None:
    one = evaluate(DialogueMetricLM(Length()), "dstc10_dialog_tu")
    two = evaluate(DialogueMetricLM(Length()), "dstc10_dialog_bm25_c_tu")
    assert metrics(one, "dstc10_dialog_tu") == metrics(two, "dstc10_dialog_bm25_c_tu")


def test_the_command_lines_arguments_reach_the_scorer(use_tiny_data: Path) -> None:
    register()
    from lm_eval.api.registry import get_model

    kind = get_model("dialogue-metric")
    lm = kind.create_from_arg_string("scorer=length_for_tests,skip=music", {"batch_size": 1, "device": "cuda:7"})
    assert (lm.scorer.skip, lm.scorer.given) == ("music", (None, 1))
    lm = kind.create_from_arg_obj({"scorer": "length_for_tests"}, {"batch_size": "8", "device": "cpu"})
    assert lm.scorer.given == ("cpu", 8)
    assert lm.get_model_info() == {
        "scorer": "length_for_tests",
        "scorer_signature": None,
        "scorer_positive_from": None,
        "scorer_unscored": {},
    }


def test_the_signature_is_in_the_result(use_tiny_data: Path) -> None:
    result = evaluate(DialogueMetricLM(Length()), "dstc10_dialog_tu")
    assert result["config"]["scorer_signature"] == "method:length_for_tests|level:turn|version:0.1.0"


def test_a_task_that_asks_for_something_else_is_refused(use_tiny_data: Path) -> None:
    request = Instance("loglikelihood", {}, ("context", " maybe"), 0, metadata=("boolq", 0, 1))
    with refused(
        "dialogue-metric: task 'boolq' asks for the continuation ' maybe', and a scorer answers yes or no, positive or "
        "negative only. "
        "Run it on the tasks of this package, for example dstc10_dialog."
    ):
        DialogueMetricLM(Length()).loglikelihood([request])
    request = Instance("loglikelihood", {"query": "x"}, ("context", " yes"), 0, metadata=("boolq", 0, 1))
    with refused("document: has no 'id', so it is not from a dialogue task of this package. It has: query."):
        DialogueMetricLM(Length()).loglikelihood([request])


def test_a_scorer_has_to_be_named() -> None:
    with refused("dialogue-metric: no scorer was named. Type --model_args scorer=NAME, for example scorer=slide."):
        DialogueMetricLM()


def test_a_generation_is_answered_with_the_number(use_tiny_data: Path) -> None:
    from dialeval_plugin.hosts.lm_eval.tasks.responses import dstc10_dataset

    documents = list(dstc10_dataset(dataset="tu")["test"])
    requests = [
        Instance("generate_until", document, ("", {}), 0, metadata=("t", index, 1)) for index, document in enumerate(documents)
    ]
    answers = DialogueMetricLM(Length()).generate_until(requests)
    assert answers[0] == repr(len("Then let us talk about tea.") / 40)
    assert answers.count("unscored") == 1


@pytest.mark.parametrize(
    ("bounds", "values"),
    [((0, 2), (0, 0.5, 2)), ((-math.inf, 0), (-5, -1, 0)), ((1, math.inf), (1, 2, 9)), ((-math.inf, math.inf), (-9, 0, 9))],
)
def test_every_range_maps_to_probabilities_in_order(bounds: tuple[float, float], values: tuple[float, ...]) -> None:
    units = [to_unit(value, *bounds) for value in values]
    assert units == sorted(units)
    assert len(set(units)) == len(units)
    assert all(0 <= unit <= 1 for unit in units)
    assert to_unit(99.0, 0, 2) == 1.0


def test_a_judge_reads_each_document_once(use_tiny_data: Path, tiny_lm: Path) -> None:
    from lm_eval.models.huggingface import HFLM

    lm = HFLM(pretrained=str(tiny_lm), device="cpu", batch_size=1)
    rows = []
    forward = lm._model_call

    def counted(inputs: Any, **kwargs: Any) -> Any:
        rows.append(len(inputs))
        return forward(inputs, **kwargs)

    lm._model_call = counted
    result = evaluate(lm, "dstc10_dialog_ft")
    assert sum(rows) == 12  # documents, each with four answers
    assert len(result["samples"]["dstc10_dialog_ft"]) == 12
    assert all(len(sample["resps"]) == 4 for sample in result["samples"]["dstc10_dialog_ft"])
    assert result["results"]["dstc10_dialog_ft"]["n_scored,none"] == 12


def test_under_a_chat_template_the_answers_lose_their_space_and_the_history_is_one_message(
    use_tiny_data: Path, tiny_lm: Path
) -> None:
    # R77: the host knows no turns; the whole history stands in one user message, and the result file says so with the
    # template's text and hash.
    from lm_eval.models.huggingface import HFLM

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
    from lm_eval.api.registry import get_metric_aggregation, model_registry
    from lm_eval.tasks.manager import TaskManager

    register()
    before = (TaskManager.__init__, dict(model_registry.items()))
    register()
    assert (TaskManager.__init__, dict(model_registry.items())) == before
    assert get_metric_aggregation("acc") is not None


class Open(Length):
    """Numbers from 40 up, in a range without an upper end."""

    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    positive_from: ClassVar[float | None] = 50.0

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"length": 40.0 + int(item.id.split("-")[1])} for item in items if isinstance(item, Example)]


def test_a_score_without_an_upper_end_reaches_people_as_it_is(use_tiny_data: Path) -> None:
    """TRIAL S1: from 37 words up all were 1.0, and Pearson was that of something else."""
    result = evaluate(DialogueMetricLM("response_length"), "dstc10_dialog_tu")
    scores = load_scorer("response_length").score(dstc10.read("tu")).values
    assert [sample["spearman"].score for sample in result["samples"]["dstc10_dialog_tu"]] == list(scores)
    result = evaluate(DialogueMetricLM(Open()), "dstc10_dialog_tu")
    found = [sample["spearman"].score for sample in result["samples"]["dstc10_dialog_tu"]]
    assert len(set(found)) == 6
    assert min(found) == 40.0


def test_a_decision_is_that_of_the_scorers_own_threshold_where_its_range_saturates(use_tiny_data: Path) -> None:
    request = Instance("loglikelihood", {**_document(), "choices": ["Positive", "Negative"]}, ("", " Positive"), 0)
    other = Instance("loglikelihood", request.doc, ("", " Negative"), 1)
    for score, is_positive in ((49.0, False), (50.0, True), (51.0, True)):
        lm = DialogueMetricLM(Constantly(score))
        positive, negative = lm.loglikelihood([request, other])
        assert (positive[0] >= negative[0]) is is_positive
        assert lm.generate_until([request]) == ["Positive" if is_positive else "Negative"]


class Constantly(Open):
    def __init__(self, score: float) -> None:
        super().__init__()
        self.score_of_all = score

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [{"length": self.score_of_all} for _ in items]


def _document() -> dict[str, Any]:
    return item_columns(Example.from_texts(["Hi."], "Hello.", id="a"))


def test_an_answer_keeps_its_score_through_filters_and_copies(use_tiny_data: Path) -> None:
    lm = DialogueMetricLM(Constantly(60.0))
    request = Instance("loglikelihood", {**_document(), "choices": list(FORMS)}, ("", " Yes"), 0)
    (choice,), (words,) = lm.loglikelihood([request]), lm.generate_until([request])
    for answer in (choice, words):
        for copied in (copy.copy(answer), copy.deepcopy(answer)):
            assert copied == answer
            assert verdict_of([copied]) == Verdict(60.0)
    assert json.loads(json.dumps([choice, words])) == [list(choice), str(words)]
    assert verdict_of([(-1.0, False)]) is None


def test_documents_are_told_apart_by_their_content(use_tiny_data: Path) -> None:
    # Issue G 9: a document was known by its place in the task, or by its address in memory.
    def asked(text: str) -> Instance:
        document = {**item_columns(Example.from_texts(["Hi."], text, id="a")), "choices": list(FORMS)}
        return Instance("loglikelihood", document, ("", " Yes"), 0, metadata=("task", 0, 1))

    lm = DialogueMetricLM(Length())
    first, second = (lm.loglikelihood([asked(text)])[0] for text in ("Hello.", "Hello there."))
    assert [verdict_of([answer]) for answer in (first, second)] == [Verdict(6.0, 0.15), Verdict(12.0, 0.3)]


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
