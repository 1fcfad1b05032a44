"""A fit of Lightning, as test-lightning.py wants it: train-lightning.py FOLDER."""
import csv
import pathlib
import sys

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import trained
from underwatt.lightning import UnderwattCallback

FOLDER = pathlib.Path(sys.argv[1])
seen = {"train": set(), "validate": set(), "checkpoint": set()}


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        seen["train"].add(trained.phase())
        return self.layer(batch[0]).square().mean()

    def validation_step(self, batch, batch_idx):
        if not self.trainer.sanity_checking:
            seen["validate"].add(trained.phase())
        self.log("val_loss", self.layer(batch[0]).square().mean())

    def on_save_checkpoint(self, checkpoint):
        seen["checkpoint"].add(trained.phase())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Truth(Callback):
    """At both ends of a fit; before Underwatt's."""

    def __init__(self):
        self.joules = []

    def on_train_start(self, trainer, pl_module):
        self.joules.append(trained.true_j())

    def on_train_end(self, trainer, pl_module):
        self.joules.append(trained.true_j())


class Fails(Callback):
    def on_train_batch_end(self, trainer, pl_module, *args):
        if trainer.global_step == 14:
            raise KeyError("step 14")


def loader(n):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(n, 8)), batch_size=4)


def fit(steps, *callbacks, resume=None, **more):
    callback, truth = UnderwattCallback(gco2e_kwh=400), Truth()
    trainer = Trainer(accelerator="cpu", max_steps=steps, log_every_n_steps=8, enable_progress_bar=False, enable_model_summary=False,
                      default_root_dir=FOLDER, callbacks=[truth, callback, *callbacks], **more)
    error = ""
    try:
        trainer.fit(Model(), loader(400), loader(8), ckpt_path=resume)
    except KeyError as e:
        error = str(e)
    return {"metrics": callback.metrics, "truth": truth.joules, "error": error, "running": callback._recorder.running,
            "total_j": callback.state_dict()["energy_total_j"]}


def main():
    saves = ModelCheckpoint(dirpath=FOLDER / "saved", every_n_train_steps=10, save_top_k=-1, filename="{step}")
    whole = fit(32, val_check_interval=16, logger=[CSVLogger(FOLDER, "csv"), TensorBoardLogger(FOLDER, "board")])
    failed = fit(20, Fails(), saves, logger=False, limit_val_batches=0)
    saved = FOLDER / "saved" / "step=10.ckpt"
    state = next(value for key, value in torch.load(saved, weights_only=False)["callbacks"].items() if "Underwatt" in key)
    resumed = fit(16, logger=False, limit_val_batches=0, resume=saved)
    with open(next(FOLDER.glob("csv/**/metrics.csv")), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    events = EventAccumulator(str(next(FOLDER.glob("board/**/events.*")).parent))
    events.Reload()
    scalars = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    trained.told(whole=whole, failed=failed, resumed=resumed, saved_j=state["energy_total_j"], rows=rows, scalars=scalars,
                 seen={key: sorted(value) for key, value in seen.items()})


main()
