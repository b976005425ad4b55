"""A small evaluator for any dialogue, trained on plain dialogues without human ratings."""
