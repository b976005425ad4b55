"""The tables of likelihood."""
