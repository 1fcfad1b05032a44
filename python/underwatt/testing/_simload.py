"""A driven job of underwatt-sim: simulated boards run the steps that this process grants."""

from __future__ import annotations

import os
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

# src/sim/state.h: struct sim_request, struct sim_reply, the start of struct sim_page.
_REQUEST = struct.Struct("=IIIIQQ512s")
_REPLY = struct.Struct("=iIQQQQQQd200s")
_PAGE = struct.Struct("=8sIIIIQQd")
# Offsets in the page: of board 0, the size of a board, the number of its device file.
_BOARDS, _BOARD, _MINOR = 576, 1728, struct.Struct("=352xQ")
_MAGIC = b"UWSIMST1"
_VERSION = 1
_DRIVE, _GRANT = 9, 10
_OPEN_MAX = 2
_STEPS_MAX = 10**8
_SECONDS_MAX = 10**7

_PHASES = {"train": 1, "validate": 2, "load": 3, "checkpoint": 4, "startup": 5}
_NAMES = {number: name for name, number in _PHASES.items()}
_STEPPED = ("train", "validate")


class SimError(RuntimeError):
    """The simulated node does not exist, has stopped, or refuses."""


@dataclass(frozen=True)
class Done:
    """The progress of the boards at the end of a grant."""

    number: int
    """Of the grant, from 1."""
    phase: str
    at_ns: int
    """Simulated time (CLOCK_BOOTTIME of the node) at which it was done."""
    steps: int
    """Training steps of the job until then."""
    waited_s: float
    """Simulated time until then in which the boards waited for a grant."""
    energy_j: float
    """True energy of the job's boards until then, since the node began."""
    late_s: float
    """Real time from then until this process had the answer."""


class Grant:
    """Granted work that may not be done yet."""

    def __init__(self, load: SimLoad) -> None:
        self._load = load
        self._result: Done | None = None

    @property
    def done(self) -> bool:
        """Checks, without waiting."""
        self._load._hear(self, wait=False)
        return self._result is not None

    def wait(self) -> Done:
        """Waits until the boards have done it."""
        self._load._hear(self, wait=True)
        assert self._result is not None
        return self._result


def _state(given: str | os.PathLike[str] | None = None) -> str:
    path = os.fspath(given) if given is not None else os.environ.get("UNDERWATT_SIM_STATE", "")
    if not path:
        raise SimError("no simulated node: UNDERWATT_SIM_STATE is not set: use underwatt-sim exec")
    return path


def visible_boards(state: str | os.PathLike[str] | None = None) -> list[int]:
    """Boards of the node that this process may use: those of CUDA_VISIBLE_DEVICES, else all.

    Boards whose device files, if the node has such (underwatt-sim(1)), this process may not open are not counted.
    """
    path = _state(state)
    _, _, n_boards = _clock(path)
    may = _permitted(path, n_boards)
    words = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if not all(w.isdigit() for w in words):
        return may
    # n_boards is invalid, which the node reports.
    return [may[int(w)] if int(w) < len(may) else n_boards for w in words]


