#!/usr/bin/python3
"""How good the search must be: test-search.py BENCH_SEARCH PLANT_CURVES ZEUS_CURVES HARD_CURVES

Plays it on the simulated boards' workloads and, where the recorded sweeps are at
hand (UNDERWATT_DATA, else ../shared/data), on those.  TAP.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SEARCH, PLANT, ZEUS, HARD = sys.argv[1:5]
ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("UNDERWATT_DATA") or ROOT / ".." / "shared" / "data")
FREE = ("energy", "edp", "eds:2", "eds:1.5", "cost:0.5")
BOUNDS = (1.02, 1.05, 1.1, 1.2)
HEADER = "curve,cap_w,time_s,energy_j\n"
# There memory counts, not figures: the same code, played less often.
SANITIZED = os.environ.get("UNDERWATT_SANITIZED") == "1"
count = failed = 0


def ok(good, name):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def run(*args):
    return subprocess.run([SEARCH, *args], capture_output=True, text=True, timeout=300)


def play(path, goal, *args, looks="0"):
    done = run("--curves", str(path), "--goal", goal, "--looks", looks, *args)
    if done.returncode != 0:
        sys.exit(f"Bail out! {goal}: {done.stderr}")
    return json.loads(done.stdout)


def test_refusals(tmp):
    good = HEADER + "a,100,2,150\na,150,1.5,180\na,200,1.4,230\n"
    cases = (
        (HEADER + "a,100,2,150\n\na,200,1,180\n", ":3: the row is empty"),
        (good + "a,x,1,200\n", ":5: cap_w: 'x' is not a number"),
        (good + "a,0,1,200\n", ":5: cap_w 0 is not above 0"),
        (good + "a,0.001,1,200\n", ":5: cap_w 0.001 is outside 1..100000"),
        (good + "a,1e9,1,200\n", ":5: cap_w 1e9 is outside 1..100000"),
        (good + "a,250,,200\n", ":5: time_s: "),
        (good + "a,250,nan,200\n", ":5: time_s: "),
        (good + "a,250,1,-3\n", ":5: energy_j -3 is not above 0"),
        (good + "a,150,1,200\n", ":5: cap 150 W of curve 'a' is given twice"),
        (good + "a,150.0,1,200\n", ":5: cap 150 W of curve 'a' is given twice"),
        (good + "\n", ":5: the row is empty"),
        (good.replace("\n", "\r\n") + "\r\n", ":5: the row is empty"),
        (good.replace("\n", "\r\n") + "a,x,1,200\r\n", ":5: cap_w: 'x' is not a number"),
        (HEADER + "a,100,2,150\na,150,1.5,180\n", ":2: curve 'a' has 2 rows: 3 at least"),
        ("curve,cap,time,energy\n" + good[len(HEADER):], ":1: header 'curve,cap,time,"),
        (good + "a,250,1\n", ":5: not 4 columns"),
        (good + "a,250,1,2,3\n", ":5: not 4 columns"),
        (good + "b,100,2,150\nb,150,1.5,180\n", ":5: curve 'b' has 2 rows: 3 at least"),
        ("cap,time\n", ":1: header"),
        (HEADER, ":1: no curve"),
        ("", ":1: no curve"),
    )
    path = tmp / "bad.csv"
    for text, words in cases:
        path.write_bytes(text.encode())
        r = run("--curves", str(path), "--goal", "edp")
        ok(r.returncode == 2 and r.stderr.startswith(f"search: {path}{words}") and
           r.stderr.count("\n") == 1 and not r.stdout,
           f"refused: {r.stderr.strip()[-70:]}")
    path.write_bytes(good.replace("\n", "\r\n").encode())
    crlf = play(path, "edp")
    path.write_text(good)
    ok(play(path, "edp") == crlf, "CRLF line ends: the same result")
    for args, words in ((("--goal", "speed"), "'speed' is none of"),
                        (("--goal", "eds:0.2"), "outside 1..1000"),
                        (("--goal", "edp", "--noise", "2"), "2 is outside 0..0.3"),
                        (("--goal", "edp", "--noise", "x"), "'x' is not a number"),
                        (("--goal", "edp", "--seeds", "0"), "0 is outside 1.."),
                        (("--goal", "edp", "--looks", "17"), "17 is outside 0..16"),
                        (("--goal", "edp", "--noise", ".01", "--memory", "-1"), "-1 is outside 0..86400"),
                        (("--goal", "edp", "--noise", ".01", "--memory", "9", "--correlation", "2"), "2 is outside -1..1"),
                        (("--goal", "edp", "--memory", "9"), "--memory needs --noise"),
                        (("--goal", "edp", "--noise", ".01", "--correlation", ".5"), "--correlation needs --memory"),
                        (("--goal", "edp", "--runs", "0"), "0 is outside 1.."),
                        (("--goal", "edp", "--runs", "9", "--seeds", "2"), "one of them"),
                        (("--goal", "edp", "more"), "'more' is one too many"),
                        ((), "missing")):
        r = run("--curves", str(path), *args)
        ok(r.returncode == 2 and words in r.stderr and not r.stdout, f"refused: {words}")
    r = run("--curves", str(tmp / "absent.csv"), "--goal", "edp")
    ok(r.returncode == 2 and r.stderr.count("\n") == 1 and not r.stdout and
       "absent.csv: No such file" in r.stderr, "no such file")


def test_form(tmp):
    path = tmp / "odd.csv"
    path.write_text(HEADER + 'a "b\\,100,2,150\n' + "c,210,1,180\n"
                    'a "b\\,150,1.5,180\na "b\\,200.5,1.4,230\nc,100,2,150\nc,150,1.3,160\n')
    got = play(path, "cost:0.5", "--noise", "0.01", "--seeds", "3")
    ok([(r["curve"], r["seed"]) for r in got["results"]] ==
       [(c, s) for c in ('a "b\\', "c") for s in (1, 2, 3)], "a result a curve and seed")
    keys = {"curve", "seed", "cap_w", "regret", "regret_allowed", "slowdown", "excess", "saving",
            "oracle_saving", "caps", "windows", "held_s", "cost"}
    ok(all(set(r) == keys for r in got["results"]), "its fields")
    s = got["summary"]
    ok(set(s) == {"regret", "regret_allowed", "slowdown", "broken", "excess", "caps", "windows", "until_held"} and
       s["until_held"] == {k: s[k] for k in ("caps", "windows")} and
       set(s["regret"]) == set(s["regret_allowed"]) == set(s["slowdown"]) == {"mean", "p95", "max"} and
       set(s["caps"]) == set(s["windows"]) == {"mean"}, "the summary's fields")
    rs = [r["regret"] for r in got["results"]]
    ok(abs(s["regret"]["mean"] - sum(rs) / 6) < 1e-8 and s["regret"]["max"] == max(rs),
       "the summary sums up")
    ok(all(r["regret"] >= 0 and r["windows"] >= r["caps"] >= 2 for r in got["results"]),
       "figures that can be")
    ok(play(path, "cost:0.5", "--noise", "0.01", "--seeds", "3") == got,
       "the same again: the same")
    ok(play(path, "cost:0.5", "--noise", "0.02", "--seeds", "3") != got, "noise matters")
    ok(len(play(path, "edp", "--runs", "5")["results"]) == 6, "--runs: as many seeds as make them")


def test_noise_memory(tmp):
    """A bound that is broken counts, by how far; noise that remembers breaks it no more."""
    path = tmp / "one.csv"
    path.write_text(HEADER + "a,100,2,150\na,150,1.5,180\na,175,1.44,200\na,200,1.4,230\n")
    args = ("--noise", "0.01", "--runs", "200")
    white = play(path, "slowdown:1.05", *args)["summary"]
    got = play(path, "slowdown:1.05", *args, "--memory", "60")
    s, over = got["summary"], [r for r in got["results"] if r["excess"] > 0]
    missed = sum(r["excess"] > 0.002 for r in over)
    ok(white["broken"] <= 0.1 >= s["broken"] == len(over) / 200 and missed <= 5,
       f"bound broken in {100 * white['broken']:g} %, with memory in {100 * s['broken']:g} %, "
       f"by more than 0.2 % in {missed / 2:g} %")
    ok(all(r["regret"] == r["excess"] and abs(r["slowdown"] / 1.05 - 1 - r["excess"]) < 1e-8 for r in over) and
       s["excess"]["max"] == max(r["excess"] for r in over) >= s["excess"]["p99"] >= 0 < s["excess"]["max"], "its regret is how far")
    ok(all(r["excess"] == 0 and r["slowdown"] <= 1.05 for r in got["results"] if r not in over), "else 0")
    table = json.loads(run("--curves", str(path), "--table", "--goal", "slowdown:1.05", *args, "--memory", "60",
                           "--looks", "0", "--json", "-").stdout)
    row = table["goals"][0]["methods"][0]
    ok(len(table["goals"]) == 1 and table["memory_s"] == 60 and row["method"] == "search" and
       row["broken"] == s["broken"] and abs(row["excess_p99"] - s["excess"]["p99"]) < 1e-6 and
       abs(row["regret"]["mean"] - s["regret"]["mean"]) < 1e-8, "the table's row of one goal: the same")
    ok(play(path, "edp", *args, "--memory", "60") != play(path, "edp", *args, "--memory", "60", "--correlation",
       "0.5"), "the correlation of time and power matters")


def test_compare(tmp):
    """What moved between two tables, and where for the worse."""
    path, before, after = tmp / "odd.csv", tmp / "before.json", tmp / "after.json"
    run("--curves", str(path), "--table", "--looks", "0", "--json", str(before))

    def compare(*files):
        return subprocess.run([sys.executable, str(ROOT / "bench/search-compare"), *map(str, files)],
                              capture_output=True, text=True, timeout=60)

    same = compare(before, before)
    ok(same.returncode == 0 and len(same.stdout.splitlines()) == 2, "a table beside itself: nothing moved")
    table = json.loads(before.read_text())
    table["goals"][0]["methods"][0]["windows"]["mean"] += 1
    table["goals"][1]["methods"][0]["windows"]["mean"] -= 1
    after.write_text(json.dumps(table))
    rows = compare(before, after).stdout.splitlines()[2:]
    ok(len(rows) == 2 and rows[0].startswith("| energy | search | windows |") and rows[0].endswith(" * |") and
       rows[1].startswith("| edp |") and not rows[1].endswith(" * |"), "two that moved, one for the worse")
    table["goals"].pop()
    after.write_text(json.dumps(table))
    ok(compare(before, after).returncode == 1, "other goals: refused")


def test_peers(tmp):
    """On a plateau, where caps have no effect, the other methods go down, and come to an end."""
    path = tmp / "smooth.csv"
    path.write_text(HEADER + "".join(f"a,{w},{1 + 90 / (w - 60)},{0.95 * w * (1 + 90 / (w - 60))}\n"
                                      for w in range(100, 210, 10)))
    rows = json.loads(run("--curves", str(path), "--table", "--goal", "energy", "--headroom", "5", "--looks", "0",
                          "--json", "-").stdout)["goals"][0]["methods"]
    for r in [r for r in rows if r["method"] in ("golden section", "golden 0.5-1.02", "hill climb")]:
        ok(r["regret"]["max"] <= 0.01 and r["windows"]["mean"] <= 15, f"{r['method']}, limits far above the draw: "
           f"{100 * r['regret']['max']:.2f} % above the least, {r['windows']['mean']:g} windows")
    ok(len(rows) == 9, "the table's methods")
    path.write_text(HEADER + "a,200,1.4,150\na,205,1.35,145\na,210,1.3,140\n")  # a search step is under 1 W
    rows = json.loads(run("--curves", str(path), "--table", "--goal", "energy", "--looks", "0", "--json", "-").stdout)
    ok(all(r["windows"]["mean"] <= 15 for r in rows["goals"][0]["methods"]), "a range of 10 W: each method comes to an end")


def test_constants():
    """The search's numbers are found, by the name and the place of each."""
    out = subprocess.run([sys.executable, str(ROOT / "bench/constants"), "--list"], capture_output=True, text=True,
                         check=True, timeout=60).stdout.splitlines()
    ok("search.h SEARCH_FLOOR = 0.50" in out and any(line.startswith("propose.c gaps_even[1] = ") for line in out) and
       not any("MODEL_LEVELS" in line or line.startswith("prior.c") for line in out), f"constants: {out[-1]}")


