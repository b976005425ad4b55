"""Test doubles: judges that answer by rules."""
