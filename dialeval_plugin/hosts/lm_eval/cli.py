"""lm-eval's own command line with our tasks and models registered: the command behind `dialeval lm-eval ...`.

Its last table has one line per task; the host prints one line per metric and intervals as metrics.
"""

from __future__ import annotations

import argparse
import functools
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import DialevalError, InputError, did_you_mean
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.registration import importing, register, replaced
from dialeval_plugin.statistics.estimates import number_text

from .tasks.corpus_metrics import RoughEnd
from .tasks.kinds import KINDS
from .versions import by_plain_names, is_predicted_only, missing_tasks, redact_host_logs

if TYPE_CHECKING:
    from lm_eval.tasks import TaskManager

_HEAD = ("task", "statistic", "value", "95 % interval", "scored")


def main(argv: Sequence[str]) -> None:
    """Run the host's command line on `argv`, the words after `dialeval lm-eval`; old-style flags without `run` work too.

    Errors of the host are printed without secrets and exit with status 1.
    """
    with importing("lm_eval"):
        from lm_eval.__main__ import cli_evaluate

    register()
    redact_host_logs()
    # The host's parser reads sys.argv itself, and edits it.
    with short_tables(), indexing_what_is_asked_for(argv) as managers, replaced(sys, "argv", ["lm-eval", *argv]):
        try:
            cli_evaluate()
        except DialevalError:
            raise
        except Exception as error:
            if names := missing_tasks(error):
                known = sorted({name for manager in managers for name in manager.all_tasks})
                problem = " There is no ".join(f"{name!r}.{did_you_mean(name, known)}" for name in names)
                raise InputError(f"--tasks: there is no {problem} Type `dialeval lm-eval ls tasks` for all.") from None
            # The host's errors contain the failed request with its headers.
            sys.stderr.write(redacted("".join(traceback.format_exception(error))))
            raise SystemExit(1) from None


@contextmanager
def indexing_what_is_asked_for(argv: Sequence[str]) -> Iterator[Sequence[TaskManager]]:
    """Restrict the host's command to the index of this package's tasks if `argv` names no others.

    Yield the task indexes made. Reading the host's own index, some 14,000 files, takes ten seconds.
    """
    from lm_eval.tasks import TaskManager

    original, ours_alone = TaskManager.__init__, _asks_for_ours_alone(argv)
    made: list[TaskManager] = []

    @functools.wraps(original)
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        if ours_alone:
            kwargs |= {"include_path": str(tasks_path()), "include_defaults": False}
        original(self, *args, **kwargs)
        made.append(self)

    with replaced(TaskManager, "__init__", noted):
        yield made


def _asks_for_ours_alone(argv: Sequence[str]) -> bool:
    # The host's own parser reports errors in these words.
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--tasks", "-t", nargs="*", action="extend", default=[])
    # The user's task folder or option file may name other tasks.
    parser.add_argument("--include_path", nargs="?", const="")
    parser.add_argument("--config", "-C", nargs="?", const="")
    given, _ = parser.parse_known_args(argv)
    if not given.tasks or given.include_path is not None or given.config is not None:
        return False
    from lm_eval.tasks import TaskManager

    ours = TaskManager(include_path=str(tasks_path()), include_defaults=False).all_tasks
    return {name for words in given.tasks for name in words.split(",")} <= set(ours)


@contextmanager
def short_tables() -> Iterator[None]:
    """Make the host's command print this table for our tasks; for others it prints its own."""
    from lm_eval import utils

    original = utils.make_table

    @functools.wraps(original)
    def make_table(result_dict: Mapping[str, Any], column: str = "results", **options: Any) -> Any:
        return (short_table(result_dict) if column == "results" else None) or original(result_dict, column, **options)

    with replaced(utils, "make_table", make_table):
        yield


def short_table(results: Mapping[str, Any]) -> str | None:
    """Return a table of each task's main statistic, its interval and the number of scored rows; None if a task is not ours."""
    # The host prints a table of groups below.
    results = by_plain_names(results)
    rows = [_row(task, results) for task in results["results"] if task not in results.get("groups", {})]
    if not rows or None in rows:
        return None
    lines = [_HEAD, *filter(None, rows)]
    # A text in place of a number gives the reason and takes the room of the following columns.
    widths = [max(len(line[place]) for line in lines if len(line) > place + 1) for place in range(len(_HEAD) - 1)]
    aligned = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=False)]
        if len(line) > 3:
            cells[2] = line[2].rjust(widths[2])
        aligned.append("  ".join(cells).rstrip())
    return "\n".join(aligned) + "\n"


def _row(task: str, results: Mapping[str, Any]) -> tuple[str, ...] | None:
    described = (results["configs"].get(task, {}).get("metadata") or {}).get("dialeval")
    if described is None:
        return None
    main = KINDS[described["kind"]].main
    figures = {name.partition(",")[0]: value for name, value in results["results"][task].items()}
    value = figures.get(main)
    if is_predicted_only(results["configs"][task]):
        return task, main, "not scored: --predict_only keeps the answers alone"
    if not results["n-samples"][task]["effective"]:
        return task, main, "left out: the file is not on this machine"
    if value is None or isinstance(value, str):
        return task, main, value or "undefined"
    if "n_scored" not in figures:
        return None
    ends = [figures.get(f"{main}{end}") for end in ("_ci_low", "_ci_high")]
    deviation = figures.get(f"{main}_deviation")
    interval = f"deviation {number_text(deviation)}" if deviation is not None else ""
    if all(isinstance(end, float) for end in ends):
        interval = " to ".join(map(number_text, ends)) + (", rough" if isinstance(ends[0], RoughEnd) else "")
    # Comparisons and dialogues have their own counts when documents are single responses and turns.
    total = getattr(figures["n_scored"], "total", results["n-samples"][task]["effective"])
    return task, main, number_text(value), interval, f"{figures['n_scored']:g} of {total}"
