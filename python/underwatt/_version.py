"""The version of the package: that of the project (meson.build), compared by tests/python/test-abi.py."""

__version__ = "0.1.0"
