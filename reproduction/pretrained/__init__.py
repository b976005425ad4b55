"""The figures of the models in the box."""
