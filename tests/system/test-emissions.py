#!/usr/bin/python3
"""`underwatt report --ledger` with a PUE, contracts and embodied grams, on a ledger whose energy is known: figures by hand,
sums of rows, each format, and each way for the figures to be wrong."""
import csv
import io
import json
import pathlib
import sqlite3
import subprocess
import tempfile

import uwtest

t = uwtest.Tap()
# 16.667 Wh of two boards "Board A" in two minutes.
LEDGER = uwtest.TOP / "tests/data/ledger-v9.sql"
HEADER = "from,to,kwh,share,g_per_kwh,origin\n"
MARKET = HEADER + '2026-01-01,2026-01-01,0.01,,20,"GO 17, wind"\n'
BOARD = "Board A=36 its maker"


def run(*args):
    return subprocess.run([uwtest.program("underwatt"), "report", *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def figures(report):
    """Known figures, and rows that make up the sums."""
    totals = json.loads(report("--by", "gpu", "--format", "json").stdout)["totals"]
    kwh = totals["energy_j"] / 3.6e6
    t.near(totals["market_g"], 0.01 * 20, 1e-9, "10 Wh at 20 g/kWh")
    t.near(totals["market_covered"], 0.01 / kwh, 1e-9, "that much is covered")
    t.near(totals["facility_j"], 1.5 * totals["energy_j"], 1e-6, "the facility's energy")
    t.near(totals["facility_co2_g"], 1.5 * totals["co2_g"], 1e-9, "and its booked grams")
    plain = json.loads(run("--ledger", str(report.ledger), "--format", "json").stdout)["totals"]
    t.ok(all(totals[key] == value for key, value in plain.items()), "no other figure is changed", (plain, totals))
    with sqlite3.connect(report.ledger) as db:
        hours = db.execute("SELECT sum(span_ms) / 3.6e6 FROM meter WHERE board IN (SELECT id FROM board WHERE kind = 1)")
        t.near(totals["embodied_g"], 36 * hours.fetchone()[0], 1e-6, "36 g for each hour of a board")
    parts = sum(totals[f"embodied_{part}_g"] for part in ("attributed", "idle", "unattributed"))
    t.near(parts, totals["embodied_g"], 1e-9, "of jobs, idle and nobody's time")
    t.ok(totals["embodied_idle_g"] > 0, "idle time has its own")
    for by in ("gpu", "day"):
        rows = json.loads(report("--by", by, "--format", "json").stdout)["rows"]
        for key in ("market_g", "embodied_g", "facility_j"):
            t.near(sum(r[key] for r in rows), totals[key], 1e-3 * totals[key], f"rows by {by} make up {key}, to 0.1 %")


def formats(report):
    for by in ("job", "user", "day", "gpu", "user,day"):
        p = report("--by", by)
        t.ok("market g covered embodied g covered" in p.stdout and "of 60.0 % of the energy" in p.stdout and
             max(map(len, p.stdout.splitlines())) <= 80, f"text by {by}, in 80 columns", p)
    p = report("--by", "user", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(p.stdout)))
    t.ok(rows and all(float(r["market_g"]) > 0 and float(r["embodied_g"]) > 0 and float(r["facility_j"]) > 0 for r in rows),
         "csv", p)
    p = report("--format", "html")
    t.ok("<th>embodied g</th>" in p.stdout and "Beside these, market-based" in p.stdout, "html", p)
    t.ok("market: GO 17, wind\n" in report().stdout and "embodied: Board A: its maker\n" in report().stdout,
         "origins are shown")


def wrong(ledger, folder):
    (folder / "bad.csv").write_text(HEADER + "2026-01-01,2026-01-01,-1,,20,x\n")
    (folder / "nul.csv").write_text(MARKET + "\0" + MARKET)
    of = ("--ledger", str(ledger))
    for args, code, say in (
            (("--pue", "1.2"), 2, "--pue, --market and --embodied go with --ledger; the daemon has its own"),
            ((*of, "--pue", "0.9"), 2, "--pue: '0.9' is outside 1..10"),
            ((*of, "--embodied", "A100"), 2, "--embodied: 'A100' is not of the form 'BOARD=12.3 ORIGIN'"),
            (("--ledger", str(folder / "none")), 2, f"report: --ledger: cannot read {folder / 'none'}: No such file or directory"),
            ((*of, "--from", "2026-11-22", "--to", "2026-11-21"), 2,
             "report: --from 2026-11-22 --to 2026-11-21: from (2026-11-22T00:00:00Z) is not before to (2026-11-22T00:00:00Z)"),
            ((*of, "--price", "0.3 XX"), 2, "--price: '0.3 XX' is not of the form '0.30 EUR': a number and three letters"),
            (("--ledger", __file__), 2, f"report: --ledger: {__file__}: "),
            ((*of, "--output", "/nowhere/r"), 2, "report: --output: cannot write /nowhere/r: No such file or directory"),
            ((*of, "--json", str(folder)), 2, f"report: --json: cannot write {folder}: Is a directory"),
            ((*of, "--waste", "--pue", "1.2"), 2, "--waste has no figures of --pue, --market and --embodied"),
            ((*of, "--market", str(folder / "none.csv")), 2, "--market: cannot read " + str(folder / "none.csv") + ": No such file or directory"),
            ((*of, "--market", str(folder / "bad.csv")), 2, "bad.csv:2: kwh: '-1' is outside 0..1e+09"),
            ((*of, "--market", str(folder / "nul.csv")), 2, f"nul.csv: byte {len(MARKET) + 1} is NUL: it is no text")):
        p = run(*args)
        t.ok(p.returncode == code and say in p.stderr and p.stderr.count("\n") == 1 and not p.stdout, say, p)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    folder.chmod(0o755)  # of a file that others may not read errors have no text
    ledger = folder / "ledger.sqlite"
    with sqlite3.connect(ledger) as db:
        db.executescript(LEDGER.read_text())
    db.close()
    (folder / "market.csv").write_text(MARKET)

    def report(*args):
        return run("--ledger", str(ledger), "--pue", "1.5", "--market", str(folder / "market.csv"), "--embodied", BOARD, *args)
    report.ledger = ledger
    figures(report)
    formats(report)
    wrong(ledger, folder)
t.done()
