"""Coefficients of agreement between scores and ratings."""
