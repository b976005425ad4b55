"""Where the public data lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dialeval_plugin.corpora.corpus import DATA_DIR_VARIABLE


def data_folder() -> Path:
    """Return the folder of the public data, one folder a corpus; end the program where none is named."""
    if not (value := os.environ.get(DATA_DIR_VARIABLE)):
        sys.exit(f"{DATA_DIR_VARIABLE} is not set. Name the folder of the public data, one folder a corpus.")
    return Path(value)
