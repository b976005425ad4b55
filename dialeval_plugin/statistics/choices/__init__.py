"""What is gained by choosing by scores: filtering, and the best of several responses."""
