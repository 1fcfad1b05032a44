"""Frameworks: which are available, waiting for their devices, sums over their processes.

Waiting and summing import nothing: a framework that the program has not loaded has nothing to wait for.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal

logger = logging.getLogger(__name__)
MODULE_CACHE: dict[str, ModuleType] = {}


def _imported(name: str, wanted: bool) -> Any:
    try:
        MODULE_CACHE[name] = importlib.import_module(name)
    except ImportError as e:
        if wanted:
            raise RuntimeError(f"{name} cannot be imported: {e}") from e
        return None
    return MODULE_CACHE[name]


@lru_cache(maxsize=1)
def torch_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """RuntimeError: it is required and not available, or CUDA is required and not available."""
    torch = _imported("torch", ensure_available)
    if torch is not None and ensure_cuda and not torch.cuda.is_available():
        raise RuntimeError("torch is there, but without CUDA")
    return torch is not None


@lru_cache(maxsize=1)
def jax_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """RuntimeError: it is required and not available, or GPUs are required and not available."""
    jax = _imported("jax", ensure_available)
    if jax is not None and ensure_cuda and not jax.devices("gpu"):
        raise RuntimeError("jax is there, but without GPUs")
    return jax is not None


@lru_cache(maxsize=1)
def cupy_is_available(ensure_available: bool = False) -> bool:
    """RuntimeError: it is required and not available."""
    return _imported("cupy", ensure_available) is not None


def _sync_torch(torch: Any, devices: list[int]) -> None:
    if torch.cuda.is_initialized():
        for device in devices:
            torch.cuda.synchronize(device)


def _sync_jax(jax: Any, devices: list[int]) -> None:
    # A device computes in order: the last queued work is done last.
    places = [*(jax.devices("gpu")[device] for device in devices), jax.devices("cpu")[0]]
    jax.block_until_ready([jax.device_put(0.0, device=place) + 0.0 for place in places])


def _sync_cupy(cupy: Any, devices: list[int]) -> None:
    for device in devices:
        cupy.cuda.Device(device).synchronize()


_SYNC = {"torch": _sync_torch, "jax": _sync_jax, "cupy": _sync_cupy}


def sync_execution(gpu_devices: list[int], sync_with: Literal["torch", "jax", "cupy"] = "torch") -> None:
    """Waits for the work that the framework has queued on these GPUs.  RuntimeError: it is not installed."""
    if sync_with not in _SYNC:
        raise RuntimeError(f"sync_with '{sync_with}' is none of {', '.join(_SYNC)}")
    module = sys.modules.get(sync_with)
    if module is not None:
        _SYNC[sync_with](module, gpu_devices)
    elif importlib.util.find_spec(sync_with) is None:
        raise RuntimeError(
            f"{sync_with} is not installed: name the framework with sync_execution_with, or pass sync_execution=False"
        )


def _distributed() -> Any:
    """torch.distributed, if a process group was initialised."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def _jax() -> Any:
    """JAX, if the program uses it."""
    return None if "torch" in sys.modules else sys.modules.get("jax")


def all_reduce(object: list[int] | list[float], operation: Literal["sum", "max"]) -> list[int] | list[float]:  # noqa: A002
    """Reduces over all processes of torch's default group; without one: unchanged."""
    if operation not in ("sum", "max"):
        raise ValueError(f"operation '{operation}' is neither sum nor max")
    distributed = _distributed()
    if distributed is None:
        jax = _jax()
        if jax is not None and jax.process_count() > 1:
            raise NotImplementedError("sums over several processes of JAX")
        return object
    torch: Any = sys.modules["torch"]
    place = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    tensor = torch.tensor(object, dtype=torch.float64, device=place)
    how = distributed.ReduceOp.SUM if operation == "sum" else distributed.ReduceOp.MAX
    distributed.all_reduce(tensor, op=how)
    return tensor.tolist()  # type: ignore[no-any-return]


def is_distributed() -> bool:
    """Whether this process is one of several, or torch.distributed is initialised."""
    return get_world_size() > 1 or _distributed() is not None


def get_rank() -> int:
    """The rank of this process; 0 if it is alone."""
    distributed, jax = _distributed(), _jax()
    if distributed is not None:
        return int(distributed.get_rank())
    return int(jax.process_index()) if jax is not None else 0


def get_world_size() -> int:
    """The number of processes; 1 if this one is alone."""
    distributed, jax = _distributed(), _jax()
    if distributed is not None:
        return int(distributed.get_world_size())
    return int(jax.process_count()) if jax is not None else 1
