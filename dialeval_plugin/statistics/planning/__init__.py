"""Planning of comparisons: the smallest difference that data would detect, simulated from a pilot."""
