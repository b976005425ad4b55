"""`python -m dialeval_plugin`: the command `dialeval`."""

from __future__ import annotations

from dialeval_plugin.cli.main import main

if __name__ == "__main__":
    main()
