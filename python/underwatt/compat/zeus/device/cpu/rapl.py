"""RAPL's counters in the kernel's powercap tree."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ..exception import ZeusBaseCPUError
from . import common
from .common import CpuDramMeasurement

RAPL_DIR = "/sys/class/powercap/intel-rapl"
CONTAINER_RAPL_DIR = "/zeus_sys/class/powercap/intel-rapl"  # where containers get it from the host

LOOK_S = 30.0  # a counter of 262 kJ wraps after 130 s at 2 kW


class ZeusRAPLNotSupportedError(ZeusBaseCPUError):
    """The node does not support RAPL."""


class ZeusRAPLFileInitError(ZeusBaseCPUError):
    """A zone lacks a file."""


class ZeusRAPLPermissionError(ZeusBaseCPUError):
    """This user may not read the counters."""


@lru_cache(maxsize=1)
def rapl_is_available() -> bool:
    """Whether the kernel has energy counters of processors, for this user or not."""
    return any(os.path.exists(path) for path in (RAPL_DIR, CONTAINER_RAPL_DIR))


class RAPLFile:
    """The counter of one zone.  A thread reads it regularly, so that no wrap is missed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.energy_uj_path = os.path.join(path, "energy_uj")
        try:
            self.name = self._text("name")
            self.last_energy = float(self._text("energy_uj"))
            self.max_energy_range_uj = float(self._text("max_energy_range_uj"))
        except PermissionError as e:
            raise common.ZeusCPUNoPermissionError(f"{self.energy_uj_path}: root alone may read it") from e
        except (OSError, ValueError) as e:
            raise ZeusRAPLFileInitError(f"{path}: {e}") from e
        self._wrapped_uj = 0.0
        self._lock = threading.Lock()
        self._watched_in = 0  # the process whose thread reads it

    def _text(self, name: str) -> str:
        return Path(self.path, name).read_text(encoding="ascii").strip()

    def _read_uj(self) -> float:
        with self._lock:
            energy = float(Path(self.energy_uj_path).read_text(encoding="ascii"))
            if energy < self.last_energy:
                self._wrapped_uj += self.max_energy_range_uj
            self.last_energy = energy
            return energy + self._wrapped_uj

    def read(self) -> float:
        """In mJ; never decreases."""
        if self._watched_in != os.getpid():
            self._watched_in = os.getpid()
            self._lock = threading.Lock()
            threading.Thread(target=self._watch, name="underwatt-rapl", daemon=True).start()
        return self._read_uj() / 1000.0

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_S):
            try:
                self._read_uj()
            except OSError:
                return

    def __str__(self) -> str:
        return f"{self.name} ({self.path})"


class RAPLCPU(common.CPU):
    """A package and its memory."""

    def __init__(self, cpu_index: int, rapl_dir: str) -> None:
        super().__init__(cpu_index)
        self.rapl_dir = rapl_dir
        self.path = os.path.join(rapl_dir, f"intel-rapl:{cpu_index}")
        self.rapl_file = RAPLFile(self.path)
        self.dram: RAPLFile | None = None
        for zone in sorted(Path(self.path).glob("intel-rapl:*")):
            if (zone / "name").read_text(encoding="ascii").strip() == "dram":
                self.dram = RAPLFile(str(zone))

    def get_total_energy_consumption(self) -> CpuDramMeasurement:
        return CpuDramMeasurement(self.rapl_file.read(), self.dram.read() if self.dram else None)

    def supports_get_dram_energy_consumption(self) -> bool:
        return self.dram is not None


class RAPLCPUs(common.CPUs):
    """All packages; zones with other names (psys) are ignored."""

    def __init__(self) -> None:
        if not rapl_is_available():
            raise ZeusRAPLNotSupportedError("no powercap zones of this node's processors")
        self.rapl_dir = RAPL_DIR if os.path.exists(RAPL_DIR) else CONTAINER_RAPL_DIR
        numbers = [path.name.partition(":")[2] for path in Path(self.rapl_dir).glob("intel-rapl:*")]
        zones = [RAPLCPU(number, self.rapl_dir) for number in sorted(int(n) for n in numbers if n.isdecimal())]
        self._cpus = [zone for zone in zones if zone.rapl_file.name.startswith("package")]

    @property
    def cpus(self) -> Sequence[RAPLCPU]:
        return self._cpus

    def __del__(self) -> None:
        pass
