"""The passport: whether an evaluator may take the place of a person, in words, with figures and what could not be tested."""
