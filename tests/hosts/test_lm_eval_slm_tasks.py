"""The tasks `dre` and `slide`: the same numbers as the scorers', every document accounted for, and the host's command line."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks._yaml_loader import load_yaml

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.scorer import Scorer, run_signature
from dialeval_plugin.core.scores import Scores, Unscored
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.tasks.documents import item_of
from dialeval_plugin.hosts.lm_eval.tasks.ratings import Judged, Variant
from dialeval_plugin.hosts.lm_eval.tasks.small_models import dre_dataset, dre_results, slide_dataset, slide_results
from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS, PromptedJudge
from dialeval_plugin.methods.slide.dre import VARIANTS, DreScorer
from dialeval_plugin.methods.slide.scorer import SlideScorer
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.testing.scripted_lm import ScriptedJudgeLM
from tests.hosts.through_lm_eval import evaluate, metrics, task_manager
from tests.refusals import refusal, refused


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the embedded corpus: what is tested here does not depend on its size."""
    some = mini.read_examples("test")[:60]
    monkeypatch.setattr(mini, "read_examples", lambda split: some)


def scripted_answer(prompt: str) -> str | Unscored:
    """Numbers that depend on the prompt alone, in the form that it asks for; some answers cannot be read."""
    share = sum(map(ord, prompt)) % 21 / 20
    if share == 0.55:
        return "I'm sorry, but I cannot rate this."
    if "Influence degree" in prompt:
        return " 4.0" if share == 0.6 else f" {5 * share:.2f}\n2. Influence degree: {1 - share / 2:.3f}"
    if prompt.startswith("Engagingness"):
        return f" {share:.2f}\nNot read."
    return f" {5 * share:.2f}"


def run(task: str, slm: Path, **metadata: Any) -> tuple[dict[str, Any], ScriptedJudgeLM]:
    """Return the host's results, and the model that it asked."""
    lm = ScriptedJudgeLM(scripted_answer)
    return evaluate(lm, task, metadata={"slm": str(slm), **metadata}, log_samples=True), lm


def reasons(found: dict[str, Any], task: str, variant: str) -> dict[str, int]:
    judged = [Judged(*sample["spearman"]).by(variant) for sample in found["samples"][task]]
    return dict(Counter(one.unscored for one in judged if one.unscored))


def assert_agree(found: dict[str, Any], task: str, variant: str, scores: list[float | None]) -> None:
    """The task's scores and coefficients of one variant are those of a scorer's column."""
    judged = [Judged(*sample["spearman"]).by(variant) for sample in found["samples"][task]]
    assert [one.score for one in judged] == [None if value is None else pytest.approx(value, abs=1e-9) for value in scores]
    examples = mini.read_examples("test")
    clusters = [context_key(example) for example in examples]
    ratings = [example.ratings[mini.QUALITY][0] for example in examples]
    expected = correlations(scores, ratings, clusters=clusters, bootstrap=Bootstrap(rounds=20))
    results = metrics(found, task, variant)
    for metric, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        assert results[metric] == pytest.approx(expected[coefficient].value, abs=1e-9)
        # The test split has fewer dialogues than an interval needs.
        why = f"an interval needs 10 clusters (dialogues), here are {len(set(clusters))}, so there is no interval"
        assert {results[f"{metric}_{bound}"] for bound in ("ci_low", "ci_high")} == {f"undefined ({why})"}
    n_scored = sum(value is not None for value in scores)
    assert (results["n_scored"], results["n_unscored"]) == (n_scored, len(scores) - n_scored)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"eq26": True, "clamp": [0, 5]}])
