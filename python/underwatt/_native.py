"""libunderwatt through ctypes: structures, constants and prototypes of underwatt/underwatt.h.

tests/python/test-abi.py compares STRUCTURES, CONSTANTS and FUNCTIONS with the header and the library.  Nothing is
loaded before the first call of library().
"""

from __future__ import annotations

import ctypes as c
import os
import threading
from pathlib import Path
from typing import Any

from ._errors import IncompatibleLibrary, error_of
from ._version import __version__

# The oldest library that has all of FUNCTIONS; another major number is an incompatible interface.
NEEDS = (0, 1)
SONAME = "libunderwatt.so.0"


class Error(c.Structure):
    _fields_ = (("text", c.c_char * 200),)
    text: bytes


class Options(c.Structure):
    _fields_ = (
        ("size", c.c_size_t),
        ("boards", c.c_char_p),
        ("clock", c.c_char_p),
        ("flags", c.c_uint),
        ("socket", c.c_char_p),
    )


class Limits(c.Structure):
    _fields_ = (
        ("min_mw", c.c_uint32),
        ("max_mw", c.c_uint32),
        ("default_mw", c.c_uint32),
        ("enforced_mw", c.c_uint32),
    )
    min_mw: int
    max_mw: int
    default_mw: int
    enforced_mw: int


class Energy(c.Structure):
    _fields_ = (
        ("time_s", c.c_double),
        ("energy_j", c.c_double),
        ("half_j", c.c_double),
        ("power_w", c.c_double),
        ("method", c.c_char_p),
        ("why", c.c_char * 96),
    )
    time_s: float
    energy_j: float
    half_j: float
    power_w: float
    method: bytes | None
    why: bytes


class Sample(c.Structure):
    _fields_ = (
        ("time_s", c.c_double),
        ("over_s", c.c_double),
        ("power_w", c.c_double),
    )
    time_s: float
    over_s: float
    power_w: float


class Label(c.Structure):
    _fields_ = (("key", c.c_char_p), ("value", c.c_char_p))


class JobOptions(c.Structure):
    _fields_ = (
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("labels", c.POINTER(Label)),
        ("n_labels", c.c_size_t),
        ("devices", c.POINTER(c.c_void_p)),
        ("n_devices", c.c_size_t),
        ("goal", c.c_char_p),
        ("cap", c.c_char_p),
        ("job_class", c.c_char_p),
        ("command", c.c_char_p),
        ("group", c.c_char_p),
        ("default_devices", c.c_int),
    )


class Search(c.Structure):
    _fields_ = (
        ("size", c.c_size_t),
        ("original_mw", c.c_uint32),
        ("reference_mw", c.c_uint32),
        ("best_mw", c.c_uint32),
        ("held_mw", c.c_uint32),
        ("lock_mhz", c.c_uint32),
        ("caps", c.c_uint32),
        ("windows", c.c_uint32),
        ("saved_known", c.c_uint32),
        ("saved", c.c_double),
        ("saved_half", c.c_double),
        ("saved_j", c.c_double),
        ("saved_half_j", c.c_double),
        ("slowdown", c.c_double),
        ("slowdown_half", c.c_double),
        ("search_s", c.c_double),
        ("step_s", c.c_double),
        ("steps", c.c_uint64),
        ("goal", c.c_char * 80),
        ("status", c.c_char * 32),
        ("progress", c.c_char * 16),
        ("text", c.c_char * 96),
        ("why", c.c_char * 200),
    )
    original_mw: int
    best_mw: int
    held_mw: int
    lock_mhz: int
    caps: int
    windows: int
    saved_known: int
    saved: float
    saved_half: float
    saved_j: float
    saved_half_j: float
    slowdown: float
    slowdown_half: float
    search_s: float
    step_s: float
    steps: int
    goal: bytes
    status: bytes
    progress: bytes
    text: bytes
    why: bytes


class CurvePoint(c.Structure):
    _fields_ = (
        ("cap_mw", c.c_uint32),
        ("windows", c.c_uint32),
        ("step_s", c.c_double),
        ("step_s_half", c.c_double),
        ("step_j", c.c_double),
        ("step_j_half", c.c_double),
    )


class Slot(c.Structure):
    _fields_ = (
        ("pid", c.c_uint64),
        ("steps", c.c_uint64),
        ("last_step_ns", c.c_uint64),
        ("phase", c.c_uint32),
        ("reserved", c.c_uint32 * 9),
    )


LOCAL, DAEMON = 1, 2
PHASES = {"unknown": 0, "train": 1, "validate": 2, "load": 3, "checkpoint": 4, "startup": 5}

STRUCTURES: dict[str, type[c.Structure]] = {
    "uw_error": Error,
    "uw_options": Options,
    "uw_limits": Limits,
    "uw_energy": Energy,
    "uw_sample": Sample,
    "uw_label": Label,
    "uw_job_options": JobOptions,
    "uw_search": Search,
    "uw_curve_point": CurvePoint,
    "struct uw_progress_slot": Slot,
}

CONSTANTS: dict[str, int] = {
    "UW_LOCAL": LOCAL,
    "UW_DAEMON": DAEMON,
    **{f"UW_PHASE_{name.upper()}": number for name, number in PHASES.items()},
}

_PTR = c.c_void_p
_ERR = c.POINTER(Error)


def _out(kind: Any) -> Any:
    return c.POINTER(kind)


