"""Whether the other speaker takes up what a chatbot says, or asks back: a linear function that logs of chats have taught.

How it is learnt stands in `repairs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.models.folders import read_versioned
from dialeval_plugin.models.runtimes.runtime import VectorArray, unit

ACCEPTANCE = "acceptance"
"""The quality that is learnt from logs of chats, and not by training."""
ACCEPTANCE_FILE = "acceptance.json"
"""In a model's folder."""
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A linear function of a response's vector.

    Attributes:
        weights: of the vector at unit length, of shape (width,).
        offset: added to the sum.
        training: the record: turns by log, seed, and the area under the ROC curve on held-out conversations.
    """

    weights: tuple[float, ...] = field(repr=False)
    offset: float
    training: Mapping[str, Any] = field(repr=False)

    def log_odds(self, vectors: VectorArray) -> FloatArray:
        """Return log odds (n,) that responses are taken up, from the encoder's vectors (n, width); even chances on average.

        Raises:
            ModelLoadError: they were learnt from vectors of another width.
        """
        if vectors.shape[1] != len(self.weights):
            raise ModelLoadError(
                f"{ACCEPTANCE_FILE}: has {len(self.weights)} weights for vectors of {vectors.shape[1]} numbers, so it is of "
                "another model. Copy the model folder again, or run `dialeval train acceptance`."
            )
        log_odds: FloatArray = unit(vectors).astype(np.float64) @ np.array(self.weights) + self.offset
        return log_odds

    def save(self, folder: Path) -> None:
        """Write the file into a model's folder, JSON."""
        write_text(folder / ACCEPTANCE_FILE, to_json({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Acceptance | None:
        """Read what `save` wrote; None where nothing was learnt.

        Raises:
            ModelLoadError: the file is damaged, or of another format.
        """
        path = folder / ACCEPTANCE_FILE
        if not path.exists():
            return None
        read_versioned(path, FORMAT_VERSION, kind="a model with acceptance", command="dialeval train acceptance")
        return checked_model_file(path, cls)
