"""The ledger as its readers see it: `underwatt report` through the daemon and from the
file, sums against the meters, whose jobs are shown, what a killed daemon leaves."""
import datetime
import json
import math
import os
import sqlite3
import zoneinfo

import uwtest

SUMMED = 2  # LEDGER_SUMMED

t = uwtest.Tap()


def report(node, *args, **kw):
    p = node.run("underwatt", "report", "--format", "json", *args, **kw)
    return (json.loads(p.stdout) if p.returncode == 0 else None), p


def sums(file):
    """Energy and meters in the file, as whole microjoules, and whether it is whole."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        one = lambda sql: db.execute(sql).fetchone()[0]
        return (one("SELECT ifnull(sum(energy_uj), 0) FROM energy"),
                one("SELECT ifnull(sum(energy_uj), 0) FROM meter"), one("PRAGMA integrity_check"))


def holds(energy, meter):
    return meter > 0 and abs(energy - meter) <= 0.001 * meter



def charged(r, what, factor):
    """Whether the report's amount is the covered energy times the factor a kWh, to 0.1 %."""
    amount = {"co2": "co2_g", "marginal": "marginal_g", "money": "money"}[what]
    want = r["energy_j"] * r[what + "_covered"] / 3.6e6 * factor
    return r[amount] is not None and abs(r[amount] - want) <= 0.001 * abs(want) + 0.002


def both(node, d, job):
    """A settled job by the daemon and in the report, of the same energy."""
    said = d.ask("GET", f"/v1/jobs/{job}")[1]
    row = next((r for r in report(node)[0]["rows"] if r["job"] == job), None)
    same = said.get("settled") and row and abs(row["energy_j"] - said["energy_j"]) < 0.01
    return (said, row) if same else None


