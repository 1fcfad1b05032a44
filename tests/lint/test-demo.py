#!/usr/bin/python3
"""What tools/demo says of a saving, of a loss, and of a cap that was not reached."""
import importlib.machinery
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import uwtest  # noqa: E402

t = uwtest.Tap()
loader = importlib.machinery.SourceFileLoader("demo", str(pathlib.Path(sys.argv[1], "tools", "demo")))
demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
loader.exec_module(demo)
for sign, want in ((1, "used 500 J ± 200 J less (-5.0 ± 2.0 %) and"), (-1, "used 500 J ± 200 J more (+5.0 ± 2.0 %) and")):
    said = demo.estimate({"energy_j": sign * 500, "half_j": 200, "fraction": sign * 0.05, "half": 0.02, "slowdown": 1.1})
    t.ok(said.startswith(want), f"a saving of {sign * 500} J", said)
untouched = {"time_s": 100, "energy_j": 9e4, "power_w": 900}
for held, reached, no_cap, want in ((255000, True, "255 W not reached", "255 W"),
                                    (184000, False, "no cap found", "300 W (184 W not reached)"),
                                    (None, False, "255 W not reached", "300 W (255 W not reached)"),
                                    (None, None, "no cap found", "300 W (no cap found)")):
    run = {"time_s": 110, "energy_j": 8.1e4, "power_w": 800, "held_mw": held, "reached": reached}
    t.equal(demo.row("run", run, untouched, no_cap), ["run", "110 s", "+10.0 %", "81.0 kJ", "-10.0 %", "800 W", want],
            f"a cap of {held} mW, reached: {reached}")
    t.equal(demo.too_busy(run, {"reached": True}), not reached, "the machine was too busy for it, or not")
t.done()
