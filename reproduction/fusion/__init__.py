"""Gain of a small model over large models' verdicts alone, and the calls that it saves."""
