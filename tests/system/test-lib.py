#!/usr/bin/python3
"""libunderwatt in local mode as a stranger uses it: the public header and the shared library alone,
C99, in a simulated world without a daemon.
"""
import os
import shutil
import tempfile
import time

import libuser
import uwtest

MACHINE = "name: exact\nboards: [{model: v100, count: 2, ideal: true}, {model: rtx6000, ideal: true}]\n"


def watch(t, node, exe):
    job = node.train("--gpus", "0,2", "--steps", "1000", "--phases", "train")
    uwtest.wait_for(lambda: node.board(0)["power_mw"] > 200000)
    p = node.popen(exe, "3", os.path.join(node.state, "lib", "libnvidia-ml.so.1"))
    boards = [p.stdout.readline().rstrip("\n").split(";") for _ in range(3)]
    truth = [node.board(i) for i in range(3)]
    t.equal([b[0] for b in boards], [b["uuid"] for b in truth], "three boards, by UUID")
    t.ok(all(b[2] == "1" and b[1] == x["name"] for b, x in zip(boards, truth)), "named, and simulated", boards)
    t.equal([[int(v) for v in b[3:7]] for b in boards],
            [[x["min_mw"], x["max_mw"], x["default_mw"], x["limit_mw"]] for x in truth], "limits")
    t.ok(float(boards[0][7]) > 150 and 20 < float(boards[1][7]) < 70, "power, busy and idle", boards)
    t.equal(p.stdout.readline(), "begun\n", "a window begins")
    a = node.status()["boards"]
    t.equal(p.stdout.readline(), "ends\n", "and ends")
    b = node.status()["boards"]
    for i in range(3):
        time_s, energy, half, power, method, why = p.stdout.readline().rstrip("\n").split(";")
        true_w = (b[i]["true_j"] - a[i]["true_j"]) / (b[i]["at_ns"] - a[i]["at_ns"]) * 1e9
        true = true_w * float(time_s)
        t.ok(2.9 < float(time_s) < 10, f"GPU {i}: of {time_s} s")
        # The truth is the mean power from a little after the beginning to a little after the end.
        t.ok(abs(float(energy) - true) <= float(half) + 0.01 * true and float(half) < 0.5 * true,
             f"GPU {i}: {float(energy):.1f} J ± {float(half):.1f} J ({method}; {why}), true {true:.1f} J")
        t.near(float(power), float(energy) / float(time_s), 0.01 * float(power), f"GPU {i}: mean power")
    t.ok(p.stdout.readline().startswith("again -"), "a window ends once")
    t.equal((p.wait(uwtest.PATIENCE), p.stderr.read()), (0, ""), "the program ends, with not a word from the library")
    job.terminate()


def trouble(t, node, exe):
    p = node.run(exe, "0", "/nowhere/libnvidia-ml.so.1")
    t.ok(p.returncode == 1 and p.stderr.startswith("open: ") and "/nowhere" in p.stderr, "no library: an error with its name", p.stderr)
    p = node.run(exe, "0", "-")
    t.equal(p.returncode, 0, "the system's library, which is this world's")
    t.equal(p.stdout.count(";integrated;short, unproved"), 3, "a window of no length says why its intervals are wide")
    lib = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
    node.fault(1, "hang")
    begin = time.monotonic()
    p = node.run(exe, "0", lib)
    took = time.monotonic() - begin
    t.ok(p.returncode == 1 and took < 15, f"a board that hangs: told within {took:.1f} s", p.stderr)
    node.fault(1, "release")
    node.fault("unload")
    p = node.run(exe, "0", lib)
    t.ok(p.returncode == 1 and "river" in p.stderr, "no driver: said", p.stderr)


def main():
    t = uwtest.Tap()
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        uwtest.skip_all("no compiler")
    if uwtest.SANITIZED:
        uwtest.skip_all("the library is instrumented, the program would not be")
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        libuser.names(t)
        exe = libuser.build(t, folder, "lib-watch")
        with uwtest.Node(machine=MACHINE) as node:
            watch(t, node, exe)
            trouble(t, node, exe)
    t.done()


if __name__ == "__main__":
    main()
