#!/usr/bin/python3
"""underwatt.keras: a tiny fit() on a simulated board.  What history and CSV have of each epoch against the board's true energy; phases;
a fit() that raises, and another with another callback."""
import math
import statistics
import tempfile

import fwuser
import uwtest

t = uwtest.Tap()
KEYS = ("energy_j", "power_w", "energy_per_step_j", "energy_total_j", "gco2e_total", "cap_w", "val_energy_j")


def main():
    fwuser.python()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(machine=fwuser.MACHINE) as node:
        row = fwuser.trains(t, node, "Keras", "train-keras.py", folder, oncpu=False)
    if row:
        history, metrics = row["history"], row["metrics"]
        true = row["joules"][1] - row["joules"][0]
        t.equal((row["error"], row["threads"]), ("batch", []), "a fit() that raises; the next one ends what it has left")
        t.near(metrics["train_energy_j"] / true, 1, 0.03, f"a fit(): {metrics['train_energy_j']:.0f} J, true {true:.0f} J (simulated)")
        t.ok(all(len(history.get(key, [])) == 3 for key in KEYS), "each epoch of the history has energy, power, cap and gCO2e", history)
        t.near(math.fsum(history["energy_j"]) / history["energy_total_j"][-1], 1, 1e-9, "… epochs add up to the total")
        t.ok(all(v < e for v, e in zip(history["val_energy_j"], history["energy_j"])), "… validation is a part of it", history)
        t.equal([float(r["energy_j"]) for r in row["rows"]], history["energy_j"], "the CSV has the same")
        for name, have, true in (("an evaluation", row["few"]["val_energy_j"], row["validate"]),
                                 ("a step", row["few"]["energy_per_step_j"], [joules / 2 for joules in row["train"]])):
            ratio = statistics.median(h / j for h, j in zip(have[1:], true[1:]))
            t.near(ratio, 1, 0.07, f"{name} after others, short epochs: {ratio:.3f} of its true energy (simulated)")
        t.ok(len(row["warned"]) == 1 and "9 is not a board" in row["warned"][0][0], "boards that are none: one warning", row["warned"])
        t.equal([place for _, place in row["warned"]], ["train-keras.py"], "… of the line that calls fit()")
        t.equal(row["steps"], 30, "each step is told")
        t.equal(row["seen"], {"train": ["train"], "validate": ["validate"]}, "the page has the phase of what the model does")
    t.done()


if __name__ == "__main__":
    main()
