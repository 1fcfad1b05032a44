"""Keras 3: the energy of each epoch in fit()'s logs (docs/python-frameworks.md).

history = model.fit(x, y, epochs=5, callbacks=[underwatt.keras.UnderwattCallback()])
history.history["energy_j"]
"""

from __future__ import annotations

import os
from typing import Any

from keras.callbacks import Callback

from ._ranks import ranks_of
from ._training import WAIT_S, Recorder


class UnderwattCallback(Callback):
    """Steps, phases, and energy, power, cap and gCO2e of each epoch, for the callbacks after it and the history.

    optimizer: an Optimizer; a goal, for which one is created; or None.
    options: gpus, gco2e_kwh, boards, socket and local, as of Monitor.
    Keras calls no callback for an exception: the optimizer and the cap of a fit() that raises end when the next
    training of this process begins, or with the process.
    """

    def __init__(self, optimizer: Any = None, **options: Any) -> None:
        super().__init__()
        self._recorder = Recorder(optimizer, options)
        self._batch = -1
        self.metrics: dict[str, float] = {}
        """Of the last fit(), as a whole."""

    def on_train_begin(self, logs: Any = None) -> None:
        self._recorder.begin(measure=ranks_of(os.environ).rank == 0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._batch = -1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        steps, self._batch = batch - self._batch, batch  # several, by steps_per_execution
        self._recorder.step(steps=steps)

    def on_test_begin(self, logs: Any = None) -> None:
        self._recorder.phase("validate")

    def on_test_end(self, logs: Any = None) -> None:
        self._recorder.phase("train")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._recorder.epoch()
        entry = self._recorder.entry(WAIT_S)
        entry.update(self._recorder.of_phase("validate", "val_", wait_s=0))  # known by then
        if isinstance(logs, dict):
            logs.update(entry)

    def on_train_end(self, logs: Any = None) -> None:
        self.metrics = self._recorder.whole("train_")
        self._recorder.end()


__all__ = ["UnderwattCallback"]
