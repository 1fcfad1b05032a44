"""A source's later values of a time that is booked: a row of their own, once, over kill -9; booked figures stay."""
import json
import os
import sqlite3
import time

import uwtest

t = uwtest.Tap()


def ask(file, sql):
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return db.execute(sql).fetchall()


def series(path, v):
    """The same value in each of the last five hours and in this one; the file is replaced, as others may look at it."""
    hour = int(time.time()) // 3600 * 3600
    with open(path + ".new", "w") as f:
        f.write("".join(time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(hour + i * 3600)) + f",{v}\n" for i in range(-5, 2)))
    os.rename(path + ".new", path)


def metrics(d):
    """Rows of revisions of carbon, and their grams (None: none is told)."""
    v = {line.split("{")[0]: float(line.split()[-1]) for line in d.ask("GET", "/metrics")[1].splitlines()
         if line.startswith("underwatt_ledger_revis") and ("{" in line) and "price" not in line and "marginal" not in line}
    return v["underwatt_ledger_revisions_total"], v.get("underwatt_ledger_revised_co2e_grams")


def totals(node, *args):
    return json.loads(node.run("underwatt", "report", "--format", "json", *args).stdout)["totals"]


with uwtest.Node(board="v100", count=2, speed=20) as node:
    grid = os.path.join(node.tmp, "grid.csv")
    policy = os.path.join(node.tmp, "policy.yaml")
    with open(policy, "w") as f:
        f.write(f"policy: 1\nsignals:\n  - {{name: carbon, file: {grid}, every: 1 s}}\n")
    d = node.daemon(f"node: {{interval: 1 s}}\npolicy: {{file: {policy}}}\n")
    t.ok(uwtest.wait_for(lambda: (ask(d.ledger, "SELECT count(*) FROM energy") or [(0,)])[0][0] > 4), "no value: rows without", d.log())
    series(grid, 300)
    t.ok(uwtest.wait_for(lambda: ask(d.ledger, "SELECT count(*) FROM energy WHERE co2_mg NOT NULL")[0][0] > 8),
         "then 300 g/kWh", d.log())
    t.equal(d.stop(), 0, "ends in order")
    # all of it two hours ago, in one quarter that is over
    with sqlite3.connect(d.ledger) as db:
        at = (int(time.time()) // 900 * 900 - 7200) * 1000
        db.execute("UPDATE energy SET begin_ms = ?", (at,))
        db.execute("UPDATE meter SET begin_ms = ?", (at,))
    booked = ask(d.ledger, "SELECT sum(co2_mg), sum(co2_covered_uj), sum(energy_uj) FROM energy")[0]
    series(grid, 360)
    d.start()
    t.ok(uwtest.wait_for(lambda: ask(d.ledger, "SELECT count(*) FROM revision")) and
         uwtest.wait_for(lambda: ask(d.ledger, "SELECT sum(covered_uj) FROM revision")[0][0]), "its later values come", d.log())
    t.ok(uwtest.wait_for(lambda: metrics(d)[0]), "metrics tell of them")
    told = metrics(d)
    d.kill(actuator=False)
    once = ask(d.ledger, "SELECT res, begin_ms, board, kind, job, amount, covered_uj FROM revision ORDER BY 3, 4, 5")
    old = f"FROM energy WHERE begin_ms = {at}"
    t.equal(ask(d.ledger, f"SELECT sum(co2_mg), sum(co2_covered_uj), sum(energy_uj) {old}")[0], booked, "what was booked stays")
    groups = ask(d.ledger, f"SELECT count(DISTINCT board || '.' || kind || '.' || ifnull(job, 0)) {old}")[0][0]
    t.ok(len(once) == groups and {(r[0], r[1]) for r in once} == {(900, at)}, "a row a board and job", (once, groups))
    t.ok(told[0] == len(once) and abs(told[1] - sum(r[5] for r in once) / 1e3) < 1e-6, "metrics count and sum them", (told, once))
    total = booked[0] + sum(r[5] for r in once)
    t.ok(abs(total - booked[2] * 360 / 3.6e9) <= groups, "booked and revised are 360 g/kWh of all of it", (total, booked, once))
    t.equal(booked[1] + sum(r[6] for r in once), booked[2], "which is covered now")
    p = node.run("underwatt", "report", "--ledger", d.ledger, "--to", time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(at // 1000 + 900)))
    t.ok("booked, revised by +" in p.stdout and "of the energy\n" not in p.stdout, "the report has both", p)
    anew = time.time() * 1e3
    d.start()
    t.ok(uwtest.wait_for(lambda: ask(d.ledger, "SELECT max(begin_ms) FROM energy")[0][0] > anew), "killed, and begun anew")
    time.sleep(3)  # the quarters of two days are looked at, 4 a second, the oldest first: these are the last of 5 h
    t.equal(ask(d.ledger, "SELECT res, begin_ms, board, kind, job, amount, covered_uj FROM revision ORDER BY 3, 4, 5"), once,
            "nothing is revised twice")
    t.equal(metrics(d), (0, None), "nor told of twice")
    series(grid, 300)
    t.ok(uwtest.wait_for(lambda: ask(d.ledger, "SELECT count(*) FROM revision")[0][0] == 2 * len(once)), "another value: rows of its own")
    total = booked[0] + ask(d.ledger, "SELECT sum(amount) FROM revision")[0][0]
    t.ok(abs(total - booked[2] * 300 / 3.6e9) <= 2 * groups, "to which the sum comes", total)
    r = totals(node, "--to", time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(at // 1000 + 900)))
    t.ok(abs(r["co2_g"] - total / 1e3) < 1e-6 and abs(r["co2_booked_g"] - booked[0] / 1e3) < 1e-6 and r["co2_covered"] == 1 and
         abs(r["co2_revised_g"] - (r["co2_g"] - r["co2_booked_g"])) < 1e-9, "the daemon's report, too", r)
    t.equal(d.stop(), 0, "ends in order")
t.done()
