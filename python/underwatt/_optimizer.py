"""Optimizer: a training loop asks the daemon to find and hold the best cap, and reports its steps.

The daemon searches; this is its client.  A step is a few stores in memory (_progress.py).  Requests are made when an
Optimizer is created and closed, when its methods query the daemon, and every few seconds by a thread, which registers
the job with a restarted daemon, and calls a Selector.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from . import _job, _native, _progress
from ._errors import DaemonError, NotSupported, TimeoutError, UnderwattError
from ._job import Ask, Job, JobEnergy
from ._keeper import Keeper
from ._monitor import chosen, truth_of, visible
from ._node import Board, Node
from ._ranks import Ranks, ranks_of
from .goals import CurvePoint, Goal, Selector, goal_text

EVERY_S = 5.0  # interval of the thread's checks
AWAY_S = 30.0  # time for which a daemon that hangs is not queried
NAME_MAX = 95
START = (
    "systemctl start underwattd, or underwatt-start; for simulated boards underwatt-sim exec -- underwatt-start; "
    "or Optimizer(local=True)"
)
HELD = "holds"
ENDED = "the keeper of this program has ended: the original limits are restored, and the program continues without caps"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OptimizerStatus:
    """Watts are per board; None: unknown, or none."""

    goal: str
    """ "": none; the daemon's search rests."""
    status: str
    """ "waits-progress", "walks", "measures", "holds", "paused", …; "unknown": the daemon does not answer."""
    text: str = ""
    """ "measures at 210 W (window 3)"."""
    cap_w: float | None = None
    """Held now."""
    best_w: float | None = None
    original_w: float | None = None
    saved: float | None = None
    """Part of the energy at the original cap."""
    saved_half: float | None = None
    saved_j: float | None = None
    saved_half_j: float | None = None
    slowdown: float | None = None
    """Time over the time at the original cap."""
    slowdown_half: float | None = None
    why: str = ""
    """Why this cap; or why nothing is known."""
    steps: int = 0
    """Of the slowest process."""
    step_s: float | None = None
    search_s: float = 0.0
    caps: int = 0
    """That were measured."""
    windows: int = 0
    progress: str = ""
    """ "steps", "period", …: what stands for a step."""
    job: int = 0
    """The daemon's number of the job, as `underwatt jobs` shows it."""
    world_size: int = 1
    """Processes of the training, on all nodes …"""
    local_world_size: int = 1
    """… and on this one, whose boards the job has."""
    note: str = ""
    """What is to be known besides: that other nodes search by themselves."""

    def __str__(self) -> str:
        saved = ""
        if self.saved is not None:
            told = abs(self.saved) > max(self.saved_half or 0.0, 0.0005)
            saved = f", saved {100 * self.saved:.1f} %" if told else ", saved ~0 %"
        note = f" ({self.note})" if self.note else ""
        return f"job {self.job}, goal {self.goal or 'none'}: {self.text or self.status or 'no search'}{saved}{note}"


