"""What an evaluator of assistants is developed and trained on, and how often it prefers what people prefer."""
