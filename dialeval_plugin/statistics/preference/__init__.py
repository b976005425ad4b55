"""Agreement with people who compared responses two at a time."""
