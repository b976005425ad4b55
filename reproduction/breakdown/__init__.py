"""The tables of breakdown."""
