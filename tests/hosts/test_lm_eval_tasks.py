"""The lm-eval tasks: documents, groups with absent sets, and the host's own command line end to end."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.tasks.responses import dstc10_dataset, mini_dataset, process_results
from dialeval_plugin.judgement_tasks.documents import FORMS, item_of
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import task_manager
from tests.refusals import refused

Run = Callable[..., CompletedProcess[str]]
Read = Callable[[Path], Any]
EIGHT = ("tu", "dz", "pu", "dgu", "dgr", "ft", "eg", "fd")


def include(*tasks: str) -> dict[str, Any]:
    return task_manager().load(list(tasks))


def test_a_document_holds_everything_that_a_scorer_may_look_at(use_tiny_data: Path) -> None:
    for code in ("tu", "ft", "fd"):
        items = dstc10.read(code)
        documents = list(dstc10_dataset(dataset=code)["test"])
        assert [item_of(document) for document in documents] == [_without_ratings(item) for item in items]


def _without_ratings(item: Example | Dialogue) -> Example | Dialogue:
    from dataclasses import replace

    return replace(item, ratings={})


def test_the_label_of_an_example_is_cut_at_the_midpoint_of_the_scale(use_tiny_data: Path) -> None:
    documents = list(dstc10_dataset(dataset="tu")["test"])
    assert [(document["rating"], FORMS[document["label"]]) for document in documents[:2]] == [(3.5, "Yes"), (1.5, "No")]


def test_the_host_resolves_functions_and_builds_a_request_of_every_task(use_tiny_data: Path) -> None:
    from lm_eval.api.group import Group

    loaded = include(
        "dstc10_dialog", "dstc10_dialog_bm25_c", "dstc10_dialog_bm25_r", "dstc10_dialog_bm25_cr", "dstc10_dialog_mini"
    )
    assert {name for name, group in loaded["groups"].items() if isinstance(group, Group)} == {
        "dstc10_dialog",
        "dstc10_dialog_bm25_c",
        "dstc10_dialog_bm25_r",
        "dstc10_dialog_bm25_cr",
    }
    for name, task in loaded["tasks"].items():
        task.set_config("num_fewshot", task.config.num_fewshot or 0)
        task.set_fewshot_seed(1)
        task.build_all_requests(limit=1)
        assert [request.args[1] for request in task.instances] == [" Yes", " No", " yes", " no"], name
        assert task.instances[0].args[0].endswith("\nAnswer:")


def test_g_is_read_off_summed_forms_and_both_readings(use_tiny_data: Path) -> None:
    results = [(math.log(p), False) for p in (0.3, 0.1, 0.3, 0.1)]
    (read,) = set(process_results(dstc10_dataset(dataset="tu")["test"][0], results).values())
    (literal,) = set(process_results(dstc10_dataset(dataset="tu", literal_log=True)["test"][0], results).values())
    assert read.score == pytest.approx(0.75)
    assert literal.score == pytest.approx(math.log(0.6) / (math.log(0.6) + math.log(0.2)))
    assert (read.rating, bool(read.cluster)) == (3.5, True)


def test_impossible_answers_are_unscored(use_tiny_data: Path) -> None:
    document = dstc10_dataset(dataset="tu")["test"][0]
    (judged,) = set(process_results(document, [(-math.inf, False)] * 4).values())
    assert judged.score is None


def test_a_wrong_switch_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^literal_log: expected true or false, got 'maybe'\. Type --metadata '\{\"literal_log\": true\}'\.$"
    ):
        mini_dataset(literal_log="maybe")


def test_a_task_asked_for_by_name_stops_where_its_file_is_absent(use_tiny_data: Path) -> None:
    with refused(
        f"{use_tiny_data / 'dstc10'}: has no dailydialog-grade_eval.json (DSTC10 set dgr). Type `dialeval data fetch dstc10`; "
        "if the set is not among the files that it fetches, get it from https://chateval.org/dstc10 and put it there.",
        MissingPrerequisite,
    ):
        include("dstc10_dialog_dgr")


def test_a_group_without_any_set_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dstc10").mkdir()
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingPrerequisite) as caught:
        include("dstc10_dialog")
    assert str(caught.value).startswith(
        "dstc10_dialog: none of the group's sets (tu, dz, pu, dgu, dgr, ft, eg, fd) is on this machine. "
        "Type `dialeval data fetch dstc10`, or name a folder that has them in DIALEVAL_DATA_DIR. "
        f"The first that was looked for: {tmp_path / 'dstc10'}: has no topical-usr_eval.json"
    )


def test_every_process_gets_a_placeholder_of_an_absent_set(use_tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    documents = dstc10_dataset(dataset="dgr", when_absent="skip", group_sets=("tu",))["test"]
    assert [document["is_absent"] for document in documents] == [True] * 4
    assert process_results(documents[0], [(-1.0, False)] * 4) == {}


def test_all_fourteen_tasks_and_their_twins_are_there() -> None:
    names = {path.stem for path in tasks_path().rglob("*.yaml")}
    for kind in ("", "bm25_c_", "bm25_r_", "bm25_cr_"):
        assert {f"dstc10_dialog_{kind}{code}" for code in dstc10.SETS} <= names
    assert {"dstc10_dialog", "dstc10_dialog_all", "dstc10_dialog_mini"} <= names


def test_the_hosts_command_line_runs_the_group_with_an_absent_set(clean_run: Run, result_of: Read, tmp_path: Path) -> None:
    done = clean_run(
        *("-m", "lm_eval", "run", "--model", "dummy", "--tasks", "dstc10_dialog", "--include_path", str(tasks_path())),
        *("--output_path", str(tmp_path / "out"), "--log_samples", "--num_fewshot", "2"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = result_of(tmp_path / "out")
    tasks = {code: result["results"][f"dstc10_dialog_{code}"] for code in EIGHT}
    assert tasks["dgr"] == {"name": "dstc10_dialog_dgr", "alias": "dstc10_dialog DailyDialog-GRADE", "sample_len": 0}
    assert "dstc10_dialog_dgr: left out of the group and of its mean: " in done.stderr
    present = [task for code, task in tasks.items() if code != "dgr"]
    # Six dialogues each: the text in the number's place says why there is no interval.
    for task in present:
        assert "an interval needs 10 clusters (dialogues), here are 6" in task["spearman_ci_low,none"]
        assert task["spearman_ci_high,none"] == task["spearman_ci_low,none"]
    values = [task["spearman,none"] for task in present]
    assert result["groups"]["dstc10_dialog"]["spearman,none"] == pytest.approx(sum(values) / 7)
    assert {task["n_scored,none"] for code, task in tasks.items() if code not in {"dgr", "fd"}} == {12}
    assert tasks["fd"]["n_scored,none"] == 6

    samples = tmp_path / "out"
    (path,) = samples.glob("*/samples_dstc10_dialog_ft_*.jsonl")
    judged = [json.loads(line)["spearman"] for line in path.read_text(encoding="utf-8").splitlines()]
    scores, ratings, clusters, *_ = zip(*judged, strict=True)
    direct = correlations(scores, ratings, clusters=clusters)
    assert tasks["ft"]["spearman,none"] == pytest.approx(direct["spearman"].value, abs=1e-12)


def test_the_prompt_reaches_the_model_with_its_examples(clean_run: Run, tmp_path: Path) -> None:
    done = clean_run(
        *("-m", "lm_eval", "--model", "dummy", "--tasks", "dstc10_dialog_tu", "--include_path", str(tasks_path())),
        *("--output_path", str(tmp_path / "out"), "--log_samples", "--num_fewshot", "1", "--limit", "1"),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = (tmp_path / "out").glob("*/samples_dstc10_dialog_tu_*.jsonl")
    prompt = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["arguments"]["gen_args_0"]["arg_0"]
    assert prompt.startswith(
        "Instruction: Given a conversation and a response, choose if the response is a good response to the context\n"
        "Example\nBackground info: I like tea.\nConversation:\nPerson B: Do you like "
    )
    assert prompt.endswith(
        "\n\nBackground info: I like tea.\nConversation:\nPerson B: Do you like tea? (0)\nPerson A: I do like tea (tu 0).\n"
        "Response: Then let us talk about tea.\nQuestion: Is the above response a good response to the conversation?\nAnswer:"
    )
    assert prompt.count("Example\n") == 1


def test_a_task_whose_coefficients_are_undefined_leaves_valid_json_and_the_mean_of_the_others(
    clean_run: Run, result_of: Read, tmp_path: Path, tiny_data: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(tiny_data, data)
    file = data / "dstc10" / "topical-usr_eval.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    for row in rows:
        row["annotations"] = {"Overall": [3, 3]}
    file.write_text(json.dumps(rows), encoding="utf-8")
    done = clean_run(
        *("-m", "lm_eval", "--model", "dummy", "--tasks", "dstc10_dialog", "--include_path", str(tasks_path())),
        *("--output_path", str(tmp_path / "out")),
        env={"DIALEVAL_DATA_DIR": str(data)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = result_of(tmp_path / "out")
    assert result["results"]["dstc10_dialog_tu"]["spearman,none"] == "undefined (all 12 ratings are 3.0)"
    defined = [result["results"][f"dstc10_dialog_{code}"]["spearman,none"] for code in EIGHT if code not in {"tu", "dgr"}]
    assert result["groups"]["dstc10_dialog"]["spearman,none"] == pytest.approx(sum(defined) / 6)
    assert "no spearman: undefined (all 12 ratings are 3.0)" in done.stderr


def test_the_mini_task_needs_no_data(clean_run: Run, result_of: Read, tmp_path: Path) -> None:
    done = clean_run(
        *("-m", "lm_eval", "--model", "dummy", "--tasks", "dstc10_dialog_mini", "--include_path", str(tasks_path())),
        *("--output_path", str(tmp_path / "out"), "--metadata", '{"literal_log": true}'),
        env={"DIALEVAL_DATA_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert result_of(tmp_path / "out")["results"]["dstc10_dialog_mini"]["n_scored,none"] > 100


@pytest.mark.real_data
def test_the_real_sets_have_their_published_sizes(data_dir: Path) -> None:
    sizes = {"tu": 360, "pu": 300, "dz": 900, "pz": 900, "dgu": 500, "eg": 300, "cg": 600, "ft": 375, "fd": 125, "d7": 1000}
    for code, size in sizes.items():
        assert len(dstc10_dataset(dataset=code)["test"]) == size, code
