"""The general evaluator next to Huynh et al. 2023."""
