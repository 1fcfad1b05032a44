#!/usr/bin/python3
"""How honest what was saved must be: test-savings.py BENCH_SAVINGS PLANT_CURVES

Plays whole jobs under the daemon's tuner on the simulated boards' workloads.  TAP.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SAVINGS, PLANT = sys.argv[1:3]
count = failed = 0


def ok(good, name):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)


def rows(curves, name, every):
    done = subprocess.run([SAVINGS, "--curves", str(curves), "--row", name, "--every", str(every), "--json", "-"],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"Bail out! {name}: {done.stderr}")
    return {row["length_s"]: row for row in json.loads(done.stdout)["rows"]}


with tempfile.TemporaryDirectory() as tmp:
    curves = pathlib.Path(tmp) / "plant.csv"
    with open(curves, "w") as f:
        subprocess.run([PLANT], stdout=f, check=True)
    short = rows(curves, "steady", 4)[60]
    ok(short["jobs"] > 5 and short["known"] == 0, "a minute tells nothing")
    # What covers, and a bound on the half width that keeps it from doing so by being wide.
    for name, widest in (("steady", 0.04), ("slow noise 1 %", 0.06), ("grows 4 %", 0.06), ("jump 15 %", 0.06)):
        for s, row in rows(curves, name, 3).items():
            if s == 60:
                continue
            ok(row["known"] >= 0.9 * row["jobs"] and row["covered"] >= 0.9 and row["half"] < widest,
               f"{name}, {s / 60:g} min: {100 * row['covered']:.0f} % of {row['known']} hold the truth, "
               f"+- {100 * row['half']:.1f} %")
            ok(row["visits_share"]["max"] <= 0.005 and (s < 3600 or row["visits"] >= 0.5),
               f"… {row['visits']:.1f} looks at the original, {100 * row['visits_share']['max']:.2f} % of its time")

    for words, why in ((["--seeds", "0"], "--seeds"), (["--goal", "speed"], "speed"), (["--row", "x"], "'x'"), ([], "--curves"),
                       (["--curves", "/nowhere"], "/nowhere")):
        done = subprocess.run([SAVINGS, *words], capture_output=True, text=True)
        ok(done.returncode in (1, 2) and why in done.stderr, f"refused: {done.stderr.splitlines()[0]}")
print(f"1..{count}")
sys.exit(failed > 0)
