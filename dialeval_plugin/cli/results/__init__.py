"""The commands that read files of scores."""
