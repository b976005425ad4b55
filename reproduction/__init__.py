"""Published figures and the scripts that set ours beside them, a folder a paper; not part of the wheel."""
