"""A training of Transformers, as test-hf.py wants it: train-hf.py MODE FOLDER."""
import glob
import os
import pathlib
import sys
import threading
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import trained
import underwatt.hf

MODE, FOLDER = sys.argv[1:]
WORDS = 64
seen = {"train": set(), "validate": set(), "checkpoint": set()}
gaps = []


def used(model, _):
    gaps.append(time.monotonic())
    if "UNDERWATT_PROGRESS" in os.environ:
        seen["train" if model.training else "validate"].add(trained.phase())


class Model(GPT2LMHeadModel):
    """Notes the phase in the page whenever it is used."""

    def save_pretrained(self, *args, **kwargs):
        if "UNDERWATT_PROGRESS" in os.environ:
            seen["checkpoint"].add(trained.phase())
        return super().save_pretrained(*args, **kwargs)


class Fails(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 14:
            raise KeyError("step 14")


class Waits(TrainerCallback):
    """At step 5, until the test has stopped the daemon."""

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 5:
            pathlib.Path(FOLDER, "five").touch()
            while not pathlib.Path(FOLDER, "stopped").exists():
                time.sleep(0.05)
            gaps.clear()


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(WORDS - 3))])}
    built = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=built, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def model():
    torch.manual_seed(1)
    made = Model(GPT2Config(vocab_size=WORDS, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1,
                            pad_token_id=0, loss_type="ForCausalLM"))
    made.register_forward_pre_hook(used)
    return made


def arguments(kind, **more):
    return kind(output_dir=FOLDER, per_device_train_batch_size=4, logging_steps=8, report_to=["tensorboard"], disable_tqdm=True,
                include_num_input_tokens_seen="all", **{"max_steps": 32, "save_strategy": "no", **more})


def trainer(**more):
    data = [{"input_ids": torch.randint(0, WORDS, (16,)), "labels": torch.randint(0, WORDS, (16,))} for _ in range(200)]
    return Trainer(model=model(), args=arguments(TrainingArguments, **more), train_dataset=data, eval_dataset=data[:16])


def sft_trainer():
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer
    data = Dataset.from_list([{"text": " ".join(f"w{(i * k) % 60}" for k in range(1, 15))} for i in range(200)])
    return SFTTrainer(model=model(), args=arguments(SFTConfig, max_length=16), train_dataset=data, processing_class=tokenizer())


def watched(made, truth):
    """The true energy at both ends of the training, outside of what is attached."""
    class Begins(TrainerCallback):
        def on_train_begin(self, *args, **kwargs):
            truth.append(trained.true_j())
    made.callback_handler.callbacks.insert(0, Begins())
    log = made.log

    def last(logs, *args, **kwargs):
        if "train_loss" in logs:
            truth.append(trained.true_j())
        return log(logs, *args, **kwargs)
    made.log = last


def scalars():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = {}
    for path in glob.glob(f"{FOLDER}/**/events.out.tfevents.*", recursive=True):
        events = EventAccumulator(path)
        events.Reload()
        for tag in events.Tags()["scalars"]:
            found[tag] = [[e.step, e.value] for e in events.Scalars(tag)]
    return found


def whole():
    made = sft_trainer() if MODE == "sft" else trainer(eval_strategy="steps", eval_steps=16, save_strategy="steps", save_steps=16)
    underwatt.hf.attach(made, gco2e_kwh=400)
    truth = []
    watched(made, truth)
    result = made.train()
    trained.told(history=made.state.log_history, metrics=result.metrics, truth=truth, scalars=scalars(),
                 seen={key: sorted(value) for key, value in seen.items()}, rank=int(os.environ.get("RANK", "0")),
                 steps=underwatt.steps(), tokens=made.state.num_input_tokens_seen)


def fails():
    """A training that raises, and one that goes on from its checkpoint."""
    first = trainer(save_strategy="steps", save_steps=10)
    callback = underwatt.hf.attach(first, "edp")
    first.add_callback(Fails())
    jobs, error = [], ""

    class Looks(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            jobs.append(callback._recorder._optimizer.job)
            until = time.monotonic() + 60
            while state.global_step == 5 and not callback._recorder.total_j() and time.monotonic() < until:
                pass    # the next entry has an energy, however busy the machine is
    first.add_callback(Looks())
    try:
        first.train()
    except KeyError as e:
        error = str(e)
    left = [t.name for t in threading.enumerate() if t.name == "underwatt-training"]
    ended = callback._recorder.running, callback._recorder._optimizer is None, left
    second = trainer(max_steps=20)
    underwatt.hf.attach(second)
    second.train(resume_from_checkpoint=f"{FOLDER}/checkpoint-10")
    trained.told(error=error, jobs=jobs, ended=ended, first=first.state.log_history, history=second.state.log_history,
                 saved=first.state.stateful_callbacks.get("underwatt"))


class Searched(TrainerCallback):
    """Ends the training of all ranks once the daemon has measured two caps for each."""

    def __init__(self, callback):
        self.callback, self.until, self.job, self.caps = callback, time.monotonic() + 120, 0, 0

    def on_step_end(self, args, state, control, **kwargs):
        status = self.callback._recorder._optimizer.status
        self.job, self.caps = status.job, status.caps
        done = torch.tensor([self.caps >= 2 or time.monotonic() > self.until], dtype=torch.int)
        torch.distributed.all_reduce(done, torch.distributed.ReduceOp.MIN)
        control.should_training_stop = bool(done.item())


def search():
    made = trainer(max_steps=100_000)
    searched = Searched(underwatt.hf.attach(made, "energy"))
    made.add_callback(searched)
    truth = []
    watched(made, truth)
    made.train()
    trained.told(history=made.state.log_history, truth=truth, rank=int(os.environ["RANK"]), job=searched.job, caps=searched.caps)


def plain():
    """A callback alone; in a world without boards, or whose daemon stops."""
    made = trainer(max_steps=30 if MODE == "hangs" else 5)
    made.add_callback(underwatt.hf.UnderwattCallback())
    if MODE == "hangs":
        made.add_callback(Waits())
    made.train()
    steps = sorted(b - a for a, b in zip(gaps, gaps[1:]))
    trained.told(history=made.state.log_history, steps=underwatt.steps(), longest=steps[-1])


if MODE in ("train", "sft", "ranks"):
    whole()
elif MODE == "search":
    search()
elif MODE == "fails":
    fails()
else:
    plain()
