"""Windows as rows of a CSV file: one write for each row, so that a killed program leaves complete rows."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import warnings

from ._errors import InvalidValue
from ._ranks import ranks_of
from ._results import Energy

COMMON = (
    "began_utc", "name", "rank", "pid", "time_s", "total_j", "half_j", "power_w", "gpu_j", "cpu_j", "dram_j",
    "method", "source", "simulated", "gco2e", "cost", "currency",
)  # fmt: skip


def _line(cells: list[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


class Log:
    """Several processes may write to one file, each line with one write at its end.  devices: labels of the node's
    boards, one column each; a row has values for the measured ones."""

    def __init__(self, path: str, devices: list[str]) -> None:
        self.path = path
        self._columns = [*COMMON, *(f"{d}_j" for d in devices), "why"]
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._broken = False
        self._rank = 0
        try:
            self._begin()
        except BaseException:
            os.close(self._fd)
            self._fd = -1
            raise

    def _begin(self) -> None:
        head = _line(list(self._columns))
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if os.fstat(self._fd).st_size == 0:
                os.write(self._fd, head.encode())
                return
            first = os.pread(self._fd, len(head.encode()), 0).decode(errors="replace")
            if first != head:
                raise InvalidValue(f"{self.path}: the columns do not match this node's windows: use another log")
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def note_rank(self) -> None:
        """Sets the rank for the following rows: an energy may become known after torch.distributed has ended."""
        ranks = ranks_of(os.environ)
        if ranks.world_size > 1:
            self._rank = ranks.rank

    def write(self, energy: Energy, why: str = "") -> None:
        row = {**energy.as_row(), "rank": self._rank, "pid": os.getpid(), "why": why}
        cells = [row.get(column) for column in self._columns]
        line = _line(["" if cell is None else cell for cell in cells]).encode()
        try:
            if self._fd >= 0 and not self._broken:
                os.write(self._fd, line)
        except OSError as e:  # a full disk must not end a training run
            self._broken = True
            warnings.warn(f"underwatt: {self.path}: {e.strerror}: no more windows are logged", stacklevel=2)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
