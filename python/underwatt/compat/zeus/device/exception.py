"""Base classes of what devices raise."""

from __future__ import annotations

from ..exception import ZeusBaseError


class ZeusBaseGPUError(ZeusBaseError):
    """Of GPUs."""


class ZeusBaseCPUError(ZeusBaseError):
    """Of processors."""


class ZeusBaseSoCError(ZeusBaseError):
    """Of systems on a chip."""


class ZeusdError(ZeusBaseGPUError):
    """Of zeusd, which this package does not ask."""
