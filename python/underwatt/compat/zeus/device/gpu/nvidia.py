"""NVIDIA's GPUs, through NVML: nvidia-ml-py if it is installed, else _nvml.py.

All calls of NVML go through `pynvml` below; tests replace it by a mock.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..exception import ZeusBaseGPUError
from . import common
from ._writes import claims

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])


def _seam() -> Any:
    """An older package named pynvml lacks required functions: it is not used."""
    try:
        module = importlib.import_module("pynvml")
    except ImportError:
        module = None
    if module is None or not hasattr(module, "_nvmlGetFunctionPointer"):
        module = importlib.import_module(f"{__package__}._nvml")
    return module


pynvml: Any = _seam()
_REAL = pynvml
_Error: Any = pynvml.NVMLError  # a mock's is not an exception

_CLASSES: dict[int, type[ZeusBaseGPUError]] = {
    1: common.ZeusGPUInitError,
    2: common.ZeusGPUInvalidArgError,
    3: common.ZeusGPUNotSupportedError,
    4: common.ZeusGPUNoPermissionError,
    5: common.ZeusGPUAlreadyInitializedError,
    6: common.ZeusGPUNotFoundError,
    7: common.ZeusGPUInsufficientSizeError,
    8: common.ZeusGPUInsufficientPowerError,
    9: common.ZeusGPUDriverNotLoadedError,
    10: common.ZeusGPUTimeoutError,
    11: common.ZeusGPUIRQError,
    12: common.ZeusGPULibraryNotFoundError,
    13: common.ZeusGPUFunctionNotFoundError,
    14: common.ZeusGPUCorruptedInfoROMError,
    15: common.ZeusGPULostError,
    16: common.ZeusGPUResetRequiredError,
    17: common.ZeusGPUOperatingSystemError,
    18: common.ZeusGPULibRMVersionMismatchError,
    20: common.ZeusGPUMemoryError,
    999: common.ZeusGPUUnknownError,
}
_NOT_SUPPORTED, _NO_FUNCTION = 3, 13


def _zeus_error(e: Any) -> ZeusBaseGPUError:
    return _CLASSES.get(e.value, common.ZeusGPUUnknownError)(str(e))


def _zeus_errors(function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _Error as e:
            raise _zeus_error(e) from e

    return call  # type: ignore[return-value]


@functools.lru_cache(maxsize=1)
def nvml_trouble() -> str:
    """The reason why NVML cannot be used, in its words; "": it can be used.  Opens it."""
    try:
        pynvml.nvmlInit()
    except _Error as e:
        return str(e)
    return ""


@functools.lru_cache(maxsize=1)
def nvml_is_available() -> bool:
    """Whether NVML can be used; opens it."""
    return not nvml_trouble()


class NVIDIAGPU(common.GPU):
    """One GPU.  A limit set here is a claim with underwattd, which ends with this process, also after kill -9."""

    def __init__(self, gpu_index: int) -> None:
        super().__init__(gpu_index)
        self._get_handle()
        self._supports_total_energy: bool | None = None
        try:
            self._is_grace_hopper = bool(pynvml.nvmlDeviceGetC2cModeInfoV(self.handle).isC2cEnabled)
        except _Error:  # other boards, and older drivers
            self._is_grace_hopper = False

    @_zeus_errors
    def _get_handle(self) -> None:
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(self.gpu_index)

    @property
    def underwatt_gpu(self) -> str:
        """Its UUID, the value for underwatt.Monitor(gpus=[…])."""
        return str(pynvml.nvmlDeviceGetUUID(self.handle))

    @_zeus_errors
    def get_name(self) -> str:
        return pynvml.nvmlDeviceGetName(self.handle)  # type: ignore[no-any-return]

    @property
    def supports_nonblocking_setters(self) -> bool:
        """block=False does not wait for underwattd's ramp."""
        return True

    # ---- limits ----

    @_zeus_errors
    def get_power_management_limit_constraints(self) -> tuple[int, int]:
        low, high = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(self.handle)
        return (low, high)

    @_zeus_errors
    def get_power_management_limit(self) -> int:
        return pynvml.nvmlDeviceGetPowerManagementLimit(self.handle)  # type: ignore[no-any-return]

    @_zeus_errors
    def set_power_management_limit(self, power_limit_mw: int, block: bool = True) -> None:
        """Sets at most this limit, and never more than the limit that was found.  block waits until it is in force,
        including underwattd's ramp, at most 300 s; warns if it is not in force then."""
        if pynvml is _REAL:
            claims(self).set(self, power_limit_mw, block)
        elif self.get_power_management_limit() != power_limit_mw:
            pynvml.nvmlDeviceSetPowerManagementLimit(self.handle, power_limit_mw)

    @_zeus_errors
    def reset_power_management_limit(self, block: bool = True) -> None:
        self.set_power_management_limit(pynvml.nvmlDeviceGetPowerManagementDefaultLimit(self.handle), block)

    @_zeus_errors
    def set_persistence_mode(self, enabled: bool, block: bool = True) -> None:
        """Only the administrator may change it.  It is not needed for limits: underwattd keeps the driver loaded."""
        mode = pynvml.NVML_FEATURE_ENABLED if enabled else pynvml.NVML_FEATURE_DISABLED
        if pynvml.nvmlDeviceGetPersistenceMode(self.handle) == mode:
            return
        if pynvml is not _REAL:
            pynvml.nvmlDeviceSetPersistenceMode(self.handle, mode)
        elif enabled:
            logger.info("GPU %d: persistence mode stays off: underwattd keeps the driver loaded", self.gpu_index)
        else:
            raise common.ZeusGPUNoPermissionError("persistence mode is the administrator's: nvidia-smi -pm 0")

    @_zeus_errors
    def get_persistence_mode(self) -> bool:
        return bool(pynvml.nvmlDeviceGetPersistenceMode(self.handle) == pynvml.NVML_FEATURE_ENABLED)

    # ---- clocks ----

    @_zeus_errors
    def get_supported_memory_clocks(self) -> list[int]:
        return pynvml.nvmlDeviceGetSupportedMemoryClocks(self.handle)  # type: ignore[no-any-return]

    @_zeus_errors
    def get_supported_graphics_clocks(self, memory_clock_mhz: int | None = None) -> list[int]:
        """Without a memory clock: the clocks at the highest memory clock."""
        if memory_clock_mhz is None:
            memory_clock_mhz = max(pynvml.nvmlDeviceGetSupportedMemoryClocks(self.handle))
        return pynvml.nvmlDeviceGetSupportedGraphicsClocks(self.handle, memory_clock_mhz)  # type: ignore[no-any-return]

    def _clocks_are_underwattds(self) -> None:
        if pynvml is _REAL:
            raise common.ZeusGPUNotSupportedError("clocks are locked by underwattd alone: caps.clocks and its claims")

    @_zeus_errors
    def set_memory_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None:
        self._clocks_are_underwattds()
        pynvml.nvmlDeviceSetMemoryLockedClocks(self.handle, min_clock_mhz, max_clock_mhz)

    @_zeus_errors
    def reset_memory_locked_clocks(self, block: bool = True) -> None:
        self._clocks_are_underwattds()
        pynvml.nvmlDeviceResetMemoryLockedClocks(self.handle)

    @_zeus_errors
    def set_gpu_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None:
        self._clocks_are_underwattds()
        pynvml.nvmlDeviceSetGpuLockedClocks(self.handle, min_clock_mhz, max_clock_mhz)

    @_zeus_errors
    def reset_gpu_locked_clocks(self, block: bool = True) -> None:
        self._clocks_are_underwattds()
        pynvml.nvmlDeviceResetGpuLockedClocks(self.handle)

    # ---- readings ----

    def _field(self, field: int, scope: int) -> int:
        value = pynvml.nvmlDeviceGetFieldValues(self.handle, [(field, scope)])[0]
        if value.nvmlReturn != pynvml.NVML_SUCCESS:
            raise _Error(value.nvmlReturn)
        return value.value.uiVal  # type: ignore[no-any-return]

    @property
    def _scope(self) -> int:
        return pynvml.NVML_POWER_SCOPE_MODULE if self._is_grace_hopper else pynvml.NVML_POWER_SCOPE_GPU  # type: ignore[no-any-return]

    @_zeus_errors
    def get_average_power_usage(self) -> int:
        return self._field(pynvml.NVML_FI_DEV_POWER_AVERAGE, self._scope)

    @_zeus_errors
    def get_instant_power_usage(self) -> int:
        """Boards before Ampere have only one reading, which is returned."""
        try:
            return self._field(pynvml.NVML_FI_DEV_POWER_INSTANT, self._scope)
        except _Error as e:
            if e.value not in (_NOT_SUPPORTED, _NO_FUNCTION):
                raise
            return pynvml.nvmlDeviceGetPowerUsage(self.handle)  # type: ignore[no-any-return]

    @_zeus_errors
    def get_average_memory_power_usage(self) -> int:
        power = self._field(pynvml.NVML_FI_DEV_POWER_AVERAGE, pynvml.NVML_POWER_SCOPE_MEMORY)
        if power == 0:
            warnings.warn(f"GPU {self.gpu_index}: its memory's power reads 0: it may have none", stacklevel=1)
        return power

    @_zeus_errors
    def supports_get_total_energy_consumption(self) -> bool:
        """Boards since Volta have the counter."""
        if self._supports_total_energy is None:
            architecture = pynvml.nvmlDeviceGetArchitecture(self.handle)
            self._supports_total_energy = bool(architecture >= pynvml.NVML_DEVICE_ARCH_VOLTA)
        return self._supports_total_energy

    @_zeus_errors
    def get_total_energy_consumption(self) -> int:
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle)  # type: ignore[no-any-return]

    @_zeus_errors
    def get_gpu_temperature(self) -> int:
        try:
            return pynvml.nvmlDeviceGetTemperatureV(self.handle, pynvml.NVML_TEMPERATURE_GPU)  # type: ignore[no-any-return]
        except _Error as e:
            if e.value != _NO_FUNCTION:  # drivers before 560
                raise
            return pynvml.nvmlDeviceGetTemperature(self.handle, pynvml.NVML_TEMPERATURE_GPU)  # type: ignore[no-any-return]


