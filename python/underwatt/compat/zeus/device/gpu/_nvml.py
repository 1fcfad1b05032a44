"""NVML through ctypes, with the names of nvidia-ml-py, for nodes where that is not installed.

Only the calls that monitors and optimizers use.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

NVML_SUCCESS = 0
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_INSUFFICIENT_SIZE = 7
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_FUNCTION_NOT_FOUND = 13

NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED = 0, 1
NVML_DEVICE_ARCH_PASCAL, NVML_DEVICE_ARCH_VOLTA, NVML_DEVICE_ARCH_AMPERE = 4, 5, 7
NVML_TEMPERATURE_GPU = 0
NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT = 185, 186
NVML_POWER_SCOPE_GPU, NVML_POWER_SCOPE_MODULE, NVML_POWER_SCOPE_MEMORY = 0, 1, 2

_TEXT = 96  # longer than a name or a UUID
_CLOCKS = 1024  # more than a board has

Handle = c.c_void_p


class NVMLError(Exception):
    """value: NVML's number."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        if self.value == NVML_ERROR_LIBRARY_NOT_FOUND:
            return "libnvidia-ml.so.1 was not found"
        if self.value == NVML_ERROR_FUNCTION_NOT_FOUND:
            return "this libnvidia-ml.so.1 lacks the function"
        return str(_error_string(self.value))


class Value(c.Union):
    _fields_ = (("dVal", c.c_double), ("uiVal", c.c_uint), ("ulVal", c.c_ulong), ("ullVal", c.c_ulonglong))
    uiVal: int  # noqa: N815 - NVML's name


class FieldValue(c.Structure):
    _fields_ = (
        ("fieldId", c.c_uint),
        ("scopeId", c.c_uint),
        ("timestamp", c.c_longlong),
        ("latencyUsec", c.c_longlong),
        ("valueType", c.c_uint),
        ("nvmlReturn", c.c_uint),
        ("value", Value),
    )
    nvmlReturn: int  # noqa: N815
    value: Value


class C2cModeInfo(c.Structure):
    _fields_ = (("version", c.c_uint), ("isC2cEnabled", c.c_uint))
    version: int
    isC2cEnabled: int  # noqa: N815


_loaded: list[c.CDLL] = []


def _library() -> c.CDLL:
    if not _loaded:
        try:
            _loaded.append(c.CDLL("libnvidia-ml.so.1"))
        except OSError:
            raise NVMLError(NVML_ERROR_LIBRARY_NOT_FOUND) from None
    return _loaded[0]


def _error_string(value: int) -> str:
    function = _library().nvmlErrorString
    function.restype = c.c_char_p
    text: bytes = function(c.c_int(value))
    return text.decode(errors="replace")


def _call(name: str, *arguments: Any) -> None:
    try:
        function = getattr(_library(), name)
    except AttributeError:
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND) from None
    result = function(*arguments)
    if result != NVML_SUCCESS:
        raise NVMLError(result)


def _uint(name: str, handle: Handle, *arguments: Any) -> int:
    found = c.c_uint()
    _call(name, handle, *arguments, c.byref(found))
    return found.value


def _text(name: str, handle: Handle) -> str:
    text = c.create_string_buffer(_TEXT)
    _call(name, handle, text, c.c_uint(_TEXT))
    return text.value.decode(errors="replace")


def _clocks(name: str, handle: Handle, *arguments: Any) -> list[int]:
    n, found = c.c_uint(_CLOCKS), (c.c_uint * _CLOCKS)()
    _call(name, handle, *arguments, c.byref(n), found)
    return list(found[: n.value])


# ---- names of nvidia-ml-py ----
# ruff: noqa: N802, N803, N816


def nvmlInit() -> None:
    _call("nvmlInit_v2")


def nvmlShutdown() -> None:
    _call("nvmlShutdown")


def nvmlDeviceGetCount() -> int:
    found = c.c_uint()
    _call("nvmlDeviceGetCount_v2", c.byref(found))
    return found.value


def nvmlDeviceGetHandleByIndex(index: int) -> Handle:
    handle = Handle()
    _call("nvmlDeviceGetHandleByIndex_v2", c.c_uint(index), c.byref(handle))
    return handle


def nvmlDeviceGetHandleByUUID(uuid: str | bytes) -> Handle:
    handle = Handle()
    _call("nvmlDeviceGetHandleByUUID", uuid if isinstance(uuid, bytes) else uuid.encode(), c.byref(handle))
    return handle


