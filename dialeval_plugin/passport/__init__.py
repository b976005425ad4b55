"""Passports, which state whether an evaluator can replace a person, with figures and questions that could not be tested."""