def _visible(text: str) -> list[int]:
    """The boards in CUDA_VISIBLE_DEVICES, by CUDA's rules: numbers, or UUIDs or their prefixes, up to the first invalid
    entry.

    Both CUDA and NVML count only the boards whose device files this process may open.
    """
    count = pynvml.nvmlDeviceGetCount()
    found: list[int] = []
    for word in text.split(","):
        name = word.strip()
        if name.startswith("GPU-"):
            uuids = [str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count)]
            indices = [i for i, uuid in enumerate(uuids) if uuid.startswith(name)]
        else:
            indices = [int(name)] if name.isdecimal() and int(name) < count else []
        if len(indices) != 1 or indices[0] in found:
            break
        found.append(indices[0])
    return found


class NVIDIAGPUs(common.GPUs):
    """The GPUs in CUDA_VISIBLE_DEVICES."""

    def __init__(self, ensure_homogeneous: bool = False) -> None:
        self._gpus: list[NVIDIAGPU] = []
        try:
            pynvml.nvmlInit()
            text = os.environ.get("CUDA_VISIBLE_DEVICES")
            if text is None:
                indices = list(range(pynvml.nvmlDeviceGetCount()))
            elif text.startswith("MIG"):
                raise common.ZeusGPUInitError(f"CUDA_VISIBLE_DEVICES={text}: no energy is known of a part of a board")
            else:
                indices = _visible(text)
                if not indices:
                    raise common.ZeusGPUInitError(f"CUDA_VISIBLE_DEVICES='{text}' leaves no board")
            self._gpus = [NVIDIAGPU(index) for index in indices]
        except _Error as e:
            raise _zeus_error(e) from e
        if ensure_homogeneous:
            self._ensure_homogeneous()

    @property
    def gpus(self) -> Sequence[NVIDIAGPU]:
        return self._gpus

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at the interpreter's end nothing imported is there any more
            pynvml.nvmlShutdown()
        except Exception:
            pass
