"""Adapters for hosts of evaluation and of traces, one module a host, which imports the host; nothing else here does."""
