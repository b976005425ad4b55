"""Agreement with people who compared pairs of responses."""
