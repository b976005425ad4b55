"""The `dialeval` command."""
