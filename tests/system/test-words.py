#!/usr/bin/python3
"""The words that all programs understand, and what they say to those that they do not."""
import os
import subprocess

import uwtest

t = uwtest.Tap()
PROGRAMS = ["underwatt", "underwattd", "underwatt-actuator", "underwatt-signals", "underwatt-sim", "underwatt-start",
            "underwatt-slurm-collector"]


def ask(*words):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "SUDO", "CUDA_"))}
    return subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env=clean)


for name in PROGRAMS:
    path = uwtest.program(name)
    for word in ("-V", "--version", "version"):
        p = ask(path, word)
        first, _, number = p.stdout.partition(" ")
        t.ok(p.returncode == 0 and first == name and number[:1].isdigit() and not p.stderr, f"{name} {word}",
             f"{p.returncode} {p.stdout} {p.stderr}")
    for word in ("-h", "--help", "help"):
        p = ask(path, word)
        t.ok(p.returncode == 0 and p.stdout.startswith(f"usage: {name}") and not p.stderr, f"{name} {word}",
             f"{p.returncode} {p.stdout} {p.stderr}")
    if name not in ("underwatt", "underwatt-sim"):  # whose first word is a command
        option = "--socket" if name == "underwatt-start" else "--config"
        for word, says in (("--help", f"usage: {name}"), ("-h", f"usage: {name}"), ("--version", f"{name} "), ("-V", f"{name} ")):
            for words in ([word, option, "/nonexistent"], [option, "/nonexistent", word]):
                p = ask(path, *words)
                t.ok(p.returncode == 0 and p.stdout.startswith(says) and not p.stderr, f"{name} {' '.join(words)}",
                     f"{p.returncode} {p.stdout} {p.stderr}")
    p = ask(path, "--frobnicate")
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and "'--frobnicate'" in p.stderr and not p.stdout,
         f"{name} --frobnicate: one line, 2", f"{p.returncode} {p.stdout} {p.stderr}")

PYTHON = str(uwtest.TOP / "python")
for word in ("-V", "--version", "version", "-h", "--help", "help"):
    p = ask("env", f"PYTHONPATH={PYTHON}", "/usr/bin/python3", "-m", "underwatt", word)
    t.ok(p.returncode == 0 and p.stdout.startswith("underwatt " if "ersion" in word or word == "-V" else "usage: "),
         f"python -m underwatt {word}", f"{p.returncode} {p.stdout} {p.stderr}")

WRONG = [  # what is typed, what is in the one line
    (["repot"], ["'repot'", "did you mean 'report'?", "list, doctor, measure"]),
    (["run", "--gaol", "edp", "--", "true"], ["'--gaol'", "did you mean 'goal'?", "--gpus"]),
    (["top", "--dealy", "2"], ["'--dealy'", "did you mean 'delay'?", "--once"]),
    (["run", "--goal", "slowdwn:1.05", "--", "true"], ["'slowdwn:1.05'", "did you mean 'slowdown'?", "energy, edp"]),
    (["run", "--goal", "slowdown:5000000%", "--", "true"], ["slowdown:5000000%", "1..100"]),
    (["run", "--goal", "slowdown:%", "--", "true"], ["'%'", "1..100"]),
    (["explain", "--boards"], ["--boards", "needs a value"]),
]
for words, says in WRONG:
    p = ask(uwtest.program("underwatt"), *words)
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and all(s in p.stderr for s in says) and not p.stdout,
         " ".join(words), f"{p.returncode} {p.stderr}")

with uwtest.Node(board="v100", count=2) as node:
    for goal in ("EDP", "Energy", "slowdown:5%", "SLOWDOWN:1.05"):
        p = node.run("underwatt", "run", "-q", "--local", "--gpus", "0", "--goal", goal, "--", "true")
        t.ok(p.returncode == 0, f"run --goal {goal}", p.stderr)
    node.daemon()
    p = node.run("underwatt", "explain", "0", "--json", "-")
    t.ok(p.returncode == 0 and p.stdout.startswith("{"), "explain 0 --json -", p.stderr + p.stdout)
    p = node.run("underwatt", "release", "0")
    q = node.run("underwatt", "release", "0", "--take-back")
    t.ok(p.returncode == 0 and q.returncode == 0, "release 0, release 0 --take-back", p.stderr + q.stderr)
    p = node.run("underwatt", "explain", "0", "--jsn", "-")
    t.ok(p.returncode == 2 and "did you mean 'json'?" in p.stderr, "explain 0 --jsn -: an option, too", p.stderr)
    p = node.run("underwatt", "top", "--once", "-d", "2")
    t.ok(p.returncode == 0, "top -d 2", p.stderr)
t.done()
