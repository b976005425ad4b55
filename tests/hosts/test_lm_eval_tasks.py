"""The lm-eval tasks: documents, groups with absent sets, options, and command lines end to end, the host's own and ours."""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import lm_eval
import pytest

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval import versions
from dialeval_plugin.hosts.lm_eval.tasks import classification
from dialeval_plugin.hosts.lm_eval.tasks.documents import FORMS, item_of
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.lm_eval.tasks.ratings import dstc10_dataset, mini_dataset, process_results
from dialeval_plugin.hosts.lm_eval.tasks.small_models import slide_dataset
from dialeval_plugin.hosts.registration import register
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import evaluate, result_of, samples_of, task_manager
from tests.refusals import refusal, refused

Run = Callable[..., CompletedProcess[str]]
OnHost = Callable[..., tuple[Any, str]]
MAIN = "import sys; from dialeval_plugin.hosts.lm_eval.cli import main; main(sys.argv[1:])"
SLIDE = "clip, fusion, normalise, rated_quality, round3, slm, slm_scale"
EIGHT = ("tu", "dz", "pu", "dgu", "dgr", "ft", "eg", "fd")


def include(*tasks: str) -> dict[str, Any]:
    loaded: dict[str, Any] = task_manager().load(list(tasks))
    for task in loaded["tasks"].values():
        assert task.dataset  # lm-eval 0.5 reads it when it is asked for
    return loaded


def test_a_document_holds_everything_that_a_scorer_may_look_at(use_tiny_data: Path) -> None:
    for code in ("tu", "ft", "fd"):
        items = [replace(item, ratings={}) for item in dstc10.read(code)]
        assert [item_of(document) for document in dstc10_dataset(dataset=code)["test"]] == items
    # The label of an example is cut at the midpoint of the scale.
    documents = list(dstc10_dataset(dataset="tu")["test"])
    assert [(document["rating"], FORMS[document["label"]]) for document in documents[:2]] == [(3.5, "Yes"), (1.5, "No")]


def test_the_host_resolves_functions_and_builds_a_request_of_every_task(use_tiny_data: Path) -> None:
    from lm_eval.api.group import Group

    groups = {f"dstc10_dialog{kind}" for kind in ("", "_bm25_c", "_bm25_r", "_bm25_cr")}
    loaded = include(*groups, "dstc10_dialog_mini")
    assert {name for name, group in loaded["groups"].items() if isinstance(group, Group)} == groups
    for name, task in loaded["tasks"].items():
        task.set_config("num_fewshot", task.config.num_fewshot or 0)
        task.set_fewshot_seed(1)
        task.build_all_requests(limit=1)
        assert [request.args[1] for request in task.instances] == [" Yes", " No", " yes", " no"], name
        assert task.instances[0].args[0].endswith("\nAnswer:")


def test_g_is_read_off_summed_forms_in_both_readings_and_impossible_answers_are_unscored(use_tiny_data: Path) -> None:
    results = [(math.log(p), False) for p in (0.3, 0.1, 0.3, 0.1)]
    document = dstc10_dataset(dataset="tu")["test"][0]
    (read,) = set(process_results(document, results).values())
    (literal,) = set(process_results(dstc10_dataset(dataset="tu", literal_log=True)["test"][0], results).values())
    assert read.score == pytest.approx(0.75)
    assert literal.score == pytest.approx(math.log(0.6) / (math.log(0.6) + math.log(0.2)))
    assert (read.rating, bool(read.cluster)) == (3.5, True)
    (judged,) = set(process_results(document, [(-math.inf, False)] * 4).values())
    assert judged.score is None


