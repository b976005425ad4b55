"""Pages of one HTML file that load nothing: what all of them share, and the page of a score file."""
