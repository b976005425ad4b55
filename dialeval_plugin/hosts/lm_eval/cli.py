"""lm-eval's own command line, with our tasks and models known: what `dialeval lm-eval ...` runs."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.hosts.registration import importing, register

from .logs import redact_host_logs


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
        cli_evaluate()
    except DialevalError:
        raise
    except Exception as error:
        # The host's errors hold the request that failed, with its headers.
        sys.stderr.write(redacted("".join(traceback.format_exception(error))))
        raise SystemExit(1) from None
    finally:
        sys.argv = before
