"""The tables of huynh."""
