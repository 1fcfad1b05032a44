"""The base classes and exceptions of GPUs."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Sequence

from ..common import DeprecatedAliasABCMeta, deprecated_alias, has_sys_admin
from ..exception import ZeusBaseGPUError


class ZeusGPUInitError(ZeusBaseGPUError):
    """No driver, no library, or no usable board."""


class ZeusGPUInvalidArgError(ZeusBaseGPUError):
    """An argument outside the range of the driver."""


class ZeusGPUNotSupportedError(ZeusBaseGPUError):
    """Not supported by the board, or on this node."""


class ZeusGPUNoPermissionError(ZeusBaseGPUError):
    """This user may not do that."""


class ZeusGPUAlreadyInitializedError(ZeusBaseGPUError):
    """The driver's library was opened before."""


class ZeusGPUNotFoundError(ZeusBaseGPUError):
    """There is no such board."""


class ZeusGPUInsufficientSizeError(ZeusBaseGPUError):
    """A buffer is too small."""


class ZeusGPUInsufficientPowerError(ZeusBaseGPUError):
    """A board's power cables are not attached."""


class ZeusGPUDriverNotLoadedError(ZeusBaseGPUError):
    """The driver is not loaded."""


class ZeusGPUTimeoutError(ZeusBaseGPUError):
    """The driver did not answer in time."""


class ZeusGPUIRQError(ZeusBaseGPUError):
    """The kernel has a problem with the board's interrupts."""


class ZeusGPULibraryNotFoundError(ZeusBaseGPUError):
    """The driver's library was not found."""


class ZeusGPUFunctionNotFoundError(ZeusBaseGPUError):
    """The driver's library lacks a function."""


class ZeusGPUCorruptedInfoROMError(ZeusBaseGPUError):
    """The board's infoROM is corrupted."""


class ZeusGPULostError(ZeusBaseGPUError):
    """The board is lost."""


class ZeusGPUResetRequiredError(ZeusBaseGPUError):
    """The board has to be reset."""


class ZeusGPUOperatingSystemError(ZeusBaseGPUError):
    """The operating system refuses."""


class ZeusGPULibRMVersionMismatchError(ZeusBaseGPUError):
    """Driver and library are of different versions."""


class ZeusGPUMemoryError(ZeusBaseGPUError):
    """Out of memory."""


class ZeusGPUUnknownError(ZeusBaseGPUError):
    """Any other error."""


class ZeusGPUHeterogeneousError(ZeusBaseGPUError):
    """The boards are not of one model."""


def _warn_without_sys_admin(owner: GPU | GPUs) -> None:
    if not getattr(owner, "_disable_sys_admin_warning", False) and not has_sys_admin():
        owner._disable_sys_admin_warning = True
        warnings.warn("limits and clocks are set with CAP_SYS_ADMIN, or by underwattd", stacklevel=3)