class SimLoad:
    """A training job on boards of the simulated node in which this process runs.

    The boards (default: those of CUDA_VISIBLE_DEVICES, else all) run the steps of `workload` that this process grants,
    and wait between grants.  The job ends with close(), or with the process.  Not for several threads at once.  A
    forked child does not have it.
    """

    def __init__(
        self,
        workload: str = "resnet50",
        boards: Iterable[int] | None = None,
        *,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        """state: the node's state directory; default: that of `underwatt-sim exec`."""
        self._socket: socket.socket | None = None
        self._open: deque[Grant] = deque()
        self.last: Done | None = None
        """The last grant that is known to be done."""
        path = _state(state)
        self._t0_ns, self.speed, _ = _clock(path)
        self.workload = workload
        self.boards = tuple(visible_boards(path) if boards is None else boards)
        if not self.boards:
            raise ValueError("boards: at least one is needed")
        self._connect(path)

    def _connect(self, path: str) -> None:
        words = f"--workload {self.workload} --gpus {','.join(map(str, self.boards))}".encode()
        if len(self.workload.split()) != 1:
            raise ValueError(f"workload: {self.workload!r} is not one word")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.connect(os.path.join(path, "socket"))
            self._send(_DRIVE, text=words)
            self._receive()
        except SimError:
            self.close()
            raise
        except OSError as e:
            self.close()
            raise SimError(f"no simulated node answers in {path}: {e.strerror}") from e
        _loads.add(self)

    # ---- grants ----

    def step(self, n: int = 1) -> Grant:
        """Grants n training steps, and returns while the boards run them: waits only if the one before the last
        grant is not done yet."""
        return self.phase("train", steps=n)

    def phase(self, name: str, *, steps: int | None = None, seconds: float | None = None) -> Grant:
        """The same for a phase: steps of "train" and "validate" (forward only), simulated seconds of "load",
        "checkpoint" and "startup"."""
        if name not in _PHASES:
            raise ValueError(f"phase: {name!r} is none of: {', '.join(_PHASES)}")
        if name in _STEPPED:
            whole = hasattr(steps, "__index__")  # of numpy, too
            if seconds is not None or steps is None or not whole or not 1 <= steps <= _STEPS_MAX:
                raise ValueError(f"{name}: give steps, 1..{_STEPS_MAX}, not {steps}")
        elif steps is not None or seconds is None or not 1e-9 <= seconds <= _SECONDS_MAX:
            raise ValueError(f"{name}: give seconds, 1e-9..{_SECONDS_MAX}, not {seconds}")
        while len(self._open) >= _OPEN_MAX:
            self._receive()
        self._send(_GRANT, board=_PHASES[name], a=steps or 0, b=round((seconds or 0) * 1e9))
        grant = Grant(self)
        self._open.append(grant)
        return grant

    def wait(self) -> Done | None:
        """Waits until the boards have done all granted work; returns the last result."""
        while self._open:
            self._receive()
        return self.last

    def now_ns(self) -> int:
        """The simulated time now, which Done.at_ns counts."""
        real = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return self._t0_ns + int((real - self._t0_ns) * self.speed)

    # ---- life ----

    def close(self) -> None:
        """Ends the job and its work, at once."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._open.clear()

    def __enter__(self) -> SimLoad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the granted work, unless an exception ends the block."""
        try:
            if kind is None:
                self.wait()
        finally:
            self.close()

    # ---- messages ----

    def _send(self, op: int, board: int = 0, a: int = 0, b: int = 0, text: bytes = b"") -> None:
        if self._socket is None:
            raise SimError("the job is closed")
        try:
            self._socket.send(_REQUEST.pack(_VERSION, op, board, 0, a, b, text))
        except OSError as e:
            self.close()
            raise SimError("the simulated node has stopped") from e

    def _receive(self, flags: int = 0) -> bool:
        """Receives one answer; False: there is none (MSG_DONTWAIT)."""
        if self._socket is None:
            raise SimError("the job is closed")
        try:
            packet = self._socket.recv(_REPLY.size, flags)
        except BlockingIOError:
            return False
        except ConnectionError:
            packet = b""
        if len(packet) != _REPLY.size:
            self.close()
            raise SimError("the simulated node has stopped")
        result, phase, steps, at_ns, _, _, number, waited_ns, energy_j, text = _REPLY.unpack(packet)
        if result:
            self.close()
            raise SimError(text.partition(b"\0")[0].decode(errors="replace"))
        if number:
            late_s = (self.now_ns() - at_ns) * 1e-9 / self.speed
            self.last = Done(number, _NAMES[phase], at_ns, steps, waited_ns * 1e-9, energy_j, late_s)
            self._open.popleft()._result = self.last
        return True

    def _hear(self, grant: Grant, *, wait: bool) -> None:
        while grant._result is None and self._receive(0 if wait else socket.MSG_DONTWAIT):
            pass


def _permitted(path: str, n_boards: int) -> list[int]:
    """The same check as in src/sim/devices.c."""
    folder = os.path.join(path, "dev")
    if not os.path.lexists(folder):
        return list(range(n_boards))
    with open(os.path.join(path, "state"), "rb") as page:
        data = page.read()
    minors = [_MINOR.unpack_from(data, _BOARDS + _BOARD * i)[0] for i in range(n_boards)]
    paths = [os.path.join(folder, f"nvidia{minor}") for minor in minors]
    return [i for i, file in enumerate(paths) if os.access(file, os.R_OK | os.W_OK, effective_ids=True)]


def _clock(path: str) -> tuple[int, float, int]:
    """The start and the speed of the node's clock, and the number of its boards."""
    try:
        with open(os.path.join(path, "state"), "rb") as page:
            head = page.read(_PAGE.size)
    except OSError as e:
        raise SimError(f"no simulated node runs in {path}: {e.strerror}") from e
    if len(head) != _PAGE.size or head[:8] != _MAGIC:
        raise SimError(f"{path} belongs to another version of underwatt-sim")
    _, version, _, n_boards, _, _, t0_ns, speed = _PAGE.unpack(head)
    if version != _VERSION:
        raise SimError(f"{path} belongs to another version of underwatt-sim")
    return t0_ns, speed, n_boards


_loads: weakref.WeakSet[SimLoad] = weakref.WeakSet()


def _forget() -> None:
    for load in list(_loads):
        load.close()


# A child's copy of the connection would keep the load alive after its parent.
os.register_at_fork(after_in_child=_forget)
