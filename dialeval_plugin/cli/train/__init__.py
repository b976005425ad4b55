"""`dialeval train`."""
