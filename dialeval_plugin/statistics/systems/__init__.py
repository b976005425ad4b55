"""Statistics of how an evaluator compares systems, beyond coefficients of their means."""
