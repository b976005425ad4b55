"""The FED tasks: documents, examples that are whole dialogues and never the tested one, seeds, and the host end to end."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from rank_bm25 import BM25Okapi

from dialeval_plugin import load_metric, load_scorer
from dialeval_plugin.core.dialogue import Example, Turn, mean_rating
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import fed
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.hosts.lm_eval.samplers import (
    ContextBM25ThreadSampler,
    ContextResponseBM25ThreadSampler,
    RandomThreadSampler,
    ResponseBM25ThreadSampler,
    SeededThreadSampler,
)
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import Undefined
from dialeval_plugin.hosts.lm_eval.tasks.documents import item_of
from dialeval_plugin.hosts.lm_eval.tasks.fed import (
    OVER_SEEDS,
    SeededJudged,
    fed_dataset,
    process_ratings,
    process_seeded_ratings,
)
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.lm_eval.validation import validate_tasks
from dialeval_plugin.methods.judging import dialogue_rating
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer, rating_prompt, rating_prompts
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import Chance, LikelihoodLM, evaluate, metrics, task_manager
from tests.layouts import fed_rows, write_fed
from tests.refusals import refusal, refused

SHOTS = ("", "manual_", "random_", "bm25_c_", "bm25_r_", "bm25_cr_")
SAMPLERS = (RandomThreadSampler, ContextBM25ThreadSampler, ResponseBM25ThreadSampler, ContextResponseBM25ThreadSampler)


@pytest.fixture
def few(own_data: Path) -> None:
    """Six dialogues, of which the last opens as the first; one whole dialogue that nobody rated for error recovery."""
    rows = fed_rows(6)
    for row in rows[20:]:
        row["context"] = row["context"].replace("(5)", "(0)").replace("Do you like bread?", "Do you like tea?")
    rows[7]["annotations"]["Error recovery"] = ["N/A (none)"] * 5
    write_fed(own_data, rows)


def build(name: str, shots: int | None = None) -> Any:
    task = task_manager().load([name])["tasks"][name]
    task.set_config("num_fewshot", task.config.num_fewshot or 0 if shots is None else shots)
    task.set_fewshot_seed(0)
    return task


def test_a_document_holds_a_rated_item_with_prompt_and_forms(few: None) -> None:
    (first, *_), (turn, *others) = fed.read(), list(fed_dataset(level="turn", quality="understandable")["test"])
    assert len(others) == 17
    assert item_of(turn).context == first.responses[0].context  # type: ignore[union-attr]
    assert turn["rating"] == mean_rating(first.responses[0], "Understandable")
    assert (turn["cluster"], turn["thread"], turn["seed"]) == (context_key(first.responses[0]), "fed_000", None)
    assert turn["question"] == rating_prompt("understandable").question(first.responses[0])
    assert turn["choices"] == [" 0", " 1", "0", "1"]
    assert turn["answer"] in {"0/1", "1/1"}
    # What nobody rated is no document.
    documents = fed_dataset(level="dialogue", quality="error_recovery")["test"]
    assert [document["id"] for document in documents] == ["fed_000", "fed_002", "fed_003", "fed_004", "fed_005"]


def test_the_rating_is_k_top_over_summed_forms_in_both_readings(few: None) -> None:
    results = [(math.log(p / 2), False) for _ in range(2) for p in (0.1, 0.1, 0.2, 0.2, 0.4)]
    literal = (4 * math.log(0.4) + 2 * math.log(0.2)) / (math.log(0.4) + math.log(0.2))
    readings = (({}, 2.6 / 0.8), ({"k": 5}, 2.7), ({"k": "1"}, 4.0), ({"literal_log": True, "k": 2}, literal))
    for options, expected in readings:
        document = fed_dataset(level="turn", quality="overall", **options)["test"][0]  # type: ignore[arg-type]
        judged = process_ratings(document, results)
        assert set(judged) == set(KINDS["rating"].printed)
        assert judged["spearman"].score == pytest.approx(expected), options
        assert (judged["spearman"].rating, judged["spearman"].cluster) == (document["rating"], document["cluster"])


def test_a_document_whose_ratings_have_no_probability_is_unscored(few: None) -> None:
    document = fed_dataset(level="dialogue", quality="consistent")["test"][0]
    assert process_ratings(document, [(-math.inf, False)] * 4)["n_scored"].score is None
    assert process_ratings(document, [(math.nan, False)] * 4)["n_scored"].score is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"quality": "coherent"}, "quality: there is no rating prompt for 'coherent'."),
    ({"quality": "fluent", "k": 0}, "--metadata: k is 0. Give a whole number from 1."),
    ({"quality": "fluent", "k": "many"}, "--metadata: k is 'many'. Give a whole number from 1."),
    (
        {"quality": "fluent", "shown_dialogues": ["fed_900"]},
        "shown_dialogues: FED has no rated dialogue 'fed_900'. They are called fed_000, fed_001, ...",
    ),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str, few: None) -> None:
    assert refusal(fed_dataset, level="turn", **options).startswith(message)


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("level", ["turn", "dialogue"])
def test_examples_are_other_dialogues_whole_and_numbered(kind: Any, level: Any, few: None) -> None:
    documents = list(fed_dataset(level=level, quality="overall")["test"])
    dialogues = {dialogue.whole.id: dialogue for dialogue in fed.read()}
    prompt = rating_prompt("overall", level)
    sampler = kind(documents).set_rnd(7)
    for document in documents:
        shown = sampler.sample(n=3, eval_doc=document)
        assert document["cluster"] not in {example["cluster"] for example in shown}
        assert document["thread"] not in {example["thread"] for example in shown}
        for number, example in enumerate(shown, start=1):
            dialogue = dialogues[example["thread"]]
            thread = dialogue.responses if level == "turn" else [dialogue.whole]
            assert f"{example['example']} {example['answer']}" == prompt.example(thread, number)


def test_a_dialogue_that_opens_as_the_tested_one_is_no_example(few: None) -> None:
    documents = list(fed_dataset(level="turn", quality="fluent")["test"])
    assert documents[0]["cluster"] == documents[-1]["cluster"]
    shown = RandomThreadSampler(documents).set_rnd(0).sample(n=4, eval_doc=documents[0])
    assert {example["thread"] for example in shown} == {"fed_001", "fed_002", "fed_003", "fed_004"}
    with refused(
        "few-shot examples: 5 were asked for, but the other dialogues of the set have 4. Ask for fewer (--num_fewshot)."
    ):
        RandomThreadSampler(documents).set_rnd(0).sample(n=5, eval_doc=documents[0])


def joined(turns: Iterable[Turn]) -> list[str]:
    return re.findall(r"\w+", " ".join(turn.text for turn in turns).lower())


@pytest.mark.parametrize("kind", [ContextBM25ThreadSampler, ResponseBM25ThreadSampler])
def test_bm25_compares_with_the_whole_dialogue_and_shows_the_nearest_last(kind: Any, few: None) -> None:
    documents, dialogues = list(fed_dataset(level="turn", quality="fluent")["test"]), fed.read()
    of_context = kind is ContextBM25ThreadSampler
    texts = [
        joined(dialogue.responses[-1].context if of_context else [one.response for one in dialogue.responses])
        for dialogue in dialogues
    ]
    tested = dialogues[2].responses[1]
    query = joined(tested.context if of_context else [tested.response])
    scores = dict(enumerate(BM25Okapi(texts, k1=1.5, b=0.75).get_scores(query)))
    nearest = sorted((place for place in scores if place != 2), key=lambda place: (-scores[place], place))[:3]
    shown = kind(documents).sample(n=3, eval_doc=documents[7])
    assert [example["thread"] for example in shown] == [f"fed_{place:03d}" for place in reversed(nearest)]


def test_each_seed_has_its_own_examples_whatever_the_hosts_seed_is(few: None) -> None:
    documents = list(fed_dataset(level="turn", quality="fluent", seeds=(1, 2, 3))["test"])
    assert [document["seed"] for document in documents[:4]] == [1, 2, 3, 1]
    assert len(documents) == 3 * 18
    drawn = []
    for host_seed in (0, 99):
        sampler = SeededThreadSampler(documents).set_rnd(host_seed)
        drawn.append([[example["thread"] for example in sampler.sample(n=3, eval_doc=doc)] for doc in documents])
    assert drawn[0] == drawn[1]
    # The three runs of the first item of fed_001, which five dialogues can be examples for.
    assert {document["id"] for document in documents[9:12]} == {"fed_001_1"}
    assert len({tuple(threads) for threads in drawn[0][9:12]}) == 3


def test_hand_picked_dialogues_are_shown_to_all_and_not_scored(few: None) -> None:
    found = fed_dataset(level="turn", quality="interesting", shown_dialogues=["fed_002", "fed_000"])
    dialogues, prompt = fed.read(), rating_prompt("interesting")
    assert [f"{example['example']} {example['answer']}" for example in found["examples"]] == [
        prompt.example(dialogues[place].responses, number) for number, place in ((1, 2), (2, 0))
    ]
    # fed_005 opens as fed_000.
    assert {document["thread"] for document in found["test"]} == {"fed_001", "fed_003", "fed_004"}


def test_mean_and_deviation_are_those_of_the_runs() -> None:
    ratings = [0.0, 1.0, 2.0, 3.0]
    runs = {1: [0.0, 1.0, 2.0, 3.0], 2: [0.0, 2.0, 1.0, 3.0], 5: [3.0, 2.0, 1.0, None]}
    items = [SeededJudged(runs[seed][place], rating, seed) for place, rating in enumerate(ratings) for seed in runs]
    deviation = statistics.stdev([1.0, 0.8, -1.0])
    expected = {"spearman": 0.8 / 3, "kendall": 2 / 9, "spearman_deviation": deviation, "pearson_deviation": deviation}
    assert {name: OVER_SEEDS.values(items)[name] for name in expected} == pytest.approx(expected)
    assert OVER_SEEDS.counts(items) == (11, 1)
    gathered: Any = [tuple(item) for item in reversed(items)]
    assert OVER_SEEDS.values(gathered)["spearman"] == OVER_SEEDS.values(items)["spearman"]
    # A run without a coefficient leaves both undefined, and one run has no deviation.
    items = [SeededJudged(score, rating, seed) for seed, score in ((1, 0.5), (2, 1.0)) for rating in (0.0, 1.0, 2.0)]
    for metric in ("spearman", "spearman_deviation"):
        assert OVER_SEEDS.values(items)[metric] == Undefined("undefined (all 3 scores are 0.5)")
    one = [SeededJudged(score, score, 1) for score in (0.0, 1.0, 2.0)]
    assert OVER_SEEDS.values(one)["spearman"] == pytest.approx(1.0)
    assert OVER_SEEDS.values(one)["spearman_deviation"] == Undefined("undefined (one run has no deviation)")


def test_hand_picked_examples_are_named_for_every_quality_and_seeds_for_every_random_task() -> None:
    for path in (tasks_path() / "fed_dialog").rglob("fed_dialog_*.yaml"):
        described = yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"].get("dialeval", {})
        if described:
            dialogues = described.get("shown_dialogues", [])
            assert len(set(dialogues)) == (3 if path.parent.name == "manual" else 0)
            assert described.get("seeds") == ([1, 2, 3] if path.parent.name == "random" else None)


@pytest.mark.parametrize("kind", SHOTS)
def test_a_task_of_each_kind_builds_a_request(kind: str, own_data: Path) -> None:
    # The hand-picked dialogues are named by their place in the published file.
    n_dialogues = 125 if kind == "manual_" else 6
    write_fed(own_data, fed_rows(n_dialogues))
    n_shots = 3 if kind else 0
    for name, n_documents in (("turn_fluent", 3 * n_dialogues), ("dial_overall", n_dialogues)):
        task = build(f"fed_dialog_{kind}{name}")
        task.build_all_requests(limit=1)
        shown = {"manual_": n_documents - (9 if name == "turn_fluent" else 3), "random_": 3 * n_documents}
        assert len(task.eval_docs) == shown.get(kind, n_documents)
        assert task.instances[0].args[0].count("== Example ") == n_shots
        assert task.instances[0].args[0].endswith("\nRating:")


@pytest.mark.real_data
@pytest.mark.long
def test_every_task_builds_a_request_from_the_published_file(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of the 120 tasks reads the file, and puts the same turns into its examples.
    monkeypatch.setattr(fed, "read", cache(fed.read))
    monkeypatch.setattr(dialogue_rating, "neutralise", cache(dialogue_rating.neutralise))
    found = {result.name: result for result in validate_tasks(tasks_path() / "fed_dialog")}
    assert {result.state for result in found.values()} == {"ok"}
    assert (found["fed_dialog"].detail, found["fed_dialog_turn"].detail) == ("2 tasks", "9 tasks")
    assert found["fed_dialog_turn_fluent"].detail == "375 documents, 0 examples"
    assert found["fed_dialog_manual_turn_fluent"].detail == "366 documents, 3 examples"
    assert found["fed_dialog_manual_dial_error_recovery"].detail == "121 documents, 3 examples"
    assert found["fed_dialog_random_dial_depth"].detail == "375 documents, 3 examples"


def test_the_prompt_that_reaches_the_model(few: None) -> None:
    task = build("fed_dialog_random_turn_interesting", shots=2)
    task.build_all_requests(limit=1)
    document = task.eval_docs[0]
    drawn = SeededThreadSampler(list(task.eval_docs)).sample(n=2, eval_doc=document)
    dialogues = {dialogue.whole.id: dialogue for dialogue in fed.read()}
    prompt = rating_prompt("interesting").render(
        dialogues["fed_000"].responses[0], [dialogues[example["thread"]].responses for example in drawn]
    )
    assert [request.args for request in task.instances] == [(prompt, form) for form in (" 0", " 1", " 2", "0", "1", "2")]


def test_a_real_model_gives_the_same_numbers_through_every_door(few: None, tiny_lm: Path) -> None:
    arguments = f"pretrained={tiny_lm},dtype=float32,device=cpu"
    judge = load_language_model("hf", arguments)
    for name, items in (("turn_fluent", fed.read_examples()), ("dial_coherent", fed.read_dialogues())):
        quality = name.partition("_")[2]
        direct = DialogueRatingScorer(judge, quality).score(items)
        task = f"fed_dialog_{name}"
        found = evaluate("hf", task, model_args=arguments)
        samples = [sample["spearman"][0] for sample in found["samples"][task]]
        assert samples == pytest.approx(direct.values, abs=1e-5)
        said = [(*item.context, item.response) if isinstance(item, Example) else item.turns for item in items]
        metric = load_metric("dialogue_rating", llm="hf", llm_args=arguments, quality=quality).compute(
            predictions=[turns[-1].text for turns in said], contexts=[[turn.text for turn in turns[:-1]] for turns in said]
        )
        assert metric["scores"] == pytest.approx(direct.values, abs=1e-5)
        assert metric["signature"] == str(direct.signature)
        published = rating_prompt(quality).published
        ratings = [mean_rating(item, published) for item in items]
        expected = correlations(direct.values, ratings, clusters=[context_key(item) for item in items])
        results = metrics(found, task)
        assert results["kendall"] == pytest.approx(expected["kendall_b"].value, abs=1e-6)
        assert (results["n_scored"], results["n_unscored"]) == (len(items), 0)
        assert load_scorer("dialogue_rating", llm=judge, quality=quality).columns == (quality,)


@pytest.mark.long
def test_the_group_takes_the_mean_of_its_tasks_each_the_mean_over_its_runs(few: None) -> None:
    found = evaluate(Chance(), "fed_dialog_random_dial")
    task = "fed_dialog_random_dial_overall"
    results = found["results"]
    runs: dict[int, list[tuple[float, float]]] = {}
    for sample in found["samples"][task]:
        score, rating, seed, _ = sample["spearman"]
        runs.setdefault(seed, []).append((score, rating))
    values = [correlations(*zip(*run, strict=True), bootstrap=Bootstrap(rounds=0))["spearman"].value for run in runs.values()]
    assert sorted(runs) == [1, 2, 3]
    assert results[task]["spearman,none"] == pytest.approx(statistics.fmean(values))  # type: ignore[arg-type]
    assert results[task]["spearman_deviation,none"] == pytest.approx(statistics.stdev(values))  # type: ignore[type-var]
    assert metrics(found, task)["n_unscored"] == 0
    defined = [results[f"fed_dialog_random_dial_{quality}"]["spearman,none"] for quality in rating_prompts("dialogue")]
    numbers = [value for value in defined if isinstance(value, float)]
    assert len(defined) == 11
    assert found["groups"]["fed_dialog_random_dial"]["spearman,none"] == pytest.approx(statistics.fmean(numbers))
    shown = {key.removesuffix(",none") for key in results[task] if key.endswith(",none") and "_stderr" not in key}
    assert set(KINDS["rating_over_seeds"].printed) == shown
    json.dumps(found["results"], allow_nan=False)


def test_a_model_without_any_probability_leaves_every_document_unscored(few: None) -> None:
    class Mute(LikelihoodLM):
        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            return [(-math.inf, False)] * len(requests)

    task = "fed_dialog_bm25_c_turn_specific"
    results = metrics(evaluate(Mute(), task, num_fewshot=2), task)
    assert (results["n_scored"], results["n_unscored"]) == (0, 18)
    assert results["spearman"].startswith("undefined (")
    document = fed_dataset(level="turn", quality="fluent", seeds=(4,))["test"][0]
    judged = process_seeded_ratings(document, [(-math.inf, False)] * 6)
    assert judged == dict.fromkeys(KINDS["rating_over_seeds"].printed, SeededJudged(None, document["rating"], 4))


def test_a_scripted_judge_leaves_no_document_unaccounted_for(few: None) -> None:
    """The dialogue about cats is refused: its log probabilities are NaN."""
    for name, counts in (("turn_relevant", (15, 3)), ("dial_depth", (5, 1))):
        task = f"fed_dialog_{name}"
        results = metrics(evaluate("scripted-judge", task, model_args="refuse=cats"), task)
        assert (results["n_scored"], results["n_unscored"]) == counts
