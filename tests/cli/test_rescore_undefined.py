"""TRIAL 19, issue G 11 and 12: a set that a scorer is not for is reported with its reason, and fails no gate."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dialeval_plugin.cli.main import app
from dialeval_plugin.leaderboard.build import build, write
from tests.leaderboard_files import documents, noisy_scores, write_run

CONFIG = {"model": "dialogue-metric", "model_args": {"scorer": "sharp"}, "scorer": "sharp", "scorer_signature": "method:sharp"}


def run(folder: Path, reason: str) -> None:
    rows, others = documents(40, text="Hello."), documents(12, text="Hello.", seed=2)
    config = {**CONFIG, "scorer_unscored": {"dstc10_dialog_fd": {reason: 12}}}
    tasks = {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1)), "dstc10_dialog_fd": (others, [None] * 12)}
    path = write_run(folder, config, tasks)
    words = reason.replace("_", " ")
    text = path.read_text(encoding="utf-8")
    # As the host's table has it.
    for name in ("spearman", "pearson", "kendall_b"):
        old = f"undefined ({name}: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples.)"
        assert old in text
        text = text.replace(old, f"undefined ({words})")
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("reason", "words", "code"),
    [
        ("scores_turns_only", "scores turns only", 0),
        ("needs_references", "needs references", 0),
        ("parse_failure", "no scores: parse failure 12", 1),
    ],
)
def test_the_gate_counts_what_the_scorer_is_for(reason: str, words: str, code: int, tmp_path: Path) -> None:
    run(tmp_path, reason)
    done = CliRunner().invoke(app, ["rescore", str(tmp_path), "--rounds", "0", "--permutations", "0"])
    assert done.exit_code == code, done.output
    assert f"sharp, fd: undefined ({words})." in done.stdout
    assert "Score and rate more examples" not in done.stdout
    last = done.stderr.strip().splitlines()[-1]
    if code == 0:
        assert last == f"sharp, fd, Overall: undefined ({words})"
    else:
        assert last == "sharp, fd, Overall: 12 of 12 rows have no score, more than --max-unscored 0.05 allows"


def test_the_page_says_why(tmp_path: Path) -> None:
    run(tmp_path / "runs", "scores_turns_only")
    write(build([tmp_path / "runs"], rank_rounds=0), tmp_path / "board")
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert '<span class="missing">undefined</span><small class="partial">scores turns only</small>' in page
