"""Losses of dialogue models on the utterances of a dialogue (Nedelchev 2022, chapter 4)."""
