"""A window of time, and the thread that collects the results of windows."""

from __future__ import annotations

import ctypes as c
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING

from ._errors import NoData, TimeoutError, UnderwattError
from ._results import Energy

if TYPE_CHECKING:
    from ._monitor import Monitor
    from ._node import Node

WAIT_S = 15.0  # longest wait for an energy: the library's own limit is 10 s
LOOK_S = (0.005, 0.05)  # between two checks whether an energy is known, the first and the longest
COLLECT_S = (0.1, 0.5)  # the same for the collector
PENDING = 4096  # as many as the daemon keeps

NEW, OPEN, ENDED, KNOWN = "new", "open", "ended", "known"


class Window:
    """Energy between two moments, of all boards of the monitor: `with monitor.window("epoch") as w:`.

    Leaving the window makes no request, and waits only for the frameworks' own queues (sync).  w.ready tells whether
    the energy is known; w.energy waits for it.  A window never stops the program that it measures: if the daemon is
    absent, the window is entered and left all the same, one warning is issued, and w.energy raises the error.
    """

    def __init__(self, monitor: Monitor, name: str, samples: bool = False) -> None:
        self.name = name
        self._monitor = monitor
        self._samples = samples
        self._state = NEW
        self._pid = os.getpid()
        self._node: Node | None = None
        self._handle: c.c_void_p | None = None
        self._drop: weakref.finalize[..., Window] | None = None
        self._result: Energy | UnderwattError | None = None
        self._began = datetime.fromtimestamp(0, timezone.utc)
        self._began_ns = self._ended_ns = 0

    def __enter__(self) -> Window:
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(sync=error is None)

    def begin(self) -> Window:
        """Begins the window; called by __enter__."""
        return self._start(sync=True)

    def _start(self, sync: bool) -> Window:
        if self._state != NEW:
            raise UnderwattError(f"window '{self.name}' has begun before: a window is used once")
        if sync:
            self._monitor._sync()
        self._pid = os.getpid()
        self._began = datetime.now(timezone.utc)
        self._state = OPEN
        self._monitor._begin(self)
        self._began_ns = time.monotonic_ns()
        return self

    def end(self) -> Window:
        """Ends the window; called by __exit__."""
        if self._state != OPEN:
            raise UnderwattError(f"window '{self.name}' has not begun, or has ended before")
        self._end(sync=True)
        return self

    def _end(self, sync: bool) -> None:
        """sync: not if an exception is propagating, which may be the framework's."""
        if self._state != OPEN or self._pid != os.getpid():  # a forked child leaves its parent's window unchanged
            return
        try:
            if sync:
                self._monitor._sync()
        finally:
            self._state = ENDED
            self._ended_ns = time.monotonic_ns()
            self._monitor._end(self)

    @property
    def seconds(self) -> float:
        """The length by this process's clock, without waiting: until now, or until its end."""
        if self._state == NEW:
            return 0.0
        return ((time.monotonic_ns() if self._state == OPEN else self._ended_ns) - self._began_ns) / 1e9

    @property
    def ready(self) -> bool:
        """Whether w.energy returns (or raises) now without waiting."""
        return self._state in (ENDED, KNOWN) and self._look()

    @property
    def energy(self) -> Energy:
        """The result; waits until it is known, usually 0.3 s."""
        return self.wait()

    def wait(self, seconds: float = WAIT_S) -> Energy:
        """The same, with a limit: then raises TimeoutError."""
        if self._state == NEW:
            raise UnderwattError(f"window '{self.name}' has not begun: enter it, or call begin()")
        if self._state == OPEN and self._pid == os.getpid():
            raise UnderwattError(f"window '{self.name}' has not ended")
        until, pause = time.monotonic() + seconds, LOOK_S[0]
        while not self._look(patient=True):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"window '{self.name}': the energy is not known after {seconds:g} s")
            time.sleep(min(pause, left))
            pause = min(2 * pause, LOOK_S[1])
        if isinstance(self._result, Energy):
            return self._result
        assert self._result is not None
        raise self._result.with_traceback(None)

    def _look(self, patient: bool = False) -> bool:
        """Takes the energy from the library if it is known.  patient: gives a busy daemon time to answer."""
        if self._result is not None:
            return True
        if self._pid != os.getpid():
            self._fail(NoData(f"window '{self.name}' began in process {self._pid}: only that process knows the energy"))
            return True
        return self._monitor._collect(self, patient)

    # ---- for the monitor ----

    def _opened(self, node: Node, handle: c.c_void_p) -> None:
        self._node, self._handle = node, handle
        self._drop = weakref.finalize(self, node.drop, handle)
        self._drop.atexit = False

    def _know(self, result: Energy | UnderwattError) -> None:
        self._result = result
        self._state = KNOWN
        if self._drop:
            self._drop()
        self._handle = self._node = None

    def _fail(self, error: UnderwattError) -> None:
        """The window has no energy, and never will have."""
        if self._result is None:
            self._result = error.with_traceback(None)  # a traceback would keep the caller's variables alive

    def __repr__(self) -> str:
        return f"<underwatt.Window '{self.name}', {self._state}, {self.seconds:.3f} s>"


class Collector:
    """A thread that takes the energies of ended windows from the library as soon as they are known, before the
    daemon forgets their ends, and logs them."""

    def __init__(self, on_known: Callable[[Window], None]) -> None:
        self._pending: deque[Window] = deque()
        self._collecting = threading.Lock()  # held while a window may be in no list
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._on_known = weakref.WeakMethod(on_known)  # its monitor may be freed before the thread ends
        self._open = True

    def start(self) -> None:
        """Starts the thread if it does not run yet: that takes a millisecond, which must not delay a window's end."""
        if self._thread is None and self._open:
            self._thread = threading.Thread(target=self._run, name="underwatt", daemon=True)
            self._thread.start()

    def add(self, window: Window) -> None:
        self._pending.append(window)
        if len(self._pending) > PENDING:
            self._pending.popleft()._fail(NoData(f"more than {PENDING} windows wait for their energies"))
        self._wake.set()

    def _run(self) -> None:
        pause = COLLECT_S[0]
        while self._open:
            if not self._pending:
                self._wake.wait()
                pause = COLLECT_S[0]
            self._wake.clear()
            time.sleep(pause)
            pause = COLLECT_S[0] if self.collect() else min(2 * pause, COLLECT_S[1])

    def collect(self) -> bool:
        """Checks each pending window once; returns True if one has become known."""
        with self._collecting:
            return self._look_at_all()

    def _look_at_all(self) -> bool:
        any_known = False
        for i in range(len(self._pending)):
            try:
                window = self._pending.popleft()
            except IndexError:
                break
            if window._look(patient=i == 0):  # not all: the program's next window waits for the lock
                any_known = True
                on_known = self._on_known()
                if on_known is not None:
                    on_known(window)
            else:
                self._pending.append(window)
        return any_known

    def drain(self, until: float) -> None:
        """Waits until all are known, or until that value of time.monotonic()."""
        pause = LOOK_S[0]
        while time.monotonic() < until:
            with self._collecting:  # the thread may be handling the last one
                if not self._pending:
                    return
            if not self.collect():
                time.sleep(pause)
                pause = min(2 * pause, LOOK_S[1])

    def end(self) -> None:
        self._open = False
        self._wake.set()
