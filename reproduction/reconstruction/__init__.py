"""Nedelchev 2023 (thesis), chapter 4: reconstruction losses."""
