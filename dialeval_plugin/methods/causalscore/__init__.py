"""CausalScore (Feng et al. 2024): the dependence of a response on the turns before it."""
