"""Baselines of the literature as scorers: word overlap, embeddings, sequence-to-sequence evaluators, length and chance."""
