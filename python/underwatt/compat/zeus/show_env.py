"""python -m zeus.show_env: the devices that can be measured and set, and the rights of the user."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Iterator

from underwatt import __version__ as underwatt_version
from underwatt import _native
from underwatt._errors import UnderwattError
from underwatt._node import Node

from . import __version__
from .device import get_cpus, get_gpus, get_soc
from .exception import ZeusBaseError


def _packages() -> Iterator[str]:
    yield f"Python: {platform.python_version()}"
    yield f"Zeus' interface: {__version__}, by underwatt {underwatt_version}"
    for name, title in (("torch", "PyTorch"), ("jax", "JAX"), ("cupy", "CuPy"), ("pynvml", "nvidia-ml-py")):
        try:
            version = getattr(importlib.import_module(name), "__version__", "yes")
        except ImportError:
            version = "not installed"
        yield f"{title}: {version}"


def _gpus() -> Iterator[str]:
    yield f"CUDA_VISIBLE_DEVICES: {os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}"
    gpus = get_gpus()
    for index, gpu in enumerate(gpus.gpus):
        low, high = (mw / 1000 for mw in gpu.get_power_management_limit_constraints())
        limits = f"{gpu.get_power_management_limit() / 1000:g} W of {low:g} to {high:g} W"
        yield f"GPU {index} (driver's {gpu.gpu_index}): {gpu.get_name()}, {limits}"


def _cpus() -> Iterator[str]:
    for index, cpu in enumerate(get_cpus().cpus):
        memory = "with" if cpu.supports_get_dram_energy_consumption() else "without"
        yield f"CPU {index}: RAPL, {memory} memory"


def _soc() -> Iterator[str]:
    yield ", ".join(sorted(get_soc().get_available_metrics()))


def _daemon() -> Iterator[str]:
    node = Node(clock=os.environ.get("UNDERWATT_CLOCK"), flags=_native.DAEMON)
    yield f"underwattd: {len(node.boards())} boards; it measures windows and sets limits"
    node.close()


def show_env() -> None:
    """Prints to standard output."""
    parts = {"Packages": _packages, "GPUs": _gpus, "Processors": _cpus, "Systems on a chip": _soc, "Daemon": _daemon}
    for title, lines in parts.items():
        sys.stdout.write(f"{title}\n")
        try:
            for line in lines():
                sys.stdout.write(f"  {line}\n")
        except (ZeusBaseError, UnderwattError) as e:
            sys.stdout.write(f"  none: {e}\n")


if __name__ == "__main__":
    show_env()
