"""Breakdown detection by out-of-distribution scores of language models (Nedelchev 2022, chapter 7), and their training."""
