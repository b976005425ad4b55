"""Statistics of an evaluator's comparisons of systems, beyond coefficients of their means."""
