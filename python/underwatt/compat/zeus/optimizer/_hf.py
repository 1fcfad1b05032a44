"""GlobalPowerLimitOptimizer as a callback of Hugging Face's Trainer."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from ..monitor import ZeusMonitor
from ._choices import OptimumSelector
from .power_limit import GlobalPowerLimitOptimizer


def _base() -> tuple[Any, bool]:
    try:
        return importlib.import_module("transformers.trainer_callback").TrainerCallback, True
    except ModuleNotFoundError:
        return object, False


_TrainerCallback: Any
_TrainerCallback, _found = _base()


class HFGlobalPowerLimitOptimizer(_TrainerCallback):  # type: ignore[misc]
    """GlobalPowerLimitOptimizer as a callback of Transformers' Trainer and TRL's SFTTrainer, with its parameters."""

    def __init__(
        self,
        monitor: ZeusMonitor,
        optimum_selector: OptimumSelector | None = None,
        wait_steps: int = 1,
        warmup_steps: int = 10,
        profile_steps: int = 40,
        pl_step: int = 25,
        profile_path: str | Path | None = None,
        *,
        search: str | None = None,
    ) -> None:
        if not _found:
            raise ImportError("HFGlobalPowerLimitOptimizer needs the package transformers, which is not installed")
        self.optimizer = GlobalPowerLimitOptimizer(
            monitor,
            optimum_selector,
            wait_steps,
            warmup_steps,
            profile_steps,
            pl_step,
            profile_path,
            search=search,
        )

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.optimizer.on_epoch_begin()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.optimizer.on_epoch_end()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.optimizer.on_step_begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.optimizer.on_step_end()
