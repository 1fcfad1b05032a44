"""Waits for the work that a framework has queued on its GPUs, so that a window has the energy of its own work.

Only frameworks that the program has loaded, and with which it has used a GPU, are called: nothing is imported here and
no GPU context is created.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._errors import InvalidValue

Sync = Callable[[], object]


def _torch() -> None:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    has_context = getattr(getattr(sys.modules["torch"], "_C", None), "_cuda_hasPrimaryContext", None)
    if has_context is None:
        cuda.synchronize()
        return
    for device in range(cuda.device_count()):
        if has_context(device):
            cuda.synchronize(device)


def _jax() -> None:
    jax: Any = sys.modules.get("jax")
    bridge = sys.modules.get("jax._src.xla_bridge")
    begun = getattr(bridge, "backends_are_initialized", None)
    if jax is None or (begun is not None and not begun()):
        return
    for device in jax.local_devices():
        # A device computes in order: the last queued work is done last.
        (jax.device_put(0.0, device) + 0.0).block_until_ready()


def _cupy() -> None:
    runtime = getattr(getattr(sys.modules.get("cupy"), "cuda", None), "runtime", None)
    if runtime is not None:
        runtime.deviceSynchronize()


FRAMEWORKS: dict[str, Sync] = {"torch": _torch, "jax": _jax, "cupy": _cupy}


def _loaded() -> None:
    for name, sync in FRAMEWORKS.items():
        if name in sys.modules:
            sync()


def _nothing() -> None:
    return None


def sync_of(which: str | Sync | None) -> Sync:
    """What to wait for, "auto": each loaded framework; the name of one; a function; None: no waiting."""
    if which is None:
        return _nothing
    if callable(which):
        return which
    if which == "auto":
        return _loaded
    if which in FRAMEWORKS:
        return FRAMEWORKS[which]
    raise InvalidValue(f"sync '{which}' is none of: auto, {', '.join(FRAMEWORKS)}, a function, None")
