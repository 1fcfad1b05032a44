#!/usr/bin/python3
"""python -m underwatt list, measure and report in a simulated node: what they print, what comes back as their status, signals; they
start nothing of the project's programs.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import pyuser
import uwtest

from underwatt import __main__ as main_of


def asked(node, *args, **kw):
    return node.run(sys.executable, "-m", "underwatt", *args, env={**WHERE, **kw})


# No program of the project is on PATH: the library alone is used.
WHERE = {"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "PATH": "/usr/bin:/bin"}


def lists(t, node):
    p = asked(node, "list", "--json")
    doc = json.loads(p.stdout or "{}")
    t.equal((p.returncode, [g["uuid"] for g in doc.get("gpus", [])]), (0, [b["uuid"] for b in node.status()["boards"]]), f"list --json {p.stderr}")
    t.ok(all(g["max_w"] == 300 and g["min_w"] == 150 and g["power_w"] > 20 and g["simulated"] for g in doc["gpus"]), "limits and power", doc)
    lines = asked(node, "list").stdout.splitlines()
    t.ok(len(lines) == 3 and lines[0].split() == ["gpu", "name", "power", "limit", "from", "to", "uuid"] and doc["gpus"][1]["uuid"] in lines[2], "list", lines)


def lists_some(t, node):
    p = asked(node, "list", "--json", "--gpus", "1")
    t.equal([g["gpu"] for g in json.loads(p.stdout or "{}").get("gpus", [])], [1], f"list --gpus {p.stderr}")
    p = asked(node, "list", "--gpus", "7")
    t.equal((p.returncode, p.stderr), (2, "underwatt: list: --gpus: '7' is not a board: boards are 0..1\n"), "list --gpus: no such board")


def measures(t, node, folder):
    log = os.path.join(folder, "log.csv")
    p = asked(node, "measure", "--json", "--log", log, "--price", "0.3 EUR", "--", "sh", "-c", "sleep 1; echo out; exit 7")
    e = json.loads(p.stderr or "{}")
    t.equal((p.returncode, p.stdout), (7, "out\n"), "measure: CMD's status and output")
    t.ok(e.get("name") == "sh" and 1 <= e["time_s"] < 10 and e["total_j"] > 0 and e["currency"] == "EUR", "measure --json", p.stderr)
    p = asked(node, "measure", "--log", log, "--", "sleep", "0.2")
    t.ok(p.returncode == 0 and p.stderr.startswith("underwatt: sleep: ") and "gpu1: " in p.stderr, "measure", p.stderr)
    for status, args in ((137, ("sh", "-c", "kill -9 $$")), (127, ("/nowhere/x",)), (126, (folder,)), (3, ("sh", "-c", "exit 3"))):
        p = asked(node, "measure", "--", *args)
        t.equal(p.returncode, status, f"measure {' '.join(args[:2])}: {p.stderr.splitlines()[0]}")
    t.equal(asked(node, "measure").returncode, 2, "measure without a command")
    p = asked(node, "measure", "--price", "x", "--", "touch", os.path.join(folder, "ran"))
    t.ok(p.returncode == 125 and not os.path.exists(os.path.join(folder, "ran")), "what fails before CMD begins", p.stderr)
    p = asked(node, "measure", "--log", "/nowhere/x.csv", "--", "true")
    t.equal((p.returncode, p.stderr), (125, "underwatt: /nowhere/x.csv: No such file or directory\n"), "a log that cannot be")
    p = node.run("sh", "-c", f"{sys.executable} -m underwatt list | true", env=WHERE)
    t.equal((p.stdout, p.stderr), ("", ""), "nobody reads the list: not a word")
    return log


def picks(t, node):
    """--gpus, as the command `underwatt` reads it."""
    ids = [b["uuid"] for b in node.status()["boards"]]
    for text, want in (("1", [1]), ("1, 0", [1, 0]), ("all", [0, 1]), ("0-1", [0, 1]), (ids[1], [1]), (ids[1][:12], [1]), (ids[0][4:12].upper(), [0])):
        p = asked(node, "measure", "--gpus", text, "--json", "--", "true", CUDA_VISIBLE_DEVICES="0")
        t.equal((p.returncode, [g["label"] for g in json.loads(p.stderr or "{}").get("gpus", [])]), (0, [f"gpu{i}" for i in want]), f"--gpus {text}")
    for text, says in (("2", "'2' is not a board: boards are 0..1"), ("0-2", "'0-2'"), ("1-0", "'1-0'"), (f"0-{30 * '9'}", "is not a board"), ("", "is empty"), ("0,,1", "is empty"), ("all,0", "'all'"),
                       ("GPU-", "'GPU-'"), ("0,0", "'0': the list has this board twice"), ("-1", "'-1'")):
        p = asked(node, "measure", f"--gpus={text}", "--", "echo", "ran")
        t.ok(p.returncode == 2 and not p.stdout and p.stderr.count("\n") == 1 and "underwatt: measure: --gpus: " in p.stderr and says in p.stderr,
             f"--gpus {text}: {p.stderr.strip()}", p.stdout)


def no_json(word):
    raise ValueError(f"{word} is not JSON")


def early(t):
    """Signals that come while CMD is being started."""
    ended = [main_of._run(["sh", "-c", "kill -TERM $PPID; exec sleep 60"]) for _ in range(20)]
    t.equal(ended, 20 * [128 + 15], "SIGTERM at CMD's start reaches CMD")


def signals(t, node):
    for number, status in ((signal.SIGTERM, 128 + 15), (signal.SIGINT, 0)):
        p = node.popen(sys.executable, "-m", "underwatt", "measure", "--json", "--", "sh", "-c", "trap 'exit 0' INT; echo on; sleep 600 & wait", env=WHERE)
        t.equal(p.stdout.readline(), "on\n", f"{number.name}: CMD runs")
        began = time.monotonic()
        if number == signal.SIGINT:    # as a terminal does: to all, and to measure before its CMD can end
            children = uwtest.children_of(p.pid)
            p.send_signal(number)
            for child in children:
                os.kill(child, number)
        else:
            p.send_signal(number)
        t.equal(p.wait(60), status, f"{number.name} ends CMD")
        text = p.stderr.readline()
        t.ok(text.startswith("{") and time.monotonic() - began < 30, f"{number.name}: and the energy is told", text)


def reports(t, node, log):
    p = asked(node, "report", "--json", log)
    found = {w["name"]: w for w in json.loads(p.stdout)["windows"]}
    t.ok(set(found) == {"sh", "sleep"} and found["sh"]["windows"] == 1 and found["sh"]["total_j"] > 0, "report --json", p.stdout)
    p = asked(node, "report", log)
    t.ok(p.returncode == 0 and len(p.stdout.splitlines()) == 3 and "a window" in p.stdout, "report", p.stdout)
    with open(log, "a", encoding="utf-8") as f:
        f.write("2026-11-26T08:30:00+00:00,sleep,1,0.5" + 14 * "," + "\n")
    found = {w["name"]: w for w in json.loads(asked(node, "report", "--json", log).stdout)["windows"]}
    t.equal((found["sleep"]["windows"], found["sleep"]["unknown"]), (2, 1), "a window whose energy is unknown is in no sum")
    ranks = f"{log}.ranks"
    with open(ranks, "w", encoding="utf-8") as f:
        f.write("name,rank,time_s,total_j,half_j\n" "train,0,10,2000,3\n" "train,1,11,3000,4\n" "train,0,7,2335,3\n" "train,1,6,1335,3\n" "load,,2,100,1\n" "load,,3,200,1\n")
    train, load = json.loads(asked(node, "report", "--json", ranks).stdout)["windows"]
    t.equal((train["ranks"], train["windows"], train["time_s"], train["total_j"]), (2, 4, 17, 8670), "ranks side by side: all their energy in the time of the longest one")
    t.equal((load["ranks"], load["time_s"], load["total_j"]), (1, 5, 300), "windows one after another: their times add up")
    row = asked(node, "report", ranks).stdout.splitlines()[1]
    t.ok("17.00 s" in row and "510.0 W" in row, "the mean is the ranks' together", row)
    odd = f"{log}.odd"
    with open(odd, "w", encoding="utf-8") as f:
        f.write("name,rank,time_s,total_j,half_j\n" "a,,,5,\n" "b,,x,7,inf\n" "c,,2,inf,1\n" "d,,1e308,1e308,1e308\n" "d,,1,1e308,1e308\n" "e,,1,8,nan\n")
    p = asked(node, "report", "--json", odd)
    try:
        found = {w["name"]: (w["time_s"], w["total_j"], w["half_j"], w["unknown"]) for w in json.loads(p.stdout, parse_constant=no_json)["windows"]}
    except ValueError as e:
        found = f"{e}: {p.stdout}{p.stderr}"
    t.equal(found, {"a": (None, 5, None, 0), "b": (None, 7, None, 0), "c": (0, 0, 0, 1), "d": (0, 0, 0, 2), "e": (1, 8, None, 0)},
            "report --json: what is no finite number is null")
    p = asked(node, "report", odd)
    t.ok(p.returncode == 0 and "nan" not in p.stdout and "inf" not in p.stdout, "report: no NaN there", p.stdout + p.stderr)
    short, wide = f"{log}.short", f"{log}.wide"
    with open(log, encoding="utf-8") as f:
        head = f.readline()
    with open(short, "w", encoding="utf-8") as f:
        f.write(head + "2026-11-26T08:30:00+00:00\n")
    p = asked(node, "report", short)
    t.ok(p.returncode == 0 and len(p.stdout.splitlines()) == 2, "report of a log that is cut short", p.stdout + p.stderr)
    with open(wide, "w", encoding="utf-8") as f:
        f.write(head + 200000 * "x" + "\n")
    for path in ("/nowhere/log.csv", "/etc/passwd", os.path.dirname(log), wide):
        p = asked(node, "report", path)
        t.ok(p.returncode == 1 and p.stderr.count("\n") == 1 and path in p.stderr, f"report {path}", p.stderr)


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(board="v100", count=2) as node:
        lists(t, node)
        lists_some(t, node)
        log = measures(t, node, folder)
        picks(t, node)
        early(t)
        signals(t, node)
        reports(t, node, log)
    p = subprocess.run([sys.executable, "-m", "underwatt", "list"], capture_output=True, text=True, timeout=60,
                       env=pyuser.env(UNDERWATT_NVML="/nowhere/libnvidia-ml.so.1"))
    t.ok(p.returncode == 1 and p.stderr.count("\n") == 1, "no board: one line", p.stderr)
    t.done()


if __name__ == "__main__":
    main()
