"""Runs every evaluator whose model is at hand over all rated sets at hand, through lm-eval, and builds the leaderboard.

DIALEVAL_DATA_DIR names the folder with `dstc10` and `fed`; models are those of `dialeval train`, in the place of `--slm`,
`--causalscore`, `--language-model` and `--general` the bundled ones where none is named, and `--llm` any language model in
transformers' layout, which is asked by the scorers that need one, and as a judge by the tasks' own prompts.

    python -m reproduction.results.runs --work FOLDER --background BACKGROUND --odin ODIN \
        --reconstruction SEQ2SEQ --reconstruction HRED --llm LLM
    python -m reproduction.results.write --work FOLDER --document reproduction/results/results.md

One process an evaluator; `FOLDER/runs/NAME` keeps its results and `run.log`, so a second call runs only what is missing or was
made by other models. With `--limit` everything is under `FOLDER/limit-N`. Exit code 1: an evaluator failed; the others ran.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.models.folders import PRETRAINED
from reproduction.results.evaluators import KINDS, Evaluator, Plan, evaluators, plan, row_of, tasks_at_hand, tasks_of

IN_THE_BOX = {"slm": "slide", "causalscore": "causalscore", "language_model": "language-model", "general": "general"}
"""Kind of model to the one that is run where no folder is named."""
LM_EVAL = (sys.executable, "-c", "from dialeval_plugin.cli.main import main; main()", "lm-eval", "run")
N_LOG_LINES = 5


def command(evaluator: Evaluator, tasks: Sequence[str], output: Path, limit: int | None) -> list[str]:
    arguments = ",".join(f"{name}={value}" for name, value in evaluator.model_arguments.items())
    words = [*LM_EVAL, "--model", evaluator.model, "--model_args", arguments, "--tasks", ",".join(tasks)]
    words += ["--log_samples", "--output_path", str(output)]
    words += ["--batch_size", "8"] if evaluator.model == "hf" else []
    return words + ([] if limit is None else ["--limit", str(limit)])


def is_finished(output: Path, evaluator: Evaluator, tasks: Sequence[str]) -> bool:
    """Whether a result file of these arguments has all these tasks."""
    wanted = _as_text(evaluator.model_arguments)
    for path in output.rglob("results_*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        arguments = _as_text(found["config"]["model_args"])
        if wanted.items() <= arguments.items() and set(tasks) <= set(found["configs"]):
            return True
    return False


def _as_text(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The host reads numbers and booleans off the command line, and leaves the rest text."""
    return {name: str(value) for name, value in arguments.items()}


def run_all(ready: Sequence[Evaluator], folder: Path, limit: int | None) -> dict[str, str]:
    """Run what has no results yet; return the end of the log of each that failed."""
    tasks = tasks_at_hand()
    failed = {}
    for number, evaluator in enumerate(ready, start=1):
        output, names = folder / evaluator.name, tasks_of(evaluator, tasks)
        if is_finished(output, evaluator, names):
            print(f"[{number}/{len(ready)}] {evaluator.name}: there already", flush=True)
            continue
        print(f"[{number}/{len(ready)}] {evaluator.name}: {len(names)} tasks, {evaluator.cost}", flush=True)
        output.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        log = output / "run.log"
        with log.open("w", encoding="utf-8") as file:
            words = command(evaluator, names, output, limit)
            done = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, check=False)  # noqa: S603 - our own command
        if done.returncode or not is_finished(output, evaluator, names):
            failed[evaluator.name] = "\n".join(log.read_text(encoding="utf-8").splitlines()[-N_LOG_LINES:])
        print(f"    {'FAILED' if evaluator.name in failed else 'done'} after {time.monotonic() - started:.0f} s", flush=True)
    return failed


def chosen(found: Plan, only: Sequence[str]) -> Plan:
    """The plan for the evaluators that were asked for by name, in that order; a row of several models stands for them all."""
    if not only:
        return found
    rows = {row.name for row in evaluators()}
    ready = []
    for name in only:
        of_name = [one for one in found.ready if name == one.name or (name in rows and row_of(one.name, rows) == name)]
        if not of_name and name not in rows:
            raise SystemExit(f"--only: there is no evaluator {name}. Type --list to see all.")
        ready += of_name
    return Plan(tuple(ready), {name: why for name, why in found.not_run.items() if name in only})


def show(found: Plan) -> None:
    for evaluator in found.ready:
        print(f"{evaluator.name:28} {evaluator.cost:16} {evaluator.scorer or evaluator.model}")
    for name, why in found.not_run.items():
        print(f"{name:28} not run: {why}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the results")
    for kind in KINDS:
        parser.add_argument(f"--{kind.replace('_', '-')}", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run these evaluators only")
    parser.add_argument("--limit", type=int, help="documents of each task, to try things out")
    parser.add_argument("--list", action="store_true", help="say what would be run, and what is missing, and end")
    parser.add_argument("--no-leaderboard", action="store_true", help="leave the leaderboard for later")
    parser.add_argument("--rank-rounds", type=int, default=1000, help="as in `dialeval leaderboard build`")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    in_the_box = {kind: [str(PRETRAINED / name)] for kind, name in IN_THE_BOX.items()}
    folders = {kind: getattr(options, kind) or in_the_box.get(kind, []) for kind in KINDS}
    found = chosen(plan(folders), options.only)
    if options.list:
        show(found)
        return 0
    folder = options.work if options.limit is None else options.work / f"limit-{options.limit}"
    failed = run_all(found.ready, folder / "runs", options.limit)
    for name, why in found.not_run.items():
        print(f"not run: {name}: {why}")
    for name, end in failed.items():
        print(f"FAILED: {name}; see {folder / 'runs' / name / 'run.log'}\n{end}", file=sys.stderr)
    if not options.no_leaderboard:
        from dialeval_plugin.leaderboard.build import build, write

        for path in write(build([folder / "runs"], rank_rounds=options.rank_rounds), folder / "board"):
            print(path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
