"""lm-evaluation-harness: its models, task classes, samplers and caches."""
