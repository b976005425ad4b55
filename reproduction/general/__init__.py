"""The general evaluator beside Huynh et al. 2023."""
