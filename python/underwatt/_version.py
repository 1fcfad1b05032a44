"""Version of the package: that of the project (meson.build), which tests/python/test-abi.py compares."""

__version__ = "0.1.0"
