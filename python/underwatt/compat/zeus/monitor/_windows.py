"""Energy of all GPUs of this process between two moments: by Underwatt's windows, and where those cannot be had (a
mock of NVML, a board that libunderwatt does not see) by the boards' own counters."""

from __future__ import annotations

import atexit
import logging
import os
import time
import warnings
from collections.abc import Callable

from underwatt._errors import UnderwattError
from underwatt._monitor import EXIT_S, Monitor
from underwatt._window import Window

from ..device.gpu import nvidia
from ..device.gpu.common import GPUs

logger = logging.getLogger(__name__)


class _Shared(Monitor):
    """One for all monitors of a process: its windows are over all boards."""

    def _known(self, window: Window) -> None:
        super()._known(window)
        for log in tuple(_logs):
            log()


_shared: dict[tuple[str, ...], _Shared] = {}
_logs: set[Callable[[], None]] = set()  # with rows whose energies are not known yet
_warned: list[str] = []


def wait_for_rows(log: Callable[[], None], waits: bool) -> None:
    """log is called when an energy has come to be known, and at the end of the program, as long as it waits."""
    if waits:
        _logs.add(log)
    else:
        _logs.discard(log)


def shared(gpus: GPUs) -> _Shared | None:
    """None: these GPUs are read through the seam alone."""
    if not isinstance(gpus, nvidia.NVIDIAGPUs) or nvidia.pynvml is not nvidia._REAL:
        return None
    boards = tuple(gpu.underwatt_gpu for gpu in gpus.gpus)
    if boards not in _shared:
        try:
            _shared[boards] = _Shared(gpus=boards, sync=None)
        except UnderwattError as e:
            logger.warning("windows are not measured by Underwatt, but by the boards' counters: %s", e)
            return None
    return _shared[boards]


def energies(window: Window) -> tuple[list[float], dict[str, float]]:
    """Of each GPU, in their order, and of processors by name; NaN: unknown, which is warned of once."""
    try:
        energy = window.energy
    except UnderwattError as e:
        unknown(str(e))
        return [], {}
    for gpu in energy.gpus:
        if not gpu.known:
            unknown(f"{gpu.label}: {gpu.why}")
    return [gpu.energy_j for gpu in energy.gpus], {p.name: p.energy_j for p in energy.processors}


def unknown(why: str) -> None:
    if not _warned:
        _warned.append(why)
        warnings.warn(f"an energy is unknown, and NaN: {why}", RuntimeWarning, stacklevel=4)


def _at_exit() -> None:
    """Before the monitors end, which were made later than this module."""
    until = time.monotonic() + EXIT_S
    for monitor in _shared.values() if _logs else ():
        monitor._collector.drain(until)
    for log in tuple(_logs):
        log()


def _in_child() -> None:
    """Their windows are the parent's, and so are the rows."""
    _logs.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
