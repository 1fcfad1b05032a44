"""A fit of Keras on PyTorch, as test-keras.py wants it: train-keras.py FOLDER."""
import csv
import pathlib
import sys
import threading
import warnings

import keras
import numpy

import trained
import underwatt
from underwatt.keras import UnderwattCallback
from underwatt.testing import SimLoad

FOLDER = pathlib.Path(sys.argv[1])
seen = {"train": set(), "validate": set()}


class Board(keras.callbacks.Callback):
    """Does on the simulated board what the model does; before Underwatt's callback."""

    def __init__(self, load, fails_at=None):
        super().__init__()
        self.load, self.fails_at, self.joules = load, fails_at, []
        self.train, self.validate = [], []    # true energy of each epoch's

    def true_j(self):
        return self.load.phase("load", seconds=0.001).wait().energy_j

    def on_train_begin(self, logs=None):
        self.joules.append(self.true_j())

    on_train_end = on_train_begin

    def on_epoch_begin(self, epoch, logs=None):
        self.train.append(-self.true_j())

    def on_test_begin(self, logs=None):
        now = self.true_j()
        self.train[-1] += now
        self.validate.append(-now)

    def on_test_end(self, logs=None):
        self.validate[-1] += self.true_j()

    def on_train_batch_end(self, batch, logs=None):
        seen["train"].add(trained.phase())
        self.load.step().wait()
        if batch == self.fails_at:
            raise KeyError("batch")

    def on_test_batch_end(self, batch, logs=None):
        seen["validate"].add(trained.phase())
        self.load.phase("validate", steps=2).wait()


def fit(load, callback, epochs, n=40, fails_at=None):
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    x, y = numpy.random.rand(n, 8), numpy.random.rand(n, 1)
    board = Board(load, fails_at)
    history = model.fit(x, y, batch_size=4, epochs=epochs, validation_data=(x[:8], y[:8]), verbose=0,
                        callbacks=[board, callback, keras.callbacks.CSVLogger(FOLDER / "log.csv")])
    return history.history, board


def main():
    with SimLoad(boards=[0]) as load:
        callback = UnderwattCallback(gco2e_kwh=400)
        error = ""
        try:
            fit(load, UnderwattCallback(gco2e_kwh=400), 1, fails_at=3)
        except KeyError:
            error = "batch"
        before = underwatt.steps()
        history, board = fit(load, callback, 3)
        steps = underwatt.steps() - before
        threads = [t.name for t in threading.enumerate() if t.name == "underwatt-training"]
        with open(FOLDER / "log.csv", encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            fit(load, UnderwattCallback(gpus=[9]), 1)
        few, truth = fit(load, UnderwattCallback(), 5, n=8)
        trained.told(history=history, joules=board.joules, metrics=callback.metrics, rows=rows, error=error, steps=steps,
                     warned=[[str(w.message), pathlib.Path(w.filename).name] for w in warned if "underwatt" in str(w.message)], few=few, train=truth.train, validate=truth.validate,
                     threads=threads, seen={key: sorted(value) for key, value in seen.items()})


main()
