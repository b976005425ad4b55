"""The `evaluate` door: ways in, wrong inputs with their whole messages, and the same numbers as the scorer itself."""

import copy
import functools
import inspect
import json
import multiprocessing
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pytest

from dialeval_plugin import __version__, examples_from, load_metric
from dialeval_plugin.core import registry as scorers
from dialeval_plugin.core.dialogue import Example, Item, context_turns, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.hosts import registration
from dialeval_plugin.hosts.evaluate.metric import DialogueMetric, metric_names, read_examples, read_inputs
from dialeval_plugin.hosts.evaluate.space import response_score
from dialeval_plugin.hosts.judges import judge_from_options
from dialeval_plugin.llm.answers import CachedLanguageModel
from tests.refusals import refusal, refused

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], ["Where is the station?"]]
RESPONSES = ["Long, but worth it.", "", "Two streets from here."]
ROWS: dict[str, Any] = {"predictions": RESPONSES, "contexts": CONTEXTS}


class StubScorer(Scorer):
    """Scores a response by its length."""

    name = "slide"
    citation = "@misc{stub}"
    loads = 0

    def __init__(self, bias: float = 0.0, llm: Scorer | None = None, variant: str = "stub") -> None:
        type(self).loads += 1
        self.bias, self.llm, self.variant = bias, llm, variant
        self.columns = (variant, "turns", "references")

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": "stub", "bias": self.bias, "llm": None if self.llm is None else str(self.llm.signature_fields())}

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        return [self._score(item) for item in items if isinstance(item, Example)]

    def _score(self, item: Example) -> Row:
        if is_blank(item.response.text) or all(is_blank(turn.text) for turn in item.context):
            return Unscored(Reason.EMPTY_INPUT)
        score = len(item.response.text) / 10 + self.bias
        return {self.variant: score, "turns": len(item.context), "references": len(item.references) or None}


SCORER_METRICS = [name for name in metric_names() if name != "dbdc"]
"""Metrics that have a scorer behind them; `dbdc` judges detectors (test_evaluate_breakdown.py)."""


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every metric folder gets the stub as its scorer, so that no test here needs a model."""
    monkeypatch.setattr(scorers, "_factories", {})
    monkeypatch.setattr(StubScorer, "loads", 0)
    for name in SCORER_METRICS:
        scorers.register_scorer(name)(StubScorer)


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"the hub was asked: {args}")

    for name in ("cached_path", "head_hf_s3", "hf_hub_url"):
        monkeypatch.setattr(evaluate.loading, name, refuse)


@pytest.fixture
def metric() -> DialogueMetric:
    return load_metric("slide")


# Ways in


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", SCORER_METRICS)
def test_r70_r71_every_shim_loads_as_our_class_and_never_asks_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoy = tmp_path / name / f"{name}.py"
    decoy.parent.mkdir()
    decoy.write_text("raise RuntimeError('a folder in the working directory won')\n")
    monkeypatch.chdir(tmp_path)

    loaded = load_metric(name)

    assert type(loaded).__mro__[1] is DialogueMetric
    assert loaded.scorer_name == loaded.name == name
    assert loaded.keep_in_memory
    assert loaded.info.citation == "@misc{stub}"
    assert loaded.info.description == "Scores a response by its length."
    assert type(evaluate.load(str(metrics_path().resolve() / name))) is type(loaded)


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", sorted({*scorers._entry_points()} - {*metric_names()}))
def test_a_scorer_without_a_folder_is_a_metric_with_the_words_of_its_class(name: str) -> None:
    """TRIAL section 2: "there is no 'bleu' in this package", where `dialeval score --scorer bleu` works."""
    factory: Any = scorers.scorer_factory(name)
    loaded = load_metric(name)
    assert isinstance(loaded, DialogueMetric)
    assert (loaded.name, loaded.scorer_name, loaded.keep_in_memory) == (name, name, True)
    assert loaded.info.description == inspect.getdoc(factory)
    assert loaded.info.citation == factory.citation


@pytest.mark.usefixtures("no_hub")
def test_a_users_own_scorer_is_a_metric_that_computes_adds_copies_and_combines() -> None:
    scorers.register_scorer("own-Length")(StubScorer)
    own = load_metric("own-Length", bias=1.0)
    result = own.compute(**ROWS)
    scored = StubScorer(1.0).score(read_examples(ROWS))
    assert (result["own-Length"], tuple(result["scores"])) == (scored.mean(), scored.values)
    own.add_batch(**ROWS)
    assert own.compute() == copy.deepcopy(own).compute(**ROWS) == result
    both = evaluate.combine({"own": own, "length": load_metric("response_length")}).compute(**ROWS)
    assert (both["own-Length"], both["response_length"]) == (result["own-Length"], 4.0)
    message = "own-Length: there is no input or option 'biass'. Did you mean 'bias'? "
    assert refusal(load_metric, "own-Length", biass=1.0).startswith(message)


def test_enabled_the_host_keeps_the_names_that_have_no_folder_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate.load("bleu")` stays the host's own."""
    asked: list[str] = []
    monkeypatch.setattr(evaluate.loading, "evaluation_module_factory", lambda path, *arguments, **more: asked.append(path))
    registration.find_metrics.__wrapped__()
    for name in ("bleu", "slide"):
        evaluate.loading.evaluation_module_factory(name)
    assert asked == ["bleu", str(metrics_path().resolve() / "slide" / "slide.py")]


