"""Models that are small enough for every test, with random weights or trained for a moment: real architectures, real files."""
