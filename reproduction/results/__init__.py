"""Zhao et al. 2024 (SLIDE) and Huynh et al. 2023, with every evaluator here."""
