"""What every part of the package speaks in: dialogues, scores, errors, files."""
