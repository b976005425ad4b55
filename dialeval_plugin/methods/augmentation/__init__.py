"""Positive and adversarial responses written and checked by a language model (SLIDE, DRE)."""
