"""Simulations that say what intervals and tests hold, which write their tables into NOTES.md."""
