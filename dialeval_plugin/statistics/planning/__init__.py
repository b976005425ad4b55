"""Planning of comparisons: the smallest difference that data would show, by simulation from a pilot."""
