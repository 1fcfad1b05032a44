#!/usr/bin/python3
"""underwatt.hf: tiny models trained by Trainer and SFTTrainer on simulated boards.  What stands in their logs and in TensorBoard's
file against the boards' true energy; phases; two ranks; a training that raises and is resumed; no board, a daemon that hangs."""
import json
import math
import os
import pathlib
import signal
import subprocess
import tempfile

import fwuser
import pyuser
import uwtest

t = uwtest.Tap()
PROGRAM = fwuser.HERE / "train-hf.py"
STEPS = 32
REQUEST_S = 10    # that a daemon may keep a request
ENERGY = ("energy_j", "power_w", "energy_total_j", "gco2e_total", "cap_w")
EACH = ("energy_per_step_j", "energy_per_sample_j", "energy_per_token_j")


def begin(node, folder, mode, board, *launcher, page=True, **env):
    """The program, begun, on a board; with a progress page, as `underwatt run` makes one."""
    place = pathlib.Path(folder, mode)
    place.mkdir()
    if page:
        env["UNDERWATT_PROGRESS"] = fwuser.page(place)
    with open(place / "err", "w", encoding="utf-8") as err:
        return fwuser.begun(node, PROGRAM, mode, place / "out", launcher=launcher, stderr=err, CUDA_VISIBLE_DEVICES=board, **env), place


def energies(name, row, boards=1):
    """Log entries, TensorBoard, and the true energy."""
    logs = [e for e in row["history"] if "loss" in e]
    last = row["history"][-1]
    # On a busy machine an energy may be known later, and that of no step with a part of it.
    have, steps = ([e for e in logs if key in e] for key in ("energy_j", "energy_per_step_j"))
    t.ok(len(logs) == 4 and len(have) >= 2 and all(key in e for e in have for key in ENERGY) and
         len(steps) >= 2 and all(key in e for e in steps for key in ENERGY + EACH), f"{name}: entries have energy, power, cap and gCO2e", logs)
    parts = math.fsum(e.get("energy_j", 0) for e in row["history"])
    t.near(parts, last["energy_total_j"], 1e-6 * parts, "… entries add up to the total")
    t.near(last["train_energy_j"], last["energy_total_j"], 1e-6, "… which is the training's")
    t.near(row["metrics"]["train_energy_j"], last["train_energy_j"], 0, "… and in the metrics that train() returns")
    t.near(last["gco2e_total"], last["energy_total_j"] / 3.6e6 * 400, 1e-9, "… gCO2e follow from it")
    t.equal({e["cap_w"] for e in row["history"] if "cap_w" in e}, {300.0}, "… the cap is the boards'")
    if boards == 1:
        true = row["truth"][1] - row["truth"][0]
        t.near(last["train_energy_j"] / true, 1, 0.03, f"… {last['train_energy_j']:.0f} J, true {true:.0f} J (simulated)")
    per_step = last["train_energy_per_step_j"]
    t.near(per_step / last["train_energy_per_sample_j"], 4 * boards, 1e-6, f"… {per_step:.1f} J a step, of {4 * boards} samples")
    t.near(per_step * STEPS / row["tokens"] / last["train_energy_per_token_j"], 1, 1e-6, "… and of so many tokens")
    t.equal(row["steps"], STEPS, "… each step is told")
    tags = row["scalars"]
    for key in ("energy_j", "power_w", "cap_w", "gco2e_total"):
        of_step = {step: value for step, value in tags.get(f"train/{key}", []) if step < STEPS}    # the last has two entries
        t.ok(of_step and all(math.isclose(of_step[e["step"]], e[key], rel_tol=1e-5) for e in have if e["step"] < STEPS), f"… TensorBoard's file has train/{key}", tags)


def phases(row):
    t.equal(row["seen"], {"train": ["train"], "validate": ["validate"], "checkpoint": ["checkpoint"]},
            "Trainer: the page has the phase of what the model does")
    entries = [e for e in row["history"] if "eval_loss" in e]
    t.ok(len(entries) == 2 and all(e.get("eval_energy_j", 0) > 0 for e in entries), "… an evaluation has its energy", entries)