def quality(path, goal, *args, only=""):
    rs = [r for r in play(path, goal, *args)["results"] if only in r["curve"]]
    n = len(rs)
    regret = [r["regret"] for r in rs]
    return {"n": n, "within": 100 * sum(r <= 0.01 for r in regret) / n,
            "mean": 100 * sum(regret) / n, "max": 100 * max(regret),
            "caps": sum(r["caps"] for r in rs) / n,
            "windows": sum(r["windows"] for r in rs) / n,
            "slowest": max(r["slowdown"] for r in rs)}


def test_bounds(path, name, most, only=""):
    for f in BOUNDS:
        q = quality(path, f"slowdown:{f}", only=only)
        ok(q["slowest"] <= f * 1.002, f"{name}, slowdown:{f}: slowest {q['slowest']:.4f}")
        ok(q["mean"] <= most, f"{name}, slowdown:{f}: mean {q['mean']:.3f} % above the "
           f"bounded oracle <= {most} %, {q['caps']:.2f} caps")


def test_plant(tmp):
    path = tmp / "plant.csv"
    with open(path, "w") as f:
        subprocess.run([PLANT], stdout=f, check=True)
    for board in ("rtx6000", "v100"):
        for goal in FREE:
            q = quality(path, goal, only=f"/{board}/")
            ok(q["n"] == 6 and q["max"] <= 1, f"simulated {board}, {goal}: worst of "
               f"{q['n']} {q['max']:.2f} % <= 1 %, {q['caps']:.2f} caps")
        test_bounds(path, f"simulated {board}", 0.5, only=f"/{board}/")


