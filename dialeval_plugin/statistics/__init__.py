"""Agreement of scores with people, computed from arrays, without methods or hosts."""
