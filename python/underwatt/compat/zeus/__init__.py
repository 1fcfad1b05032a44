"""The interface of Zeus 0.16, implemented with Underwatt (docs/zeus.md).

`import underwatt.compat.zeus as zeus`, or `python -m underwatt.compat.zeus SCRIPT` for an unchanged program.
"""

from __future__ import annotations

import importlib
import logging
from types import ModuleType

from ._names import MODULES, install

__version__ = "0.16.0"  # of the interface

logging.getLogger(__name__).addHandler(logging.NullHandler())
install(__name__)


def __getattr__(name: str) -> ModuleType:
    """Makes zeus.monitor available without an import of its own."""
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
