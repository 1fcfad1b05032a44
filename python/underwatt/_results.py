"""The results of a window.  Unknown figures are NaN here, None in as_dict() and as_row(), never 0."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from ._text import joules, plain, seconds, watts

J_PER_KWH = 3.6e6
NAN = math.nan


@dataclass(frozen=True, slots=True)
class Sample:
    """Mean power of a board over the over_s seconds before time_s, which counts from the window's start."""

    time_s: float
    power_w: float
    over_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Device:
    """Energy of one board, processor or memory in a window."""

    name: str
    id: str = ""
    index: int | None = None  # of a board, as the driver counts
    kind: str = "gpu"  # "gpu", "cpu", "dram", "other"
    energy_j: float = NAN
    half_j: float = NAN  # half of the 95 % interval
    power_w: float = NAN  # mean
    method: str = "none"  # "counter", "integrated", …
    simulated: bool = False
    why: str = ""  # reason why it is unknown, or reasons for a wide interval: "reset, stuck"
    samples: tuple[Sample, ...] = field(default=(), repr=False)

    @property
    def known(self) -> bool:
        return not math.isnan(self.energy_j)

    @property
    def label(self) -> str:
        return f"gpu{self.index}" if self.kind == "gpu" else self.name

    def __str__(self) -> str:
        if not self.known:
            return f"{self.label}: unknown ({self.why})"
        return f"{self.label}: {joules(self.energy_j, self.half_j)}, {watts(self.power_w)} ({self._how})"

    @property
    def _how(self) -> str:
        return f"{self.method}; {self.why}" if self.why else self.method

    @property
    def _counted(self) -> bool:
        """Whether a counter alone gave the energy, as meter_counted() of core/meter/meter.h."""
        return self.method == "counter" and not {"reset", "stuck"} & set(self.why.split(", "))


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a kilowatt-hour."""

    per_kwh: float
    currency: str = ""


FLOOR = 0.004  # of a counter's energy: the part of its half width that all its windows share


@dataclass(frozen=True, slots=True)
class Half:
    """The half width of a sum of energies, as core/meter/half-sum.h: fixed_j adds up, noise_j in squares."""

    fixed_j: float = 0.0
    noise_j: float = 0.0

    def __add__(self, other: Half) -> Half:
        return Half(self.fixed_j + other.fixed_j, math.hypot(self.noise_j, other.noise_j))

    @property
    def half_j(self) -> float:
        return math.hypot(self.fixed_j, self.noise_j)


NO_HALF = Half()


def half_of(devices: Iterable[Device]) -> Half:
    """The half width of the sum of known energies.  A counter shares an error in proportion to the energy among its
    windows and with other boards; what readings miss may be the same in each window and board."""
    total = NO_HALF
    for d in devices:
        fixed = min(d.half_j, FLOOR * d.energy_j) if d._counted else d.half_j
        total += Half(fixed, math.sqrt(max(0.0, d.half_j**2 - fixed**2)))
    return total


def _sum(devices: Iterable[Device]) -> float:
    return math.fsum(d.energy_j for d in devices)


@dataclass(frozen=True, slots=True, repr=False)
class Energy:
    """The results of a window.  float() gives total_j."""

    name: str
    began: datetime
    time_s: float
    gpus: tuple[Device, ...] = ()
    processors: tuple[Device, ...] = ()
    source: str = "daemon"  # "daemon", "local", "null"
    gco2e_kwh: float | None = None
    price: Price | None = None

    @property
    def gpu_j(self) -> float:
        """The energy of all boards; NaN if one of them is unknown, or there is none."""
        return _sum(self.gpus) if self.gpus else NAN

    def _of(self, kind: str) -> float:
        devices = [p for p in self.processors if p.kind == kind]
        return _sum(devices) if devices else NAN

    @property
    def cpu_j(self) -> float:
        """The energy of all processor packages."""
        return self._of("cpu")

    @property
    def dram_j(self) -> float:
        return self._of("dram")

    @property
    def total_j(self) -> float:
        """The energy of the boards, and of processors and memory if known."""
        return self.gpu_j + sum(j for j in (self.cpu_j, self.dram_j) if not math.isnan(j))

    @property
    def _half(self) -> Half:
        rest = (p for p in self.processors if p.kind != "other" and not math.isnan(self._of(p.kind)))
        return half_of((*self.gpus, *rest))

    @property
    def half_j(self) -> float:
        """Half of the 95 % interval of total_j: what the sensors have in common adds up, the rest in squares."""
        return NAN if math.isnan(self.total_j) else self._half.half_j

    @property
    def power_w(self) -> float:
        """The mean power of total_j."""
        return self.total_j / self.time_s if self.time_s > 0 else NAN

    @property
    def method(self) -> str:
        """The method for the boards; all methods if they differ."""
        return "+".join(sorted({g.method for g in self.gpus})) or "none"

    @property
    def simulated(self) -> bool:
        return any(g.simulated for g in self.gpus)

    @property
    def gco2e(self) -> float | None:
        """Grams of CO2 equivalent, if the grid's intensity is known."""
        return _times(self.total_j, self.gco2e_kwh)

    @property
    def cost(self) -> float | None:
        """In price.currency, if a price is known."""
        return _times(self.total_j, self.price.per_kwh if self.price else None)

    def __float__(self) -> float:
        return self.total_j

    def __str__(self) -> str:
        return f"{self.name}: {self.line()}" if self.name else self.line()

    def __repr__(self) -> str:
        return f"<Energy {self}>"

    def line(self) -> str:
        """One line without the name: "1.2340 kJ ± 0.0050 kJ in 12.3 s, 100.3 W, 4 GPUs (counter)"."""
        if self.source == "null":
            return f"{seconds(self.time_s)}, not measured (null monitor)"
        if math.isnan(self.total_j):
            why = next((g.why for g in self.gpus if g.why and not g.known), "no board")
            return f"{seconds(self.time_s)}, energy unknown: {why}"
        n = len(self.gpus)
        parts = [
            f"{joules(self.total_j, self.half_j)} in {seconds(self.time_s)}",
            watts(self.power_w),
            f"{n} {'simulated ' if self.simulated else ''}GPU{'s' if n != 1 else ''} ({self.method})",
        ]
        for what, energy in (("CPU", self.cpu_j), ("DRAM", self.dram_j)):
            if not math.isnan(energy):
                parts.append(f"{what} {joules(energy)}")
        if self.gco2e is not None:
            parts.append(f"{self.gco2e:.3g} gCO2e")
        if self.cost is not None and self.price is not None:
            parts.append(f"{self.cost:.3g} {self.price.currency}".rstrip())
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """All figures as plain JSON types."""
        return {
            "name": self.name,
            "began_utc": self.began.isoformat(),
            "time_s": plain(self.time_s),
            "source": self.source,
            "simulated": self.simulated,
            **{key: plain(getattr(self, key)) for key in _SUMS},
            "method": self.method,
            "gco2e": plain(self.gco2e),
            "cost": plain(self.cost),
            "currency": self.price.currency if self.price else None,
            "gpus": [_device(g) for g in self.gpus],
            "processors": [_device(p) for p in self.processors],
        }

    def as_row(self) -> dict[str, Any]:
        """One flat row: pandas.DataFrame([w.energy.as_row() for w in windows])."""
        whole = self.as_dict()
        row = {key: value for key, value in whole.items() if key not in ("gpus", "processors")}
        for device in (*self.gpus, *self.processors):
            row[f"{device.label}_j"] = plain(device.energy_j)
        return row

    def _repr_html_(self) -> str:
        from ._html import page_of  # noqa: PLC0415 - notebooks alone need it

        return page_of(self)


_SUMS = ("total_j", "half_j", "gpu_j", "cpu_j", "dram_j", "power_w")


def _times(energy_j: float, per_kwh: float | None) -> float | None:
    return None if per_kwh is None or math.isnan(energy_j) else energy_j / J_PER_KWH * per_kwh


def _sample(s: Sample) -> dict[str, Any]:
    return {key: plain(value) for key, value in asdict(s).items()}


def _device(d: Device) -> dict[str, Any]:
    return {
        "label": d.label,
        "kind": d.kind,
        "name": d.name,
        "id": d.id,
        "energy_j": plain(d.energy_j),
        "half_j": plain(d.half_j),
        "power_w": plain(d.power_w),
        "method": d.method,
        "simulated": d.simulated,
        "why": d.why or None,
        **({"samples": [_sample(s) for s in d.samples]} if d.samples else {}),
    }
