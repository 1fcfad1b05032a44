"""A job of the daemon, through the library: its goal, its search, its energy."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import _native
from ._errors import NoData
from ._node import Board, Node
from .goals import CurvePoint

CURVE_MAX = 256


@dataclass(frozen=True, slots=True)
class JobEnergy:
    """The energy booked to a job so far; half_j (of the 95 % interval) is NaN if unknown."""

    energy_j: float
    half_j: float
    time_s: float
    """For which energy_j is: without the time before the job's boards were known, and the newest seconds."""

    @property
    def power_w(self) -> float:
        """The mean over time_s; NaN if nothing is booked yet."""
        return self.energy_j / self.time_s if self.time_s > 0 else math.nan

    def __float__(self) -> float:
        return self.energy_j


@dataclass(frozen=True, slots=True)
class Ask:
    """The options with which a job is begun."""

    name: str
    goal: str
    command: str | None
    labels: Mapping[str, str]
    boards: Iterable[Board]
    group: str | None = None
    default_boards: bool = False
    """Nobody named them: they are what CUDA_VISIBLE_DEVICES leaves."""


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class Job:
    """found: another process has begun it, and it does not end with this one."""

    def __init__(self, node: Node, handle: c.c_void_p, found: bool) -> None:
        self.node = node
        self.handle = handle
        self.found = found

    @property
    def number(self) -> int:
        with self.node.lock:
            return int(self.node.lib.uw_job_id(self.handle))

    def goal(self, text: str | None) -> None:
        self.node.call("uw_job_goal", self.handle, _encoded(text))

    def cap(self, watts: float, why: str) -> int:
        """Makes a claim on all boards of the job; returns its number."""
        claim = c.c_uint64()
        self.node.call("uw_job_cap", self.handle, f"{watts:.3f} W".encode(), 0.0, why.encode(), c.byref(claim))
        return claim.value

    def search(self) -> _native.Search | None:
        """The job's search; None: it has none."""
        search = _native.Search(c.sizeof(_native.Search))
        try:
            self.node.call("uw_job_search", self.handle, c.byref(search))
        except NoData:
            return None
        return search

    def curve(self) -> tuple[CurvePoint, ...]:
        points = (_native.CurvePoint * CURVE_MAX)()
        n = c.c_size_t()
        try:
            self.node.call("uw_job_curve", self.handle, points, CURVE_MAX, c.byref(n))
        except NoData:
            return ()
        return tuple(
            CurvePoint(p.cap_mw / 1000, p.step_s, p.step_s_half, p.step_j, p.step_j_half, p.windows)
            for p in points[: n.value]
        )

    def energy(self) -> JobEnergy:
        e = _native.Energy()
        self.node.call("uw_job_energy", self.handle, c.byref(e))
        return JobEnergy(e.energy_j, e.half_j, e.time_s)

    def renew(self) -> None:
        self.node.call("uw_job_renew", self.handle)

    def end(self) -> None:
        self.node.call("uw_job_end", self.handle)

    def free(self) -> None:
        with self.node.lock:
            self.node.lib.uw_job_free(self.handle)
            self.handle = c.c_void_p()


def find(node: Node) -> Job:
    """The job of this process; an UnderwattError with ENOENT: it has none."""
    handle = c.c_void_p()
    node.call("uw_job_find", node.ctx, 0, c.byref(handle))
    return Job(node, handle, found=True)


def begin(node: Node, ask: Ask) -> Job:
    handle = c.c_void_p()
    pairs = [_native.Label(_encoded(k), _encoded(v)) for k, v in ask.labels.items()]
    labels = (_native.Label * len(pairs))(*pairs)
    devices = [node.device(b.index) for b in ask.boards]
    pointers = (c.c_void_p * len(devices))(*devices)
    options = _native.JobOptions(
        size=c.sizeof(_native.JobOptions),
        name=_encoded(ask.name),
        labels=labels,
        n_labels=len(labels),
        devices=pointers,
        n_devices=len(devices),
        goal=_encoded(ask.goal),
        command=_encoded(ask.command),
        group=_encoded(ask.group),
        default_devices=ask.default_boards,
    )
    node.call("uw_job_begin", node.ctx, c.byref(options), c.byref(handle))
    return Job(node, handle, found=False)
