"""Carbon intensity of the grid, and emissions of windows."""

from __future__ import annotations

import abc
import logging
import math
import threading
import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ..exception import ZeusBaseError
from ..utils._http import get_json
from ._hourly import Hourly, hour_of, weighted
from .energy import ZeusMonitor

logger = logging.getLogger(__name__)

API = "https://api.electricitymap.org/v3"


class ZeusCarbonIntensityHTTPError(ZeusBaseError):
    """The provider could not be reached."""


class ZeusCarbonIntensityNotFoundError(ZeusBaseError):
    """The provider has no intensity."""


class CarbonIntensityProvider(abc.ABC):
    """Intensities in gCO2e/kWh."""

    @abc.abstractmethod
    def get_current_carbon_intensity(self) -> float: ...

    @abc.abstractmethod
    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Intensities by the start of the period for which each is valid."""

    @property
    @abc.abstractmethod
    def update_period(self) -> timedelta:
        """The period for which an intensity is valid."""

    @property
    @abc.abstractmethod
    def history_length(self) -> int:
        """The number of recent intensities."""


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class ElectrictyMapsClient(CarbonIntensityProvider):
    """Electricity Maps.

    location: latitude and longitude.  estimate: estimated intensities count, too.
    """

    def __init__(
        self,
        location: tuple[float, float],
        estimate: bool = False,
        emission_factor_type: Literal["direct", "lifecycle"] = "direct",
    ) -> None:
        self.lat, self.long = location
        self.estimate = estimate
        self.emission_factor_type = emission_factor_type

    def _ask(self, what: str, field: str) -> Any:
        url = (
            f"{API}/carbon-intensity/{what}?lat={self.lat}&lon={self.long}"
            f"&disableEstimations={not self.estimate}&emissionFactorType={self.emission_factor_type}"
        )
        try:
            answer, text = get_json(url)
        except (OSError, ValueError) as e:
            raise ZeusCarbonIntensityHTTPError(f"carbon intensity ({what}): {e}") from e
        if not isinstance(answer, dict) or field not in answer:
            raise ZeusCarbonIntensityNotFoundError(
                f"carbon intensity ({what}) at {self.lat}, {self.long}, "
                f"{'estimates too' if self.estimate else 'without estimates'}, {self.emission_factor_type}: {text}"
            )
        return answer[field]

    def get_current_carbon_intensity(self) -> float:
        return self._ask("latest", "carbonIntensity")  # type: ignore[no-any-return]

    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Intensities of the last 24 hours."""
        return {_when(each["datetime"]): each["carbonIntensity"] for each in self._ask("history", "history")}

    @property
    def update_period(self) -> timedelta:
        return timedelta(hours=1)

    @property
    def history_length(self) -> int:
        return 24


@dataclass
class CarbonEmissionMeasurement:
    """The figures of a window: s, J and gCO2e by index of GPU and of processor package; None: not measured here;
    NaN: unknown."""

    time: float
    gpu_energy: dict[int, float]
    gpu_carbon_emission: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    cpu_carbon_emission: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_carbon_emission: dict[int, float] | None = None


class CarbonEmissionMonitor:
    """Windows of energy and emissions: the energy of each hour with its own intensity, which is queried when a
    window ends, and while it is open before the provider drops it.  An hour whose intensity is not known yet uses
    the newest one before it; if none is known, the emission is NaN, with a warning."""

    def __init__(
        self,
        carbon_intensity_provider: CarbonIntensityProvider,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        self.zeus_monitor = ZeusMonitor(
            gpu_indices=gpu_indices, cpu_indices=cpu_indices, sync_execution_with=sync_execution_with
        )
        self.carbon_intensity_provider = carbon_intensity_provider
        self._known: dict[datetime, float] = {}
        self._asking = threading.Lock()
        self._turns = 0
        period = carbon_intensity_provider.update_period
        self._hours = Hourly(self.zeus_monitor, lambda when: hour_of(when, period), self._turned)
        self.current_keys = self._hours.keys

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        """ValueError: the window exists already."""
        self._hours.begin(key, sync_execution)

    def end_window(self, key: str, sync_execution: bool = True) -> CarbonEmissionMeasurement:
        """ValueError: there is no such window."""
        whole, parts = self._hours.end(key, sync_execution)
        self._ask()
        gpu, cpu, dram = weighted(whole, parts, self._intensity)
        return CarbonEmissionMeasurement(
            time=whole.time,
            gpu_energy=whole.gpu_energy,
            gpu_carbon_emission=gpu,
            cpu_energy=whole.cpu_energy,
            cpu_carbon_emission=cpu or None,
            dram_energy=whole.dram_energy,
            dram_carbon_emission=dram or None,
        )

    def _turned(self) -> None:
        self._turns += 1
        if self._turns % max(1, self.carbon_intensity_provider.history_length // 2) == 0:
            self._ask()

    def _ask(self) -> None:
        """Queries the provider.  A failure is warned of: known intensities stay, and the window still has its
        energy."""
        with self._asking:
            try:
                self._known |= self.carbon_intensity_provider.get_recent_carbon_intensity()
            except ZeusBaseError as e:
                warnings.warn(f"carbon intensities are not known: {e}", RuntimeWarning, stacklevel=3)

    def _intensity(self, hour: datetime) -> float:
        before = [when for when in self._known if when <= hour]
        return self._known[max(before)] if before else math.nan
