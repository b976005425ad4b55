"""How much dialogue models are surprised by the utterances of a dialogue (Nedelchev 2022, chapter 4)."""
