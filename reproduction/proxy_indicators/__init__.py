"""Nedelchev 2023 (thesis), chapter 6: proxy indicators."""
