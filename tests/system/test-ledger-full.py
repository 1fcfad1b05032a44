"""The ledger's disk is full: the daemon goes on, counts, and writes all of it later."""
import json
import os
import sqlite3
import subprocess

import uwtest

t = uwtest.Tap()


def sums(file):
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return db.execute("SELECT (SELECT ifnull(sum(energy_uj), 0) FROM energy),"
                          " (SELECT ifnull(sum(energy_uj), 0) FROM meter),"
                          " (SELECT ifnull(max(begin_ms + span_ms), 0) FROM energy)").fetchone()


with uwtest.Node(board="v100", count=2, speed=20) as node:
    disk = os.path.join(node.tmp, "disk")
    os.mkdir(disk, 0o700)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs",
                                            disk], capture_output=True).returncode:
        t.skip("a full disk", "needs the right to mount a tmpfs")
    else:
        try:
            file, ballast = os.path.join(disk, "ledger.sqlite"), os.path.join(disk, "ballast")
            d = node.daemon(f"node:\n  interval: 2 s\nledger:\n  path: {file}\n")
            node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
            t.ok(uwtest.wait_for(lambda: sums(file)[0] > 5e9), "energy is booked", d.log())
            with open(ballast, "wb", buffering=0) as f:
                try:
                    while True:
                        f.write(b"x" * 4096)
                except OSError:
                    pass
            full = uwtest.wait_for(lambda: "event=ledger-failed" in d.log())
            t.ok(full, "a full disk is told", d.log())
            t.ok("full" in d.log() and d.log().count("event=ledger-failed") == 1, "once, and why",
                 d.log())
            before = sums(file)
            p = node.run("underwatt", "list", "--json", "-")
            t.ok(d.child.poll() is None and p.returncode == 0 and json.loads(p.stdout)["boards"],
                 "the daemon goes on", p)
            os.unlink(ballast)
            t.ok(uwtest.wait_for(lambda: "state=written" in d.log()), "with room it resumes",
                 d.log())
            ok = uwtest.wait_for(lambda: sums(file)[2] > before[2] + 20000)
            after = sums(file)
            t.ok(ok and after[0] > before[0] and abs(after[0] - after[1]) <= 0.001 * after[1],
                 "nothing of that time is lost: the sums hold", (before, after))
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
                gaps = db.execute("SELECT count(*) FROM (SELECT begin_ms - lag(begin_ms + span_ms)"
                                  " OVER (ORDER BY begin_ms) AS gap FROM meter WHERE board = 1)"
                                  " WHERE gap > 100").fetchone()[0]
            t.equal(gaps, 0, "no interval is missing")
            t.equal(d.stop(), 0, "ends in order")
        finally:
            for daemon in node.daemons:
                daemon.kill()
            subprocess.run(["umount", "-l", disk], check=False)
t.done()
