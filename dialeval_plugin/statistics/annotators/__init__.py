"""Whether an evaluator can replace a person, and the gain from more people or more conversations."""
