"""ReplayZeusMonitor: replays the windows of a log."""

from __future__ import annotations

import csv
import logging
from pathlib import Path

from ..monitor import Measurement, ZeusMonitor
from .framework import sync_execution as wait_for_gpus

logger = logging.getLogger(__name__)


class ReplayZeusMonitor(ZeusMonitor):
    """Each window that ends is the next row of a log of ZeusMonitor; nothing is measured.

    gpu_indices: None: those of the log.  ignore_sync_execution: waits for no framework.  match_window_name: the row
    must have the window's name.
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | Path | None = None,
        ignore_sync_execution: bool = False,
        match_window_name: bool = True,
    ) -> None:
        if log_file is None:
            raise ValueError("log_file: the log to replay must be named")
        self.approx_instant_energy = approx_instant_energy
        self.ignore_sync_execution = ignore_sync_execution
        self.match_window_name = match_window_name
        self.log_file = open(log_file, encoding="utf-8", newline="")  # noqa: SIM115 - rows are read one by one
        self._replayed = csv.reader(iter(self.log_file.readline, ""))  # rows may be added in the meantime
        columns = next(self._replayed, [])[3:]
        if gpu_indices is None:
            gpu_indices = [int(c.removeprefix("gpu").removesuffix("_energy")) for c in columns if c]
        self.nvml_gpu_indices = self.gpu_indices = gpu_indices
        self.ongoing_windows: list[str] = []

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        if key in self.ongoing_windows:
            if not restart:
                raise RuntimeError(f"window '{key}' is already ongoing")
            self.ongoing_windows.remove(key)
        self.ongoing_windows.append(key)
        self._wait(sync_execution)

    def end_window(self, key: str, sync_execution: bool = True, cancel: bool = False) -> Measurement:
        """cancel: no row is used."""
        if key not in self.ongoing_windows:
            raise RuntimeError(f"window '{key}' is not ongoing")
        self.ongoing_windows.remove(key)
        self._wait(sync_execution)
        if cancel:
            return Measurement(0.0, dict.fromkeys(self.gpu_indices, 0.0))
        row = next(self._replayed, [])
        if not row:
            raise RuntimeError(f"window '{key}': the log has no more rows")
        if self.match_window_name and row[1] != key:
            raise RuntimeError(f"window '{key}' has ended; the log's next row is of '{row[1]}'")
        if len(row) != 3 + len(self.gpu_indices):
            raise RuntimeError(f"window '{key}': {len(self.gpu_indices)} GPUs, {len(row) - 3} energies in the log")
        seconds, *energies = map(float, row[2:])
        return Measurement(seconds, dict(zip(self.gpu_indices, energies, strict=True)))

    def _wait(self, sync_execution: bool) -> None:
        if sync_execution and not self.ignore_sync_execution:
            wait_for_gpus(self.gpu_indices)
