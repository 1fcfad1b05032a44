#!/usr/bin/python3
"""%%energy in a real IPython, in a simulated node: the cell runs in the user's names, its energy is shown as a page with a chart,
an error in the cell is the cell's.
"""
import json
import pathlib
import tempfile

import pyuser
import uwtest

CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "underwatt")
shell.run_cell("x = 20")
with capture_output() as good:
    shell.run_cell("%%energy train\\nimport time\\ntime.sleep(1)\\ny = x + 1")
with capture_output() as bad:
    shell.run_cell("%%energy\\n1 / 0")
import underwatt
underwatt.configure(null=True)
with capture_output() as null:
    shell.run_cell("%%energy\\npass")
shown = [[o.data for o in c.outputs] for c in (good, bad, null)]
json.dump([shell.user_ns.get("y"), shown, bad.stdout + bad.stderr], open(sys.argv[1], "w"))
"""


def main():
    t = uwtest.Tap()
    tools, why = pyuser.tools()
    if not tools:
        uwtest.skip_all(why)
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(board="v100", count=1) as node:
        told = pathlib.Path(folder, "told.json")
        p = node.run(str(tools / "python3"), "-c", CELLS, told,
                     env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "IPYTHONDIR": folder})
        if not t.ok(p.returncode == 0, "cells run", p.stderr):
            t.done()
        y, (good, bad, null), said = json.loads(told.read_text())
        t.equal(y, 21, "%%energy runs the cell in the user's names")
        t.ok(len(good) == 1 and "train: " in good[0]["text/plain"] and "<polyline" in good[0]["text/html"] and "<table" in good[0]["text/html"],
             "and shows a line, a table and a chart of power over time", good)
        t.ok(bad == [] and "ZeroDivisionError" in said, "an error of the cell is shown, and no energy", said)
        t.ok(len(null) == 1 and "not measured" in null[0]["text/plain"], "the null monitor says so", null)
    t.done()


if __name__ == "__main__":
    main()
