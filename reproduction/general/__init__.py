"""The tables of general."""
