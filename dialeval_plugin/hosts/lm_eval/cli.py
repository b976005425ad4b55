"""lm-eval's own command line, with our tasks and models known: what `dialeval lm-eval ...` runs."""

from __future__ import annotations

import argparse
import functools
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import DialevalError, InputError, did_you_mean
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.hosts.registration import importing, register, replaced

from .logs import redact_host_logs
from .short_table import short_tables
from .versions import missing_tasks

if TYPE_CHECKING:
    from lm_eval.tasks import TaskManager


def main(argv: Sequence[str]) -> None:
    """Run the host's command line on `argv`, the words after `dialeval lm-eval`; old-style flags without `run` work too.

    Any error of the host's own is printed without what is secret in it, and ends with status 1.
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
            # The host's errors hold the request that failed, with its headers.
            sys.stderr.write(redacted("".join(traceback.format_exception(error))))
            raise SystemExit(1) from None


@contextmanager
def indexing_what_is_asked_for(argv: Sequence[str]) -> Iterator[Sequence[TaskManager]]:
    """Let the host's command know this package's tasks alone, if the words `argv` name no other.

    Yield the indexes of tasks that it makes. To read the host's own, some 14,000 files, takes it ten seconds.
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
    # What is wrong with these words the host's own parser says.
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--tasks", "-t", nargs="*", action="extend", default=[])
    # A folder of tasks and a file of options of the user's may name others, and replace ours.
    parser.add_argument("--include_path", nargs="?", const="")
    parser.add_argument("--config", "-C", nargs="?", const="")
    given, _ = parser.parse_known_args(argv)
    if not given.tasks or given.include_path is not None or given.config is not None:
        return False
    from lm_eval.tasks import TaskManager

    ours = TaskManager(include_path=str(tasks_path()), include_defaults=False).all_tasks
    return {name for words in given.tasks for name in words.split(",")} <= set(ours)
