"""How the models in the box are made, and their figures."""
