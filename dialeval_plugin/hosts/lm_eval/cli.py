"""lm-eval's own command line, with our tasks and models known: what `dialeval lm-eval ...` runs."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from dialeval_plugin.core.errors import DialevalError, InputError, did_you_mean
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.hosts.registration import importing, register

from .logs import redact_host_logs
from .short_table import short_tables

_NOT_FOUND = "Tasks not found"
"""What the host's error of unknown names of tasks begins with."""


def main(argv: Sequence[str]) -> None:
    """Run the host's command line on `argv`, the words after `dialeval lm-eval`; old-style flags without `run` work too.

    Any error of the host's own is printed without what is secret in it, and ends with status 1.
    """
    with importing("lm_eval"):
        from lm_eval.__main__ import cli_evaluate

    register()
    redact_host_logs()
    # The host's parser reads sys.argv itself, and edits it.
    before = sys.argv
    sys.argv = ["lm-eval", *argv]
    try:
        with short_tables():
            cli_evaluate()
    except DialevalError:
        raise
    except Exception as error:
        if (missing := _missing_tasks(error)) is not None:
            raise missing from None
        # The host's errors hold the request that failed, with its headers.
        sys.stderr.write(redacted("".join(traceback.format_exception(error))))
        raise SystemExit(1) from None
    finally:
        sys.argv = before


def _missing_tasks(error: Exception) -> InputError | None:
    """The error of tasks that there are not, each with the nearest that there is; None where the host's is another one."""
    problem, _, names = str(error).partition(": ")
    if not isinstance(error, ValueError) or problem != _NOT_FOUND:
        return None
    from lm_eval.tasks import TaskManager

    known = TaskManager().all_tasks
    said = [f"{name!r}.{did_you_mean(name, known)}" for name in names.split(", ")]
    return InputError(f"--tasks: there is no {' There is no '.join(said)} Type `dialeval lm-eval ls tasks` for all.")
