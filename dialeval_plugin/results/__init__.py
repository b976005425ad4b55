"""Decisions by scores: which of two versions is better, whether a build may ship, which answer is preferred."""
