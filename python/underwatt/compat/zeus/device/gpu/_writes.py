"""Limits set by this process are claims: with the daemon of this node if one runs, else with a private one of the
keeper.  The lowest of all claims is in force, and those of this process end with it, however it ends."""

from __future__ import annotations

import atexit
import contextlib
import ctypes as c
import errno
import logging
import os
import sys
import time
import warnings
from typing import Protocol

from underwatt import _native
from underwatt._errors import DaemonError, NoDevice, NotSupported, PermissionError, UnderwattError
from underwatt._keeper import Keeper
from underwatt._node import Node
from underwatt._ranks import ranks_of

from .common import ZeusGPUNoPermissionError, ZeusGPUNotFoundError, ZeusGPUUnknownError

logger = logging.getLogger(__name__)

# Longest wait of a blocking call until a limit is in force: the default ramp takes 230 s for the whole range of any
# board.
WAIT_S = 300.0
STILL_S = 35.0  # the part of it without a change: a ramp stops for 30 s at its first cap
RISE_S = 3.0  # the same for raising, which has no ramp
NEAR_MW = 500  # rounding of boards
LOOK_S = 0.05
HELD_S = 15.0  # longest wait for a keeper's actuator to answer for a board
BOARDS_S = 5.0  # longest wait for a new job to get its boards


class Board(Protocol):
    """The members of a GPU that are used here."""

    @property
    def underwatt_gpu(self) -> str: ...

    def get_power_management_limit(self) -> int: ...

    def get_power_management_limit_constraints(self) -> tuple[int, int]: ...


def _name() -> str:
    return os.path.basename(sys.argv[0] if sys.argv and sys.argv[0] else "python")[:80]


class Claims:
    """The claims of this process; the claim of a new limit begins before the old one's ends."""

    def __init__(self, node: Node, keeper: Keeper | None = None) -> None:
        self._node = node
        self._keeper = keeper
        self._index = {board.id: board.index for board in node.boards()}
        self._found: dict[str, int] = {}
        self._claims: dict[str, c.c_uint64] = {}
        self._held: set[str] = set()  # boards that the keeper is known to hold
        self._jobs: dict[str, c.c_void_p] = {}

    def set(self, gpu: Board, power_limit_mw: int, block: bool) -> None:
        board = gpu.underwatt_gpu
        if board not in self._index:
            raise ZeusGPUNotFoundError(f"{board} is no board of the daemon that sets limits")
        found = self._found.setdefault(board, gpu.get_power_management_limit())
        before = self._claims.get(board)
        try:
            if power_limit_mw >= gpu.get_power_management_limit_constraints()[1]:
                self._claims.pop(board, None)  # the limit that is allowed without this process
            else:
                self._claims[board] = self._claim(board, power_limit_mw)
                self._check(board)
            if before is not None:
                self._node.call("uw_claim_withdraw", self._node._ctx, before)
        except PermissionError as e:
            raise ZeusGPUNoPermissionError(str(e)) from e
        except UnderwattError as e:
            raise ZeusGPUUnknownError(str(e)) from e
        if block:
            _wait(gpu, power_limit_mw, min(power_limit_mw, found))

    def _check(self, board: str) -> None:
        """Raises an error for a board that another command holds: this keeper would not get it when that command
        ends."""
        until = time.monotonic() + HELD_S
        while self._keeper is not None and board not in self._held and time.monotonic() < until:
            cap = self._keeper.cap(board)
            if cap.get("state") == "held":
                self._held.add(board)
            elif cap.get("state") != "holding":
                if cap.get("taken_by") is None:  # free: the limit is not below the set one; tries again
                    return
                self._give_up(board)
                raise UnderwattError(str(cap.get("text") or cap.get("holder")), errno.EBUSY)
            else:
                time.sleep(LOOK_S)

    def _give_up(self, board: str) -> None:
        with contextlib.suppress(UnderwattError):
            self._node.call("uw_claim_withdraw", self._node._ctx, self._claims.pop(board))
        job = self._jobs.pop(board, None)
        if job is not None:
            with contextlib.suppress(UnderwattError):
                self._node.call("uw_job_end", job)
            self._node.lib.uw_job_free(job)

    def _claim(self, board: str, power_limit_mw: int) -> c.c_uint64:
        """Claims are for boards of a job of the user: makes this process a job if it is none yet."""
        claim = c.c_uint64()
        device = self._node.device(self._index[board])
        why = f"zeus: {_name()}".encode()
        until = time.monotonic() + BOARDS_S
        while True:
            try:
                mw = c.c_uint32(power_limit_mw)
                self._node.call("uw_device_claim", device, mw, c.c_double(0), why, c.byref(claim))
                return claim
            except PermissionError:
                if board not in self._jobs:
                    self._jobs[board] = self._job(device)
                elif time.monotonic() > until:
                    raise
                else:
                    time.sleep(LOOK_S)

    def _job(self, device: c.c_void_p) -> c.c_void_p:
        options = _native.JobOptions(c.sizeof(_native.JobOptions))
        options.name, options.n_devices = _name().encode(), 1
        options.devices = (c.c_void_p * 1)(device)
        job = c.c_void_p()
        self._node.call("uw_job_begin", self._node._ctx, c.byref(options), c.byref(job))
        return job

    def end(self) -> None:
        for claim in self._claims.values():
            with contextlib.suppress(UnderwattError):  # the claims end with this process in any case
                self._node.call("uw_claim_withdraw", self._node._ctx, claim)
        self._claims.clear()
        self._node.close()
        if self._keeper is not None:
            self._keeper.close()


