"""Data for developing and training an evaluator of assistants, and how often it prefers what people prefer."""
