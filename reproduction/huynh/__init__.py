"""Huynh et al. 2023: language models as judges with few examples."""