def test_hard(tmp):
    """Curves generated to be hard: other ones than the search was made with (seed 1)."""
    path = tmp / "hard.csv"
    with open(path, "w") as f:
        subprocess.run([HARD, "--seed", "7", "--each", "10"], stdout=f, check=True)
    for goal in FREE:
        rs = play(path, goal)["results"]
        regret = [100 * r["regret_allowed"] for r in rs]
        ok(len(rs) == 100 and sum(regret) <= 0.4 * len(rs), f"hard curves, {goal}: mean "
           f"{sum(regret) / len(rs):.3f} % above the oracle that keeps the floor <= 0.4 %")
        cost = 100 * sum(r["cost"] for r in rs) / len(rs)
        ok(cost <= 0.6, f"hard curves, {goal}: windows cost {cost:.2f} % of an hour <= 0.6 %")
    for f in BOUNDS:
        rs = play(path, f"slowdown:{f}")["results"]
        ok(all(r["slowdown"] <= f * 1.002 for r in rs), f"hard curves, slowdown:{f}: slowest "
           f"{max(r['slowdown'] for r in rs):.4f}")


def test_bounds_caps(path):
    for f, most in ((1.02, 5.5), (1.05, 5.2), (1.1, 5), (1.2, 5)):
        q = quality(path, f"slowdown:{f}")
        ok(q["caps"] <= most and q["windows"] == q["caps"],
           f"slowdown:{f}, exact windows: {q['caps']:.2f} caps <= {most}, none twice")


