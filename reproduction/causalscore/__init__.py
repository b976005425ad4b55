"""The tables of causalscore."""
