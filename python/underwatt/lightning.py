"""Lightning: the energy of a fit in its loggers (docs/python-frameworks.md).

trainer = Trainer(callbacks=[underwatt.lightning.UnderwattCallback()])
"""

from __future__ import annotations

import sys
from typing import Any

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

from ._training import Recorder


def _samples(batch: Any) -> int:
    """Samples of a batch: the first dimension of the first tensor in it; 0: unknown."""
    while isinstance(batch, (list, tuple, dict)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape: Any = getattr(batch, "shape", ())
    return int(shape[0]) if len(shape) else 0


class UnderwattCallback(Callback):
    """Steps, phases, and energy, power, cap and gCO2e every log_every_n_steps, for the process that logs.

    optimizer: an Optimizer; a goal, for which one is created; or None.
    options: gpus, gco2e_kwh, boards, socket and local, as of Monitor; gpus are by default those of the trainer.
    """

    def __init__(self, optimizer: Any = None, **options: Any) -> None:
        self._recorder = Recorder(optimizer, options)
        self._step = self._samples = 0
        self._total_j = 0.0
        self.metrics: dict[str, float] = {}
        """Of the last fit, as a whole."""

    # ---- training ----

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step, self._samples = trainer.global_step, 0
        gpus = trainer.device_ids if trainer.strategy.root_device.type == "cuda" else None
        self._recorder.begin(measure=trainer.is_global_zero, earlier_j=self._total_j, gpus=gpus)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._recorder.phase("train")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._samples += _samples(batch) * trainer.world_size
        if trainer.global_step == self._step:  # gradients are accumulated
            return
        self._recorder.step(samples=self._samples)
        self._step, self._samples = trainer.global_step, 0
        if trainer._logger_connector.should_update_logs:
            self._log(pl_module, self._recorder.entry(), on_step=True, on_epoch=False)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._recorder.epoch()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        whole = self._recorder.whole("train_")
        self.metrics = {**self._recorder.entry(), **whole}
        self._end()
        for logger in trainer.loggers if self.metrics else ():
            logger.log_metrics(self.metrics, step=trainer.global_step)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._end()

    # ---- other phases ----

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._recorder.phase("validate")

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._recorder.running:
            self._log(pl_module, self._recorder.of_phase("validate", "val_"), on_step=False, on_epoch=True)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._recorder.phase("train")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._recorder.phase("checkpoint")  # until the next batch

    def state_dict(self) -> dict[str, Any]:
        """A fit that continues from a checkpoint continues the sums."""
        total_j = self._recorder.total_j()
        return {"energy_total_j": self._total_j if total_j is None else total_j}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._total_j = float(state_dict["energy_total_j"])

    def _end(self) -> None:
        if self._recorder.running:
            self._total_j = self._recorder.total_j(wait=False) or self._total_j
            self._recorder.end()

    @staticmethod
    def _log(pl_module: Any, entry: dict[str, float], **when: bool) -> None:
        if entry:
            pl_module.log_dict(entry, batch_size=1, rank_zero_only=True, **when)


__all__ = ["UnderwattCallback"]
