"""No ledger: its folder is full, read-only, missing or not to be trusted at the start; its file
is removed or replaced under way.  The daemon holds caps and budget all the same, says it once,
in the metrics and in doctor, and writes what waited when it can."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess

import uwtest

t = uwtest.Tap()
BUDGET = "budget:\n  node: 300 W\n"
HIGH = 1 << 52  # ids of a run that could not read the ledger


def ask(file, sql):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            return db.execute(sql).fetchone()
    except sqlite3.OperationalError:
        return (None,) * 4


def sums(file):
    return ask(file, "SELECT (SELECT ifnull(sum(energy_uj), 0) FROM energy),"
                     " (SELECT ifnull(sum(energy_uj), 0) FROM meter)")


def limits(node):
    return [b["limit_mw"] / 1000 for b in node.status()["boards"]]


def in_force(node):
    return uwtest.wait_for(lambda: sum(limits(node)) <= 300.5)


def metric(d, name):
    m = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)", d.ask("GET", "/metrics")[1], re.M)
    return float(m.group(1)) if m else None


def doctor(node):
    return node.run("underwatt", "doctor").stdout


def is_without(node, d, word):
    """It runs, holds the budget and says what is wrong."""
    t.ok(d.child.poll() is None, f"{word}: the daemon runs", d.log())
    t.ok(in_force(node), f"{word}: the budget is in force", limits(node))
    t.ok(d.log().count("event=ledger-failed") == 1 and word in d.log(), f"{word}: said once, and why",
         d.log())
    t.equal(metric(d, "underwatt_ledger_up"), 0, f"{word}: the metrics say it")
    up = d.ask("GET", "/v1/node")[1]["ledger"]
    t.ok(not up["up"] and word in up["why"], f"{word}: the API says it", up)
    said = " ".join(doctor(node).split())
    t.ok("ledger" in said and word in said and "in memory" in said, f"{word}: doctor says it", said)


def comes_back(node, d, file, word):
    t.ok(uwtest.wait_for(lambda: "state=written" in d.log()), f"{word}: it is written again", d.log())
    t.ok(uwtest.wait_for(lambda: metric(d, "underwatt_ledger_up") == 1), f"{word}: the metrics say it")
    energy, meter = uwtest.wait_until(lambda: sums(file)[:2], lambda both: (both[0] or 0) > 0)
    t.ok(energy, f"{word}: energy is there", energy)
    t.ok(abs(energy - meter) <= 0.001 * meter, f"{word}: the sums hold", (energy, meter))
    t.equal(metric(d, "underwatt_ledger_lost_rows_total"), 0, f"{word}: no row is lost")
    t.ok(in_force(node), f"{word}: the budget is in force still", limits(node))


def mount(path):
    os.makedirs(path, mode=0o700)
    return os.geteuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", path], capture_output=True).returncode


def fill(path):
    with open(path, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


def config(file):
    return f"node:\n  interval: 2 s\nledger:\n  path: {file}\n" + BUDGET


def full_and_read_only(node):
    disk = os.path.join(node.tmp, "disk")
    if not mount(disk):
        t.skip("a full disk and a read-only one", "needs the right to mount a tmpfs")
        return
    file, ballast = os.path.join(disk, "ledger.sqlite"), os.path.join(disk, "ballast")
    try:
        fill(ballast)
        d = node.daemon(config(file))
        is_without(node, d, "full")
        job = node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
        t.ok(uwtest.wait_for(lambda: metric(d, "underwatt_ledger_waiting_rows") > 5), "rows wait",
             d.log())
        t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/jobs")[1]["jobs"]), "a job is known")
        os.unlink(ballast)
        comes_back(node, d, file, "full")
        t.ok(uwtest.wait_for(lambda: (ask(file, "SELECT max(id) FROM job")[0] or 0) >= HIGH),
             "the job is there, its id far from those of other runs", ask(file, "SELECT * FROM job"))
        first = ask(file, "SELECT max(id) FROM job")[0]
        job.terminate()
        job.wait(timeout=uwtest.PATIENCE)
        d.child.kill()  # as it runs: what stands in the ledger is to be taken over
        d.kill()

        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        d = node.daemon(config(file))
        is_without(node, d, "read-only" if "read-only" in d.log() else "Read-only")
        t.ok("earlier_runs=read" in d.log(), "what earlier runs left is read", d.log())
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        comes_back(node, d, file, "read-only")
        node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "1")
        t.ok(uwtest.wait_for(lambda: (ask(file, "SELECT max(id) FROM job")[0] or 0) > first),
             "ids go on above all others", (first, d.ask("GET", "/v1/jobs")[1]["jobs"], d.log()))
        t.ok(uwtest.wait_for(lambda: ask(file, "SELECT count(*) FROM job WHERE ended_ms IS NULL")[0] == 1),
             "jobs of the earlier run have ended", ask(file, "SELECT group_concat(id) FROM job"))
        t.equal(ask(file, "PRAGMA integrity_check")[0], "ok", "the file is whole")
        fill(ballast)
        t.ok(uwtest.wait_for(lambda: d.log().count("event=ledger-failed") == 2), "full again", d.log())
        t.equal(d.stop(), 0, "ends in order")
        t.ok(re.search(r"event=ledger-lost rows=\d+", d.log()), "and says how many rows are lost", d.log())
        d.kill()
    finally:
        for daemon in node.daemons:
            daemon.kill()
        subprocess.run(["umount", "-l", disk], check=False)


def not_there(node):
    """The folder is missing and cannot be made; the file is a link, or of a newer version."""
    folder = os.path.join(node.tmp, "blocked")
    pathlib.Path(folder).write_text("no folder\n")
    file = os.path.join(folder, "ledger.sqlite")
    d = node.daemon(config(file))
    is_without(node, d, "Not a directory")
    other = node.popen("underwattd", *(["--user", "root"] if os.geteuid() == 0 else []), "--config", d.config)
    t.equal(other.wait(timeout=uwtest.PATIENCE), 1, "a second daemon is refused all the same")
    t.ok(f"process {d.pid}" in other.stderr.read(), "and told who runs")
    os.unlink(folder)
    os.mkdir(folder, 0o700)
    comes_back(node, d, file, "Not a directory")
    t.equal(d.stop(), 0, "ends in order")
    d.kill()

    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")
    before = pathlib.Path(file).read_bytes()
    d = node.daemon(config(file))
    is_without(node, d, "newer")
    t.equal(d.stop(), 0, "ends in order")
    d.kill()
    t.ok(pathlib.Path(file).read_bytes() == before, "a newer ledger is not touched")
    os.rename(file, file + ".real")
    os.symlink(file + ".real", file)
    d = node.daemon(config(file))
    is_without(node, d, "link")
    d.kill()


def removed(node):
    """The file goes while the daemon runs, with a job and a claim; another is put in its place."""
    d = node.daemon("node:\n  interval: 2 s\n" + BUDGET)
    file = d.ledger
    train = node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
    t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/jobs")[1]["jobs"]), "a job runs")
    status, claim = d.ask("POST", "/v1/claims", {"gpu": 1, "cap": "150 W", "kind": "hard", "why": "test"})
    t.ok(status in (200, 201), "a claim is made", claim)
    t.ok(uwtest.wait_for(lambda: (sums(file)[0] or 0) > 0), "energy is booked")
    job = uwtest.wait_for(lambda: ask(file, "SELECT max(id) FROM job")[0])  # None: the file could not be read just then
    os.unlink(file)
    t.ok(uwtest.wait_for(lambda: d.log().count("event=ledger-anew") == 1), "a removed file is told",
         d.log())
    t.ok(uwtest.wait_for(lambda: ask(file, "SELECT count(*) FROM job WHERE ended_ms IS NULL")[0] == 1
                         and ask(file, "SELECT count(*) FROM claim WHERE ended_ms IS NULL AND why = 'test'")[0] == 1
                         and (sums(file)[0] or 0) > 0), "the new one has the job, the claim and energy", d.log())
    got = uwtest.wait_for(lambda: ask(file, "SELECT max(id) FROM job")[0])
    t.equal(got, job, "under its id")
    t.ok(in_force(node), "the budget is in force", limits(node))
    shutil.copy(file, file + ".copy")
    os.chmod(file + ".copy", 0o640)
    os.replace(file + ".copy", file)
    t.ok(uwtest.wait_for(lambda: d.log().count("event=ledger-anew") == 2), "a replaced one, too", d.log())
    now = uwtest.wait_for(lambda: sums(file)[0])
    t.ok(uwtest.wait_for(lambda: (sums(file)[0] or 0) > now), "what lies there is written", d.log())
    t.equal(ask(file, "PRAGMA integrity_check")[0], "ok", "it is whole")
    t.equal(ask(file, "SELECT count(*) FROM job WHERE ended_ms IS NULL")[0], 1, "the job runs in it")
    d.child.send_signal(signal.SIGKILL)
    d.child.wait()
    d.start()
    claims = d.ask("GET", "/v1/claims")[1]
    t.ok(f'"id": {claim["id"]},' in json.dumps(claims), "the next daemon takes the claim over", claims)
    t.ok(in_force(node), "and the budget", limits(node))
    os.unlink(file)  # and the daemon is told to end before it has looked
    t.equal(d.stop(), 0, "ends in order")
    d.start()
    claims = d.ask("GET", "/v1/claims")[1]
    t.ok(f'"id": {claim["id"]},' in json.dumps(claims), "a claim stands though the file went at the end", claims)
    t.equal(d.stop(), 0, "ends in order")
    train.terminate()  # a later one, of the same session, would be the same found job
    train.wait(timeout=uwtest.PATIENCE)


with uwtest.Node(board="v100", count=2, speed=20) as node:
    not_there(node)
    removed(node)
    full_and_read_only(node)
t.done()
