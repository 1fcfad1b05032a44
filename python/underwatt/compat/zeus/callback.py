"""Callbacks of a training loop."""

from __future__ import annotations


class Callback:
    """Hooks that do nothing, to be overridden."""

    def on_train_begin(self) -> None:
        """Training begins."""

    def on_train_end(self) -> None:
        """Training has ended."""

    def on_epoch_begin(self) -> None:
        """An epoch begins."""

    def on_epoch_end(self) -> None:
        """An epoch has ended."""

    def on_step_begin(self) -> None:
        """A step begins."""

    def on_step_end(self) -> None:
        """A step has ended."""

    def on_evaluate(self, metric: float) -> None:
        """The model was evaluated."""

    def on_instruction_begin(self, name: str) -> None:
        """A part of a step begins, such as "forward"."""

    def on_instruction_end(self, name: str) -> None:
        """A part of a step has ended."""


class CallbackSet(Callback):
    """Several callbacks as one: each hook calls those of all, in order."""

    def __init__(self, callbacks: list[Callback]) -> None:
        self.callbacks = callbacks

    def on_train_begin(self) -> None:
        for each in self.callbacks:
            each.on_train_begin()

    def on_train_end(self) -> None:
        for each in self.callbacks:
            each.on_train_end()

    def on_epoch_begin(self) -> None:
        for each in self.callbacks:
            each.on_epoch_begin()

    def on_epoch_end(self) -> None:
        for each in self.callbacks:
            each.on_epoch_end()

    def on_step_begin(self) -> None:
        for each in self.callbacks:
            each.on_step_begin()

    def on_step_end(self) -> None:
        for each in self.callbacks:
            each.on_step_end()

    def on_evaluate(self, metric: float) -> None:
        for each in self.callbacks:
            each.on_evaluate(metric)

    def on_instruction_begin(self, name: str) -> None:
        for each in self.callbacks:
            each.on_instruction_begin(name)

    def on_instruction_end(self, name: str) -> None:
        for each in self.callbacks:
            each.on_instruction_end(name)