# Name: result, arguments.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "uw_version": (c.c_char_p, []),
    "uw_ctx_open": (c.c_int, [_out(Options), _out(_PTR), _ERR]),
    "uw_ctx_has_daemon": (c.c_int, [_PTR]),
    "uw_ctx_free": (None, [_PTR]),
    "uw_device_count": (c.c_size_t, [_PTR]),
    "uw_device_at": (_PTR, [_PTR, c.c_size_t]),
    "uw_device_id": (c.c_char_p, [_PTR]),
    "uw_device_name": (c.c_char_p, [_PTR]),
    "uw_device_is_simulated": (c.c_int, [_PTR]),
    "uw_device_is_closed": (c.c_int, [_PTR]),
    "uw_device_limits": (c.c_int, [_PTR, _out(Limits), _ERR]),
    "uw_device_power": (c.c_int, [_PTR, _out(c.c_double), _ERR]),
    "uw_window_begin": (c.c_int, [_PTR, _out(_PTR), _ERR]),
    "uw_window_stop": (c.c_int, [_PTR, _ERR]),
    "uw_window_ready": (c.c_int, [_PTR, _ERR]),
    "uw_window_wait": (c.c_int, [_PTR, c.c_double, _ERR]),
    "uw_window_end": (c.c_int, [_PTR, _ERR]),
    "uw_window_energy": (c.c_int, [_PTR, _PTR, _out(Energy), _ERR]),
    "uw_window_samples": (c.c_int, [_PTR, _PTR, _out(Sample), c.c_size_t, _out(c.c_size_t), _ERR]),
    "uw_window_processors": (c.c_size_t, [_PTR]),
    "uw_window_processor_name": (c.c_char_p, [_PTR, c.c_size_t]),
    "uw_window_processor": (c.c_int, [_PTR, c.c_size_t, _out(Energy), _ERR]),
    "uw_window_free": (None, [_PTR]),
    "uw_progress_attach": (c.c_int, [_PTR, _out(_PTR), _ERR]),
    "uw_progress_slot_of": (_PTR, [_PTR]),
    "uw_progress_step": (None, [_PTR]),
    "uw_progress_phase": (c.c_int, [_PTR, c.c_int, _ERR]),
    "uw_progress_fd": (c.c_int, [_PTR]),
    "uw_progress_renew": (c.c_int, [_PTR, _ERR]),
    "uw_progress_detach": (None, [_PTR]),
    "uw_device_claim": (c.c_int, [_PTR, c.c_uint32, c.c_double, c.c_char_p, _out(c.c_uint64), _ERR]),
    "uw_claim_withdraw": (c.c_int, [_PTR, c.c_uint64, _ERR]),
    "uw_signal_value": (c.c_int, [_PTR, c.c_char_p, _out(c.c_double), c.c_char_p, c.c_size_t, _ERR]),
    "uw_job_begin": (c.c_int, [_PTR, _out(JobOptions), _out(_PTR), _ERR]),
    "uw_job_find": (c.c_int, [_PTR, c.c_uint64, _out(_PTR), _ERR]),
    "uw_goal_check": (c.c_int, [c.c_char_p, _ERR]),
    "uw_job_goal": (c.c_int, [_PTR, c.c_char_p, _ERR]),
    "uw_job_cap": (c.c_int, [_PTR, c.c_char_p, c.c_double, c.c_char_p, _out(c.c_uint64), _ERR]),
    "uw_job_energy": (c.c_int, [_PTR, _out(Energy), _ERR]),
    "uw_job_search": (c.c_int, [_PTR, _out(Search), _ERR]),
    "uw_job_curve": (c.c_int, [_PTR, _out(CurvePoint), c.c_size_t, _out(c.c_size_t), _ERR]),
    "uw_job_id": (c.c_uint64, [_PTR]),
    "uw_job_step": (None, [_PTR, c.c_int]),
    "uw_job_renew": (c.c_int, [_PTR, _ERR]),
    "uw_job_end": (c.c_int, [_PTR, _ERR]),
    "uw_job_free": (None, [_PTR]),
}


class Library:
    """A loaded libunderwatt: c has its functions with their prototypes."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.c = c.CDLL(path)
            uw_version = self.c.uw_version
        except (OSError, AttributeError) as e:
            raise IncompatibleLibrary(f"{path} cannot be loaded as libunderwatt: {e}") from None
        uw_version.restype = c.c_char_p
        self.version: str = uw_version().decode()
        if not _fits(self.version):
            raise IncompatibleLibrary(f"{path} is libunderwatt {self.version}; {_needed()}")
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(self.c, name)
            except AttributeError:
                raise IncompatibleLibrary(f"{path}: libunderwatt {self.version} lacks {name}(); {_needed()}") from None
            function.restype = result
            function.argtypes = arguments

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function whose last argument is uw_error *: returns its result, or raises an exception with its
        text."""
        err = Error()
        r: int = getattr(self.c, name)(*arguments, c.byref(err))
        if r < 0:
            raise error_of(-r, err.text.decode(errors="replace") or os.strerror(-r))
        return r


def _needed() -> str:
    return f"underwatt {__version__} needs {NEEDS[0]}.{NEEDS[1]} or a later {NEEDS[0]}.x"


def _fits(version: str) -> bool:
    try:
        numbers = tuple(int(part) for part in version.split(".")[:2])
    except ValueError:
        return False
    return numbers[:1] == NEEDS[:1] and numbers >= NEEDS


def library_path() -> str:
    """The path in UNDERWATT_LIBRARY; else the package's own library, else the system's."""
    named = os.environ.get("UNDERWATT_LIBRARY")
    if named:
        return named
    own = Path(__file__).with_name("libunderwatt.so")
    return str(own) if own.exists() else SONAME


_lock = threading.Lock()
_loaded: list[Library] = []


def library() -> Library:
    """The library, loaded at the first call."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(Library(library_path()))
    return _loaded[0]
