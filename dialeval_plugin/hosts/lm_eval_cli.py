"""lm-eval's own command line, with our tasks and models known: what `dialeval lm-eval ...` runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .importing import importing
from .registration import register


def main(argv: Sequence[str]) -> None:
    """Run the host's command line on `argv`, the words after `dialeval lm-eval`; old-style flags without `run` work too.

    Our task folder is indexed beside the host's own and the one of a user's `--include_path`.

    Raises:
        DialevalError: the host is not installed, or one of our tasks or scorers lacks something; the host lets it through.
        SystemExit: as the host's parser does for `--help` and wrong arguments.
    """
    with importing("lm_eval"):
        from lm_eval.__main__ import cli_evaluate

    register()
    # The host's parser reads sys.argv itself, and edits it.
    before = sys.argv
    sys.argv = ["lm-eval", *argv]
    try:
        cli_evaluate()
    finally:
        sys.argv = before
