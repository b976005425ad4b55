"""Gains from choosing by scores: filtering, and the best of several responses."""
