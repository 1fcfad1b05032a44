"""Energy of all GPUs of this process between two moments: from Underwatt's windows or, if these are not available (a
mock of NVML, a board that libunderwatt does not have), from the boards' own counters."""

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
    """One for all monitors of a process: its windows cover all boards."""

    def _known(self, window: Window) -> None:
        super()._known(window)
        for log in tuple(_logs):
            log()


_shared: dict[tuple[str, ...], _Shared] = {}
_logs: set[Callable[[], None]] = set()  # with rows whose energies are not known yet
_warned: list[str] = []


def wait_for_rows(log: Callable[[], None], waits: bool) -> None:
    """log is called when an energy becomes known, and at the end of the program, as long as it is registered."""
    if waits:
        _logs.add(log)
    else:
        _logs.discard(log)


def shared(gpus: GPUs) -> _Shared | None:
    """None: these GPUs are read only through `pynvml`."""
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
    """The energy of each GPU, in order, and of processors by name; NaN: unknown, which is warned of once."""
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
    """Runs before the monitors end, which were created after this module."""
    until = time.monotonic() + EXIT_S
    for monitor in _shared.values() if _logs else ():
        monitor._collector.drain(until)
    for log in tuple(_logs):
        log()


def _in_child() -> None:
    """The windows belong to the parent, and so do the rows."""
    _logs.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
