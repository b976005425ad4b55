"""TRIAL 17: scores have one value, one interval and one ceiling, in lm-eval, rescore, meta-eval and on the page."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
from lm_eval.api.instance import Instance

from dialeval_plugin.core.scorer import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.references import HALF_THE_PEOPLE, ONE_PERSON
from dialeval_plugin.leaderboard.rescoring import rescore
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.reports.correlation_report import Finding, ReportOptions, find
from dialeval_plugin.reports.score_alignment import Alignment, align
from dialeval_plugin.reports.scored_output import write_scores
from tests.hosts.through_lm_eval import LikelihoodLM, evaluate, metrics

QUESTION = ReportOptions(permutations=0)
NAMES = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}


class Chance(LikelihoodLM):
    """Judges by a hash of what it is asked: for dialogues, of which the scorers without a model give none a score."""

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        shares = [hashlib.sha256("".join(request.args).encode()).digest()[0] for request in requests]
        return [(math.log(0.05 + share / 1000), False) for share in shares]


@pytest.mark.parametrize(
    ("dataset", "scorer"),
    [
        ("mini", "random"),
        pytest.param("tu", "chrf", marks=pytest.mark.real_data),
        pytest.param("fd", None, marks=pytest.mark.real_data),
    ],
)
def test_one_figure_has_one_value(dataset: str, scorer: str | None, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if dataset != "mini":
        request.getfixturevalue("data_dir")
    task, output = f"dstc10_dialog_{dataset}", tmp_path / "output"
    model = Chance() if scorer is None else "dialogue-metric"
    found = evaluate(model, task, model_args="" if scorer is None else f"scorer={scorer}", output=output)
    computed = metrics(found, task)
    (run,) = read_runs([tmp_path / "output"])
    again = {finding.statistic: finding for finding in rescore([run], QUESTION)}
    if scorer is None:
        lines = [json.dumps({"id": row.id, "score": row.score}) for row in reversed(run.rows or ())]
        (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    else:
        items = mini.read_examples(split="test") if dataset == "mini" else dstc10.read(dataset)
        write_scores(load_scorer(scorer).score(items[::-1]), tmp_path / "scores.jsonl", run="", complete=True)
    own = {one.statistic: one for one in find(align([tmp_path / "scores.jsonl"], Alignment(ratings=dataset)), QUESTION)}
    board = build([tmp_path / "output"]).board
    (cell,) = board.cells
    ceilings = {(one.coefficient, one.name): one.value for one in board.references}
    for name, statistic in NAMES.items():
        ends = [computed[f"{name}{end}"] for end in ("", "_ci_low", "_ci_high")]
        assert all(isinstance(end, float) for end in ends)
        assert figures(again[statistic]) == ends
        assert [cell.figures[name].value, cell.figures[name].ci_low, cell.figures[name].ci_high] == ends
        assert figures(own[statistic]) == ends
        assert again[statistic].ceiling == own[statistic].ceiling
        assert again[statistic].ceiling == tuple(ceilings.get((name, who)) for who in (ONE_PERSON, HALF_THE_PEOPLE))
        assert again[statistic].estimate.is_rough == own[statistic].estimate.is_rough == cell.figures[name].is_rough


def figures(finding: Finding) -> list[float | None]:
    return [finding.estimate.value, finding.estimate.ci_low, finding.estimate.ci_high]
