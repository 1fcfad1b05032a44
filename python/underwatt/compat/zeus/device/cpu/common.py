"""The base classes and exceptions of processors."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

from ..common import DeprecatedAliasABCMeta, deprecated_alias
from ..exception import ZeusBaseCPUError


class ZeusCPUInitError(ZeusBaseCPUError):
    """There are no energy counters."""


class ZeusCPUNoPermissionError(ZeusBaseCPUError):
    """This user may not read them; root may."""


class ZeusCPUNotFoundError(ZeusBaseCPUError):
    """There is no such processor."""


@dataclass
class CpuDramMeasurement:
    """Energy of a processor and of its memory, in mJ; None: the memory has no counter."""

    cpu_mj: float
    dram_mj: float | None = None

    def __sub__(self, other: CpuDramMeasurement) -> CpuDramMeasurement:
        """A value that is unknown on one side counts as 0; on both sides, it stays unknown."""
        dram_mj = None
        if self.dram_mj is not None or other.dram_mj is not None:
            dram_mj = (self.dram_mj or 0.0) - (other.dram_mj or 0.0)
        return CpuDramMeasurement(self.cpu_mj - other.cpu_mj, dram_mj)

    def __truediv__(self, other: int | float) -> CpuDramMeasurement:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return CpuDramMeasurement(self.cpu_mj / other, None if self.dram_mj is None else self.dram_mj / other)


class CPU(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """One processor package."""

    def __init__(self, cpu_index: int) -> None:
        self.cpu_index = cpu_index

    @deprecated_alias("getTotalEnergyConsumption")
    @abc.abstractmethod
    def get_total_energy_consumption(self) -> CpuDramMeasurement: ...

    @deprecated_alias("supportsGetDramEnergyConsumption")
    @abc.abstractmethod
    def supports_get_dram_energy_consumption(self) -> bool: ...


class CPUs(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """All processors of this node."""

    @abc.abstractmethod
    def __init__(self) -> None: ...

    @abc.abstractmethod
    def __del__(self) -> None: ...

    @property
    @abc.abstractmethod
    def cpus(self) -> Sequence[CPU]: ...

    def _cpu(self, index: int) -> CPU:
        return self.cpus[index]

    @deprecated_alias("getTotalEnergyConsumption")
    def get_total_energy_consumption(self, index: int) -> CpuDramMeasurement:
        return self._cpu(index).get_total_energy_consumption()

    @deprecated_alias("supportsGetDramEnergyConsumption")
    def supports_get_dram_energy_consumption(self, index: int) -> bool:
        return self._cpu(index).supports_get_dram_energy_consumption()

    def __len__(self) -> int:
        return len(self.cpus)


class EmptyCPUs(CPUs):
    """A node without known energies: each query raises ValueError."""

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass

    @property
    def cpus(self) -> Sequence[CPU]:
        return []

    def _cpu(self, index: int) -> CPU:
        raise ValueError(f"CPU {index}: no processor's energy is known here")
