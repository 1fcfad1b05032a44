"""A context of the library: this node's boards, and the library's windows.

Only one thread at a time uses the library with a context (self.lock), except for stop(), which only notes the time of
one window.  A forked process opens a context of its own.
"""

from __future__ import annotations

import ctypes as c
import errno
import os
import threading
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from . import _native
from ._errors import NoDevice, TimeoutError, UnderwattError
from ._results import Device, Sample

SAMPLES = 2048  # a board
PATIENT_S = 0.001  # that the daemon waits for an energy: 0.1 s later its answer counts as late
KINDS = {"package": "cpu", "dram": "dram"}  # kinds of processors, by the first word of their names


@dataclass(frozen=True, slots=True)
class Limits:
    """The power limits of a board, in W; enforced_w: in force now, None if unknown."""

    min_w: float
    max_w: float
    default_w: float
    enforced_w: float | None


@dataclass(frozen=True)
class Board:
    """A GPU of this node."""

    index: int
    id: str
    name: str
    simulated: bool
    _node: Node = field(repr=False, compare=False)
    _closed: bool = field(default=False, repr=False, compare=False)  # this process may not open its device file

    def limits(self) -> Limits:
        limits = _native.Limits()
        self._node.call("uw_device_limits", self._node.device(self.index), c.byref(limits))
        watts = [mw / 1000 for mw in (limits.min_mw, limits.max_mw, limits.default_mw)]
        return Limits(watts[0], watts[1], watts[2], limits.enforced_mw / 1000 or None)

    def power_w(self) -> float:
        """The driver's newest reading; with the daemon, the mean of the last one or two seconds."""
        power = c.c_double()
        self._node.call("uw_device_power", self._node.device(self.index), c.byref(power))
        return power.value


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


