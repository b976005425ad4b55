"""Probabilities of a dialogue's responses by language models (Nedelchev 2022, chapters 5 and 8)."""
