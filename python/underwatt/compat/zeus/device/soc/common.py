"""The interface of a system on a chip."""

from __future__ import annotations

import abc
from dataclasses import dataclass

from ..common import DeprecatedAliasABCMeta, deprecated_alias
from ..exception import ZeusBaseSoCError


class ZeusSoCInitError(ZeusBaseSoCError):
    """There is none."""


@dataclass
class SoCMeasurement(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """Energy of its parts, in mJ."""

    @abc.abstractmethod
    def __sub__(self, other: SoCMeasurement) -> SoCMeasurement: ...

    @deprecated_alias("zeroAllFields")
    @abc.abstractmethod
    def zero_all_fields(self) -> None: ...


class SoC(abc.ABC, metaclass=DeprecatedAliasABCMeta):
    """The windows of a system on a chip."""

    @deprecated_alias("getAvailableMetrics")
    @abc.abstractmethod
    def get_available_metrics(self) -> set[str]: ...

    @deprecated_alias("getTotalEnergyConsumption")
    @abc.abstractmethod
    def get_total_energy_consumption(self) -> SoCMeasurement: ...

    @deprecated_alias("beginWindow")
    @abc.abstractmethod
    def begin_window(self, key: str, restart: bool = False) -> None: ...

    @deprecated_alias("endWindow")
    @abc.abstractmethod
    def end_window(self, key: str) -> SoCMeasurement: ...


class EmptySoC(SoC):
    """No system on a chip: each query raises ValueError."""

    def __init__(self) -> None:
        pass

    def get_available_metrics(self) -> set[str]:
        return set()

    def get_total_energy_consumption(self) -> SoCMeasurement:
        raise ValueError("there is no system on a chip here")

    def begin_window(self, key: str, restart: bool = False) -> None:
        raise ValueError("there is no system on a chip here")

    def end_window(self, key: str) -> SoCMeasurement:
        raise ValueError("there is no system on a chip here")
