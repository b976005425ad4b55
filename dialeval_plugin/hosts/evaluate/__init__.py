"""HuggingFace `evaluate`: metrics and the pages of their Spaces."""
