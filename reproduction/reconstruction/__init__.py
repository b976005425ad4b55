"""The tables of reconstruction."""