@pytest.mark.parametrize("name", metric_names())
def test_a_shim_is_short_and_has_the_files_of_a_space(name: str) -> None:
    folder = metrics_path() / name
    assert len((folder / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 40
    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert files == {f"{name}.py", "README.md", "app.py", "requirements.txt"}
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("---\ntitle: ")


def test_r75_without_the_host_the_core_works_and_the_message_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['evaluate'] = None\n"
        "import dialeval_plugin\n"
        "dialeval_plugin.Example.from_texts(['Hi.'], 'Hello.')\n"
        "from dialeval_plugin.core.errors import MissingPrerequisite\n"
        "try:\n    dialeval_plugin.load_metric\nexcept MissingPrerequisite as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "a metric of evaluate needs evaluate, which cannot be imported (import of evaluate halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[evaluate]'`.\n"
    )


# Results


def test_the_result_has_the_mean_every_column_and_the_counts(metric: DialogueMetric) -> None:
    result = metric.compute(**ROWS, references=["One.", [], ["One.", "Two."]])
    assert result == {
        "slide": pytest.approx((1.9 + 2.2) / 2),
        "scores": [1.9, None, 2.2],
        "stub": [1.9, None, 2.2],
        "turns": [2, None, 1],
        "references": [1, None, 2],
        "n_total": 3,
        "n_scored": 2,
        "n_unscored": 1,
        "unscored": {"empty_input": 1},
        "signature": f"method:stub|bias:0.0|level:turn|version:{__version__}",
    }
    json.dumps(result, allow_nan=False)


def test_an_empty_batch_is_no_missing_column() -> None:
    """Of a loader whose last part is empty: the column 'predictions' is missing."""
    metric = load_metric("response_length")
    metric.add_batch(predictions=[], contexts=[])
    assert metric.compute() == metric.compute(predictions=[], contexts=[])
    with pytest.raises(InputError, match="'predictions' is missing"):
        metric.compute()


def test_nothing_scored_gives_none_and_no_rows_give_empty_lists(metric: DialogueMetric) -> None:
    result = metric.compute(predictions=["", " \n"], contexts=[["Hi."], ["Hi."]])
    assert (result["slide"], result["scores"], result["unscored"]) == (None, [None, None], {"empty_input": 2})
    result = metric.compute(predictions=[], contexts=[])
    assert (result["slide"], result["scores"], result["n_total"], result["unscored"]) == (None, [], 0, {})


def test_r03_r04_odd_texts_have_a_defined_outcome(metric: DialogueMetric) -> None:
    responses = {"": None, " \t\n\u200b": None, "\x00\x07\x1b": None, "🙂": 0.1, "a\x00b": 0.3, "\ufeff\u202eabc\u2028": 0.6}
    result = metric.compute(predictions=list(responses), contexts=[["Hi."]] * len(responses))
    assert result["scores"] == list(responses.values())
    result = metric.compute(predictions=["Hello."] * 3, contexts=[[], [""], ["", "Hi."]])
    assert result["scores"] == [None, None, 0.6]


def test_rows_can_be_added_first(metric: DialogueMetric) -> None:
    whole = metric.compute(**ROWS, references=[["One."], [], []])
    metric.add(prediction=RESPONSES[0], context=CONTEXTS[0], reference="One.")
    metric.add_batch(predictions=RESPONSES[1:], contexts=CONTEXTS[1:])
    assert len(metric) == 3
    assert metric.compute() == whole
    assert len(metric) == 0


def test_columns_of_datasets_and_arrays_are_lists_too(metric: DialogueMetric) -> None:
    table = datasets.Dataset.from_dict({"response": RESPONSES, "context": CONTEXTS})
    found = metric.compute(predictions=table["response"], contexts=table["context"])
    assert found == metric.compute(predictions=np.array(RESPONSES), contexts=CONTEXTS)


@pytest.mark.parametrize("given", [{}, {"references": [["r"], ["s", "t"], ["u"]]}, {"facts": [["f"], [], []]}])
def test_a_combination_takes_rows_without_the_optional_columns(given: dict[str, list[list[str]]]) -> None:
    """TRIAL section 2: `combine(["slide"]).add_batch(predictions=, contexts=)` ended in KeyError: 'facts'."""
    expected = load_metric("slide").compute(**ROWS, **given)
    name = str(metrics_path().resolve() / "slide" / "slide.py")

    batches = evaluate.combine([name])
    batches.add_batch(**ROWS, **given)
    assert batches.evaluation_modules[0]._rows == read_examples({**ROWS, **given})
    assert batches.compute() == expected

    rows = evaluate.combine([name])
    for index, response in enumerate(RESPONSES):
        one = {column: values[index] for column, values in given.items()}
        reference = one.pop("references", None)
        rows.add(prediction=response, reference=reference, contexts=CONTEXTS[index], **one)
    assert rows.compute() == expected


def test_chat_messages_are_turns_and_responses(metric: DialogueMetric) -> None:
    """TRIAL section 8, 11: no door took `role` and `content`."""
    asked = [SYSTEM, CHAT, {"role": "assistant", "content": [{"type": "text", "text": "ho"}]}, CHAT]
    answer = {"role": "assistant", "content": "Fine."}
    expected = examples_from([[*asked, answer]], "last")
    for response in ("Fine.", answer):
        (found,) = read_examples({"predictions": [response], "contexts": [asked]})
        assert (found.context, found.response) == (expected[0].context, expected[0].response)
    result = metric.compute(
        predictions=[answer, "Fine.", {**answer, "content": None}], contexts=[asked, np.array(asked), asked]
    )
    assert (result["scores"], result["turns"], "ids" in result) == ([0.5, 0.5, None], [3, 3, None], False)


def test_conversations_are_computed_with_their_ids(metric: DialogueMetric) -> None:
    chats = [{"messages": [SYSTEM, CHAT, {"role": "assistant", "content": "Fine."}, CHAT, {"role": "gpt", "content": "Good."}]},
             {"id": "x", "turns": ["Hi.", "Hello."]}]  # fmt: skip
    result = metric.compute(conversations=chats)
    assert (result["ids"], result["scores"]) == (["0:3", "0:5", "x:2"], [0.5, 0.5, 0.6])
    assert result["scores"] == list(StubScorer().score(examples_from(chats)).values)
    assert metric.compute(conversations=chats, turns="last")["ids"] == ["0:5", "x:2"]
    for chat in chats:
        metric.add(conversation=chat)
    metric.add_batch(conversations=chats[:1], turns="all")
    assert metric.compute()["ids"] == ["0:3", "0:5", "x:2", "2:3", "2:4", "2:5"]


def test_conversations_are_dialogues_where_those_are_scored(metric: DialogueMetric, monkeypatch: pytest.MonkeyPatch) -> None:
    class Whole(StubScorer):
        level = "dialogue"

        def score_batch(self, items: Sequence[Item]) -> list[Row]:
            return [{"stub": 1.0, "turns": len(context_turns(item)), "references": None} for item in items]

    monkeypatch.setitem(scorers._factories, "slide", Whole)
    chats = [[SYSTEM, CHAT, {"role": "assistant", "content": "Fine."}, CHAT]]
    result = metric.compute(conversations=chats)
    assert (result["ids"], result["turns"]) == (["0"], [3])
    with refused("turns: chooses responses, and this scorer scores whole dialogues. Leave it out."):
        metric.compute(conversations=chats, turns="last")


# Options


def test_options_at_loading_are_the_defaults_and_the_scorer_is_kept_while_they_stay(metric: DialogueMetric) -> None:
    plain, _, biased, _ = (metric.compute(**ROWS, bias=bias) for bias in (0.0, 0.0, 1.0, 1.0))
    assert StubScorer.loads == 2
    loaded = load_metric("slide", bias=1.0)
    assert loaded.compute(**ROWS) == biased
    assert loaded.compute(**ROWS, bias=0.0) == plain


def test_options_of_a_scorer_that_are_named_as_ones_of_the_hosts_load_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue item 7: `evaluate.load` takes `revision` for that of the metric's script, and the scorer never saw it."""

    class Revised(StubScorer):
        def __init__(self, revision: str | None = None) -> None:
            super().__init__(bias=float(revision or 0))

    monkeypatch.setitem(scorers._factories, "slide", Revised)
    rows = {"predictions": RESPONSES[:1], "contexts": CONTEXTS[:1]}
    assert load_metric("slide", revision="3").compute(**rows)["slide"] == load_metric("slide").compute(**rows)["slide"] + 3


@pytest.fixture
def scripted_llm(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Stands in for the two modules that load a model; notes what was asked for."""
    asked: list[tuple[str, str, str]] = []
    backend = types.ModuleType("backend")
    backend.load_language_model = lambda model, model_args: (model, model_args)  # type: ignore[attr-defined]
    judge = types.ModuleType("judge")

    class PromptedJudge(StubScorer):
        def __init__(self, model: CachedLanguageModel, prompt: str) -> None:
            super().__init__()
            asked.append((*model.model, prompt))  # type: ignore[misc] # the pair that the backend returned

    judge.PromptedJudge = PromptedJudge  # type: ignore[attr-defined]
    judge.PromptName = str  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dialeval_plugin.hosts.lm_eval.backend", backend)
    monkeypatch.setitem(sys.modules, "dialeval_plugin.methods.judging.judge", judge)
    return asked


def test_the_names_of_a_language_model_become_a_judge(metric: DialogueMetric, scripted_llm: list[tuple[str, str, str]]) -> None:
    for _ in range(2):
        named = metric.compute(**ROWS, llm="hf", llm_args="pretrained=gpt2")
    assert scripted_llm == [("hf", "pretrained=gpt2", "slide")]
    assert metric.compute(**ROWS, llm=StubScorer()) == named


# What is refused


def load_slide(*arguments: Any, **settings: Any) -> evaluate.Metric:
    return evaluate.load(str(metrics_path().resolve() / "slide"), *arguments, **settings)


def compute(**options: Any) -> Any:
    return load_metric("slide").compute(**ROWS, **options)


UNKNOWN = (
    "slide: there is no input or option 'context'. Did you mean 'contexts'? "
    "Accepted are the columns predictions, contexts, references, facts, conversations, turns "
    "and the options bias, llm, variant, llm_args, answers."
)
REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: load_metric("slide").compute(predictions=RESPONSES, context=CONTEXTS), UNKNOWN),
    (lambda: load_metric("slide", context="x"), UNKNOWN),
    (
        lambda: load_metric("slide").add_batch(**ROWS, bias=1.0),
        "slide: there is no column 'bias'. Accepted are predictions, contexts, references, facts, conversations, "
        "turns; options belong to compute().",
    ),
    (
        lambda: load_slide("dre"),
        "slide: there is no configuration 'dre'. Pass what you want to compute() as an option.",
    ),
    (
        lambda: load_slide(num_process=2, process_id=0),
        "slide: num_process is 2, but this metric runs in one process. Gather the responses in one process and compute there.",
    ),
    (
        lambda: compute(llm_args="pretrained=gpt2"),
        "slide: llm_args is 'pretrained=gpt2', but no llm was named. Pass for example llm='hf' as well.",
    ),
    (
        lambda: compute(llm=3),
        "llm: expected the name of an lm-eval model or a judge, got 3 (int). "
        "Pass for example llm='hf', llm_args='pretrained=...'.",
    ),
    (
        lambda: judge_from_options(StubScorer(), "pretrained=gpt2", prompt="slide"),
        "llm_args is 'pretrained=gpt2', but the judge given as llm is loaded already. Leave llm_args out.",
    ),
]


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_what_cannot_be_is_refused_before_the_hub_is_asked(call: Callable[[], object], message: str) -> None:
    with refused(message):
        call()


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    ("name", "near"), [("slde", " Did you mean 'slide'?"), ("metrics/slide", ""), ("../metrics/slide", ""), ("", "")]
)
def test_a_metric_that_is_none_is_refused_before_the_hub_is_asked(name: str, near: str) -> None:
    known = ", ".join(sorted({*scorers.scorer_names(), "dbdc"}))
    with refused(
        f"metric: there is no {name!r}.{near} Known are: {known}. Type `dialeval scorers` for what each of them is and needs."
    ):
        load_metric(name)


def test_a_column_must_not_hide_an_entry() -> None:
    with refused("scorer 'slide' has a column 'unscored', which is the name of another entry of the result", RuntimeError):
        compute(variant="unscored")


# Wrong inputs


def given(predictions: object, contexts: object, **others: object) -> dict[str, object]:
    return {"predictions": predictions, "contexts": contexts, **others}


def no_text(where: str, got: str) -> str:
    return f"{where}: expected a string, got {got}. Pass text."


def no_list(where: str, got: str, advice: str = "Wrap a single string in a list.") -> str:
    return f"{where}: expected a list, got {got}. {advice}"


def no_unicode(where: str, character: str, place: int) -> str:
    advice = "Decode the source again, for example with errors='replace'."
    return f"{where}: the lone surrogate {character!r} at character {place} is not valid Unicode. {advice}"


MISSING = "the column {!r} is missing. Pass predictions and contexts, one row for every response."
LENGTHS = "the columns 'predictions' and {!r} have {} and {} rows. Pass one row of each for every response."
AN_ITERATOR = iter(["a"])
CHAT = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "hi"}
A_MESSAGE = "Name the field of its text by --columns text=NAME, or give 'role' and 'content', as OpenAI's have them."
X, Y, Z = ["x"], ["y"], ["z"]
WRONG: list[tuple[dict[str, object], str]] = [
    (given(["a", "b", "c"], [X, Y]), LENGTHS.format("contexts", 3, 2)),
    (given(["a"], [X], references=[]), LENGTHS.format("references", 1, 0)),
    (given(["a"], [X], facts=["p", "q"]), LENGTHS.format("facts", 1, 2)),
    ({"predictions": ["a"]}, MISSING.format("contexts")),
    ({"contexts": [X]}, MISSING.format("predictions")),
    ({}, MISSING.format("predictions")),
    (given(["a", "b", None], [X, Y, Z]), no_text("predictions[2]", "None (NoneType)")),
    (given(["a", "b", 3], [X, Y, Z]), no_text("predictions[2]", "3 (int)")),
    (given(["a", float("nan")], [X, Y]), no_text("predictions[1]", "nan (float)")),
    (given(["a", ["b"]], [X, Y]), no_text("predictions[1]", "['b'] (list)")),
    (given(["a", "b", "c"], [X, Y, None]), no_list("contexts[2]", "None (NoneType)", "Pass a list.")),
    (given(["a", "b"], [X, "y"]), no_list("contexts[1]", "'y' (str)")),
    (given(["a", "b", "c"], [X, Y, ["z", 3]]), no_text("contexts[2][1]", "3 (int)")),
    (given(["a"], [[["n"]]]), no_text("contexts[0][0]", "['n'] (list)")),
    (given(["a", "b"], [X, Y], references=["r", None]), no_list("references[1]", "None (NoneType)", "Pass a list.")),
    (given(["a", "b"], [X, Y], facts=[["f"], ["g", 2.5]]), no_text("facts[1][1]", "2.5 (float)")),
    (given("a", [X]), no_list("predictions", "'a' (str)")),
    (given([SYSTEM], [X]), "predictions[0]: expected a response, got a message of the role 'system'. Pass the assistant's."),
    (given(["a"], [[{"role": "user"}]]), f"contexts[0][0]: is no chat message, it has only 'role'. {A_MESSAGE}"),
    (
        {"conversations": [[CHAT]], "contexts": [X]},
        "conversations: have their contexts and responses in them. Leave contexts out.",
    ),
    (
        {"conversations": [[CHAT, 7]]},
        "conversations[0]: conversation '0', message 2: expected a string, got 7 (int). Pass text.",
    ),
    ({"conversations": [[CHAT]], "turns": "a"}, "turns: there is no choice 'a'. Known are: assistant, all, last."),
    (given(["a"], [X], turns="all"), "turns: chooses among the turns of conversations. Pass conversations, or leave it out."),
    (given(AN_ITERATOR, [X]), no_list("predictions", f"{AN_ITERATOR!r} (list_iterator)", "Gather its values with list().")),
    (given(["a", "b\ud83d"], [X, Y]), no_unicode("predictions[1]", "\ud83d", 1)),
    (given(["a"], [["x", "\udc00"]]), no_unicode("contexts[0][1]", "\udc00", 0)),
]


@pytest.mark.parametrize(("columns", "expected"), WRONG)
def test_r01_r02_wrong_inputs_name_column_and_row(columns: dict[str, object], expected: str, metric: DialogueMetric) -> None:
    with refused(expected):
        read_inputs(columns)
    for call in (metric.compute, metric.add_batch):
        with refused(f"slide: {expected}"):
            call(**columns)
    assert len(metric) == 0


def test_a_call_that_fails_leaves_nothing_behind(metric: DialogueMetric) -> None:
    metric.add(prediction="a", context=["x"])
    with pytest.raises(InputError):
        metric.compute(predictions=["b", None], contexts=[["y"], ["z"]])
    assert metric.compute(predictions=["b"], contexts=[["y"]])["n_total"] == 2


def test_rows_that_are_added_after_a_failed_compute_begin_anew(caplog: pytest.LogCaptureFixture) -> None:
    rows = {"predictions": ["a", "b c"], "contexts": [["x"], ["y"]]}
    metric = load_metric("response_length")
    metric.add_batch(**rows)
    with pytest.raises(InputError):
        metric.compute(nonsense=1)
    assert (len(metric), caplog.messages) == (2, [])
    metric.add_batch(**rows)
    metric.add(prediction="d", context=["z"])
    assert caplog.messages == ["response_length: 2 rows of the compute() that failed are left out: new rows begin anew"]
    assert metric.compute()["scores"] == [1.0, 2.0, 1.0]
    metric.add_batch(**rows)
    with pytest.raises(InputError):
        metric.compute(nonsense=1)
    # Repeated, the call has the rows that it had.
    assert metric.compute()["scores"] == [1.0, 2.0]


def test_a_metric_can_be_sent_to_another_process() -> None:
    rows = {"predictions": ["a b", "b c"], "contexts": [["x"], ["y"]], "references": ["a b c", "b"]}
    # A spawned one, which imports the host, is among those of `test_threads.py`.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        for name, options in (("random", {"seed": 3}), ("bleu", {"n": 2})):
            metric = load_metric(name, **options)
            metric.add_batch(**rows)
            expected = load_metric(name, **options).compute(**rows)
            assert pool.submit(DialogueMetric.compute, metric).result() == expected
            assert metric.compute() == expected


# The page of the Space


def test_the_page_reads_one_turn_a_line() -> None:
    score = response_score("slide")
    assert score("Hi.\n\n  How are you? \n", "Fine.")["turns"] == 2
    assert score("", "Fine.") == {"score": None, "unscored": "empty_input"}


class RecordedPage:
    """Stands for the page, which needs gradio and a port."""

    launched: str | None = None

    def __init__(self, name: str, *, title: str, description: str, **options: object) -> None:
        self.name = name
        assert title
        assert description

    def launch(self) -> None:
        type(self).launched = self.name


@pytest.mark.parametrize("name", SCORER_METRICS)
def test_the_page_of_a_space_opens_its_own_metric(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    general = functools.partial(RecordedPage, "general", title="Score a conversation", description="One model alone.")
    monkeypatch.setattr("dialeval_plugin.hosts.evaluate.space.response_page", RecordedPage)
    monkeypatch.setattr("dialeval_plugin.hosts.evaluate.conversation_page.conversation_page", general)
    monkeypatch.setenv("DIALEVAL_LLM_ARGS", "pretrained=x")
    monkeypatch.setenv("DIALEVAL_RUBRIC", "Does it fit?")
    runpy.run_path(str(metrics_path() / name / "app.py"), run_name="__main__")
    assert RecordedPage.launched == name