def half_of_rows(file, job):
    """The half width of a job's sum by its rows: of a counter's 0.4 % of the energy add up, the rest in squares; of readings all adds up."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        rows = db.execute("SELECT energy_uj * 1e-6, half_uj * 1e-6, method FROM energy WHERE job = ?", (job,)).fetchall()
    fixed = [half if method & SUMMED else min(half, 0.004 * energy) for energy, half, method in rows]
    return math.hypot(sum(fixed), math.sqrt(sum(half ** 2 - f ** 2 for f, (_, half, _) in zip(fixed, rows, strict=True))))


EAST, WEST = "Pacific/Kiritimati", "Pacific/Honolulu"  # 24 h apart: never the same date


def days_are_the_callers(node, d, daemons):
    """`--zone local`, and a name, through a daemon whose TZ is `daemons`."""
    for zone in (EAST, WEST):
        for args, env in ((("--zone", "local"), {"TZ": zone}), (("--zone", zone), {})):
            with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
                first = db.execute("SELECT min(begin_ms) FROM energy").fetchone()[0]
            r, p = report(node, "--by", "day", *args, env=env)
            date = datetime.datetime.fromtimestamp(first / 1e3, zoneinfo.ZoneInfo(zone)).strftime("%Y-%m-%d")
            t.ok(r and r["zone"] == zone and r["rows"][0]["day"] == date,
                 f"the daemon in {daemons}: days of {' '.join(args)} {env or ''} are {zone}'s", (date, p))
    for args, env, word in ((("local",), {"TZ": "CET-1CEST"}, "--zone local: 'CET-1CEST' is no time zone known here"),
                            (("local",), {"TZ": "CET-1CEST,M3.5.0,M10.5.0"}, "--zone local: TZ=CET-1CEST,M3.5.0,M10.5.0 is not the name"),
                            (("Europe/Berln",), {}, "zone: 'Europe/Berln' is none of")):
        p = node.run("underwatt", "report", "--zone", *args, env=env)
        t.ok(p.returncode == 2 and not p.stdout and word in p.stderr and p.stderr.count("\n") == 1, f"no name: {word}", p)
    r, p = report(node, "--ledger", d.ledger, "--by", "day", "--zone", "local", env={"TZ": "XXX+11"})
    t.ok(r and r["zone"] == "local" and r["rows"], "the file can be read in a zone without a name", p)
    status, text = d.ask("GET", "/v1/report?zone=Europe/Berln")
    t.ok(status == 400 and "Europe/Berln" in text["error"], "the daemon refuses it, too", (status, text))


def emissions():
    """Unknown at first, then set by hand: grams and money of what is covered, and how much that is."""
    with uwtest.Node(board="v100", count=2, speed=20) as node:
        d = node.daemon("node:\n  interval: 5 s\n")
        child = node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
        uwtest.wait_for(lambda: sums(d.ledger)[0] > 10e9 and report(node)[0]["rows"])
        r, p = report(node)
        t.ok(r["totals"]["co2_g"] is None and r["totals"]["co2_covered"] == 0 and r["totals"]["money"] is None,
             "no signal: no grams, not 0 g", p)
        t.ok("CO2e" not in node.run("underwatt", "report").stdout, "and none in the text")
        for name, value in (("carbon", "300 g/kWh"), ("carbon.marginal", "-20 g/kWh"), ("price", "0.25 EUR/kWh")):
            p = node.run("underwatt", "signal", "set", name, value, "--for", "12 h")
            t.equal(p.returncode, 0, f"{name} is set")
        r = uwtest.wait_until(lambda: report(node)[0], lambda r: r["totals"]["co2_covered"] > 0.4)
        t.ok(0.4 < r["totals"]["co2_covered"] < 1, "some of the energy is covered", r["totals"])
        for what, factor in (("co2", 300), ("marginal", -20), ("money", 0.25)):
            t.ok(charged(r["totals"], what, factor) and r["rows"] and charged(r["rows"][0], what, factor),
                 f"{what}: the covered energy times {factor}, to 0.1 %", (r["totals"], r["rows"]))
        t.equal(r["money_currency"], "EUR", "in its currency")
        with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            mg, uj, n = db.execute("SELECT sum(co2_mg), sum(co2_covered_uj), count(DISTINCT board || '.' || kind ||"
                                   " '.' || ifnull(job, 0)) FROM energy").fetchone()
            sources = db.execute("SELECT signal, source, unit, estimated FROM factor ORDER BY signal").fetchall()
        t.ok(n - 1 >= uj * 300e3 / 3.6e12 - mg >= 0, "whole milligrams, exact but for one a sum", (mg, uj, n))
        t.ok([(s, u, e) for s, _, u, e in sources] ==
             [("carbon", "g/kWh", 0), ("carbon.marginal", "g/kWh", 0), ("price", "EUR/kWh", 0)] and
             all(source.startswith("set by user ") for _, source, _, _ in sources), "the ledger names the sources", sources)
        factors = report(node)[0]["factors"]
        t.equal([(f["signal"], f["source"], f["unit"], int(f["estimated"])) for f in factors], sources, "and so does the report")
        t.ok("  carbon: set by user " in node.run("underwatt", "report").stdout, "as text, too")
        for by in ("job", "user", "gpu", "day", "group", "project", "class", "partition", "account", "qos", "array",
                   "label:team", "user,day", "project,user"):
            out = node.run("underwatt", "report", "--by", by).stdout
            r, p = report(node, "--by", by)
            t.ok("g CO2e, of " in out and " % of the energy" in out and ("marg. g" in out or "," in by) and
                 max(map(len, out.splitlines())) <= 80, f"text by {by}: with coverage, in 80 columns", out)
            t.ok(charged(r["rows"][0], "co2", 300), f"json by {by}", r["rows"])
            if "rest" in r:
                t.ok(abs(sum(x["energy_j"] for x in r["rows"]) - r["totals"]["attributed_j"]) < 1e-6 and
                     r["rest"]["jobs"] == 0, f"json by {by}: the rows are the jobs' energy", r)
        me = str(os.geteuid())
        r, p = report(node, "--by", "user,day", "--user", me)
        t.ok(r and [x["uid"] for x in r["rows"]] == [os.geteuid()] and r["only"] == {"user": me}, "of one user", p)
        for args, word in ((("--user", me, "--to", "2020-01-01"), f"of {me}"), (("--label", "team=x"), "team=x")):
            p = node.run("underwatt", "report", *args)
            t.ok(p.returncode == 0 and "No energy of jobs was recorded." in p.stdout and word + " alone" in " ".join(p.stdout.split()),
                 f"of {word}: nothing", p)
        for args, word in ((("--user", "nobody-here"), "job of user 'nobody-here'"), (("--job", "4711"), "job 4711"),
                           (("--job", "4711", "--user", me, "--format", "csv"), f"job 4711 of user '{me}'"),
                           (("--user", "nobody-here", "--waste"), "job of user 'nobody-here'")):
            p = node.run("underwatt", "report", *args)
            t.ok(p.returncode == 1 and not p.stdout and p.stderr == f"underwatt: report: no {word} is in the ledger\n", f"no {word}: 1", p)
        p = node.run("underwatt", "report", "--by", "gpu", "--job", "1")
        t.ok(p.returncode == 2 and "by gpu has no jobs" in p.stderr, "boards have no user", p)
        p = node.run("underwatt", "report", "--format", "csv")
        t.ok(",co2_g,co2_covered," in p.stdout.splitlines()[0] and ",EUR,1" in p.stdout.splitlines()[1], "csv", p)
        p = node.run("underwatt", "report", "--format", "html")
        t.ok("marg. g" in p.stdout, "html", p)
        t.equal(node.run("underwatt", "signal", "unset", "carbon").returncode, 0, "carbon is unset")
        r = uwtest.wait_until(lambda: report(node)[0], lambda r: r["totals"]["co2_covered"] <
                              r["totals"]["money_covered"] - 0.05)
        t.ok(charged(r["totals"], "co2", 300) and r["totals"]["co2_covered"] < r["totals"]["money_covered"],
             "unknown again: nothing is added", r["totals"])
        child.kill()
        t.equal(d.stop(), 0, "ends in order")


emissions()

with uwtest.Node(board="v100", count=2, speed=20) as node:
    d = node.daemon("node:\n  interval: 5 s\n", env={"TZ": EAST})
    child = node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
    booked = uwtest.wait_for(
        lambda: (report(node)[0] or {"rows": []})["rows"] and sums(d.ledger)[0] > 20e9)
    t.ok(booked, "a job that was found shows in the report", d.log())
    r, p = report(node)
    t.ok(r and r["simulated"] and r["totals"]["holds"], "simulated, and the sums hold", p)
    t.ok(r and r["rows"] and r["rows"][0]["uid"] == os.geteuid() and r["rows"][0]["energy_j"] > 0,
         "with its user and energy", p)
    t.ok(r and r["totals"]["idle_j"] > 0, "the board without a job idles", p)
    r, p = report(node, "--by", "gpu")
    t.ok(r and len(r["rows"]) == 2 and r["rows"][1]["attributed_j"] == 0, "by GPU: one has none", p)
    r, p = report(node, "--by", "day", "--carbon", "360", "--price", "0.5 EUR")
    t.ok(r and r["rows"] and r["currency"] == "EUR" and
         abs(r["rows"][0]["gco2e"] - r["rows"][0]["energy_j"] / 1e4) < 1e-6 * r["rows"][0]["gco2e"],
         "by day, with emissions and costs", p)
    days_are_the_callers(node, d, EAST)
    p = node.run("underwatt", "report", "--from", "soon")
    t.ok(p.returncode == 2 and "report: --from: 'soon' is not a time" in p.stderr, "a time that is none", p)
    for option, value, says in (("--price", "0.30", "has no currency"), ("--price", "x", "'x' is not"), ("--carbon", "-1", "outside 0..10000")):
        p = node.run("underwatt", "report", option, value)
        t.ok(p.returncode == 2 and option in p.stderr and says in p.stderr and "_kwh" not in p.stderr, f"report {option} {value}: names the option", p)
    p = node.run("underwatt", "report", "--format", "pdf")
    t.ok(p.returncode == 2 and "'pdf' is none of" in p.stderr, "a format that is none", p)
    if os.geteuid() == 0:
        p = node.run("underwatt", "report", "--format", "json", user=65534, group=65534,
                     extra_groups=[])
        other = json.loads(p.stdout) if p.returncode == 0 else {}
        t.ok(other.get("only_uid") == 65534 and other["rows"] == [] and
             other["totals"]["attributed_j"] > 0, "another user sees sums, not this one's jobs", p)
    else:
        t.skip("another user sees sums, not this one's jobs", "needs root")

    # Killed at once: the file is whole, its sums hold, the next run goes on.
    before = sums(d.ledger)
    d.kill(actuator=False)
    after = sums(d.ledger)
    t.ok(after[2] == "ok" and after[0] >= before[0] and holds(after[0], after[1]),
         "kill -9: the file is whole and its sums hold", after)
    r, p = report(node, "--ledger", d.ledger)
    t.ok(r and r["totals"]["holds"] and r["rows"], "the report is read from the file", p)
    job = r["rows"][0]["job"] if r and r["rows"] else 0
    p = node.run("underwatt", "report")
    t.ok(p.returncode == 1 and "--ledger" in p.stderr, "without the daemon it says how", p)
    for form, word in (("text", "Energy by user"), ("csv", "user,uid,jobs"), ("html", "<svg")):
        out = os.path.join(node.tmp, "report." + form)
        p = node.run("underwatt", "report", "--by", "user", "--ledger", d.ledger, "--format", form,
                     "--output", out)
        t.ok(p.returncode == 0 and word in open(out).read(), f"as {form}", p)
    with sqlite3.connect(d.ledger) as db:  # one stretch was of readings, as where a counter stands still
        db.execute("UPDATE energy SET method = ? WHERE rowid = (SELECT min(rowid) FROM energy WHERE job = ?)", (SUMMED, job))
    db.close()
    d.extra_env["TZ"] = WEST
    d.start()
    more = uwtest.wait_for(lambda: sums(d.ledger)[0] > after[0] + 5e9)
    days_are_the_callers(node, d, WEST)
    last = sums(d.ledger)
    t.ok(more and holds(last[0], last[1]), "the next run goes on, and the sums hold", last)
    r, p = report(node)
    ids = [row["job"] for row in r["rows"]] if r else []
    t.ok(len(ids) == len(set(ids)) and job in ids, "no id of a job comes twice", ids)
    child.kill()
    said, row = uwtest.wait_for(lambda: both(node, d, max(ids)), 20) or ({"half_j": -1}, {"half_j": 0})
    t.near(row["half_j"], said["half_j"], 0.01, "a job's interval is the same there and by /v1/jobs")
    want = half_of_rows(d.ledger, max(ids))
    t.near(said["half_j"], want, 0.001 * want, "… of 0.4 % and the noise of a counter's stretches")
    t.equal(d.stop(), 0, "ends in order")
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        ended = db.execute("SELECT ended_ms IS NOT NULL FROM run ORDER BY id").fetchall()
    t.equal(ended, [(0,), (1,)], "the ledger knows which run ended in order")
t.done()
