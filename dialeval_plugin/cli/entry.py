"""Entry point of `dialeval`, which also handles Ctrl-C during imports."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command."""
    try:
        from .main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("dialeval: interrupted\n")
        sys.exit(130)
