"""What a small model adds to large models' verdicts, and what it saves."""
