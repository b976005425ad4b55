"""Asking large language models and reading what they answer; which host runs them is not known here."""
