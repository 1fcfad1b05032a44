"""Processors and their memory, through RAPL."""

from __future__ import annotations

import os
from typing import Literal

from .common import CPUs, ZeusCPUInitError
from .rapl import RAPLCPUs, rapl_is_available

_cpus: CPUs | None = None


def get_current_cpu_index(pid: int | Literal["current"] = "current") -> int:
    """The package on whose core a process ran last."""
    with open(f"/proc/{os.getpid() if pid == 'current' else pid}/stat", encoding="utf-8", errors="replace") as stat:
        core = int(stat.read().rpartition(")")[2].split()[36])  # the name before it may contain blanks
    with open(f"/sys/devices/system/cpu/cpu{core}/topology/physical_package_id", encoding="ascii") as package:
        return int(package.read())


def get_cpus() -> CPUs:
    """This node's processors, the same object each time.  ZeusCPUInitError: no counters; ZeusCPUNoPermissionError:
    this user may not read them."""
    global _cpus  # noqa: PLW0603 - tests of Zeus set it
    if _cpus is None:
        if not rapl_is_available():
            raise ZeusCPUInitError("RAPL cannot be used: no powercap zones of this node's processors")
        _cpus = RAPLCPUs()
    return _cpus


__all__ = ["CPUs", "RAPLCPUs", "ZeusCPUInitError", "get_cpus", "get_current_cpu_index", "rapl_is_available"]
