"""Encoders as the small model's head wants them."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize


def without_normalisation(encoder: SentenceTransformer) -> SentenceTransformer:
    """Leave out a last module that scales vectors to length 1: the head's layers need their natural scale to learn from."""
    modules = [module for module in encoder if not isinstance(module, Normalize)]
    return SentenceTransformer(modules=modules, device=str(encoder.device))
