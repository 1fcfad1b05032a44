"""%%energy: the energy of a notebook's cell.  `%load_ext underwatt` adds it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ._errors import UnderwattError
from ._monitor import window


def register(shell: Any) -> None:
    def energy(line: str, cell: str) -> None:
        """%%energy [NAME]: runs the cell, then shows the energy of the boards in that time, with their power over
        time."""
        with window(line.strip() or "cell", samples=True) as w:
            result = shell.run_cell(cell)
        if result.error_before_exec or result.error_in_exec:
            return  # IPython has shown the error
        try:
            measured = w.energy
        except UnderwattError as e:
            sys.stderr.write(f"underwatt: {e}\n")
            return
        _display(measured)

    shell.register_magic_function(energy, magic_kind="cell", magic_name="energy")


def _display(measured: object) -> None:
    importlib.import_module("IPython.display").display(measured)
