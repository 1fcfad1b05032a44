"""Runs a training script for CUDA on the processor, and its steps on simulated boards.

    underwatt-sim exec -- python3 -m underwatt.testing.oncpu [--workload NAME] SCRIPT [ARG...]

Once SCRIPT imports torch, what it sends to cuda stays on the processor, nccl is gloo, and
each step of an optimizer grants one training step of a driven job on the process's current
CUDA device.  torch is not imported unless SCRIPT does so (docs/driven-jobs.md).
"""

from __future__ import annotations

import errno
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from ._simload import SimError, SimLoad, visible_boards

_USAGE = "usage: python3 -m underwatt.testing.oncpu [--workload NAME] SCRIPT [ARG...]"
_CUDA = re.compile(r"cuda(?::(\d+))?")
_MEMORY_BYTES = 80 << 30


class _Boards:
    """CUDA's devices.  The job begins on the first one that the process uses."""

    def __init__(self, workload: str) -> None:
        self.workload = workload
        self.all = visible_boards()
        self.current = 0
        self.load: SimLoad | None = None
        self._pid = os.getpid()

    def choose(self, device: Any) -> None:
        """The current device, as an index, a name or a torch.device."""
        index = _index(device)
        if index is None:
            return
        if not 0 <= index < len(self.all):
            raise RuntimeError(f"CUDA error: invalid device {index}: outside 0..{len(self.all) - 1}")
        self.current = index

    def use(self, device: Any = None) -> None:
        """Uses `device`, or the current one.  A forked child has no job."""
        if self.load is not None or os.getpid() != self._pid:
            return
        if _index(device) is not None:
            self.choose(device)
        self.load = SimLoad(self.workload, [self.all[self.current]])

    def step(self) -> None:
        self.use()
        if self.load is not None and os.getpid() == self._pid:
            self.load.step()

    def wait(self) -> None:
        if self.load is not None and os.getpid() == self._pid:
            self.load.wait()


def _index(device: Any) -> int | None:
    """The index of a CUDA device; None: no index is given."""
    if isinstance(device, str):
        found = _CUDA.fullmatch(device)
        return int(found[1]) if found and found[1] else None
    if isinstance(device, int):
        return device
    index = getattr(device, "index", None)
    return index if isinstance(index, int) else None


# ---- torch's names ----


def _mapped(boards: _Boards, torch: Any) -> Callable[[Any], Any]:
    """Replaces cuda by the processor; leaves anything else."""

    def place(value: Any) -> Any:
        cuda = (isinstance(value, torch.device) and value.type == "cuda") or (
            isinstance(value, str) and _CUDA.fullmatch(value)
        )
        if not cuda:
            return value
        boards.use(value)
        return "cpu" if isinstance(value, str) else torch.device("cpu")

    return place


