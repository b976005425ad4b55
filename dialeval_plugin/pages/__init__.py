"""HTML pages, each one file that loads nothing: their common parts, and the page of a score file."""
