"""Dialogues, scores, scorers, options, errors and files, which all parts of the package use."""
