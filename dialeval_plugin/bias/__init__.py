"""Consistency of a scorer, and effects on its scores of changes that should not matter."""
