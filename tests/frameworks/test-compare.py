#!/usr/bin/python3
"""docs/examples/onnx-int8.py: a model of ONNX Runtime as fp32 and int8, on the processor alone; and the rows of measurements and
comparisons as pandas has them."""
import sys

import fwuser
import uwtest

EXAMPLE = uwtest.TOP / "docs" / "examples" / "onnx-int8.py"

ROWS = """
import pandas, time, underwatt
windows = []
with underwatt.Monitor() as m:
    for name in "ab":
        with m.window(name) as w:
            time.sleep(0.3)
        windows.append(w)
    frame = pandas.DataFrame([w.energy.as_row() for w in windows])
print(list(frame["name"]), frame["total_j"].dtype, bool((frame["total_j"] > 0).all()))
c = underwatt.compare({name: lambda: time.sleep(0.001) for name in "ab"}, device="cpu", window_s=0.02, within=0.9, time_s=30)
frame = pandas.DataFrame(c.as_rows()).set_index("variant")
print(list(frame.index), frame["latency_s"].dtype, bool((frame["throughput"] > 0).all()))
"""


def main():
    t = uwtest.Tap()
    fwuser.python()
    with uwtest.Node(board="v100", count=1) as node:    # its board does nothing; the example does not measure it
        p = fwuser.in_world(node, ROWS)
        t.equal((p.returncode, p.stdout.splitlines()), (0, 2 * ["['a', 'b'] float64 True"]), f"rows become tables of pandas {p.stderr}")
        p = fwuser.in_world(node, EXAMPLE, 30)
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) == 7, "fp32 against int8", p.stdout + p.stderr):
        t.done()
    print("\n".join(f"# {line}" for line in lines))
    head, fp32, int8, about = lines[:4]
    t.ok(head.startswith("variant") and "samples per second" in head and "accuracy" in head and "throughput against fp32" in head, "a table", head)
    t.ok(fp32.split()[0] == "fp32" and int8.split()[0] == "int8" and int8.rstrip().endswith("%"), "a row each", fp32 + int8)
    t.ok(about.startswith(("energy of the processors (RAPL) only", "time only: no GPU is measured")) and "GPUs" not in about, "labelled as the processors' or as time", about)
    t.ok(fp32.split()[-1] == "1" and float(int8.split()[int8.split().index("%") - 4]) >= 0.9, "int8 agrees in nine of ten at least", int8)
    t.ok(lines[5].startswith("fp32") and lines[6].startswith("int8") and "█" in lines[5], "a chart", lines[4:])
    t.done()


if __name__ == "__main__":
    sys.exit(main())
