"""Adapters to lm-eval and `evaluate`: the only files that import a host."""
