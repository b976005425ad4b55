"""Human labels of responses and conversations: reading them, and pairing them with evaluators' scores."""
