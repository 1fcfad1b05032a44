"""Interfaces of other packages, implemented with Underwatt."""
