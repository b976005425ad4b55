"""`dialeval train`: a module a trained method."""