class Optimizer:
    """Has the best cap found and held while a loop trains::

        with underwatt.Optimizer(goal="edp") as optimizer:
            for batch in loader:
                train(batch)
                optimizer.step()

    goal: a text as `underwatt run --goal` takes it, an object of underwatt.goals, or a Selector.
    gpus: the boards of this process, by number or UUID; None: those of CUDA_VISIBLE_DEVICES, else those on which the
    job's processes show up.  name, labels: of the job, for reports.
    local: where no daemon runs, a keeper does for this program what it would.  boards, socket, clock: as
    `underwatt --boards`, the daemon's socket, a simulated node's clock.

    Where the process runs under `underwatt run`, its job gets the goal, until the last close().  In a distributed
    training each rank makes one: those of a node are one job, as fast as its slowest.
    """

    def __init__(
        self,
        goal: str | Goal | Selector = "edp",
        *,
        gpus: Iterable[int | str] | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        local: bool = False,
        boards: str | None = None,
        socket: str | None = None,
        clock: str | None = None,
    ) -> None:
        truth_of("local", local)
        self._selector = goal if isinstance(goal, Selector) else None
        self._goal = goal_text(goal.goal if isinstance(goal, Selector) else goal)
        self._pid = os.getpid()
        self._ranks = ranks_of(os.environ)
        self._lock = threading.Lock()  # guards what both the thread and the program change
        self._wake = threading.Event()
        self._closed = False
        self._last: OptimizerStatus | None = None  # the status at its close
        self._warned: set[str] = set()
        self._away_until = 0.0
        self._away_error: UnderwattError | None = None
        self._before: str | None = None  # goal of a job that another program began
        self._first = False  # the first of the job's Optimizers, which calls the selector
        self._chosen: tuple[float, float, int] | None = None  # best_w, watts and claim of the selector
        self._keeper: Keeper | None = None
        self._node: Node | None = None
        _enter(self)
        try:
            with suppress(*([NotSupported] if local else [])):  # a keeper's own errors have no context then
                self._node = _open(boards, socket, clock)
            if self._node is None:
                gpus = _ids(boards, gpus, self._ranks, clock)
                self._keeper = Keeper(self._ranks.group, boards, gpus, clock)
                self._node = _open(boards, self._keeper.socket, clock)
            self._job = self._begin(self._node, gpus, name, labels or {})
        except BaseException:
            self._release()
            raise
        self._thread = threading.Thread(target=self._run, name="underwatt-optimizer", daemon=True)
        self._thread.start()

    # ---- the loop's side ----

    step = staticmethod(_progress.step)  # memory only

    def epoch(self) -> None:
        """An epoch has ended: a restarted daemon will soon learn of the job.  Does not wait."""
        if self._pid == os.getpid():  # a parent's thread may have had its lock
            self._wake.set()

    def phase(self, name: str) -> _progress.Phase:
        """Reports the next phase, also as a context manager: "train", "validate", "load", "checkpoint", "startup"."""
        return _progress.phase(name)

    # ---- results ----

    @property
    def job(self) -> int:
        """The daemon's number of the job; 0 in a forked child."""
        if self._pid != os.getpid():
            return 0
        return self._last.job if self._last else self._job.number

    @property
    def status(self) -> OptimizerStatus:
        """Queries the daemon; never raises.  After close(): the last status."""
        if self._last is not None:
            return self._last
        if self._pid != os.getpid():
            return OptimizerStatus("", "unknown", why=str(_foreign()))
        try:
            search = self._ask(self._job.search)
        except UnderwattError as e:
            return self._placed(OptimizerStatus("", "unknown", why=str(e)))
        if search is None:
            return self._placed(OptimizerStatus("", "", why="the job has no search"))
        return self._placed(self._status_of(search))

    def curve(self) -> tuple[CurvePoint, ...]:
        """The measured caps, in the order of their first window."""
        return self._ask(self._job.curve)

    def energy(self) -> JobEnergy:
        """The energy booked to the job so far."""
        return self._ask(self._job.energy)

    def _status_of(self, s: _native.Search) -> OptimizerStatus:
        known = bool(s.saved_known)
        chosen = self._chosen
        cap_w = chosen[1] if chosen else s.held_mw / 1000 or None

        def of(value: float) -> float | None:
            return value if known else None

        return OptimizerStatus(
            goal=_text(s.goal),
            status=HELD if chosen else _text(s.status),
            text=f"holds {cap_w:.0f} W" if chosen else _text(s.text),
            cap_w=cap_w,
            best_w=s.best_mw / 1000 or None,
            original_w=s.original_mw / 1000 or None,
            saved=of(s.saved),
            saved_half=of(s.saved_half),
            saved_j=of(s.saved_j),
            saved_half_j=of(s.saved_half_j),
            slowdown=of(s.slowdown),
            slowdown_half=of(s.slowdown_half),
            why="chosen by the selector" if chosen else _text(s.why),
            steps=s.steps,
            step_s=s.step_s or None,
            search_s=s.search_s,
            caps=s.caps,
            windows=s.windows,
            progress=_text(s.progress),
        )

    def _placed(self, status: OptimizerStatus) -> OptimizerStatus:
        world = self._ranks.world_size
        here = self._ranks.local_world_size or (_progress.processes() if world > 1 else 1)
        alone = f"this node's {here} of {world} ranks; each node searches by itself" if 0 < here < world else ""
        return replace(status, job=self._job.number, world_size=world, local_world_size=here, note=alone)

    # ---- life ----

    def close(self) -> None:
        """Ends the job and its caps; a job that `underwatt run` began gets its own goal back when the last Optimizer
        closes.  If the daemon hangs, it takes at most 50 s."""
        if self._pid != os.getpid():
            return
        last = self.status
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._last = last
        self._wake.set()
        self._thread.join(AWAY_S)
        _progress.optimizes(False)
        if not self._job.found:
            _progress.leave()
        try:
            if not self._keeper_ended():
                self._end()
        except UnderwattError as e:
            if e.errno != errno.ENOENT and not self._keeper_ended():
                self._warn(f"the job may go on until this process ends: {e}")
        self._job.free()
        self._release()

    def __enter__(self) -> Optimizer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, node: Node, gpus: Iterable[int | str] | None, name: str | None, labels: Mapping[str, str]) -> Job:
        boards = _boards(node, gpus, self._ranks)
        group = self._ranks.group or None
        self._ask_for = Ask(name or _name(), self._goal, _command(), labels, boards, group, default_boards=gpus is None)
        job = self._find(node) or _job.begin(node, self._ask_for)
        try:
            if job.found and os.environ.get("UNDERWATT_PROGRESS"):
                _progress.begin()
            else:
                _progress.use(job.handle)
            _progress.optimizes(True)
            if job.found:
                self._take_over(job)
            self._first = self._is_first()
        except UnderwattError:
            _progress.optimizes(False)
            if not job.found:
                with suppress(UnderwattError):
                    job.end()
            job.free()
            raise
        return job

    def _find(self, node: Node) -> Job | None:
        """The job that another program began for this one."""
        try:
            return _job.find(node)
        except UnderwattError as e:
            if e.errno == errno.ENOENT:
                return None
            raise

    def _take_over(self, job: Job) -> None:
        """Gives a found job the goal; the page keeps its own goal, for the last of its Optimizers."""
        search = job.search()
        goal = _text(search.goal) if search else ""
        if goal == self._goal:  # by another rank
            return
        try:
            job.goal(self._goal)
        except UnderwattError as e:
            if e.errno != errno.EBUSY:
                raise
            self._warn(f"no cap is searched for: {e}")
            return
        self._before = goal
        _progress.keep_goal(goal)

    def _end(self) -> None:
        if self._chosen and self._chosen[2]:
            self._withdraw(self._chosen[2])
        if not self._job.found:
            self._job.end()
            return
        kept = _progress.kept_goal()
        before = self._before if kept is None else kept
        if before is not None and not _progress.optimizers():
            self._job.goal(before or None)
            _progress.keep_goal(None)

    def _withdraw(self, claim: int) -> None:
        assert self._node is not None
        with suppress(UnderwattError):
            self._node.call("uw_claim_withdraw", self._node.ctx, claim)

    def _release(self) -> None:
        """Frees the resources of this process, without a request to the daemon."""
        if self._node is not None:
            self._node.close()
        if self._keeper is not None:
            self._keeper.close()
        _exit(self)

    # ---- the daemon ----

    def _keeper_ended(self) -> bool:
        return self._keeper is not None and not self._keeper.alive

    def _ask(self, call: Callable[[], T]) -> T:
        """Makes a request, unless the daemon has just hung."""
        if self._pid != os.getpid():
            raise _foreign()
        if self._closed:
            raise UnderwattError("the optimizer is closed")
        if time.monotonic() < self._away_until and self._away_error is not None:
            raise self._away_error
        try:
            return call()
        except UnderwattError as e:
            if self._keeper_ended():
                raise DaemonError(ENDED, e.errno) from None
            if isinstance(e, TimeoutError):
                self._away_until = time.monotonic() + AWAY_S
                self._away_error = e
            raise

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(f"underwatt: {text}", RuntimeWarning, stacklevel=1)

    def _run(self) -> None:
        troubled = False
        while not self._closed:
            self._wake.wait(EVERY_S)
            self._wake.clear()
            if self._closed:
                return
            try:
                self._look()
                troubled = False
            except UnderwattError as e:
                if self._closed:
                    return
                if self._keeper_ended():  # permanently: no daemon returns at its socket
                    self._warn(ENDED)
                    return
                if not troubled:  # once until the daemon answers again
                    self._warn(f"the job continues, and the daemon is informed later: {e}")
                troubled = True

    def _look(self) -> None:
        if not self._job.found:
            number = self._job.number
            self._ask(self._job.renew)
            if self._job.number != number and self._chosen:  # the claim has ended with its job
                self._chosen = None
                self._ask(lambda: self._job.goal(self._goal))
        if self._selector is None:
            return
        first = self._is_first()
        if first and not self._first:
            self._succeed()
        self._first = first
        if first:
            self._select(self._selector)

    # ---- selectors ----

    def _is_first(self) -> bool:
        """Whether this is the first of the job's Optimizers."""
        return _progress.optimizers()[:1] == [os.getpid()]

    def _succeed(self) -> None:
        """The Optimizer before has ended, and with it the cap that its selector chose."""
        search = self._ask(self._job.search)
        if search is None or not search.goal:
            self._ask(lambda: self._job.goal(self._goal))

    def _select(self, selector: Selector) -> None:
        """Holds the selector's cap once the daemon's search holds one."""
        search = self._ask(self._job.search)
        if self._chosen or search is None or _text(search.status) != HELD or not search.best_mw:
            return
        curve = self._ask(self._job.curve)
        watts = self._choice(selector, curve)
        best_w = search.best_mw / 1000
        if watts is None:
            self._selector = None
        elif abs(watts - best_w) < 1:
            self._chosen = (best_w, watts, 0)
        else:
            self._hold(watts, best_w, type(selector).__name__)

    def _hold(self, watts: float, best_w: float, selector: str) -> None:
        claim = self._ask(lambda: self._job.cap(watts, f"selector {selector}"[:NAME_MAX]))
        self._chosen = (best_w, watts, claim)
        self._ask(lambda: self._job.goal(None))

    def _choice(self, selector: Selector, curve: tuple[CurvePoint, ...]) -> float | None:
        """The selector's choice; None: it is not a valid cap of the boards, which is warned of."""
        name = type(selector).__name__
        try:
            watts = float(selector.select(curve))
        except Exception as e:  # a program's own code
            self._warn(f"selector {name}: {type(e).__name__}: {e}; the daemon's own cap stays")
            return None
        low, high = self._range()
        if not math.isfinite(watts) or not low <= watts <= high:
            self._warn(f"selector {name}: {watts:g} W is outside {low:g}..{high:g} W; the daemon's own cap stays")
            return None
        return watts

    def _range(self) -> tuple[float, float]:
        assert self._node is not None
        limits = [board.limits() for board in self._ask_for.boards or self._node.boards()]
        return max(x.min_w for x in limits), min(x.max_w for x in limits)


