"""Steps and phases: stores into this process' slot of the progress page (docs/progress.md).

The library finds the page and claims the slot; a step is then two stores through a memoryview and a
look at the clock.  Without a page (UNDERWATT_PROGRESS is not set, no job was begun here, and no job of Slurm's
has a goal) the stores go to memory that nobody reads.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from ._errors import InvalidValue, UnderwattError
from ._native import PHASES, Slot, library

_STEPS, _LAST_NS = Slot.steps.offset // 8, Slot.last_step_ns.offset // 8
_PHASE = Slot.phase.offset // 8  # with the word after it, which is 0
_BOOTTIME = time.CLOCK_BOOTTIME
_now_ns: Callable[[int], int] = time.clock_gettime_ns

_TOLD = [name for name in PHASES if name != "unknown"]  # that a program can tell

SLOTS = 63
_WORDS = ctypes.sizeof(Slot) // 8
_OPTIMIZER = 4  # word of a slot: its process' number while that has an Optimizer
_BEFORE = slice(2, 8)  # words of the page's head: the goal before the first Optimizer's, "=" in front of it

_slot: memoryview | None = None  # None: this process has none yet
_whole: memoryview | None = None  # the page that it is in, as words
_RENEW_S = 5.0
_renewing = threading.Lock()  # held while the page is renewed or given back
_page = ctypes.c_void_p()  # the library's uw_progress, of this process and those that it was forked from


def _nowhere() -> memoryview:
    return memoryview(bytearray(ctypes.sizeof(Slot))).cast("Q")


def _node_clock() -> Callable[[int], int]:
    """CLOCK_BOOTTIME, or the clock of a sped-up simulated node: underwatt-sim exec sets UNDERWATT_CLOCK, T0:SPEED."""
    t0_text, _, speed_text = os.environ.get("UNDERWATT_CLOCK", "").partition(":")
    try:
        t0, speed = int(t0_text), float(speed_text)
    except ValueError:
        return time.clock_gettime_ns
    if speed == 1:
        return time.clock_gettime_ns
    return lambda clock: t0 + int((time.clock_gettime_ns(clock) - t0) * speed)


def _mapped(fd: int, at: int) -> memoryview:
    """The slot at that byte of the page: a mapping that lives as long as somebody may store to it."""
    global _whole  # noqa: PLW0603
    page = mmap.mmap(fd, mmap.PAGESIZE)
    _whole = memoryview(page).cast("Q")
    return memoryview(page)[at : at + ctypes.sizeof(Slot)].cast("Q")


def use(job: ctypes.c_void_p) -> None:
    """Steps and phases go to the page of this job from now on."""
    page = ctypes.c_void_p()
    library().call("uw_progress_attach", job, ctypes.byref(page))
    leave()
    _page.value = page.value
    _attach()


def begin() -> None:
    """Claims the slot now, where this process has none."""
    if _slot is None:
        _attach()


def _living() -> list[int]:
    """Processes with a slot in the page, by slot; none where no page is mapped."""
    pids = [] if _whole is None else [_whole[at] for at in range(_WORDS, _WORDS * (SLOTS + 1), _WORDS)]
    return [pid for pid in pids if pid and os.path.exists(f"/proc/{pid}")]


def processes() -> int:
    """That report in the page; 0: there is none."""
    return len(_living())


# ---- what the Optimizers of a job tell one another, in its page ----


def optimizes(has: bool) -> None:
    """Whether this process has an Optimizer."""
    if _slot is not None:
        _slot[_OPTIMIZER] = os.getpid() if has else 0


def optimizers() -> list[int]:
    """Processes that report in the page and have an Optimizer, by slot."""
    if _whole is None:
        return []
    having = {_whole[at + _OPTIMIZER] for at in range(_WORDS, _WORDS * (SLOTS + 1), _WORDS)}
    return [pid for pid in _living() if pid in having]


def keep_goal(text: str | None) -> None:
    """The job's goal before the first Optimizer's, for the last one; None: forget it.  A kept one stays."""
    if _whole is None or (text is not None and kept_goal() is not None):
        return
    raw = b"" if text is None else f"={text}".encode()
    space = memoryview(_whole[_BEFORE]).cast("B")
    if len(raw) <= len(space):
        space[:] = raw.ljust(len(space), b"\0")


def kept_goal() -> str | None:
    """None: none is kept."""
    raw = b"" if _whole is None else bytes(_whole[_BEFORE]).rstrip(b"\0")
    return raw[1:].decode(errors="replace") if raw else None


def leave() -> None:
    """Gives the slot back; the next step looks for a page anew."""
    global _slot, _whole  # noqa: PLW0603
    _slot = _whole = None
    gone = ctypes.c_void_p(_page.value)
    _page.value = None  # before it is freed: another thread and a signal's handler see no page
    if gone:
        with _renewing:
            library().c.uw_progress_detach(gone)


def _renew() -> None:
    """Tells a daemon that was restarted of the page, as long as this one is the process'."""
    while True:
        time.sleep(_RENEW_S)
        with _renewing:
            if not _page:
                return
            with suppress(UnderwattError):  # tried again
                library().call("uw_progress_renew", _page)


