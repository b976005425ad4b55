"""Readers of published layouts; each gives `Example` or `Dialogue` objects."""
