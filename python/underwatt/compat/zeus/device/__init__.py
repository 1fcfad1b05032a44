"""This node's devices: GPUs through NVML, processors through RAPL."""

from .cpu import get_cpus
from .gpu import get_gpus
from .soc import get_soc

__all__ = ["get_cpus", "get_gpus", "get_soc"]
