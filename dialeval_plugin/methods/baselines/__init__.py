"""Baseline scorers of the literature: word overlap, embeddings, sequence-to-sequence evaluators, length and chance."""