def _attach() -> memoryview:
    """Claims this process' slot; at its first step or phase, and at the first one after a fork."""
    global _slot, _now_ns  # noqa: PLW0603 - one process has one slot
    view = _nowhere()
    _now_ns = _node_clock()
    try:
        native = library()
        if not _page:
            native.call("uw_progress_attach", None, ctypes.byref(_page))
            if not os.environ.get("UNDERWATT_PROGRESS"):  # of a job that was begun in one of Slurm's
                threading.Thread(target=_renew, name="underwatt-renew", daemon=True).start()
        address = native.c.uw_progress_slot_of(_page)
        if address:
            view = _mapped(native.c.uw_progress_fd(_page), address % mmap.PAGESIZE)
        else:
            warnings.warn("underwatt: the progress page has no free slot: steps are not reported", stacklevel=3)
    except UnderwattError as e:
        if e.errno != errno.ENOENT:  # not under `underwatt run`: nobody asked for steps
            warnings.warn(f"underwatt: steps are not reported: {e}", stacklevel=3)
    if view[_PHASE] == PHASES["unknown"]:
        view[_PHASE] = PHASES["train"]
    _slot = view
    return view


def step() -> None:
    """A training step has ended: call it at the end of each iteration, from one thread.

    On a GPU it belongs behind the point where the iteration's work is known to be done (reading the
    loss does that).
    """
    view = _slot
    if view is None:
        view = _attach()
    view[_LAST_NS] = _now_ns(_BOOTTIME)
    view[_STEPS] += 1


def steps() -> int:
    """Steps that this process has told."""
    return 0 if _slot is None else _slot[_STEPS]


class Phase:
    """What phase() returns: at the end of a `with` block the phase before it comes back."""

    def __init__(self, before: int) -> None:
        self._before = before

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _set(self._before)


def phase(name: str) -> Phase:
    """What the loop does from now on: "train", "validate", "load", "checkpoint" or "startup".

    As a context manager, for as long as the block takes::

        with underwatt.phase("validate"):
            evaluate(model)
    """
    if name not in _TOLD:
        raise InvalidValue(f"phase '{name}' is none of: {', '.join(_TOLD)}")
    number = PHASES[name]
    view = _attach() if _slot is None else _slot
    before = view[_PHASE]
    _set(number)
    return Phase(before)


def _set(number: int) -> None:
    view = _attach() if _slot is None else _slot
    if view[_PHASE] == number:
        return
    view[_PHASE] = number
    if _page:
        with_fd = library().c.uw_progress_fd(_page)
        if with_fd >= 0:
            os.utime(with_fd)  # the daemon hears it at once


def _after_fork() -> None:
    global _slot, _renewing  # noqa: PLW0603
    _slot = None
    _renewing = threading.Lock()  # its thread stayed behind


os.register_at_fork(after_in_child=_after_fork)
