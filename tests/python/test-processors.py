#!/usr/bin/python3
"""Energy of processors and memory in windows, of a made-up powercap tree of known power: by a daemon, and without one, where the
counters may be read.
"""
import json
import os
import pathlib
import threading
import time

import pyuser
import uwtest

OTHER = 20003
WATTS = {"package-0": 50.0, "dram-0": 6.0}

WINDOW = """
import json, sys, time, underwatt
with underwatt.Monitor(local=len(sys.argv) > 1, boards=sys.argv[2] if len(sys.argv) > 2 else None) as m, m.window("x") as w:
    time.sleep(SECONDS)
e = w.energy
why = [p.why for p in e.processors]
print(json.dumps([e.time_s, e.gpu_j, e.cpu_j, e.dram_j, e.total_j, e.half_j, [(p.name, p.kind, p.half_j, p.method) for p in e.processors], str(e), why]))
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
        self.seen = self.began  # the time whose values a reader finds
        self.late = 0.0  # seconds: how old a reader found them at most, since last asked
        self.write()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def write(self):
        now = time.monotonic()
        for name, file in self.files.items():
            fd = os.open(file, os.O_WRONLY | os.O_CREAT, 0o400)
            os.pwrite(fd, b"%020d\n" % int((5 + (now - self.began) * WATTS[name]) * 1e6), 0)
            os.close(fd)
        self.seen, self.late = now, max(self.late, time.monotonic() - self.seen)

    def take_late(self):
        """How old, in seconds, a reader since the last call found the values at most; 0.02 s on an idle machine."""
        late = max(self.late, time.monotonic() - self.seen)
        self.late = 0.0
        return late

    def run(self):
        while not self.ending.wait(0.02):
            self.write()

    def stop(self):
        self.ending.set()
        self.thread.join()


def agrees(t, name, stdout, late):
    """What a window says of them, against their true power: within a tenth, or within what the counters were late."""
    time_s, gpu, cpu, dram, total, half, found, text, _ = json.loads(stdout)
    t.equal([f[:2] for f in found], [["package-0", "cpu"], ["dram-0", "dram"]], f"{name}: has package and memory")
    for which, got, (_, _, wide, method) in (("package-0", cpu, found[0]), ("dram-0", dram, found[1])):
        want = WATTS[which] * time_s
        t.ok(abs(got - want) <= wide + max(0.1 * want, WATTS[which] * late) and wide < 0.6 * want,
             f"{name}: {which}: {got:.1f} J ± {wide:.1f} J ({method}), true {want:.1f} J in {time_s:.2f} s, counters {late:.2f} s old")
    t.near(total, gpu + cpu + dram, 1e-6, f"{name}: all of it is the total")
    t.ok("CPU " in text and "DRAM " in text and half > 0, f"{name}: and stands in the line", text)


def local(t, node, tree):
    """Without the daemon."""
    boards = f"nvml={os.path.join(node.state, 'lib', 'libnvidia-ml.so.1')},rapl={tree.path}"
    for seconds in ("6", "2"):
        tree.take_late()
        p = pyuser.in_world(node, WINDOW.replace("SECONDS", seconds), "local", boards)
        if t.ok(p.returncode == 0, f"local, {seconds} s: a window", p.stderr):
            agrees(t, f"local, {seconds} s", p.stdout, tree.take_late())
    p = pyuser.in_world(node, WINDOW.replace("SECONDS", "0.5"), "local")
    t.ok(p.returncode == 0 and json.loads(p.stdout)[6] == [], "a simulated node has none that nobody names", p.stdout + p.stderr)
    if os.geteuid():
        t.skip("a counter that may not be read", "needs root to become another user")
        return
    os.chmod(node.tmp, 0o755)  # noqa: S103 - others look into it
    p = node.run("/usr/bin/python3", "-c", WINDOW.replace("SECONDS", "0.5"), "local", boards, user=OTHER, group=OTHER, extra_groups=[],
                 env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY)})
    if t.ok(p.returncode == 0, "local, of another user: a window", p.stderr):
        found = json.loads(p.stdout)
        t.ok(found[1] > 0 and found[2] != found[2] and "CPU" not in found[7], "local, of another user: the boards alone are known", found)
        t.ok(len(found[8]) == 2 and all("energy_uj" in why and "root" in why and "\n" not in why for why in found[8]),
             "and the reason stands in one line", found[8])


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=1) as node:
        tree = Tree(pathlib.Path(node.tmp, "powercap"))
        d = node.daemon(f"boards: {{powercap: {tree.path}, rapl_period: 2 s}}\n")
        uwtest.wait_for(lambda: all(c["power_w"] for c in d.ask("GET", "/v1/node")[1].get("rapl") or [{"power_w": None}]))
        tree.take_late()
        p = pyuser.in_world(node, WINDOW.replace("SECONDS", "6"))
        if t.ok(p.returncode == 0, "a window with the daemon", p.stderr):
            agrees(t, "daemon", p.stdout, tree.take_late())
        local(t, node, tree)
        tree.stop()
    t.done()


if __name__ == "__main__":
    main()
