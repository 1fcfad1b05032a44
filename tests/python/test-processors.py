#!/usr/bin/python3
"""Energy of processors and memory in windows, by a daemon that reads a made-up powercap tree of known power; none without the daemon."""
import json
import os
import pathlib
import threading
import time

import pyuser
import uwtest

WATTS = {"package-0": 50.0, "dram-0": 6.0}

WINDOW = """
import json, sys, time, underwatt
with underwatt.Monitor(local=len(sys.argv) > 1) as m, m.window("x") as w:
    time.sleep(6)
e = w.energy
print(json.dumps([e.time_s, e.gpu_j, e.cpu_j, e.dram_j, e.total_j, e.half_j, [(p.name, p.kind, p.half_j, p.method) for p in e.processors], str(e)]))
"""


class Tree:
    """Counters as the kernel has them; they count until it is stopped."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.files = {}
        for name, zone in (("package-0", "intel-rapl:0"), ("dram-0", "intel-rapl:0:0")):
            folder = self.path / zone
            folder.mkdir(parents=True)
            (folder / "name").write_text(name.removesuffix("-0" if name.startswith("dram") else "") + "\n")
            (folder / "max_energy_range_uj").write_text("262143328850\n")
            self.files[name] = folder / "energy_uj"
        self.began, self.ending = time.monotonic(), threading.Event()
        self.write()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def write(self):
        for name, file in self.files.items():
            fd = os.open(file, os.O_WRONLY | os.O_CREAT, 0o400)
            os.pwrite(fd, b"%020d\n" % int((5 + (time.monotonic() - self.began) * WATTS[name]) * 1e6), 0)
            os.close(fd)

    def run(self):
        while not self.ending.wait(0.02):
            self.write()

    def stop(self):
        self.ending.set()
        self.thread.join()


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=1) as node:
        tree = Tree(pathlib.Path(node.tmp, "powercap"))
        d = node.daemon(f"boards: {{powercap: {tree.path}, rapl_period: 2 s}}\n")
        uwtest.wait_for(lambda: all(c["power_w"] for c in d.ask("GET", "/v1/node")[1].get("rapl") or [{"power_w": None}]))
        p = pyuser.in_world(node, WINDOW)
        if t.ok(p.returncode == 0, "a window with the daemon", p.stderr):
            time_s, gpu, cpu, dram, total, half, found, text = json.loads(p.stdout)
            t.equal([f[:2] for f in found], [["package-0", "cpu"], ["dram-0", "dram"]], "has package and memory")
            for name, got, (_, _, wide, method) in (("package-0", cpu, found[0]), ("dram-0", dram, found[1])):
                want = WATTS[name] * time_s
                t.ok(abs(got - want) <= wide + 0.1 * want, f"{name}: {got:.1f} J ± {wide:.1f} J ({method}), true {want:.1f} J in {time_s:.2f} s")
            t.near(total, gpu + cpu + dram, 1e-6, "all of it is the total")
            t.ok("CPU " in text and "DRAM " in text and half > 0, "and stands in the line", text)
        p = pyuser.in_world(node, WINDOW.replace("sleep(6)", "sleep(0.5)"), "local")
        t.ok(p.returncode == 0 and json.loads(p.stdout)[6] == [], "without the daemon there are none", p.stdout + p.stderr)
        tree.stop()
    t.done()


if __name__ == "__main__":
    main()