def of_bound(path, f, *args, looks="0"):
    """Results, their 99th percentile of overshoot, and the part of the oracle's saving."""
    rs = play(path, f"slowdown:{f}", "--noise", "0.01", "--seeds", "2", *args, looks=looks)["results"]
    over = sorted(r["excess"] for r in rs)[int(0.99 * len(rs)) - 1]
    return rs, over, sum(r["saving"] for r in rs) / sum(r["oracle_saving"] for r in rs)


def test_bounds_noise(path):
    """The search is not told the noise."""
    for f, least in ((1.05, 0.69), (1.1, 0.88)):
        rs, over, share = of_bound(path, f)
        ok(over <= 0.003 and share >= least, f"slowdown:{f}, 1 % noise: p99 of overshoot "
           f"{100 * over:.2f} %, {100 * share:.1f} % of the oracle's saving")
        windows, caps = (sum(r[k] for r in rs) / len(rs) for k in ("windows", "caps"))
        ok(windows <= 10 and caps <= 5.3, f"slowdown:{f}, 1 % noise: {windows:.1f} windows, {caps:.1f} caps")
    for f, least in () if SANITIZED else ((1.02, 0.65), (1.05, 0.8), (1.1, 0.9)):
        rs, over, share = of_bound(path, f, "--memory", "60", looks="4")
        ok(over <= 0.003 and share >= least, f"slowdown:{f}, 1 % noise that remembers, an hour: p99 of overshoot "
           f"{100 * over:.2f} %, {100 * share:.1f} % of the oracle's saving")


