#!/usr/bin/python3
"""Examples of Zeus' source on underwatt.compat.zeus and driven boards.

Three run as they are; two with the edits below.  Models are tiny and data made here: nothing is downloaded.
"""
import json
import os
import pathlib
import sys

import zeususer
from zeususer import pyuser, uwtest

t = uwtest.Tap()
AT_ONCE = "caps: {classes: {default: {ramp: at once}}}\n"
LAUNCH = ["-m", "underwatt.compat.zeus"]
ONCPU = ["-m", "underwatt.testing.oncpu"]
RANKS = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

IMAGES = r"""
import pathlib, random, sys
from PIL import Image
for part, n in (("train", int(sys.argv[2])), ("val", 4)):
    for i in range(n):
        folder = pathlib.Path(sys.argv[1], part, "ab"[i % 2])
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), tuple(random.randrange(256) for _ in range(3))).save(folder / f"{i}.png")
"""
# MNIST's own files, with noise in them.
DIGITS = r"""
import os, pathlib, struct, sys
raw = pathlib.Path(sys.argv[1], "data", "MNIST", "raw")
raw.mkdir(parents=True)
for part, n in (("train", 512), ("t10k", 64)):
    (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + os.urandom(n * 784))
    (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + bytes(x % 10 for x in os.urandom(n)))
"""
TEXT = " ".join(f"the cap of board {i % 7} is {100 + i % 50} W and it is held by nobody" for i in range(400))
# A word-level tokenizer of TEXT and a model of some thousand weights.
MODEL = r"""
import json, pathlib, sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
folder, text, kind = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(), sys.argv[3]
words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train_from_iterator([text], trainers.WordLevelTrainer(special_tokens=["[UNK]", "[EOS]"]))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", eos_token="[EOS]", model_max_length=64)
tokenizer.save_pretrained(folder)
size = {"gpt2": dict(n_embd=16, n_layer=1, n_head=2, n_positions=64),
        "gemma": dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=8,
                      intermediate_size=32, max_position_embeddings=64)}[kind]
config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=1, pad_token_id=1, **size)
AutoModelForCausalLM.from_config(config).save_pretrained(folder)
"""

# What today's libraries and a machine without GPUs want otherwise: (before, after).
FSDP_EDITS = [
    ("from torch.distributed.fsdp import FullyShardedDataParallel as FSDP", "from torch.nn.parallel import DistributedDataParallel as FSDP"),
    ("    local_rank = args.local_rank  #", "    local_rank = int(os.environ['LOCAL_RANK'])  #"),
    ("    init_start_event = torch.cuda.Event(enable_timing=True)\n", ""),
    ("    init_end_event = torch.cuda.Event(enable_timing=True)\n", ""),
    ("    init_start_event.record()\n", ""),
    ("    init_end_event.record()\n", ""),
    ("        print(f\"CUDA event elapsed time: {init_start_event.elapsed_time(init_end_event) / 1000}sec\")\n", ""),
]
SFT_EDITS = [
    ("AutoModelForCausalLM, BitsAndBytesConfig, TrainingArguments", "AutoModelForCausalLM"),
    ("from trl import SFTTrainer", "from trl import SFTConfig, SFTTrainer"),
    ("model_id = \"google/gemma-7b\"", "model_id = script_args.model_name"),
    ("quantization_config = BitsAndBytesConfig(\n    load_in_4bit=True,\n    bnb_4bit_compute_dtype=torch.float16,\n"
     "    bnb_4bit_quant_type=\"nf4\"\n)\n", ""),
    ("    quantization_config=quantization_config, \n    torch_dtype=torch.float32,\n", "    dtype=torch.float32,\n"),
    ("load_dataset(script_args.dataset_name, split=\"train[:5%]\")", "load_dataset(\"json\", data_files=script_args.dataset_name, split=\"train\")"),
    ("training_arguments = TrainingArguments(", "training_arguments = SFTConfig(\n    packing=script_args.packing,\n    max_length=script_args.max_seq_length,"),
    ("    packing=script_args.packing,\n    dataset_text_field=\"id\",\n    tokenizer=tokenizer,\n    max_seq_length=script_args.max_seq_length,\n",
     "    processing_class=tokenizer,\n"),
    ("    warmup_ratio=script_args.warmup_ratio,\n", ""),
]