def _mode(boards: _Boards, torch: Any, place: Callable[[Any], Any]) -> Any:
    """Intercepts every call of torch's functions and methods (of this thread)."""

    def is_index(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def call(self: Any, func: Any, kinds: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.device and args[:1] == ("cuda",):
            if len(args) > 1:
                boards.use(args[1])
            return func("cpu")
        if func is torch.Tensor.cuda:
            boards.use(args[1] if len(args) > 1 else kwargs.get("device"))
            return args[0]
        args = tuple(place(a) for a in args)
        if func is torch.Tensor.to and len(args) > 1 and is_index(args[1]):
            boards.use(args[1])
            args = (args[0], "cpu", *args[2:])
        if is_index(kwargs.get("device")):
            boards.use(kwargs["device"])
            kwargs["device"] = "cpu"
        elif "device" in kwargs:
            kwargs["device"] = place(kwargs["device"])
        return func(*args, **kwargs)

    base = torch.overrides.TorchFunctionMode
    return type("OnCpu", (base,), {"__torch_function__": call})()


def _wrap(owner: Any, name: str, change: Callable[[list[Any], dict[str, Any]], None]) -> None:
    """Calls owner.name with arguments changed by `change`."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        words = list(args)
        change(words, kwargs)
        return original(*words, **kwargs)

    setattr(owner, name, wrapper)


class _Stream:
    """The only stream."""

    def __init__(self, boards: _Boards) -> None:
        self._boards = boards

    def synchronize(self) -> None:
        self._boards.wait()

    def is_capturing(self) -> bool:
        return False

    def wait_stream(self, other: Any) -> None:
        """Work on the processor is in order."""

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        """It stays the current one."""


def _cuda(boards: _Boards, torch: Any) -> dict[str, Any]:
    """Functions of torch.cuda."""

    class Device:
        """with torch.cuda.device(1): …"""

        def __init__(self, device: Any) -> None:
            self._device = device
            self._before = boards.current

        def __enter__(self) -> None:
            self._before = boards.current
            boards.choose(self._device)

        def __exit__(self, *_: Any) -> None:
            boards.current = self._before

    class Stream(_Stream):  # a type, as annotations want it
        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__(boards)

    def set_device(device: Any) -> None:
        boards.choose(device)
        boards.use()

    def properties(device: Any = None) -> SimpleNamespace:
        return SimpleNamespace(
            name="simulated", major=9, minor=0, total_memory=_MEMORY_BYTES, multi_processor_count=132
        )

    names: dict[str, Any] = {
        "device": Device,
        "device_count": lambda: len(boards.all),
        "current_device": lambda: boards.current,
        "set_device": set_device,
        "synchronize": lambda device=None: boards.wait(),
        "Stream": Stream,
        "stream": lambda stream: stream,
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "is_current_stream_capturing": lambda: False,
        "init": boards.use,
        "is_initialized": lambda: boards.load is not None,
        "get_device_name": lambda device=None: "simulated",
        "get_device_properties": properties,
        "get_device_capability": lambda device=None: (9, 0),
        "mem_get_info": lambda device=None: (_MEMORY_BYTES, _MEMORY_BYTES),
        "memory_stats": lambda device=None: {},
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state() for _ in boards.all],
    }
    for name in ("is_available", "is_bf16_supported"):
        names[name] = lambda *_, **__: True
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        names[name] = lambda device=None: 0
    for name in (
        "empty_cache",
        "ipc_collect",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
        "reset_peak_memory_stats",
    ):
        names[name] = lambda *_, **__: None
    return names


def _accelerator(boards: _Boards, torch: Any, cuda: dict[str, Any]) -> dict[str, Any]:
    """The same under the names of torch.accelerator."""
    return {
        "is_available": cuda["is_available"],
        "device_count": cuda["device_count"],
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": cuda["current_device"],
        "set_device_index": cuda["set_device"],
        "synchronize": cuda["synchronize"],
        "current_stream": cuda["current_stream"],
    }


def _map_distributed(torch: Any) -> None:
    distributed = torch.distributed
    if not distributed.is_available():
        return

    def group(words: list[Any], kwargs: dict[str, Any]) -> None:
        kwargs.pop("device_id", None)
        if words:
            words[0] = "gloo"
        else:
            kwargs["backend"] = "gloo"

    def new_group(words: list[Any], kwargs: dict[str, Any]) -> None:
        kwargs.pop("device_id", None)
        if "nccl" in str(kwargs.get("backend")):
            kwargs["backend"] = "gloo"

    def parallel(words: list[Any], kwargs: dict[str, Any]) -> None:
        del words[2:4]  # self, module, device_ids, output_device
        kwargs.pop("device_ids", None)
        kwargs.pop("output_device", None)

    _wrap(distributed, "init_process_group", group)
    _wrap(distributed, "new_group", new_group)
    _wrap(distributed, "barrier", lambda words, kwargs: kwargs.update(device_ids=None))
    _wrap(torch.nn.parallel.DistributedDataParallel, "__init__", parallel)
    distributed.is_nccl_available = lambda: True


def _map(boards: _Boards, torch: Any) -> None:
    place = _mapped(boards, torch)

    def first(at: int) -> Callable[[list[Any], dict[str, Any]], None]:
        """The argument at this place, and those by name, are devices."""

        def change(words: list[Any], kwargs: dict[str, Any]) -> None:
            words[at : at + 1] = [place(w) for w in words[at : at + 1]]
            kwargs.update({k: place(v) for k, v in kwargs.items()})

        return change

    def scaler(words: list[Any], kwargs: dict[str, Any]) -> None:
        if len(words) > 1:
            words[1] = place(words[1])
        else:
            kwargs["device"] = place(kwargs.get("device", "cuda"))

    cuda = _cuda(boards, torch)
    for name, value in cuda.items():
        setattr(torch.cuda, name, value)
        if hasattr(torch.cuda.random, name):
            setattr(torch.cuda.random, name, value)
    torch._C._cuda_hasPrimaryContext = lambda device: device == boards.current and boards.load is not None
    for name, value in _accelerator(boards, torch, cuda).items():
        if hasattr(torch, "accelerator"):
            setattr(torch.accelerator, name, value)
    _wrap(torch, "load", first(1))
    _wrap(torch, "set_default_device", first(0))
    _wrap(torch.amp.autocast_mode.autocast, "__init__", first(1))
    _wrap(torch.amp.GradScaler, "__init__", scaler)
    torch.Tensor.pin_memory = lambda self, device=None: self
    _map_distributed(torch)
    optimizer: Any = importlib.import_module("torch.optim.optimizer")
    optimizer.register_optimizer_step_post_hook(lambda *_: boards.step())
    _mode(boards, torch, place).__enter__()


# ---- the script ----


class _Finder(importlib.abc.MetaPathFinder):
    """Is notified when torch is imported."""

    def __init__(self, boards: _Boards) -> None:
        self._boards = boards

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _map(self._boards, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def main(words: list[str]) -> int:
    workload = "resnet50"
    if len(words) > 1 and words[0] == "--workload":
        workload, words = words[1], words[2:]
    if words[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{_USAGE}\n")
        return 0
    if not words or words[0].startswith("-"):
        sys.stderr.write(f"{_USAGE}\n")
        return 2
    if not os.access(words[0], os.R_OK):
        why = os.strerror(errno.EACCES if os.path.exists(words[0]) else errno.ENOENT)
        sys.stderr.write(f"oncpu: {words[0]}: {why}\n")
        return 2
    try:
        boards = _Boards(workload)
    except SimError as e:
        sys.stderr.write(f"oncpu: {e}\n")
        return 2
    sys.meta_path.insert(0, _Finder(boards))
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")
    boards.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
