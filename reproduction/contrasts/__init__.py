"""Shares of pairs in which each bundled model orders two responses, or two dialogues, as anybody would."""
