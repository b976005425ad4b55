"""Requests to large language models and parsing of their answers, independent of the host that runs them."""
