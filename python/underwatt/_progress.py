"""Steps and phases: stores into this process's slot of the progress page (docs/progress.md).

The library finds the page and claims the slot; a step is then two stores through a memoryview and a read of the clock.
Without a page (UNDERWATT_PROGRESS is not set, no job was begun here, and no Slurm job has a goal) the stores go to
memory that is not read.
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
_PHASE = Slot.phase.offset // 8  # together with the word after it, which is 0
_BOOTTIME = time.CLOCK_BOOTTIME
_now_ns: Callable[[int], int] = time.clock_gettime_ns

_TOLD = [name for name in PHASES if name != "unknown"]  # phases that a program can report

SLOTS = 63
_WORDS = ctypes.sizeof(Slot) // 8
_OPTIMIZER = 4  # word of a slot: its process's number while that has an Optimizer
_BEFORE = slice(2, 8)  # words of the page's head: the goal before the first Optimizer's, preceded by "="

_slot: memoryview | None = None  # None: this process has no slot yet
_whole: memoryview | None = None  # the page of the slot, as words
_RENEW_S = 5.0
_renewing = threading.Lock()  # held while the page is renewed or released
_page = ctypes.c_void_p()  # the library's uw_progress, of this process and its parents before a fork


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
    """The slot at that byte of the page: the mapping lives as long as it is referenced."""
    global _whole  # noqa: PLW0603
    page = mmap.mmap(fd, mmap.PAGESIZE)
    _whole = memoryview(page).cast("Q")
    return memoryview(page)[at : at + ctypes.sizeof(Slot)].cast("Q")


def use(job: ctypes.c_void_p) -> None:
    """Stores steps and phases in the page of this job from now on."""
    page = ctypes.c_void_p()
    library().call("uw_progress_attach", job, ctypes.byref(page))
    leave()
    _page.value = page.value
    _attach()


def begin() -> None:
    """Claims the slot now, if this process has none."""
    if _slot is None:
        _attach()


def _living() -> list[int]:
    """Processes with a slot in the page, by slot; none if no page is mapped."""
    pids = [] if _whole is None else [_whole[at] for at in range(_WORDS, _WORDS * (SLOTS + 1), _WORDS)]
    return [pid for pid in pids if pid and os.path.exists(f"/proc/{pid}")]


def processes() -> int:
    """The number of processes that report in the page; 0: no page."""
    return len(_living())


# ---- shared by the Optimizers of a job, in its page ----


def optimizes(has: bool) -> None:
    """Notes whether this process has an Optimizer."""
    if _slot is not None:
        _slot[_OPTIMIZER] = os.getpid() if has else 0


def optimizers() -> list[int]:
    """Processes that report in the page and have an Optimizer, by slot."""
    if _whole is None:
        return []
    having = {_whole[at + _OPTIMIZER] for at in range(_WORDS, _WORDS * (SLOTS + 1), _WORDS)}
    return [pid for pid in _living() if pid in having]


def keep_goal(text: str | None) -> None:
    """Keeps the job's goal before the first Optimizer's, for the last one; None: forgets it.  A kept goal is not
    replaced."""
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
    """Releases the slot; the next step looks for a page again."""
    global _slot, _whole  # noqa: PLW0603
    _slot = _whole = None
    gone = ctypes.c_void_p(_page.value)
    _page.value = None  # before it is freed: other threads and signal handlers see no page
    if gone:
        with _renewing:
            library().c.uw_progress_detach(gone)


def _renew() -> None:
    """Sends the page to a restarted daemon, as long as this is the process's page."""
    while True:
        time.sleep(_RENEW_S)
        with _renewing:
            if not _page:
                return
            with suppress(UnderwattError):  # tried again later
                library().call("uw_progress_renew", _page)


def _attach() -> memoryview:
    """Claims this process's slot; at its first step or phase, and at the first one after a fork."""
    global _slot, _now_ns  # noqa: PLW0603 - one process has one slot
    view = _nowhere()
    _now_ns = _node_clock()
    try:
        native = library()
        if not _page:
            native.call("uw_progress_attach", None, ctypes.byref(_page))
            if not os.environ.get("UNDERWATT_PROGRESS"):  # a job begun within a Slurm job
                threading.Thread(target=_renew, name="underwatt-renew", daemon=True).start()
        address = native.c.uw_progress_slot_of(_page)
        if address:
            view = _mapped(native.c.uw_progress_fd(_page), address % mmap.PAGESIZE)
        else:
            warnings.warn("underwatt: the progress page has no free slot: steps are not reported", stacklevel=3)
    except UnderwattError as e:
        if e.errno != errno.ENOENT:  # not under `underwatt run`: no steps are requested
            warnings.warn(f"underwatt: steps are not reported: {e}", stacklevel=3)
    if view[_PHASE] == PHASES["unknown"]:
        view[_PHASE] = PHASES["train"]
    _slot = view
    return view


def step() -> None:
    """A training step has ended: call it at the end of each iteration, from one thread.

    On a GPU, call it when the iteration's work is known to be done, for example after reading the loss.
    """
    view = _slot
    if view is None:
        view = _attach()
    view[_LAST_NS] = _now_ns(_BOOTTIME)
    view[_STEPS] += 1


def steps() -> int:
    """The number of steps that this process has reported."""
    return 0 if _slot is None else _slot[_STEPS]


class Phase:
    """The result of phase(): at the end of a `with` block, the phase before it is restored."""

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
            os.utime(with_fd)  # notifies the daemon at once


def _after_fork() -> None:
    global _slot, _renewing  # noqa: PLW0603
    _slot = None
    _renewing = threading.Lock()  # its thread does not exist in the child


os.register_at_fork(after_in_child=_after_fork)
