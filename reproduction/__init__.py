"""Tables of papers beside ours: not part of the wheel."""
