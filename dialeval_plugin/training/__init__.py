"""The life cycle of a training run."""