def _foreign() -> UnderwattError:
    return UnderwattError("the optimizer belongs to the parent of this forked process", errno.ECHILD)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _open(boards: str | None, socket: str | None, clock: str | None) -> Node:
    try:
        return Node(boards, socket, clock or os.environ.get("UNDERWATT_CLOCK"), _native.DAEMON)
    except DaemonError as e:
        raise NotSupported(f"an Optimizer needs the daemon: {e}: {START}", e.errno) from None


def _ids(
    boards: str | None, gpus: Iterable[int | str] | None, ranks: Ranks, clock: str | None
) -> tuple[str, ...] | None:
    """The machine's numbers of this process's boards, because a keeper numbers the boards that it holds.  None:
    unknown."""
    node = Node(boards, None, clock or os.environ.get("UNDERWATT_CLOCK"), _native.LOCAL)
    try:
        return tuple(board.id for board in _boards(node, gpus, ranks)) or None
    finally:
        node.close()


def _boards(node: Node, gpus: Iterable[int | str] | None, ranks: Ranks) -> tuple[Board, ...]:
    """The boards of this process; (): those on which its processes are found.  With several ranks, each has the
    board of its local rank, by convention."""
    if gpus is not None:
        return chosen(node.boards(), gpus)
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return ()
    found = visible(node.boards(), named)
    if not ranks.group or len(found) == 1:
        return found
    return found[ranks.local_rank :][:1] if ranks.local_rank is not None else ()


