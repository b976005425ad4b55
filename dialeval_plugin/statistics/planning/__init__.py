"""How much data a comparison needs: the smallest difference that data would show, by simulation from a pilot."""