class Node:
    def __init__(
        self, boards: str | None = None, socket: str | None = None, clock: str | None = None, flags: int = 0
    ) -> None:
        self._native = _native.library()
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self._garbage: deque[c.c_void_p] = deque()  # windows that are no longer referenced
        options = _native.Options(c.sizeof(_native.Options), _encoded(boards), _encoded(clock), flags, _encoded(socket))
        self._ctx = c.c_void_p()
        self._native.call("uw_ctx_open", c.byref(options), c.byref(self._ctx))
        self.source = "daemon" if self._native.c.uw_ctx_has_daemon(self._ctx) else "local"

    @property
    def lib(self) -> Any:
        """The library's functions; functions of a context need the lock."""
        return self._native.c

    @property
    def ctx(self) -> c.c_void_p:
        return self._ctx

    def boards(self) -> tuple[Board, ...]:
        """Created for each caller: a board references its node, and not vice versa."""
        lib = self._native.c
        return tuple(
            Board(
                i,
                lib.uw_device_id(device).decode(),
                lib.uw_device_name(device).decode(),
                bool(lib.uw_device_is_simulated(device)),
                self,
                bool(lib.uw_device_is_closed(device)),
            )
            for i in range(lib.uw_device_count(self._ctx))
            for device in (self.device(i),)
        )

    def device(self, index: int) -> c.c_void_p:
        return c.c_void_p(self._native.c.uw_device_at(self._ctx, index))

    def call(self, name: str, *arguments: Any) -> int:
        if self.pid != os.getpid():
            raise UnderwattError("the context belongs to the parent of this forked process", errno.ECHILD)
        with self.lock:
            self._sweep()
            if not self._ctx:
                raise UnderwattError("the monitor is closed")
            return self._native.call(name, *arguments)

    def close(self) -> None:
        """Closes the context; windows that are not collected yet are lost.  Not in a child of the process that
        opened it."""
        if self.pid != os.getpid():  # a thread of the parent may have had the lock
            return
        with self.lock:
            self._sweep()
            if self._ctx:
                self._native.c.uw_ctx_free(self._ctx)
            self._ctx = c.c_void_p()

    def __del__(self) -> None:
        if getattr(self, "_ctx", None):
            self.close()

    def signal(self, name: str) -> tuple[float, str] | None:
        """Value and unit of a signal of the daemon; None: no daemon, no such signal, or unknown now."""
        value, unit = c.c_double(), c.create_string_buffer(32)
        if self.source != "daemon":
            return None
        try:
            self.call("uw_signal_value", self._ctx, name.encode(), c.byref(value), unit, len(unit))
        except UnderwattError:
            return None
        return value.value, unit.value.decode(errors="replace")

    # ---- windows ----

    def begin(self) -> c.c_void_p:
        window = c.c_void_p()
        self.call("uw_window_begin", self._ctx, c.byref(window))
        return window

    def stop(self, window: c.c_void_p) -> None:
        """Notes the time, without the lock: another thread may hold it while waiting for the daemon."""
        self._native.call("uw_window_stop", window)

    def ready(self, window: c.c_void_p, patient: bool = False) -> bool:
        """patient: the daemon has 0.1 s for its answer, not 1 ms: on a busy machine it may never be faster."""
        if not patient:
            return self.call("uw_window_ready", window) == 1
        try:
            return self.call("uw_window_wait", window, c.c_double(PATIENT_S)) == 0
        except TimeoutError:
            return False

    def drop(self, window: c.c_void_p) -> None:
        """Frees a window at the next call; may be called from any thread at any time, like finalizers."""
        self._garbage.append(window)

    def _sweep(self) -> None:
        while self._garbage:
            self._native.c.uw_window_free(self._garbage.popleft())

    def energy(self, window: c.c_void_p, board: Board, samples: bool) -> tuple[Device, float]:
        """The energy of a ready window, and its length; NaN if this board gave no readings."""
        e = _native.Energy()
        unknown = Device(name=board.name, id=board.id, index=board.index, simulated=board.simulated)
        try:
            self.call("uw_window_energy", window, self.device(board.index), c.byref(e))
        except UnderwattError as why:
            return replace(unknown, why=str(why)), 0.0
        known = replace(
            unknown,
            energy_j=e.energy_j,
            half_j=e.half_j,
            power_w=e.power_w,
            method=(e.method or b"none").decode(),
            why=e.why.decode(errors="replace"),
            samples=self.samples(window, board) if samples else (),
        )
        return known, e.time_s

    def samples(self, window: c.c_void_p, board: Board) -> tuple[Sample, ...]:
        """The samples of a ready window, SAMPLES at most; none if the library has none."""
        found, n = (_native.Sample * SAMPLES)(), c.c_size_t()
        try:
            self.call("uw_window_samples", window, self.device(board.index), found, SAMPLES, c.byref(n))
        except UnderwattError:
            return ()
        return tuple(Sample(s.time_s, s.power_w, s.over_s) for s in found[: n.value])

    def processors(self, window: c.c_void_p) -> tuple[Device, ...]:
        """The processors of a ready window: packages and memory, if the daemon or this process may read them."""
        lib = self._native.c
        with self.lock:
            found = range(lib.uw_window_processors(window))
            return tuple(self._processor(window, i, lib.uw_window_processor_name(window, i).decode()) for i in found)

    def _processor(self, window: c.c_void_p, i: int, name: str) -> Device:
        e = _native.Energy()
        unknown = Device(name=name, kind=KINDS.get(name.partition("-")[0], "other"))
        try:
            self.call("uw_window_processor", window, i, c.byref(e))
        except UnderwattError as why:
            return replace(unknown, why=str(why))
        method = (e.method or b"none").decode()
        return replace(unknown, energy_j=e.energy_j, half_j=e.half_j, power_w=e.power_w, method=method)


def open_node(boards: str | None, socket: str | None, clock: str | None, flags: int) -> Node:
    """Opens the node.  NoDevice names the options of a program without a GPU."""
    try:
        return Node(boards, socket, clock, flags)
    except NoDevice as e:
        raise NoDevice(
            f"{e} (without a GPU: underwatt.configure(null=True), or Monitor(null=True), measures nothing "
            "and lets the program run)",
            e.errno,
        ) from None
