"""Feng et al. 2024: CausalScore."""