FIRST = "The first that was looked for: "
NOT_THERE = {
    "dstc10_dialog_dgr": "{root}/dstc10: has no dailydialog-grade_eval.json (DSTC10 set dgr). Type `dialeval data fetch "
    "dstc10`; if the set is not among the files that it fetches, get it from https://chateval.org/dstc10 and put it there.",
    "dstc10_dialog": "dstc10_dialog: none of the group's sets (tu, dz, pu, dgu, dgr, ft, eg, fd) is on this machine. Type "
    "`dialeval data fetch dstc10`, or name a folder that has them in DIALEVAL_DATA_DIR. "
    f"{FIRST}{{root}}/dstc10: has no topical-usr_eval.json ",
    "convai_opinion": "convai_opinion: none of the group's sets (convai1, convai2) is on this machine. Type `dialeval data "
    f"fetch convai2`, or name a folder that has them in DIALEVAL_DATA_DIR. {FIRST}",
    "cgdialog_preference": "cgdialog_preference: none of the group's sets (dream, esconv, msc) is on this machine. Nobody "
    f"offers them for download: put them into the folder cgdialog_plus of the one that DIALEVAL_DATA_DIR names. {FIRST}",
    "dbdc_yi": "corpus 'dbdc3': DIALEVAL_DATA_DIR is '{root}', which has no folder 'dbdc3'. "
    "Put the corpus there, or unset the variable to use the cache.",
    "dailydialog_pp": "{root}/dailydialog_pp: has no test.json. `dialeval data fetch dailydialog_pp` says where it is to be "
    "had; put it there.",
    "fed_dialog_turn_fluent": "{root}/fed: has no fed_data.json. Type `dialeval data fetch fed`.",
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_a_task_or_group_whose_data_are_absent_says_what_to_type(name: str, own_data: Path) -> None:
    for corpus in ("dstc10", "fed", "dailydialog_pp", "cgdialog_plus"):
        (own_data / corpus).mkdir()
    said, expected = refusal(include, name, error=MissingPrerequisite), NOT_THERE[name].format(root=own_data)
    assert said.startswith(expected) if expected.endswith(" ") else said == expected


def test_every_process_gets_a_placeholder_of_an_absent_set(use_tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    documents = dstc10_dataset(dataset="dgr", when_absent="skip", group_sets=("tu",))["test"]
    assert [document["is_absent"] for document in documents] == [True] * 4
    assert process_results(documents[0], [(-1.0, False)] * 4) == {}


# The host's own command line


@pytest.mark.long
def test_the_hosts_command_line_runs_the_group_with_an_absent_set(on_host: OnHost, tmp_path: Path) -> None:
    result, said = on_host("dstc10_dialog", "--num_fewshot", "2")
    tasks = {code: result["results"][f"dstc10_dialog_{code}"] for code in EIGHT}
    name = tasks["dgr"].pop("name")
    assert name.split("::")[-1] == "dstc10_dialog_dgr"  # from 0.5 on the group stands before it
    assert tasks["dgr"] == {"alias": "dstc10_dialog DailyDialog-GRADE", "sample_len": 0}
    assert "dstc10_dialog_dgr: left out of the group and of its mean: " in said
    present = [task for code, task in tasks.items() if code != "dgr"]
    # Six dialogues each: the text in the number's place says why there is no interval.
    for task in present:
        assert "an interval needs 10 clusters (dialogues), here are 6" in task["spearman_ci_low,none"]
        assert task["spearman_ci_high,none"] == task["spearman_ci_low,none"]
    values = [task["spearman,none"] for task in present]
    assert result["groups"]["dstc10_dialog"]["spearman,none"] == pytest.approx(sum(values) / 7)
    assert {task["n_scored,none"] for code, task in tasks.items() if code not in {"dgr", "fd"}} == {12}
    assert tasks["fd"]["n_scored,none"] == 6
    judged = [sample["spearman"] for sample in samples_of(tmp_path / "out", "dstc10_dialog_ft")]
    scores, ratings, clusters, *_ = zip(*judged, strict=True)
    direct = correlations(scores, ratings, clusters=clusters)
    assert tasks["ft"]["spearman,none"] == pytest.approx(direct["spearman"].value, abs=1e-12)
    # The prompt reaches the model with its examples.
    prompt = samples_of(tmp_path / "out", "dstc10_dialog_tu")[0]["arguments"]["gen_args_0"]["arg_0"]
    assert prompt.startswith(
        "Instruction: Given a conversation and a response, choose if the response is a good response to the context\n"
        "Example\nBackground info: I like tea.\nConversation:\nPerson B: Do you like "
    )
    assert prompt.endswith(
        "\n\nBackground info: I like tea.\nConversation:\nPerson B: Do you like tea? (0)\nPerson A: I do like tea (tu 0).\n"
        "Response: Then let us talk about tea.\nQuestion: Is the above response a good response to the conversation?\nAnswer:"
    )
    assert prompt.count("Example\n") == 2


# `dialeval lm-eval`: the host's command line with our names


@pytest.mark.long
def test_a_model_judges_the_group_and_a_users_folder_counts_too(
    clean_run: Run, tiny_lm: Path, tiny_data: Path, tmp_path: Path
) -> None:
    """One task's coefficients are undefined, which leaves valid JSON and the mean of the others."""
    mine, output, data = tmp_path / "mine", tmp_path / "out", shutil.copytree(tiny_data, tmp_path / "data")
    mine.mkdir()
    mini_task = tasks_path() / "dstc10_dialog" / "dstc10_dialog_mini.yaml"
    (mine / "mine.yaml").write_text(f"include: {mini_task}\ntask: my_task\n", encoding="utf-8")
    file = data / "dstc10" / "topical-usr_eval.json"
    rows = [{**row, "annotations": {"Overall": [3, 3]}} for row in json.loads(file.read_text(encoding="utf-8"))]
    file.write_text(json.dumps(rows), encoding="utf-8")
    done = clean_run(
        *("-c", MAIN, "run", "--model", "hf", "--model_args", f"pretrained={tiny_lm}", "--device", "cpu", "--batch_size", "8"),
        *("--tasks", "dstc10_dialog,my_task", "--include_path", str(mine), "--limit", "12"),
        *("--output_path", str(output), "--log_samples"),
        env={"DIALEVAL_DATA_DIR": str(data)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = result_of(output)
    assert result["results"]["my_task"]["n_scored,none"] == 12
    assert result["results"]["dstc10_dialog_tu"]["n_scored,none"] == 12
    assert result["results"]["dstc10_dialog_tu"]["spearman,none"] == "undefined (all 12 ratings are 3.0)"
    defined = [result["results"][f"dstc10_dialog_{code}"]["spearman,none"] for code in EIGHT if code not in {"tu", "dgr"}]
    assert result["groups"]["dstc10_dialog"]["spearman,none"] == pytest.approx(sum(defined) / 6)
    assert "no spearman: undefined (all 12 ratings are 3.0)" in done.stderr
    sample = samples_of(output, "dstc10_dialog_tu")[0]
    # R76: the host writes numbers as text; a reader has to turn them back.
    yes, no = (math.fsum(math.exp(float(sample["resps"][form][0][0])) for form in forms) for forms in ((0, 2), (1, 3)))
    assert sample["spearman"][0] == pytest.approx(yes / (yes + no), abs=1e-6)


@pytest.mark.long
def test_old_style_flags_and_the_list_work(clean_run: Run) -> None:
    done = clean_run("-c", MAIN, "ls", "groups")
    assert "dstc10_dialog_bm25_cr" in done.stdout
    done = clean_run("-c", MAIN, "--model", "dummy", "--tasks", "dstc10_dialog_tu")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "\ndstc10_dialog_tu  spearman " in done.stdout


@pytest.mark.long
def test_tasks_that_there_are_not_are_named_each_with_the_nearest(clean_run: Run) -> None:
    """TRIAL section 3: `dstc10` was "Tasks not found", below a traceback."""
    done = clean_run("-c", MAIN, "run", "--model", "dummy", "--tasks", "dstc10,dstc10_dialog_tu,xxyyzzqq")
    assert done.returncode == 1
    # From 0.5 on the host stops at the first.
    second = "" if versions.has_scorers() else "There is no 'xxyyzzqq'. "
    assert done.stderr.splitlines()[-1] == (
        "dialeval_plugin.core.errors.InputError: --tasks: there is no 'dstc10'. Did you mean 'dstc10_dialog'? "
        f"{second}Type `dialeval lm-eval ls tasks` for all."
    )


def test_the_hosts_own_names_are_still_there(clean_run: Run) -> None:
    # R73: registering before lm_eval.api.metrics is imported would empty the host's registries of `mean` and `acc`.
    code = (
        "from dialeval_plugin.hosts.registration import register; register()\n"
        "from lm_eval.api import registry\n"
        "print(registry.get_aggregation('mean').__name__, 'acc' in registry.metric_registry)\n"
        "print(registry.get_model('dialogue-metric').__name__, registry.get_model('dummy').__name__)\n"
        "scorers = getattr(registry, 'scorer_registry', ['dialeval', 'regex'])  # from 0.5 on\n"
        "print('dialeval' in scorers, 'regex' in scorers)"
    )
    done = clean_run("-c", code)
    assert done.stdout.splitlines() == ["mean True", "DialogueMetricLM DummyLM", "True True"], done.stderr


def test_the_host_resamples_none_of_our_aggregations() -> None:
    """lm-eval 0.5 hands each to other processes, which cannot have them: a run ended in an error after its answers."""
    register()
    found = lm_eval.simple_evaluate(
        "dialogue-metric", "scorer=response_length", ["dstc10_dialog_mini"], limit=6, task_manager=task_manager()
    )
    errors = {name: value for name, value in found["results"]["dstc10_dialog_mini"].items() if "_stderr" in name}
    assert errors == dict.fromkeys((f"{name}_stderr,none" for name in KINDS["rating"].printed), "N/A")


def test_without_the_host_the_core_still_imports(clean_run: Run) -> None:
    # R75
    code = (
        "import sys; sys.modules['lm_eval'] = None\n"
        "import dialeval_plugin.methods.judging.judge, dialeval_plugin.hosts.lm_eval.tasks.documents\n"
        "import dialeval_plugin.hosts.lm_eval.tasks.ratings\n"
        "from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS; print(SCORING_PROMPTS['dre'].version)"
    )
    assert clean_run("-c", code).stdout == "1\n"


# Options. TRIAL, issue G 7: a misspelt one stops the run, whichever model it is for and however it is started


def run_with(task: str, metadata: dict[str, Any], model_args: dict[str, Any]) -> Any:
    given = {**model_args, **metadata}
    return evaluate("scripted-judge", task, metadata=given, model_args=model_args, limit=2)


def test_an_option_that_no_task_or_scorer_takes_is_refused(tiny_slm: Path) -> None:
    with refused(f"slide_mini: --metadata: there is no option 'fuson'. Did you mean 'fusion'? Known are: {SLIDE}."):
        run_with("slide_mini", {"slm": str(tiny_slm), "fuson": "agree"}, {})
    with refused("dstc10_dialog_mini: --metadata: there is no option 'fuson'. Known are: literal_log."):
        run_with("dstc10_dialog_mini", {"fuson": 1}, {})
    # What a group's file tells its tasks is no option of users.
    with refused("dstc10_dialog_mini: --metadata: there is no option 'when_absent'. Known are: literal_log."):
        run_with("dstc10_dialog_mini", {"when_absent": "skip"}, {})
    with refused("--metadata: literal_log is 'maybe'. Give true or false."):
        mini_dataset(literal_log="maybe")
    with pytest.raises(InputError, match=r"^chrf: .* 'fuson'"):
        evaluate("dialogue-metric", "dstc10_dialog_mini", model_args="scorer=chrf,fuson=1")


def test_a_models_arguments_are_no_options_and_another_tasks_option_is_said(
    tiny_slm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = run_with("dstc10_dialog_mini", {"slm": str(tiny_slm)}, {"refuse": "cats"})
    assert found["results"]["dstc10_dialog_mini"]["n_scored,none"] == 2
    assert "dstc10_dialog_mini: --metadata names slm, which this task does not take. It takes: literal_log." in caplog.messages


def test_a_models_argument_that_the_task_takes_is_said(tiny_slm: Path, caplog: pytest.LogCaptureFixture) -> None:
    """lm-eval merges the model's arguments into the task's options: the task was computed with them, in silence."""
    scorer = {"scorer": "slide", "variant": "slm", "slm": str(tiny_slm), "slm_scale": 0.5}
    said = "slide_mini: is computed with slm_scale=%s, an argument of the model that lm-eval passes on. "
    said += "--metadata overrides it."
    evaluate("dialogue-metric", "slide_mini", metadata=scorer, model_args=scorer, limit=2)
    assert said % 0.5 in caplog.messages
    caplog.clear()
    evaluate("dialogue-metric", "slide_mini", metadata={**scorer, "slm_scale": 1.0}, model_args=scorer, limit=2)
    assert not any("slm_scale=" in message for message in caplog.messages)


def test_called_by_hand_a_data_set_takes_its_own_options_only(tiny_slm: Path) -> None:
    assert len(classification.mini_dataset(version=1.0, config_source="x.yaml")["test"]) > 0
    said = refusal(slide_dataset, dataset="mini", slm=str(tiny_slm), fuson="agree")
    assert said.startswith("task: --metadata: there is no option 'fuson'. Did you mean 'fusion'? Known are: ")


@pytest.mark.long
def test_the_hosts_own_command_line_says_so(clean_run: Callable[..., CompletedProcess[str]]) -> None:
    done = clean_run(
        *("-m", "lm_eval", "run", "--model", "dummy", "--tasks", "dstc10_dialog_mini", "--include_path", str(tasks_path())),
        *("--limit", "2", "--metadata", '{"literal": true}'),
    )
    assert done.returncode != 0
    assert (
        "InputError: dstc10_dialog_mini: --metadata: there is no option 'literal'. Did you mean 'literal_log'? "
        "Known are: literal_log."
    ) in done.stderr


@pytest.mark.real_data
def test_the_real_sets_have_their_published_sizes(data_dir: Path) -> None:
    sizes = {"tu": 360, "pu": 300, "dz": 900, "pz": 900, "dgu": 500, "eg": 300, "cg": 600, "ft": 375, "fd": 125, "d7": 1000}
    for code, size in sizes.items():
        assert len(dstc10_dataset(dataset=code)["test"]) == size, code
