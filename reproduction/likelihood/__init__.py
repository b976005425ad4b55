"""Nedelchev 2023 (thesis), chapters 5 and 8: language models as evaluators."""
