#!/usr/bin/python3
"""What tools/demo says of a saving, and of a loss."""
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
t.done()