def test_dre_gives_the_numbers_of_the_scorer(options: dict[str, Any], tiny_slm: Path) -> None:
    found, lm = run("dre_mini", tiny_slm, **options)
    examples = mini.read_examples("test")
    llm = ScriptedLanguageModel(scripted_answer)
    for variant in VARIANTS:
        direct = DreScorer(llm, str(tiny_slm), variant=variant, **options).score(examples)  # type: ignore[arg-type]
        assert_agree(found, "dre_mini", variant, list(direct.values))
        assert reasons(found, "dre_mini", variant) == direct.unscored_by_reason != {}

    # Two requests an example and no more, with the prompts' own limits.
    assert len(lm.double.asked) == 2 * len(examples) == 2 * found["results"]["dre_mini"]["sample_len"]
    assert_same_signature(found["samples"]["dre_mini"], DreScorer(llm, str(tiny_slm), ablation=True, **options))
    assert set(lm.double.asked) == set(llm.asked)
    arguments = [sample["arguments"] for sample in found["samples"]["dre_mini"]]
    assert {tuple(settings["max_gen_toks"] for _, settings in asked) for asked in arguments} == {(64, 32)}


def test_the_tokens_that_a_run_gives_hold_for_both_prompts(tiny_slm: Path) -> None:
    found = evaluate(
        ScriptedJudgeLM(scripted_answer),
        "dre_mini",
        metadata={"slm": str(tiny_slm)},
        limit=1,
        log_samples=True,
        gen_kwargs="max_gen_toks=2048",
    )
    (sample,) = found["samples"]["dre_mini"]
    assert [settings["max_gen_toks"] for _, settings in sample["arguments"]] == [2048, 2048]


def assert_same_signature(samples: list[dict[str, Any]], scorer: Scorer) -> None:
    """The task's signature is the scorer's, but for the large model, which the host names in its own records."""
    (signature,) = {sample["doc"]["signature"] for sample in samples}
    assert "scripted@1" in str(run_signature(scorer))
    assert signature == str(run_signature(scorer)).replace("scripted@1", "host")


SLIDE_OPTIONS = [{}, {"fusion": "agree", "slm_scale": 0.5}, {"clip": True, "round3": True, "normalise": "training"}]


@pytest.mark.long
@pytest.mark.parametrize("options", SLIDE_OPTIONS)
def test_slide_gives_the_numbers_of_the_scorer(options: dict[str, Any], tiny_slm: Path) -> None:
    found, lm = run("slide_mini", tiny_slm, **options)
    examples = mini.read_examples("test")
    llm = ScriptedLanguageModel(scripted_answer)
    judge = PromptedJudge(llm, prompt="slide")
    direct = SlideScorer(str(tiny_slm), llm=judge, **options).score(examples)
    of_small = {name: value for name, value in options.items() if name not in {"fusion", "slm_scale"}}
    small = SlideScorer(str(tiny_slm), variant="slm", **of_small).score(examples)

    assert_agree(found, "slide_mini", "slide", list(direct.values))
    assert_agree(found, "slide_mini", "llm", list(direct.columns["llm"]))
    assert_agree(found, "slide_mini", "slm", list(small.values))
    assert reasons(found, "slide_mini", "llm") == direct.unscored_by_reason
    assert reasons(found, "slide_mini", "slm") == {}
    assert len(lm.double.asked) == len(examples)
    assert_same_signature(found["samples"]["slide_mini"], SlideScorer(str(tiny_slm), llm=judge, **options))


def test_the_task_files_ask_as_the_prompts_do() -> None:
    index = task_manager()._index
    settings = {
        name: load_yaml(index[f"{name}_mini"].yaml_path, resolve_func=False)["generation_kwargs"] for name in ("dre", "slide")
    }
    slide = SCORING_PROMPTS["slide"]
    assert settings["dre"] == {"until": [], "do_sample": False, "temperature": 0.0}
    assert settings["slide"] == {**settings["dre"], "until": list(slide.stop), "max_gen_toks": slide.max_tokens}


