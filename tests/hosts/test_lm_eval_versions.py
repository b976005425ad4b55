"""Both versions of lm-eval ask a model the same. 0.5 left out documents, shown ratings and the keys of a group in silence."""

from __future__ import annotations

import configparser
import importlib
from pathlib import Path

import pytest

from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import BOOTSTRAP
from dialeval_plugin.statistics.correlation import correlations
from tests.hosts.through_lm_eval import task_manager
from tests.layouts import fed_rows, write_convai, write_fed
from tests.small_corpora import write_dbdc, write_dstc10, write_preferences

ASKED = {
    "cgdialog_preference_msc": "1b78ff4f90a5",
    "convai2_opinion": "02ec900089ac",
    "dailydialog_pp_generate_mini": "f83d6375a8cd",
    "dailydialog_pp_mini": "b5ffb4af7b89",
    "dbdc_yi": "8624155ee1a6",
    "dstc10_dialog_bm25_cr_tu": "d0388b0ed16d",
    "dstc10_dialog_mini": "cd9d3a34d645",
    "fed_dialog_bm25_r_dial_overall": "ffddb352139c",
    "fed_dialog_manual_turn_overall": "fce51c6a1e16",
    "fed_dialog_random_turn_overall": "487319327db1",
    "fed_dialog_turn_overall": "c40781da3848",
    "slide_mini": "d7969c029adc",
}
"""Hash of the requests of a task's first documents, with its own examples or else two, on 0.4.13."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_fed(root, fed_rows(125))
    write_convai(root)
    write_dbdc(root, ["yi"])
    write_preferences(root, "msc")
    return write_dstc10(root)


@pytest.mark.parametrize("name", ASKED)
def test_a_task_asks_the_same_on_every_version(name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data))
    task = task_manager().load([name])["tasks"][name]
    shots = task.config.num_fewshot
    task.set_config("num_fewshot", (2 if task.config.fewshot_split else 0) if shots is None else shots)
    task.set_fewshot_seed(1234)
    task.build_all_requests(limit=4)
    assert text_hash(*(str(argument) for request in task.instances for argument in request.args))[:12] == ASKED[name]


def test_the_aggregations_for_the_next_host_take_a_users_own_triples() -> None:
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[2] / "setup.cfg", encoding="utf-8")
    scores, ratings, dialogues = [0.1, 0.4, 0.3, 0.9] * 4, [1.0, 2.0, 3.0, 4.0] * 4, [f"d{place}" for place in range(16)]
    names = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}
    expected = correlations(scores, ratings, coefficients=tuple(names.values()), clusters=dialogues, bootstrap=BOOTSTRAP)
    found = {}
    for line in settings["options.entry_points"]["lm_eval.aggregations"].split("\n"):
        name, _, target = line.partition(" = ")
        module, _, function = target.partition(":")
        if name:
            found[name] = getattr(importlib.import_module(module), function)(list(zip(scores, ratings, dialogues, strict=True)))
    assert {name: found[name] for name in names} == {name: expected[one].value for name, one in names.items()}
    assert (found["spearman_ci_low"], found["spearman_ci_high"]) == (expected["spearman"].ci_low, expected["spearman"].ci_high)
