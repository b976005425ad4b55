"""TRIAL section 3: the host's table was 83 rows of 170 columns; README showed one that no command printed."""

from __future__ import annotations

from typing import Any

import pytest

from dialeval_plugin.hosts.lm_eval.cli import short_table, short_tables
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import Count, RoughEnd


def results(**tasks: dict[str, Any]) -> dict[str, Any]:
    """Results as the host hands them to its table."""
    kinds = {name: figures.pop("kind", "rating") for name, figures in tasks.items()}
    return {
        "results": {name: {f"{one},none": value for one, value in figures.items()} for name, figures in tasks.items()},
        "configs": {name: {"metadata": {"dialeval": {"kind": kind}} if kind else {}} for name, kind in kinds.items()},
        "n-samples": {name: {"original": 10, "effective": 10} for name in tasks},
        "higher_is_better": {name: {} for name in tasks},
        "versions": {},
        "n-shot": {},
    }


def test_a_line_a_task_with_interval_and_rows() -> None:
    of_comparisons = Count(90)
    of_comparisons.total = 95
    given = results(
        dstc10_dialog_tu={"spearman": 0.25, "spearman_ci_low": -0.1, "spearman_ci_high": 0.5, "n_scored": 9},
        dstc10_dialog_tc={"spearman": 0.2, "spearman_ci_low": RoughEnd(0), "spearman_ci_high": RoughEnd(0.5), "n_scored": 10},
        seeds={"kind": "rating_over_seeds", "spearman": -0.5, "spearman_deviation": 0.01, "n_scored": 10},
        fd={"spearman": "undefined (scores turns only)", "n_scored": 0},
        dgr={},
        dbdc={"kind": "breakdown", "f1_b": 0.5, "f1_b_ci_low": "undefined (rough)", "n_scored": 10},
        # lm-eval#603: of comparisons there are more than documents.
        preferences={"spearman": 0.5, "n_scored": of_comparisons},
    )
    given["n-samples"]["dgr"] = {"original": 1, "effective": 0}
    given["configs"]["kept"] = {**given["configs"]["fd"], "metric_list": [{"metric": "bypass"}]}
    given["results"]["kept"], given["n-samples"]["kept"] = {}, {"original": 10, "effective": 0}
    found = short_table(given)
    assert found == (
        "task              statistic   value  95 % interval          scored\n"
        "dstc10_dialog_tu  spearman    0.250  -0.100 to 0.500        9 of 10\n"
        "dstc10_dialog_tc  spearman    0.200  0.000 to 0.500, rough  10 of 10\n"
        "seeds             spearman   -0.500  deviation 0.010        10 of 10\n"
        "fd                spearman   undefined (scores turns only)\n"
        "dgr               spearman   left out: the file is not on this machine\n"
        "dbdc              f1_b        0.500                         10 of 10\n"
        "preferences       spearman    0.500                         90 of 95\n"
        "kept              spearman   not scored: --predict_only keeps the answers alone\n"
    )


def test_of_other_tasks_the_host_prints_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval import utils

    own = results(group={"kind": "", "spearman": 0.25}, ours={"spearman": 0.25, "n_scored": 9})
    own["groups"] = {"group": own["results"]["group"]}
    assert short_table(own) == short_table(results(ours={"spearman": 0.25, "n_scored": 9}))
    mixed = results(ours={"spearman": 0.25, "n_scored": 9}, gsm8k={"kind": "", "acc": 0.5})
    assert short_table(mixed) is None
    monkeypatch.setattr(utils, "make_table", before := lambda found, column="results", **options: f"the host's {column}")
    with short_tables():
        assert utils.make_table(own) == short_table(own)
        assert utils.make_table(own, "groups") == "the host's groups"
        assert utils.make_table(mixed) == "the host's results"
    assert utils.make_table is before
