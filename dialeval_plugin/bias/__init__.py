"""Whether a scorer says the same again, and how far what should not matter moves its scores."""
