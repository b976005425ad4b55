"""Commands that read files of scores."""
