"""Nedelchev 2023 (thesis), chapter 7: dialogue breakdowns found by likelihoods."""
