"""One reader for each published layout."""
