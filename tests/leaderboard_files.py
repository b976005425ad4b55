"""Result files in lm-eval's layout, written without running it: a few evaluators with known scores on a few rated sets."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.lm_eval.tasks.ratings import COEFFICIENTS
from dialeval_plugin.leaderboard.board import Column
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'> & \"quoted\" \u2028 {{ 7 * 7 }}"
GUPTA, ZHAO = Column("dailydialog-gupta", "turn", "overall"), Column("dailydialog-zhao", "turn", "appropriateness")
LM_EVAL_FILES = Path(__file__).parent / "lm_eval_files"
DATE = "2026-11-27T09-30-23.516637"
"""Date of the run of a judge in `LM_EVAL_FILES`."""
JUDGE = "<b>judge</b>, dstc10_dialog"
"""The evaluator of `write_runs` that is a language model."""


def documents(n: int, *, text: str = HOSTILE, seed: int = 0) -> list[dict[str, Any]]:
    """Rated responses as `hosts.documents` writes them, two to a dialogue; the text of the first context is `text`."""
    ratings = np.random.default_rng(seed).integers(2, 11, n) / 2
    return [
        {
            "id": f"response-{number}",
            "level": "turn",
            "context": [
                {"speaker": "A" if number else text, "text": text if number == 0 else f"Question {number}?"},
                {"speaker": None, "text": "An answer."},
            ],
            "response": {"speaker": None, "text": f"Response {number}. {text if number == 0 else ''}"},
            "references": [text] if number == 0 else ["A reference."],
            "facts": [],
            "turns": [],
            "system": "bot",
            "rating": float(rating),
            "cluster": f"dialogue-{number // 2}",
        }
        for number, rating in enumerate(ratings)
    ]


def noisy_scores(rows: Sequence[Mapping[str, Any]], noise: float, *, seed: int = 1) -> list[float | None]:
    """Scores that follow the ratings up to noise."""
    drawn = np.random.default_rng(seed).normal(0, noise, len(rows))
    return [float(row["rating"] / 5 + value) for row, value in zip(rows, drawn, strict=True)]


def scorer_config(scorer: str, **options: Any) -> dict[str, Any]:
    """The `config` of a result file of one of our scorers."""
    return {"model": "dialogue-metric", "model_args": {"scorer": scorer, **options}, "scorer": scorer}


def write_scores(
    folder: Path, scorer: str, rows: Sequence[Mapping[str, Any]], scores: Sequence[float | None], **options: Any
) -> Path:
    """Write one run of a scorer over `GUPTA`; options as those of `write_run`."""
    return write_run(folder, scorer_config(scorer), {"dstc10_dialog_dgu": (rows, scores)}, **options)


def change_json(path: Path, *place: Any, value: Any) -> None:
    """Set what stands at a place in a JSON file, as the keys from the outside in, to `value`."""
    file = holder = json.loads(path.read_text(encoding="utf-8"))
    *way, last = place
    for name in way:
        holder = holder[name]
    holder[last] = value
    path.write_text(json.dumps(file), encoding="utf-8")


def write_run(
    folder: Path,
    config: Mapping[str, Any],
    tasks: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[float | None]]],
    *,
    second: int = 0,
    n_original: int | None = None,
    samples: bool = True,
) -> Path:
    """Write one run over tasks, each with its documents and scores; return the result file.

    `second` is that of the run's time, and `n_original` says how many documents each task has, where not all were run.
    """
    started = datetime(2026, 5, 1, 12, 0, second, tzinfo=timezone.utc)
    date = started.strftime("%Y-%m-%dT%H-%M-%S.000000")
    file: dict[str, Any] = {"results": {}, "configs": {}, "versions": {}, "n-shot": {}, "n-samples": {}, "task_hashes": {}}
    signed = {"scorer_signature": "method:known"} if config["model"] == "dialogue-metric" else {}
    file |= {"config": {**signed, **config}, "date": started.timestamp(), "total_evaluation_time_seconds": "12.5"}
    file |= {"lm_eval_version": "0.4.13", "transformers_version": "5.23.0"}
    place = folder / f"run-{second}"
    place.mkdir(parents=True)
    for task, (rows, scores) in tasks.items():
        n_scored = sum(score is not None for score in scores)
        file["results"][task] = {"alias": task, **_metrics(rows, scores)}
        file["results"][task] |= {"n_scored,none": n_scored, "n_unscored,none": len(scores) - n_scored}
        file["configs"][task] = {"task": task, "metadata": metadata_of(task)}
        file["versions"][task], file["n-shot"][task], file["task_hashes"][task] = 1.0, 0, "abc"
        file["n-samples"][task] = {"original": n_original or len(rows), "effective": len(rows)}
        if samples:
            (place / f"samples_{task}_{date}.jsonl").write_text(_samples(rows, scores), encoding="utf-8")
    path = place / f"results_{date}.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


@functools.cache
def metadata_of(task: str) -> dict[str, Any]:
    """Return the metadata in the file of a task of this package."""
    (path,) = tasks_path().rglob(f"{task}.yaml")
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]
    return found


def write_runs(folder: Path) -> None:
    """Three evaluators on two sets; one of them ran on one set only and left three rows unscored."""
    gupta, zhao = documents(40), documents(30, text="Hello there.", seed=5)
    sharp, blunt = ({**scorer_config(name), "scorer_signature": f"method:{name}"} for name in ("sharp", "blunt"))
    both = {"dstc10_dialog_dgu": gupta, "dstc10_dialog_dz": zhao}
    write_run(folder, sharp, {task: (rows, noisy_scores(rows, 0.05)) for task, rows in both.items()}, second=1)
    write_run(folder, blunt, {task: (rows, noisy_scores(rows, 0.5)) for task, rows in both.items()}, second=2)
    judge = {"model": "hf", "model_args": {"pretrained": "<b>judge</b>"}}
    scores = [None, None, None, *noisy_scores(gupta, 0.2)[3:]]
    write_run(folder, judge, {"dstc10_dialog_dgu": (gupta, scores)}, second=3, n_original=500)


def _metrics(rows: Sequence[Mapping[str, Any]], scores: Sequence[float | None]) -> dict[str, Any]:
    found = correlations(
        scores,
        [row["rating"] for row in rows],
        coefficients=tuple(COEFFICIENTS.values()),
        clusters=[row["cluster"] for row in rows],
        bootstrap=Bootstrap(rounds=100),
    )
    values: dict[str, Any] = {}
    for name, coefficient in COEFFICIENTS.items():
        one = found[coefficient]
        ends = {"": one.value, "_ci_low": one.ci_low, "_ci_high": one.ci_high, "_stderr": "N/A"}
        values |= {f"{name}{end},none": f"undefined ({one.reason})" if value is None else value for end, value in ends.items()}
    return values


def _samples(rows: Sequence[Mapping[str, Any]], scores: Sequence[float | None]) -> str:
    lines = []
    for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
        judged = [score, row["rating"], row["cluster"]]
        sample = {"doc_id": number, "doc": row, "arguments": {"gen_args_0": {"arg_0": "prompt", "arg_1": " Yes"}}}
        lines.append(json.dumps({**sample, **dict.fromkeys((*COEFFICIENTS, "n_scored", "n_unscored"), judged)}))
    return "\n".join(lines) + "\n"