def _name() -> str:
    """The name of the script."""
    name = Path(sys.argv[0] if sys.argv else "").name or "python"
    plain = "".join(x if x.isprintable() else "?" for x in name).replace(":", "_")
    return plain.encode()[:NAME_MAX].decode(errors="ignore")


def _command() -> str:
    """Identifies runs of the same job for the daemon."""
    words = "\0".join([os.getcwd(), *sys.argv])
    return hashlib.sha256(words.encode(errors="surrogateescape")).hexdigest()[:32]


# ---- one per process ----

_active: list[Optimizer] = []
_left: list[Optimizer] = []  # of the parent process before a fork: never freed here
_active_lock = threading.Lock()


def _enter(optimizer: Optimizer) -> None:
    with _active_lock:
        if _active:
            raise UnderwattError(
                "this process has an Optimizer already: close it first, or make it in a with block", errno.EALREADY
            )
        _active.append(optimizer)


def _exit(optimizer: Optimizer) -> None:
    with _active_lock:
        _active[:] = [each for each in _active if each is not optimizer]


def _in_child() -> None:
    """A forked child does not take part in its parent's jobs."""
    global _active_lock  # noqa: PLW0603
    _active_lock = threading.Lock()
    _left.extend(_active)  # their nodes and locks belong to the parent
    _active.clear()


os.register_at_fork(after_in_child=_in_child)
