"""GPUs, through NVML."""

from __future__ import annotations

from ..common import DeprecatedAliasABCMeta, deprecated_alias, has_sys_admin
from ..exception import ZeusBaseGPUError
from .common import (
    GPU,
    EmptyGPUs,
    GPUs,
    ZeusGPUAlreadyInitializedError,
    ZeusGPUCorruptedInfoROMError,
    ZeusGPUDriverNotLoadedError,
    ZeusGPUFunctionNotFoundError,
    ZeusGPUHeterogeneousError,
    ZeusGPUInitError,
    ZeusGPUInsufficientPowerError,
    ZeusGPUInsufficientSizeError,
    ZeusGPUInvalidArgError,
    ZeusGPUIRQError,
    ZeusGPULibraryNotFoundError,
    ZeusGPULibRMVersionMismatchError,
    ZeusGPULostError,
    ZeusGPUMemoryError,
    ZeusGPUNoPermissionError,
    ZeusGPUNotFoundError,
    ZeusGPUNotSupportedError,
    ZeusGPUOperatingSystemError,
    ZeusGPUResetRequiredError,
    ZeusGPUTimeoutError,
    ZeusGPUUnknownError,
)
from .nvidia import NVIDIAGPUs, nvml_is_available, nvml_trouble

_gpus: GPUs | None = None


def get_gpus(ensure_homogeneous: bool = False) -> GPUs:
    """The GPUs of this process, the same object each time.  ZeusGPUInitError: there are none."""
    global _gpus  # noqa: PLW0603 - tests of Zeus set it to None
    if _gpus is None:
        if not nvml_is_available():
            raise ZeusGPUInitError(f"NVML cannot be used: {nvml_trouble()}")
        _gpus = NVIDIAGPUs(ensure_homogeneous)
    return _gpus


__all__ = [
    "GPU",
    "DeprecatedAliasABCMeta",
    "EmptyGPUs",
    "GPUs",
    "NVIDIAGPUs",
    "ZeusBaseGPUError",
    "ZeusGPUAlreadyInitializedError",
    "ZeusGPUCorruptedInfoROMError",
    "ZeusGPUDriverNotLoadedError",
    "ZeusGPUFunctionNotFoundError",
    "ZeusGPUHeterogeneousError",
    "ZeusGPUIRQError",
    "ZeusGPUInitError",
    "ZeusGPUInsufficientPowerError",
    "ZeusGPUInsufficientSizeError",
    "ZeusGPUInvalidArgError",
    "ZeusGPULibRMVersionMismatchError",
    "ZeusGPULibraryNotFoundError",
    "ZeusGPULostError",
    "ZeusGPUMemoryError",
    "ZeusGPUNoPermissionError",
    "ZeusGPUNotFoundError",
    "ZeusGPUNotSupportedError",
    "ZeusGPUOperatingSystemError",
    "ZeusGPUResetRequiredError",
    "ZeusGPUTimeoutError",
    "ZeusGPUUnknownError",
    "deprecated_alias",
    "get_gpus",
    "has_sys_admin",
    "nvml_is_available",
]
