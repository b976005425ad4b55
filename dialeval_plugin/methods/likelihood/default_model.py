"""Which language model the likelihood takes; apart from what computes with it, which needs torch."""

from __future__ import annotations

from dialeval_plugin.models.folders import DefaultModel

LANGUAGE_MODEL = DefaultModel("dialogue_likelihood", "DIALEVAL_LANGUAGE_MODEL", packaged="language-model")
