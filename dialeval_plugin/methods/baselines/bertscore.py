"""BERTScore (Zhang et al. 2020) through the package bert_score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import Positive, checked_init
from dialeval_plugin.core.resources import bibtex, optional
from dialeval_plugin.core.scores import Row
from dialeval_plugin.core.signature import SignatureValue, content_hash
from dialeval_plugin.models.compact import whole
from dialeval_plugin.models.folders import check_complete, check_weights, opening, resolve
from dialeval_plugin.models.language_models import longest_input
from dialeval_plugin.models.tensors import choose_device

from .references import Compared, ReferenceScorer

DEFAULT_MODEL = "roberta-large"
"""Default of bert_score for English."""


class BertScore(ReferenceScorer):
    """BERTScore of one response, in [-1, 1]: `bertscore_f1`, `bertscore_precision`, `bertscore_recall`.

    Each column has the value of its best reference. Scores are not weighted by inverse document frequency, nor rescaled with
    a baseline, which would change no correlation. Texts longer than the model's window lose their end, as in the package;
    `n_cut` counts them among the response and its references. Special tokens in a text are read as letters.

    Args:
        model: folder or hub id of an encoder.
        num_layers: layer whose embeddings are compared; by default the one that bert_score has chosen for this hub model.
        batch_size: number of texts per forward pass.

    Raises:
        MissingPrerequisite: bert_score is not installed, or there is no such model.
        InputError: num_layers is needed, or not one of the model's.
        ModelLoadError: the model is damaged or unsafe.
    """

    name: ClassVar[str] = "bertscore"
    needs = ("references", "hub model")
    citation: ClassVar[str] = bibtex("zhang2020bertscore")
    range = (-1.0, 1.0)

    @checked_init
    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        num_layers: Positive | None = None,
        batch_size: Positive = 64,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        self._package = optional("bert_score", "scorer 'bertscore'").utils
        self.num_layers = self._package.model2layers.get(model) if num_layers is None else num_layers
        if self.num_layers is None:
            raise InputError(
                f"bertscore: bert_score has tuned no layer for {model!r}. Give num_layers, the number of the layer that embeds."
            )
        folder = resolve(model, revision=revision)
        self._device = choose_device(device)
        self._model, self._tokenizer = self._open(folder)
        self._batch_size = batch_size
        self._hash = content_hash(folder)
        lost = f"a text is longer than {self._tokenizer.model_max_length} tokens; its end was not read"
        self.set_measures("bertscore_f1", "bertscore_precision", "bertscore_recall", cut=lost)

    def _open(self, folder: Path) -> tuple[Any, Any]:
        stored = check_weights(folder)
        with opening(folder, "an encoder"), whole(folder) as copy:
            try:
                model = self._package.get_model(str(copy), self.num_layers)
            except AssertionError as error:
                raise InputError(f"bertscore: {error}.") from None
            tokenizer = self._package.get_tokenizer(str(copy), use_fast=True)
            check_complete(folder, model.state_dict(), stored)
            tokenizer.model_max_length = longest_input(model, tokenizer) or 512
        tokenizer.split_special_tokens = True
        return model.to(self._device), tokenizer

    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Compare each response with each of its references."""
        pairs = [(reference, one.response) for one in compared for reference in one.references]
        # As in BERTScorer without document frequencies: every token counts once, except those that begin and end a text.
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights |= {self._tokenizer.sep_token_id: 0.0, self._tokenizer.cls_token_id: 0.0}
        references, responses = (list(texts) for texts in zip(*pairs, strict=True))
        similarities = self._package.bert_cos_score_idf(
            self._model, references, responses, self._tokenizer, weights, device=self._device, batch_size=self._batch_size
        )
        groups = similarities.cpu().split([len(one.references) for one in compared])
        best = [group.max(dim=0).values.tolist() for group in groups]
        # The package strips a text before it reads it.
        stripped = list(dict.fromkeys(text.strip() for one in compared for text in one.texts))
        encoded = self._tokenizer(stripped, truncation=False, verbose=False)["input_ids"]
        long = {text for text, ids in zip(stripped, encoded, strict=True) if len(ids) > self._tokenizer.model_max_length}
        return [
            {
                "bertscore_f1": f1,
                "bertscore_precision": precision,
                "bertscore_recall": recall,
                "n_cut": float(sum(text.strip() in long for text in one.texts)),
            }
            for (precision, recall, f1), one in zip(best, compared, strict=True)
        ]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, model, layer, window and version of the package."""
        return {
            "method": self.name,
            "model": self._hash,
            "num_layers": self.num_layers,
            "idf": False,
            "rescaled": False,
            "window": self._tokenizer.model_max_length,
            "truncation": "right",
            "bert_score": metadata.version("bert_score"),
        }