def told(text):
    """The first traceback, and the last lines."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if "Traceback" in line), len(lines))
    return "\n".join([*lines[at:at + 25][-25:], "…", *lines[-12:]])


def edited(source, edits, path):
    text = source.read_text()
    for before, after in edits:
        uwtest.must(text.count(before) == 1, f"{source.name} has once:", before)
        text = text.replace(before, after)
    path.write_text(text)
    return path


def jobs(daemon):
    return [job for job in daemon.ask("GET", "/v1/jobs")[1]["jobs"] if job["source"] == "run"]


def example(name, words, goal, boards, python, said):
    """Makes a world, runs the words that words(tmp) returns, and looks at what the daemon heard."""
    with uwtest.Node(board="v100", count=2, speed=5) as node:
        daemon = node.daemon(AT_ONCE)
        tmp = pathlib.Path(node.tmp)
        args = words(node, tmp)
        p = node.run(python or zeususer.python(), "-W", "ignore", *LAUNCH, *args, cwd=tmp, timeout=600,
                     env={**zeususer.ENV, "HF_HOME": tmp / "hf", "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(boards)))})
        if not t.ok(p.returncode == 0 and all(word in p.stdout for word in said), f"{name}: runs", p.stdout[-1500:] + told(p.stderr)):
            return
        found = jobs(daemon)
        if not found:
            print("# " + "\n# ".join((daemon.log() + p.stderr)[-2500:].splitlines()))
        t.equal([len(found), sorted({g for job in found for g in job["gpus_so_far"]})], [1, list(range(boards))], f"{name}: one job, on its boards")
        t.equal([job["search"] and job["search"]["goal"] for job in found], [goal], f"{name}: its selector is the goal")
        t.ok(found[0]["energy_j"] > 0, f"{name}: its energy is booked", found)
        t.ok(uwtest.wait_for(lambda: all(node.board(i)["limit_mw"] == 300000 for i in range(2))), f"{name}: the limits are those found", node.status())


def made(node, code, *args, python=None):
    p = node.run(python or zeususer.python(), "-W", "ignore", "-c", code, *args, env=zeususer.ENV, timeout=300)
    uwtest.must(p.returncode == 0, p.stderr[-2000:])


def main():
    source, why = pyuser.zeus_source()
    if not source:
        uwtest.skip_all(why)
    limit, face = source / "examples" / "power_limit_optimizer", source / "examples" / "huggingface"
    small = ["-a", "shufflenet_v2_x0_5", "-j", "1"]

    def single(node, tmp):
        made(node, IMAGES, tmp / "images", 100)
        return [*ONCPU, limit / "train_single.py", tmp / "images", *small, "-b", "2", "--epochs", "2"]

    def dp(node, tmp):
        made(node, IMAGES, tmp / "images", 160)
        return [*RANKS, *ONCPU, limit / "train_dp.py", tmp / "images", *small, "-b", "4", "--epochs", "2"]

    def fsdp(node, tmp):
        made(node, DIGITS, tmp)
        return [*RANKS, *ONCPU, edited(limit / "train_fsdp.py", FSDP_EDITS, tmp / "train_fsdp.py"), "--epochs", "20", "--batch-size", "16",
                "--test-batch-size", "64"]

    def sft(node, tmp):
        (tmp / "text.txt").write_text(TEXT)
        made(node, MODEL, tmp / "model", tmp / "text.txt", "gemma")
        (tmp / "chat.json").write_text("\n".join(json.dumps({"id": str(i), "data": TEXT.split(" and ")[i:i + 2]}) for i in range(200)))
        return [*ONCPU, edited(face / "run_gemma_sft_qlora.py", SFT_EDITS, tmp / "sft.py"), "--model_name", tmp / "model", "--dataset_name",
                tmp / "chat.json", "--max_steps", "150", "--max_seq_length", "32", "--packing", "false", "--optim", "adamw_torch", "--save_steps", "1000",
                "--gradient_accumulation_steps", "1", "--gradient_checkpointing", "false"]

    older, why = pyuser.frameworks_clm()

    def clm(node, tmp):
        (tmp / "text.txt").write_text("\n".join([TEXT[:1500]] * 100))
        made(node, MODEL, tmp / "model", tmp / "text.txt", "gpt2", python=older)
        return [*ONCPU, face / "run_clm.py", "--model_name_or_path", tmp / "model", "--train_file", tmp / "text.txt", "--do_train", "--output_dir",
                tmp / "out", "--per_device_train_batch_size", "2", "--block_size", "32", "--max_steps", "200", "--report_to", "none"]

    cases = {"train_single": (single, "slowdown:1.1", 1, None, ["Top-1 accuracy"]), "train_dp": (dp, "slowdown:1.1", 2, None, ["Top-1 accuracy"]),
             "train_fsdp": (fsdp, "cost:0.5", 2, None, ["Train Epoch: 20"]), "run_gemma_sft_qlora": (sft, "cost:0.5", 1, None, ["train_runtime"]),
             "run_clm": (clm, "cost:0.5", 1, older, ["train_runtime"])}
    for name in sys.argv[1:] or cases:
        if name == "run_clm" and not older:
            t.skip(name, why)
            continue
        example(name, *cases[name])
    t.done()


if __name__ == "__main__":
    os.environ.pop("LOCAL_RANK", None)
    main()
