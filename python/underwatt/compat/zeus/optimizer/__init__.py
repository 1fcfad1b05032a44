"""Optimizers: of the power limit (power_limit)."""