def nvmlDeviceGetName(handle: Handle) -> str:
    return _text("nvmlDeviceGetName", handle)


def nvmlDeviceGetUUID(handle: Handle) -> str:
    return _text("nvmlDeviceGetUUID", handle)


def nvmlDeviceGetArchitecture(handle: Handle) -> int:
    return _uint("nvmlDeviceGetArchitecture", handle)


def nvmlDeviceGetC2cModeInfoV(handle: Handle) -> C2cModeInfo:
    info = C2cModeInfo(c.sizeof(C2cModeInfo) | 1 << 24)
    _call("nvmlDeviceGetC2cModeInfoV", handle, c.byref(info))
    return info


def nvmlDeviceGetPowerManagementLimitConstraints(handle: Handle) -> list[int]:
    low, high = c.c_uint(), c.c_uint()
    _call("nvmlDeviceGetPowerManagementLimitConstraints", handle, c.byref(low), c.byref(high))
    return [low.value, high.value]


def nvmlDeviceGetPowerManagementDefaultLimit(handle: Handle) -> int:
    return _uint("nvmlDeviceGetPowerManagementDefaultLimit", handle)


def nvmlDeviceGetPowerManagementLimit(handle: Handle) -> int:
    return _uint("nvmlDeviceGetPowerManagementLimit", handle)


def nvmlDeviceGetEnforcedPowerLimit(handle: Handle) -> int:
    return _uint("nvmlDeviceGetEnforcedPowerLimit", handle)


def nvmlDeviceSetPowerManagementLimit(handle: Handle, limit: int) -> None:
    _call("nvmlDeviceSetPowerManagementLimit", handle, c.c_uint(limit))


def nvmlDeviceGetPersistenceMode(handle: Handle) -> int:
    return _uint("nvmlDeviceGetPersistenceMode", handle)


def nvmlDeviceSetPersistenceMode(handle: Handle, mode: int) -> None:
    _call("nvmlDeviceSetPersistenceMode", handle, c.c_int(mode))


def nvmlDeviceGetTotalEnergyConsumption(handle: Handle) -> int:
    found = c.c_ulonglong()
    _call("nvmlDeviceGetTotalEnergyConsumption", handle, c.byref(found))
    return found.value


def nvmlDeviceGetPowerUsage(handle: Handle) -> int:
    return _uint("nvmlDeviceGetPowerUsage", handle)


def nvmlDeviceGetFieldValues(handle: Handle, fieldIds: list[int | tuple[int, int]]) -> Any:
    """Fields by number, or by number and scope."""
    values = (FieldValue * len(fieldIds))()
    for value, field in zip(values, fieldIds, strict=True):
        value.fieldId, value.scopeId = field if isinstance(field, tuple) else (field, 0)
    _call("nvmlDeviceGetFieldValues", handle, c.c_int(len(fieldIds)), values)
    return values


def nvmlDeviceGetTemperature(handle: Handle, sensor: int) -> int:
    return _uint("nvmlDeviceGetTemperature", handle, c.c_int(sensor))


nvmlDeviceGetTemperatureV = nvmlDeviceGetTemperature


def nvmlDeviceGetSupportedMemoryClocks(handle: Handle) -> list[int]:
    return _clocks("nvmlDeviceGetSupportedMemoryClocks", handle)


def nvmlDeviceGetSupportedGraphicsClocks(handle: Handle, memoryClockMHz: int) -> list[int]:
    return _clocks("nvmlDeviceGetSupportedGraphicsClocks", handle, c.c_uint(memoryClockMHz))


def nvmlDeviceSetGpuLockedClocks(handle: Handle, minGpuClockMHz: int, maxGpuClockMHz: int) -> None:
    _call("nvmlDeviceSetGpuLockedClocks", handle, c.c_uint(minGpuClockMHz), c.c_uint(maxGpuClockMHz))


def nvmlDeviceResetGpuLockedClocks(handle: Handle) -> None:
    _call("nvmlDeviceResetGpuLockedClocks", handle)


def nvmlDeviceSetMemoryLockedClocks(handle: Handle, minMemClockMHz: int, maxMemClockMHz: int) -> None:
    _call("nvmlDeviceSetMemoryLockedClocks", handle, c.c_uint(minMemClockMHz), c.c_uint(maxMemClockMHz))


def nvmlDeviceResetMemoryLockedClocks(handle: Handle) -> None:
    _call("nvmlDeviceResetMemoryLockedClocks", handle)
