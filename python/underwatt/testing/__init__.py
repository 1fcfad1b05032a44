"""Training programs on simulated boards (docs/driven-jobs.md).  Standard library only."""

from ._simload import Done, Grant, SimError, SimLoad

__all__ = ["Done", "Grant", "SimError", "SimLoad"]