class GPU(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """One GPU.  Power limits, power and energy in mW and mJ, clocks in MHz; block: waits until the change is
    complete, if there is a choice."""

    _disable_sys_admin_warning: bool

    def __init__(self, gpu_index: int) -> None:
        self.gpu_index = gpu_index  # as the driver counts

    def _warn_sys_admin(self) -> None:
        _warn_without_sys_admin(self)

    @property
    def underwatt_gpu(self) -> str:
        """The value for underwatt.Monitor(gpus=[…])."""
        raise ZeusGPUNotSupportedError(f"GPU {self.gpu_index} is none that Underwatt knows")

    @property
    @abc.abstractmethod
    def supports_nonblocking_setters(self) -> bool: ...

    @deprecated_alias("getName")
    @abc.abstractmethod
    def get_name(self) -> str:
        """The name of its model."""

    @deprecated_alias("getPowerManagementLimitConstraints")
    @abc.abstractmethod
    def get_power_management_limit_constraints(self) -> tuple[int, int]:
        """The lowest and the highest settable limit."""

    @abc.abstractmethod
    def get_power_management_limit(self) -> int: ...

    @deprecated_alias("setPowerManagementLimit")
    @abc.abstractmethod
    def set_power_management_limit(self, power_limit_mw: int, block: bool = True) -> None: ...

    @deprecated_alias("resetPowerManagementLimit")
    @abc.abstractmethod
    def reset_power_management_limit(self, block: bool = True) -> None:
        """Sets the board's default limit."""

    @deprecated_alias("setPersistenceMode")
    @abc.abstractmethod
    def set_persistence_mode(self, enabled: bool, block: bool = True) -> None: ...

    @abc.abstractmethod
    def get_persistence_mode(self) -> bool: ...

    @deprecated_alias("getSupportedMemoryClocks")
    @abc.abstractmethod
    def get_supported_memory_clocks(self) -> list[int]: ...

    @deprecated_alias("setMemoryLockedClocks")
    @abc.abstractmethod
    def set_memory_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None: ...

    @deprecated_alias("resetMemoryLockedClocks")
    @abc.abstractmethod
    def reset_memory_locked_clocks(self, block: bool = True) -> None: ...

    @deprecated_alias("getSupportedGraphicsClocks")
    @abc.abstractmethod
    def get_supported_graphics_clocks(self, memory_clock_mhz: int | None = None) -> list[int]: ...

    @deprecated_alias("setGpuLockedClocks")
    @abc.abstractmethod
    def set_gpu_locked_clocks(self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None: ...

    @deprecated_alias("resetGpuLockedClocks")
    @abc.abstractmethod
    def reset_gpu_locked_clocks(self, block: bool = True) -> None: ...

    @deprecated_alias("getAveragePowerUsage")
    @abc.abstractmethod
    def get_average_power_usage(self) -> int: ...

    @deprecated_alias("getInstantPowerUsage")
    @abc.abstractmethod
    def get_instant_power_usage(self) -> int: ...

    @deprecated_alias("getAverageMemoryPowerUsage")
    @abc.abstractmethod
    def get_average_memory_power_usage(self) -> int: ...

    @deprecated_alias("supportsGetTotalEnergyConsumption")
    @abc.abstractmethod
    def supports_get_total_energy_consumption(self) -> bool: ...

    @deprecated_alias("getTotalEnergyConsumption")
    @abc.abstractmethod
    def get_total_energy_consumption(self) -> int:
        """The energy since the driver was loaded."""

    @deprecated_alias("getGpuTemperature")
    @abc.abstractmethod
    def get_gpu_temperature(self) -> int:
        """In degrees Celsius."""


class GPUs(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """The GPUs of this process; gpu_index counts the boards in CUDA_VISIBLE_DEVICES."""

    _disable_sys_admin_warning: bool

    @abc.abstractmethod
    def __init__(self, ensure_homogeneous: bool = False) -> None: ...

    @abc.abstractmethod
    def __del__(self) -> None: ...

    @property
    @abc.abstractmethod
    def gpus(self) -> Sequence[GPU]: ...

    def __len__(self) -> int:
        return len(self.gpus)

    def _gpu(self, gpu_index: int) -> GPU:
        return self.gpus[gpu_index]

    def _ensure_homogeneous(self) -> None:
        names = sorted({gpu.get_name() for gpu in self.gpus})
        if len(names) > 1:
            raise ZeusGPUHeterogeneousError(f"boards of several models: {', '.join(names)}")

    def _warn_sys_admin(self) -> None:
        _warn_without_sys_admin(self)

    @deprecated_alias("getName")
    def get_name(self, gpu_index: int) -> str:
        return self._gpu(gpu_index).get_name()

    @deprecated_alias("getPowerManagementLimitConstraints")
    def get_power_management_limit_constraints(self, gpu_index: int) -> tuple[int, int]:
        return self._gpu(gpu_index).get_power_management_limit_constraints()

    def get_power_management_limit(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_power_management_limit()

    @deprecated_alias("setPowerManagementLimit")
    def set_power_management_limit(self, gpu_index: int, power_limit_mw: int, block: bool = True) -> None:
        self._gpu(gpu_index).set_power_management_limit(power_limit_mw, block)

    @deprecated_alias("resetPowerManagementLimit")
    def reset_power_management_limit(self, gpu_index: int, block: bool = True) -> None:
        self._gpu(gpu_index).reset_power_management_limit(block)

    @deprecated_alias("setPersistenceMode")
    def set_persistence_mode(self, gpu_index: int, enabled: bool, block: bool = True) -> None:
        self._gpu(gpu_index).set_persistence_mode(enabled, block)

    def get_persistence_mode(self, gpu_index: int) -> bool:
        return self._gpu(gpu_index).get_persistence_mode()

    @deprecated_alias("getSupportedMemoryClocks")
    def get_supported_memory_clocks(self, gpu_index: int) -> list[int]:
        return self._gpu(gpu_index).get_supported_memory_clocks()

    @deprecated_alias("setMemoryLockedClocks")
    def set_memory_locked_clocks(
        self, gpu_index: int, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        self._gpu(gpu_index).set_memory_locked_clocks(min_clock_mhz, max_clock_mhz, block)

    @deprecated_alias("resetMemoryLockedClocks")
    def reset_memory_locked_clocks(self, gpu_index: int, block: bool = True) -> None:
        self._gpu(gpu_index).reset_memory_locked_clocks(block)

    @deprecated_alias("getSupportedGraphicsClocks")
    def get_supported_graphics_clocks(self, gpu_index: int, memory_clock_mhz: int | None = None) -> list[int]:
        return self._gpu(gpu_index).get_supported_graphics_clocks(memory_clock_mhz)

    @deprecated_alias("setGpuLockedClocks")
    def set_gpu_locked_clocks(self, gpu_index: int, min_clock_mhz: int, max_clock_mhz: int, block: bool = True) -> None:
        self._gpu(gpu_index).set_gpu_locked_clocks(min_clock_mhz, max_clock_mhz, block)

    @deprecated_alias("resetGpuLockedClocks")
    def reset_gpu_locked_clocks(self, gpu_index: int, block: bool = True) -> None:
        self._gpu(gpu_index).reset_gpu_locked_clocks(block)

    @deprecated_alias("getAveragePowerUsage")
    def get_average_power_usage(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_average_power_usage()

    @deprecated_alias("getInstantPowerUsage")
    def get_instant_power_usage(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_instant_power_usage()

    @deprecated_alias("getAverageMemoryPowerUsage")
    def get_average_memory_power_usage(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_average_memory_power_usage()

    @deprecated_alias("supportsGetTotalEnergyConsumption")
    def supports_get_total_energy_consumption(self, gpu_index: int) -> bool:
        return self._gpu(gpu_index).supports_get_total_energy_consumption()

    @deprecated_alias("getTotalEnergyConsumption")
    def get_total_energy_consumption(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_total_energy_consumption()

    @deprecated_alias("getGpuTemperature")
    def get_gpu_temperature(self, gpu_index: int) -> int:
        return self._gpu(gpu_index).get_gpu_temperature()


class EmptyGPUs(GPUs):
    """A node without GPUs: each query raises ValueError."""

    def __init__(self, ensure_homogeneous: bool = False) -> None:
        pass

    def __del__(self) -> None:
        pass

    @property
    def gpus(self) -> Sequence[GPU]:
        return []

    def _gpu(self, gpu_index: int) -> GPU:
        raise ValueError(f"GPU {gpu_index}: there are no GPUs here")

    def _ensure_homogeneous(self) -> None:
        raise ValueError("there are no GPUs here")

    def _warn_sys_admin(self) -> None:
        raise ValueError("there are no GPUs here")