def _wait(gpu: Board, asked: int, most: int) -> None:
    """Waits until the limit is in force; most: its value under the limit that was found."""
    began = moved = time.monotonic()
    before = None
    while True:
        now, limit = time.monotonic(), gpu.get_power_management_limit()
        if any(abs(limit - wanted) <= NEAR_MW for wanted in (asked, most)):
            return
        if limit != before:
            before, moved = limit, now
        if now - moved >= (STILL_S if limit > most else RISE_S) or now - began >= WAIT_S:
            why = "it is still on its way down" if limit > most else "another claim is lower"
            text = f"{limit / 1000:g} W is in force, not {asked / 1000:g} W: {why} (underwatt explain)"
            warnings.warn(f"{gpu.underwatt_gpu}: {text}", RuntimeWarning, stacklevel=2)
            return
        time.sleep(LOOK_S)


def _open(gpu: Board) -> Claims:
    """Opens the daemon or a keeper.  A daemon that runs and does not answer is an error: no second one is started
    beside it. A keeper holds this board, and others when they get a limit; other programs keep the boards that they
    hold."""
    clock = os.environ.get("UNDERWATT_CLOCK")
    try:
        return Claims(Node(clock=clock, flags=_native.DAEMON))
    except DaemonError as e:
        if e.errno != errno.ECONNREFUSED:
            raise
        logger.info("no daemon runs, a private one is begun: %s", e)
    keeper = Keeper(ranks_of(os.environ).group, gpus=[gpu.underwatt_gpu], clock=clock, more=True)
    return Claims(Node(socket=keeper.socket, clock=clock, flags=_native.DAEMON), keeper)


def claims(gpu: Board) -> Claims:
    """The claims of this process, opened at its first limit, which is for this board."""
    global _claims  # noqa: PLW0603
    if _claims is None:
        try:
            _claims = _open(gpu)
        except (NotSupported, PermissionError, NoDevice) as e:
            raise ZeusGPUNoPermissionError(str(e)) from e
        except UnderwattError as e:
            raise ZeusGPUUnknownError(str(e)) from e
    return _claims


def _end() -> None:
    if _claims is not None:
        _claims.end()


def _forked() -> None:
    """A forked child has claims of its own; the parent's claims stay the parent's."""
    global _claims  # noqa: PLW0603
    _left.append(_claims)
    _claims = None


_claims: Claims | None = None
_left: list[Claims | None] = []
atexit.register(_end)
os.register_at_fork(after_in_child=_forked)
