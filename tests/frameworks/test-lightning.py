#!/usr/bin/python3
"""underwatt.lightning: a tiny fit on a simulated board.  What its loggers have against the board's true energy; phases; a fit that
raises and is resumed from its checkpoint."""
import math
import tempfile

import fwuser
import uwtest

t = uwtest.Tap()


def logged(row):
    whole, metrics = row["whole"], row["whole"]["metrics"]
    true = whole["truth"][1] - whole["truth"][0]
    t.near(metrics["train_energy_j"] / true, 1, 0.03, f"a fit: {metrics['train_energy_j']:.0f} J, true {true:.0f} J (simulated)")
    entries = [r for r in row["rows"] if r.get("energy_j")]
    keys = ("energy_j", "power_w", "energy_total_j", "gco2e_total", "cap_w")
    t.ok(len(entries) >= 3 and all(r[key] for r in entries for key in keys), "the CSV logger has energy, power, cap and gCO2e", row["rows"])
    t.near(math.fsum(float(r["energy_j"]) for r in entries) / metrics["energy_total_j"], 1, 1e-4, "… entries add up to the total")
    t.ok(any(r.get("val_energy_j") for r in row["rows"]), "… an evaluation has its energy", row["rows"])
    t.near(metrics["train_energy_per_step_j"] / metrics["train_energy_per_sample_j"], 4, 1e-6,
           f"… {metrics['train_energy_per_step_j']:.1f} J a step, of 4 samples")
    have = [value for _, value in row["scalars"].get("energy_j", [])]
    t.ok(len(have) == len(entries) and all(math.isclose(a, float(r["energy_j"]), rel_tol=1e-3) for a, r in zip(have, entries)),
         "TensorBoard's file has the same", row["scalars"])


def main():
    fwuser.python()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(machine=fwuser.MACHINE) as node:
        row = fwuser.trains(t, node, "Lightning", "train-lightning.py", folder)
    if row:
        logged(row)
        t.equal(row["seen"], {"train": ["train"], "validate": ["validate"], "checkpoint": ["checkpoint"]},
                "the page has the phase of what the model does")
        failed, resumed = row["failed"], row["resumed"]
        t.equal((failed["error"], failed["running"]), ("'step 14'", False), "an exception comes through, and ends the measuring")
        t.ok(0 < row["saved_j"] <= failed["total_j"], "the checkpoint has the energy until then", (row["saved_j"], failed))
        t.near(resumed["metrics"]["energy_total_j"], row["saved_j"] + resumed["metrics"]["train_energy_j"], 1e-3,
               "… and a fit that is resumed counts on")
    t.done()


if __name__ == "__main__":
    main()
