"""What somebody at a terminal sees: how far a run is, and tables."""
