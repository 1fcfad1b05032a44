"""Optimizers: the power limit's (power_limit)."""
