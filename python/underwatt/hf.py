"""Hugging Face: the energy of a Trainer's training in its log (docs/python-frameworks.md).

    trainer = Trainer(…)                  # or TRL's SFTTrainer
    underwatt.hf.attach(trainer)
    trainer.train()

Every process of a distributed training attaches; the first one measures and logs.
"""

from __future__ import annotations

import functools
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import DefaultFlowCallback

from ._errors import InvalidValue
from ._training import Recorder

STATE = "underwatt"  # in trainer_state.json


class UnderwattCallback(TrainerCallback):
    """A callback alone: `Trainer(…, callbacks=[UnderwattCallback()])` reports steps and phases, and callbacks after it
    get its figures.  The reporters come before it, and a callback cannot change log_history; attach() reaches both.
    Callbacks are not called for an exception: the optimizer and the cap of a training that raises end when the next
    training of this process begins, or with the process.

    optimizer: an Optimizer; a goal, for which one is created; or None.
    options: gpus, gco2e_kwh, boards, socket and local, as of Monitor.
    """

    def __init__(self, optimizer: Any = None, **options: Any) -> None:
        self._recorder = Recorder(optimizer, options)
        self._attached = False
        self._tokens = 0
        self._samples = 0

    # ---- the trainer's events ----

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._tokens = state.num_input_tokens_seen
        self._samples = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        before = (state.stateful_callbacks or {}).get(STATE, {}) if state.global_step else {}
        self._recorder.begin(measure=state.is_world_process_zero, earlier_j=float(before.get("energy_total_j") or 0.0))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.phase("train")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        tokens, self._tokens = state.num_input_tokens_seen - self._tokens, state.num_input_tokens_seen
        self._recorder.step(samples=self._samples, tokens=tokens)
        self._ends(state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.epoch()
        self._ends(state, control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.phase("validate")  # another callback has requested it

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.phase("checkpoint" if control.should_save else "train")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.phase("train")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not self._attached and isinstance(logs, dict):
            logs.update(self.entry(logs))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.end()

    # ---- what follows ----

    def _ends(self, state: Any, control: Any) -> None:
        """A step or an epoch has ended: no event reports that an evaluation or a checkpoint begins."""
        if not self._recorder.running:
            return
        if control.should_save:
            total_j = self._recorder.total_j()
            if total_j is not None:
                state.stateful_callbacks[STATE] = {"energy_total_j": total_j}
        if control.should_evaluate:
            self._recorder.phase("validate")
        elif control.should_save:
            self._recorder.phase("checkpoint")

    def entry(self, logs: dict[str, Any]) -> dict[str, float]:
        """Figures for an entry of the log: the keys show which entry it is."""
        if logs.keys() >= {"train_runtime", "train_loss"}:
            whole = self._recorder.whole("train_")
            return {**self._recorder.entry(), **whole}
        runtime = next((key for key in logs if key.endswith("_runtime")), None)
        if runtime is not None and "loss" not in logs:
            return self._recorder.of_phase("validate", runtime.removesuffix("runtime"))
        return self._recorder.entry()


def attach(trainer: Any, optimizer: Any = None, **options: Any) -> UnderwattCallback:
    """Puts energy, power, cap and gCO2e into every entry of trainer's log: state.log_history, and the output of its
    reporters.  A training that fails closes the optimizer that was created for it.  Arguments as of
    UnderwattCallback."""
    handler = trainer.callback_handler
    if any(isinstance(each, UnderwattCallback) for each in handler.callbacks):
        raise InvalidValue("this trainer has an UnderwattCallback already")
    callback = UnderwattCallback(optimizer, **options)
    callback._attached = True
    # After the one that decides whether to evaluate and to save, before all others.
    flow = [i for i, each in enumerate(handler.callbacks) if isinstance(each, DefaultFlowCallback)]
    handler.callbacks.insert(flow[0] + 1 if flow else 0, callback)
    log, train = trainer.log, trainer.train

    @functools.wraps(log)
    def with_energy(logs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        logs.update(callback.entry(logs))
        return log(logs, *args, **kwargs)

    @functools.wraps(train)
    def to_its_end(*args: Any, **kwargs: Any) -> Any:
        try:
            return train(*args, **kwargs)
        finally:
            callback._recorder.end()

    trainer.log, trainer.train = with_energy, to_its_end
    return callback


__all__ = ["UnderwattCallback", "attach"]
