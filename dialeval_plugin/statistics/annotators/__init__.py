"""Whether an evaluator may stand in for a person, and what more people or more conversations would add."""
