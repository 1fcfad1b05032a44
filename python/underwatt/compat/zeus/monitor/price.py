"""Prices of electricity, and costs of windows."""

from __future__ import annotations

import abc
import logging
import math
import os
import warnings
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..exception import ZeusBaseError
from ..utils._http import get_json
from ._hourly import Hourly, hour_of, weighted
from .energy import ZeusMonitor

logger = logging.getLogger(__name__)

API = "https://api.openei.org/utility_rates"
_STRUCTURE = ("energyratestructure", "energyweekdayschedule", "energyweekendschedule")
_KEYS = ("energy_rate_structure", "energy_weekday_schedule", "energy_weekend_schedule")


def get_time_info() -> tuple[str, str, int]:
    """Month, "Weekday" or "Weekend", and hour, of the present local time."""
    now = datetime.now()
    return now.strftime("%B"), "Weekday" if now.weekday() < 5 else "Weekend", now.hour


class ZeusElectricityPriceHTTPError(ZeusBaseError):
    """The provider could not be reached."""


class ZeusElectricityPriceNotFoundError(ZeusBaseError):
    """The provider has no such price."""


class ElectricityPriceProvider(abc.ABC):
    """Prices by time of day."""

    @abc.abstractmethod
    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        """energy_rate_structure: by number of the rate, its tiers, each with a "rate" per kWh;
        energy_weekday_schedule, energy_weekend_schedule: by month (from January) and hour, the number of the rate."""


class OpenEIClient(ElectricityPriceProvider):
    """OpenEI's utility rates; the environment variable OPENEI_API_KEY has the user's key.

    location: latitude and longitude.  label: that of the rate.
    """

    def __init__(
        self,
        location: tuple[float, float],
        label: str,
        sector: Literal["Residential", "Commercial", "Industrial", "Lighting"] = "Residential",
        radius: int = 0,
    ) -> None:
        self.lat, self.long = location
        self.label = label
        self.sector = sector
        self.radius = radius

    def search_json(self, data: Any, key_name: str, target_value: Any, return_value: str) -> list[Any]:
        """Searches at any depth: return_value of each object whose key_name is target_value; None if it has none."""
        if isinstance(data, list):
            return [found for item in data for found in self.search_json(item, key_name, target_value, return_value)]
        if not isinstance(data, dict):
            return []
        below = self.search_json(list(data.values()), key_name, target_value, return_value)
        here = key_name in data and data[key_name] == target_value
        return [data.get(return_value), *below] if here else below

    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        key = os.environ.get("OPENEI_API_KEY", "DEMO_KEY")
        url = (
            f"{API}?version=latest&format=json&api_key={key}&lat={self.lat}&lon={self.long}"
            f"&radius={self.radius}&detail=full&sector={self.sector}"
        )
        try:
            data, _ = get_json(url)
        except (OSError, ValueError) as e:
            raise ZeusElectricityPriceHTTPError(f"prices of electricity: {e}") from e
        where = f"at {self.lat}, {self.long} within {self.radius}, {self.sector}"
        if not data.get("items") and "label" not in str(data):
            raise ZeusElectricityPriceNotFoundError(f"no rates {where}")
        found = [self.search_json(data, "label", self.label, name) for name in _STRUCTURE]
        if not all(each and each[0] for each in found):
            raise ZeusElectricityPriceNotFoundError(f"no rate with the label '{self.label}' {where}")
        return {name: each[0] for name, each in zip(_KEYS, found, strict=True)}


@dataclass
class EnergyCostMeasurement:
    """The figures of a window: s, J and cost by index of GPU and of processor package; None: not measured here; NaN:
    unknown."""

    time: float
    gpu_energy: dict[int, float]
    gpu_energy_cost: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    cpu_energy_cost: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_energy_cost: dict[int, float] | None = None


class EnergyCostMonitor:
    """Windows of energy and cost: the energy of each hour with its own price, in local time.  Prices are queried
    once, when the first window ends; if they are unknown the cost is NaN, with a warning."""

    def __init__(
        self,
        electricity_price_provider: ElectricityPriceProvider,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        self.zeus_monitor = ZeusMonitor(
            gpu_indices=gpu_indices,
            cpu_indices=cpu_indices,
            approx_instant_energy=True,
            sync_execution_with=sync_execution_with,
        )
        self.electricity_price_provider = electricity_price_provider
        self._prices: dict[str, list[Any]] | None = None
        self._hours = Hourly(self.zeus_monitor, lambda when: hour_of(when.astimezone()), lambda: None)
        self.current_keys = self._hours.keys

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        """ValueError: the window exists already."""
        self._hours.begin(key, sync_execution)

    def end_window(self, key: str, sync_execution: bool = True) -> EnergyCostMeasurement:
        """ValueError: there is no such window."""
        whole, parts = self._hours.end(key, sync_execution)
        self._ask()
        gpu, cpu, dram = weighted(whole, parts, self._price)
        return EnergyCostMeasurement(
            time=whole.time,
            gpu_energy=whole.gpu_energy,
            gpu_energy_cost=gpu,
            cpu_energy=whole.cpu_energy,
            cpu_energy_cost=cpu or None,
            dram_energy=whole.dram_energy,
            dram_energy_cost=dram or None,
        )

    def _ask(self) -> None:
        if self._prices is None:
            try:
                self._prices = self.electricity_price_provider.get_current_electricity_prices()
            except ZeusBaseError as e:
                warnings.warn(f"prices are not known: {e}", RuntimeWarning, stacklevel=3)

    def _price(self, hour: datetime) -> float:
        """The price of the rate's first tier."""
        if self._prices is None:
            return math.nan
        structure, weekday, weekend = (self._prices[key] for key in _KEYS)
        schedule = weekday if hour.weekday() < 5 else weekend
        try:
            return float(structure[schedule[hour.month - 1][hour.hour]][0]["rate"])
        except (IndexError, KeyError, TypeError) as e:
            warnings.warn(f"a rate is none: {e}", RuntimeWarning, stacklevel=4)
            return math.nan