@pytest.mark.parametrize("name", ["slide_mini", "dailydialog_pp_generate_mini", "dre_mini"])
def test_a_chat_model_is_not_stopped_at_a_line_break(name: str) -> None:
    """It may begin with an empty line or a sentence, or think first; a model that continues a text has no end of its own."""
    path = task_manager()._index[name].yaml_path
    printed = load_yaml(path, resolve_func=False)["generation_kwargs"]["until"]
    loaded = task_manager().load([name])["tasks"][name]

    def stops(given: list[str] | None = None, *, in_chat: bool) -> list[str]:
        task = copy.deepcopy(loaded)
        if given is not None:
            task.set_config("generation_kwargs", {"until": given}, update=True)
        task.set_config("num_fewshot", 0)
        task.build_all_requests(limit=1, apply_chat_template=in_chat, chat_template=lambda turns, **_: turns[-1]["content"])
        return list(task.instances[0].arguments[1]["until"])

    assert stops(in_chat=False) == printed
    assert stops(in_chat=True) == []
    assert stops(["##"], in_chat=True) == stops(["##"], in_chat=False) == ["##"]


def test_a_document_holds_its_example_and_what_the_small_model_found(use_tiny_data: Path, tiny_slm: Path) -> None:
    examples = dstc10.read("ft")
    small: Scores = SlideScorer(str(tiny_slm), variant="slm").score(examples)
    for build in (dre_dataset, slide_dataset):
        found = build(dataset="ft", slm=str(tiny_slm))["test"]
        assert [item_of(document).response for document in found] == [example.response for example in examples]
        for name in ("slm", "slm_probability", "slm_distance"):
            assert list(found[name]) == pytest.approx(small.columns[name], abs=1e-6)