def ranks(rows):
    rows.sort(key=lambda row: row["rank"])
    t.equal([row["rank"] for row in rows], [0, 1], "two ranks by torchrun")
    energies("rank 0", rows[0], boards=2)
    true = sum(row["truth"][1] - row["truth"][0] for row in rows)
    have = rows[0]["history"][-1]["train_energy_j"]
    t.near(have / true, 1, 0.05, f"… {have:.0f} J of both boards, true {true:.0f} J (simulated)")
    t.ok(not any(key.endswith("_j") for e in rows[1]["history"] for key in e), "rank 1 logs none", rows[1]["history"])
    t.equal(rows[1]["steps"], STEPS, "… and tells its steps")


def failed(row, daemon):
    t.equal(row["error"], "'step 14'", "an exception in training comes through")
    t.equal(row["ended"], [False, True, []], "… the measuring ends, and the optimizer that was made for it")
    t.ok(len(set(row["jobs"])) == 1 and row["jobs"][0] > 0, "… which was one job of the daemon", row["jobs"])
    jobs = daemon.ask("GET", "/v1/jobs")[1]["jobs"]
    t.ok(not any(j["running"] for j in jobs), "… that has ended", jobs)
    saved, first = row["saved"]["energy_total_j"], [e for e in row["first"] if e["step"] <= 10 and "energy_total_j" in e]
    new = [e for e in row["history"] if e["step"] > 10 and "energy_total_j" in e]
    t.ok(saved > 0 and first and all(saved >= e["energy_total_j"] for e in first), "the checkpoint has the energy until then", (row["saved"], row["first"]))
    t.near(new[-1]["energy_total_j"], saved + new[-1]["train_energy_j"], 1e-6, "… and a training that is resumed counts on")
    t.ok(all(e["energy_total_j"] > saved for e in new), "… in each entry", new)


def absent(folder):
    """Outside of a simulated node."""
    p = subprocess.run([fwuser.python(), *fwuser.WARNINGS, PROGRAM, "absent", pathlib.Path(folder, "absent")], capture_output=True, text=True,
                       timeout=fwuser.LOADED_S, stdin=subprocess.DEVNULL, check=False,
                       env=pyuser.env(UNDERWATT_NVML="/nowhere/libnvidia-ml.so.1", **fwuser.ENV))
    row, err = json.loads(p.stdout.partition("TOLD ")[2] or "{}"), p.stderr
    if not t.ok(p.returncode == 0 and row, "Trainer without a board trains to its end", p.stdout + err):
        return
    t.ok(err.count("RuntimeWarning: underwatt") == 1 and "is not measured" in err, "… one warning", err)
    t.ok(row["steps"] == 5 and not any("energy" in key for e in row["history"] for key in e), "… and no energy", row)


def hangs(child, place, daemon):
    """The daemon stops in mid-training: no step waits for it."""
    five = place / "out" / "five"
    t.ok(uwtest.wait_for(lambda: five.exists() or child.poll() is not None, fwuser.LOADED_S) and five.exists(), "a training under way")
    os.kill(daemon.pid, signal.SIGSTOP)
    (place / "out" / "stopped").touch()
    try:
        rows, err = fwuser.told(t, child, place / "err", "Trainer beside a daemon that hangs")
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    if rows:
        t.ok(rows[0]["steps"] == 30 and rows[0]["longest"] < REQUEST_S - 1, f"… no step waits for it: {rows[0]['longest']:.1f} s at most", rows)
        t.ok(err.count("RuntimeWarning: underwatt") == 1, "… one warning", err)


def main():
    fwuser.python()
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(machine=fwuser.MACHINE) as node, \
            uwtest.Node(machine=fwuser.MACHINE) as served, uwtest.Node(machine=fwuser.MACHINE) as stopped:
        daemon, other = served.daemon(), stopped.daemon()
        run = {name: begin(where, folder, name, board, *launcher) for where, name, board, *launcher in
               ((served, "ranks", "0,1", *torchrun), (stopped, "hangs", 0), (node, "train", 0), (node, "sft", 1))}
        run["fails"] = begin(served, folder, "fails", 2, page=False)
        hangs(*run["hangs"], other)
        absent(folder)
        for name, show, look in (("train", "Trainer", lambda rows: (energies("Trainer", rows[0]), phases(rows[0]))),
                                 ("sft", "SFTTrainer", lambda rows: energies("SFTTrainer", rows[0])),
                                 ("ranks", "Trainer on two ranks", lambda rows: ranks(rows)),
                                 ("fails", "Trainer with an optimizer", lambda rows: failed(rows[0], daemon))):
            child, place = run[name]
            rows, _ = fwuser.told(t, child, place / "err", show)
            if rows:
                look(rows)
    t.done()


if __name__ == "__main__":
    main()
