"""Default language model of the likelihood, in a module that does not need torch."""

from __future__ import annotations

from dialeval_plugin.models.folders import DefaultModel

LANGUAGE_MODEL = DefaultModel("dialogue_likelihood", "DIALEVAL_LANGUAGE_MODEL", packaged="language-model")