def test_what_has_no_score_has_a_reason(tiny_slm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = Example.from_texts([], "Fine.", id="fine")
    given = [replace(item, response=Turn(text), ratings={"fits": (1.0,)}) for text in ("Fine.", "", "Good.")]
    monkeypatch.setattr(mini, "read_examples", lambda split: given)
    fine, blank, _ = dre_dataset(dataset="mini", slm=str(tiny_slm))["test"]
    good = ["LLM Overall Score: 4\nInfluence degree: 0.5", "LLM Overall Score: 3"]

    expected = {"": 4.0 * 0.5 * fine["slm"], "in_dre": 4.0, "ex_dre": 3.0 * fine["slm"], "non_dre": 3.0}
    scored = {name: Variant(name, pytest.approx(score)) for name, score in expected.items()}
    assert variants(dre_results(fine, good)) == scored
    half = variants(dre_results(fine, ["LLM Overall Score: 4", good[1]]))
    assert half["in_dre"][1:] == (None, "parse_failure", "the answer has no influence degree: 'LLM Overall Score: 4'")
    assert [name for name, one in half.items() if one.score is None] == ["", "in_dre"]
    silent = variants(dre_results(fine, [good[0], None]))
    assert silent["ex_dre"][1:] == (None, "api_error", "the model gave no answer")
    assert [name for name, one in silent.items() if one.score is None] == ["ex_dre", "non_dre"]

    nothing = variants(dre_results(blank, good))
    assert {one.score for one in nothing.values()} == {None}
    assert {one[2:] for name, one in nothing.items() if name} == {("empty_input", "the response has no visible character")}
    fine, blank, _ = slide_dataset(dataset="mini", slm=str(tiny_slm))["test"]
    assert {one.score for one in variants(slide_results(blank, ["1"])).values()} == {None}
    unread = variants(slide_results(fine, ["?"]))
    assert {name for name, one in unread.items() if one.score is None} == {"", "llm"} == {*unread} - {"slm"}


def variants(found: dict[str, Judged]) -> dict[str, Variant]:
    """The scores of one document by variant, "" for the main one, which has no detail."""
    (judged,) = set(found.values())
    return {"": Variant("", judged.score, judged.unscored), **{one.name: one for one in judged.variants}}


def test_without_the_small_models_numbers_the_large_ones_count(tiny_slm: Path) -> None:
    broken = {"slm_unscored": "non_finite", "slm_detail": "slm is nan", "slm": None}
    row = {**dre_dataset(dataset="mini", slm=str(tiny_slm))["test"][0], **broken}
    found = variants(dre_results(row, ["LLM Overall Score: 4\nInfluence degree: 0.5", "3"]))
    assert [one.score for one in found.values()] == [None, None, None, 3.0]
    assert found["in_dre"][2:] == ("non_finite", "slm is nan")
    row = {**slide_dataset(dataset="mini", slm=str(tiny_slm))["test"][0], **broken}
    found = variants(slide_results(row, ["0.5"]))
    assert {name: one.score for name, one in found.items()} == {"": None, "slm": None, "llm": 0.5}
    assert (found["slm"][2:], found["llm"][2:]) == (("non_finite", "slm is nan"), (None, ""))


@pytest.mark.parametrize(("task", "build"), [("dre", dre_dataset), ("slide", slide_dataset)])
def test_what_is_missing_or_wrong_is_said(
    task: str, build: Callable[..., Any], tiny_slm: Path, use_tiny_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused(f"{task}: clip is 'maybe'. Give true or false."):
        build(dataset="mini", slm=str(tiny_slm), clip="maybe")
    with refused(f"{task}: the set 'fd' holds whole dialogues, not responses. Use a turn-level set."):
        build(dataset="fd", slm=str(tiny_slm))
    assert "has no dailydialog-grade_eval.json" in refusal(build, dataset="dgr", slm=str(tiny_slm), error=MissingPrerequisite)
    monkeypatch.setenv("DIALEVAL_SLM", str(tiny_slm))
    assert len(build(dataset="tu")["test"]) == 12


WRONG = {
    "slm_scale": ("half", "slide: slm_scale is 'half'. Give a number."),
    "normalise": (
        "population",
        "slide: normalise='population' needs all scores of a run, and a task has one document's. "
        "Leave it out, or score a file with `dialeval score`.",
    ),
    "fusion": ("mean", "slide: fusion is 'mean'. Give one of first_match, llm_first, agree, mixture."),
}


@pytest.mark.parametrize("option", WRONG)
def test_wrong_options_of_slide_are_refused(option: str, tiny_slm: Path) -> None:
    value, message = WRONG[option]
    with refused(message):
        slide_dataset(dataset="mini", slm=str(tiny_slm), **{option: value})


@pytest.mark.long
def test_a_group_leaves_out_what_is_absent(use_tiny_data: Path, tiny_slm: Path, caplog: pytest.LogCaptureFixture) -> None:
    found, _ = run("slide", tiny_slm)
    assert any(message.startswith("slide_dgr: left out of the group and of its mean: ") for message in caplog.messages)
    assert found["results"]["slide_dgr"]["sample_len"] == 0
    values = [found["results"][f"slide_{code}"]["spearman,none"] for code in ("tu", "pu", "dz", "dgu", "eg", "ft")]
    assert found["groups"]["slide"]["spearman,none"] == pytest.approx(sum(values) / len(values))


@pytest.mark.long
def test_a_real_model_is_asked_both_prompts(use_tiny_data: Path, tiny_slm: Path, tiny_lm: Path) -> None:
    arguments = {"model_args": f"pretrained={tiny_lm}", "device": "cpu", "batch_size": 8, "limit": 3}
    found = evaluate("hf", "dre_tu", "slide_tu", metadata={"slm": str(tiny_slm)}, **arguments)
    for task, names in (("dre_tu", VARIANTS), ("slide_tu", ("slide", "slm", "llm"))):
        # A model with random weights says little that can be read, and every document is accounted for.
        results = [metrics(found, task, name) for name in names]
        assert {one["n_scored"] + one["n_unscored"] for one in results} == {3}
    sample = found["samples"]["dre_tu"][0]
    assert ["Auxiliary information" in prompt for prompt, _ in sample["arguments"]] == [True, False]
    assert [len(answers) for answers in sample["resps"]] == [1, 1]
    json.dumps(found["results"], allow_nan=False)


@pytest.mark.real_data
def test_the_real_sets_are_judged_whole(data_dir: Path, tiny_slm: Path) -> None:
    for code, size in {"tu": 360, "pu": 300, "eg": 300, "ft": 375}.items():
        dataset = dre_dataset(dataset=code, slm=str(tiny_slm))["test"]
        assert (len(dataset), [score for score in dataset["slm"] if score is None]) == (size, []), code
