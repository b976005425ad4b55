"""Where the command `dialeval` begins: Ctrl-C while its modules are still read ends it as it does later."""

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
