"""SLIDE and its small language model, the SLM (Zhao et al. 2024)."""
