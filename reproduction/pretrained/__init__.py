"""How the bundled models are made, and their figures."""
