"""Adapters for evaluation and tracing hosts, one module per host; only that module imports the host."""
