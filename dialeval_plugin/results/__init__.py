"""Decisions based on scores: which of two versions is better, whether a build may ship, which answer people prefer."""