def test_memory(path):
    """An earlier run's curve helps where it is right, and costs little where it is not."""
    noise = ("--noise", "0.01", "--seeds", "2")
    for goal in FREE:
        alone, same = quality(path, goal), quality(path, goal, "--history", "same")
        other = quality(path, goal, "--history", "other")
        ok(same["caps"] < alone["caps"] - 0.3 and same["mean"] <= alone["mean"] + 0.02,
           f"{goal}: remembered: {same['caps']:.2f} caps for {alone['caps']:.2f}")
        ok(other["mean"] <= 0.3 and other["caps"] <= 5,
           f"{goal}: remembered wrongly: mean {other['mean']:.3f} %, {other['caps']:.2f} caps")
        other = quality(path, goal, "--history", "other", *noise)
        ok(other["mean"] <= 0.5 and other["windows"] <= 12,
           f"{goal}, 1 % noise: remembered wrongly: mean {other['mean']:.3f} %")
    for goal in ("slowdown:1.02", "slowdown:1.05", "slowdown:1.1", "slowdown:1.2"):
        done = play(path, goal, "--history", "other")
        f = float(goal.split(":")[1])
        most = max(r["slowdown"] / f - 1 for r in done["results"])
        ok(most <= 0.0001, f"{goal}: remembered wrongly: broken by {100 * most:.3f} % at most")


def test_hour(path):
    """After an hour, with the daemon's looks into gaps: dips are found."""
    for goal in FREE:
        held = play(path, goal)["summary"]
        hour = play(path, goal, looks="4")["summary"]
        r = {k: 100 * v for k, v in hour["regret_allowed"].items()}
        ok(r["mean"] <= 0.1 and r["max"] <= 1.5, f"{goal}, an hour: mean {r['mean']:.3f} %, max "
           f"{r['max']:.2f} % <= 1.5 % above the oracle that keeps the floor")
        ok(hour["until_held"]["caps"] == held["caps"] and
           4 < hour["windows"]["mean"] < held["windows"]["mean"] + 6,
           f"{goal}, an hour: {hour['caps']['mean']:.2f} caps, {held['caps']['mean']:.2f} until it holds")
    held, hour = play(path, "slowdown:1.05"), play(path, "slowdown:1.05", looks="4")
    shares = [sum(r["saving"] for r in run["results"]) / sum(r["oracle_saving"] for r in run["results"])
              for run in (held, hour)]
    worst = max(r["slowdown"] for r in hour["results"])
    ok(hour["summary"]["until_held"] == held["summary"]["until_held"] and shares[1] > shares[0] and worst <= 1.05,
       f"slowdown:1.05, an hour: {100 * shares[1]:.1f} % of the oracle's saving, {100 * shares[0]:.1f} % when it "
       f"holds first; x {worst:.4f} at most")


def test_recorded(tmp):
    sweep = DATA / "zeus" / "power_sweep.csv"
    if not sweep.exists():
        skip("recorded sweeps", f"no {sweep}")
        return
    path = tmp / "zeus.csv"
    subprocess.run([sys.executable, ZEUS, str(sweep), str(path)], check=True)
    for goal in FREE[:1] if SANITIZED else FREE:
        q = quality(path, goal)
        ok(q["n"] == 106, f"{goal}: {q['n']} curves")
        ok(q["within"] >= 96, f"{goal}: within 1 % of the oracle {q['within']:.1f} % >= 96")
        ok(q["mean"] <= 0.3, f"{goal}: mean regret {q['mean']:.3f} % <= 0.3")
        ok(q["caps"] <= 5, f"{goal}: {q['caps']:.2f} caps <= 5")
        q = quality(path, goal, "--noise", "0.01", "--seeds", "2")
        ok(q["mean"] <= 0.5 and q["caps"] <= 5 and q["windows"] <= 12,
           f"{goal}, 1 % noise: mean {q['mean']:.3f} %, {q['caps']:.2f} caps, "
           f"{q['windows']:.2f} windows")
    if not SANITIZED:
        test_bounds(path, "recorded", 0.5)
        test_bounds_caps(path)
        test_hour(path)
    test_bounds_noise(path)
    test_memory(path)


with tempfile.TemporaryDirectory() as folder:
    test_refusals(pathlib.Path(folder))
    test_form(pathlib.Path(folder))
    test_noise_memory(pathlib.Path(folder))
    test_compare(pathlib.Path(folder))
    test_peers(pathlib.Path(folder))
    test_constants()
    test_plant(pathlib.Path(folder))
    test_hard(pathlib.Path(folder))
    test_recorded(pathlib.Path(folder))
print(f"1..{count}")
sys.exit(1 if failed else 0)
