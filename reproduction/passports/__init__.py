"""Passports of small evaluators and replayed judges on public labels."""
