"""Published figures, and scripts that compare ours with them, one folder per paper; not part of the wheel."""
