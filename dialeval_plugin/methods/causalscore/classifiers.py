"""The independence classifiers: cross-encoders that say how likely a response depends on an utterance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from torch import Tensor

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.models.batching import length_batches, padded, tokens_at_once
from dialeval_plugin.models.folders import check_complete, check_device, check_vocabulary, check_weights, opening

from .aggregation import FloatArray, IntArray
from .first_token import first_token_only
from .texts import RowEncoder

N_LABELS = 2
"""0 independent, 1 dependent."""


class Probabilities(NamedTuple):
    """What a classifier says of rows of texts, as arrays of shape (rows,)."""

    dependent: FloatArray
    """P(l = 1); NaN where the classifier's answer is not finite."""
    is_cut: np.ndarray
    """Whether the texts did not fit into the window."""


class IndependenceClassifier:
    """A cross-encoder with two labels, and how texts are laid out for it.

    Unconditional rows are (utterance, response), conditional ones (candidate cause, condition, response).
    """

    def __init__(self, encoder: CrossEncoder, texts: RowEncoder) -> None:
        self.encoder = encoder
        self.texts = texts

    def probabilities(self, texts: Sequence[str], indices: IntArray) -> Probabilities:
        """Judge rows of `indices` into `texts`, (rows, 2 or 3): each distinct one once, in batches of bounded size."""
        if not len(indices):
            return Probabilities(np.empty(0), np.empty(0, dtype=np.bool_))
        distinct, inverse = np.unique(indices, axis=0, return_inverse=True)
        rows = self.texts.rows(texts, distinct)
        found = np.empty(len(distinct))
        self.encoder.eval()
        with torch.inference_mode(), first_token_only(self.encoder.model):
            lengths = np.minimum(rows.lengths, self.texts.max_tokens).tolist()
            for batch in length_batches(lengths, tokens_at_once(self.encoder.device)):
                logits = self.logits([self.texts.encode(rows, number) for number in batch])
                found[batch] = logits.double().softmax(-1)[:, 1].cpu().numpy()
        places = inverse.reshape(-1)
        return Probabilities(found[places], (rows.lengths > self.texts.max_tokens)[places])

    def logits(self, ids: Sequence[list[int]]) -> Tensor:
        """Run the model on token ids; returns shape (len(ids), 2)."""
        input_ids, mask = padded(ids, self.texts.tokenizer.pad_token_id, self.encoder.device)
        features = {"input_ids": input_ids, "attention_mask": mask}
        logits: Tensor = self.encoder(features)["scores"]
        return logits


def load_classifier(folder: Path, *, device: str | None = None) -> CrossEncoder:
    """Open the cross-encoder of a trained classifier.

    Raises:
        ModelLoadError: the weights are pickled, damaged or incomplete, do not fit the tokenizer, or have other labels.
    """
    stored = check_weights(folder)
    encoder = _open(folder, device)
    if encoder.num_labels != N_LABELS:
        raise ModelLoadError(
            f"{folder}: the classifier has {encoder.num_labels} labels, expected {N_LABELS}. Is this another model's folder?"
        )
    check_complete(folder, encoder.model.state_dict(), stored)
    check_vocabulary(folder, encoder.tokenizer, encoder.model.get_input_embeddings())
    return encoder


def new_classifier(backbone: Path, *, device: str | None = None) -> CrossEncoder:
    """Put an untrained two-label head on an encoder; the head's weights are drawn from torch's random state."""
    stored = check_weights(backbone)
    encoder = _open(backbone, device, num_labels=N_LABELS)
    check_complete(backbone, encoder.model.base_model.state_dict(), stored)
    check_vocabulary(backbone, encoder.tokenizer, encoder.model.get_input_embeddings())
    return encoder


def _open(folder: Path, device: str | None, num_labels: int | None = None) -> CrossEncoder:
    check_device(device)
    with opening(folder, "a cross-encoder"):
        encoder = CrossEncoder(
            str(folder),
            device=device,
            num_labels=num_labels,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
        # What does not fit together shows in the first answer, if not before.
        encoder.predict([("a", "a")], show_progress_bar=False)
    return encoder
