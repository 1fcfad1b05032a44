#!/usr/bin/python3
"""The words that all programs understand, and what they say to those that they do not."""
import json
import os
import re
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
        t.ok(p.returncode == 0 and p.stdout.startswith(f"usage: {name}") and "--version" in p.stdout and not p.stderr,
             f"{name} {word}: names --version", f"{p.returncode} {p.stdout} {p.stderr}")
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
for words, near in ((["underwattd", "--cnofig", "F"], "--config"), (["underwattd", "--token-lst"], "--token-list"),
                    (["underwatt-signals", "--chekc"], "--check"), (["underwatt-slurm-collector", "--cnofig", "F"], "--config"),
                    (["underwatt-start", "--usr", "x"], "--user"), (["underwatt-actuator", "--recovr"], "--recover"),
                    (["underwatt-sim", "strat"], "start"), (["underwatt-sim", "start", "--conut", "2"], "--count")):
    p = ask(uwtest.program(words[0]), *words[1:])
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and f"did you mean '{near}'?" in p.stderr and not p.stdout,
         " ".join(words), f"{p.returncode} {p.stderr}")

COMMANDS = re.findall(r"^  ([a-z]+) ", ask(uwtest.program("underwatt"), "--help").stdout, re.M)
for command in COMMANDS:
    for word, says in (("-V", "underwatt "), ("--version", "underwatt "), ("-h", f"usage: underwatt {command} "),
                       ("--help", f"usage: underwatt {command} ")):
        p = ask(uwtest.program("underwatt"), command, word)
        t.ok(p.returncode == 0 and p.stdout.startswith(says) and not p.stderr, f"{command} {word}",
             f"{p.returncode} {p.stdout} {p.stderr}")

# underwatt(1) names every command, and a man page every option of its --help.
MAN = uwtest.TOP / "docs" / "man"
for command in COMMANDS:
    text = (MAN / "underwatt.1.scd").read_text()
    t.ok(f"\n*{command}*\n" in text and f"*underwatt-{command}*(1)" in text, f"underwatt(1) names {command}")
PAGES = [(["underwatt", c], [f"underwatt-{c}.1"] + ["underwatt-carbon.1"] * (c == "price"))  # which it refers to
         for c in COMMANDS]
PAGES += [([name], [f"{name}.1" if name == "underwatt-sim" else f"{name}.8"]) for name in PROGRAMS if name != "underwatt"]
for words, pages in PAGES:
    text = "".join((MAN / f"{page}.scd").read_text().replace("\\", "") for page in pages)
    said = ask(uwtest.program(words[0]), *words[1:], "--help").stdout
    lost = [o for o in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", said)
            if o not in ("-h", "--help", "-V", "--version") and not re.search(re.escape(o) + r"(?![\w-])", text)]
    t.ok(said and not lost, f"{pages[0]} names the options of {' '.join(words)}", lost)

PYTHON = str(uwtest.TOP / "python")
p = ask(uwtest.program("underwatt"), "jobs", "--help")
t.ok(" ".join(p.stdout.split()).count("-a, --all include jobs that ended in the last minute") == 1, "jobs --help: what --all adds", p.stdout)

for word in ("-V", "--version", "version", "-h", "--help", "help"):
    p = ask("env", f"PYTHONPATH={PYTHON}", "/usr/bin/python3", "-m", "underwatt", word)
    t.ok(p.returncode == 0 and p.stdout.startswith("underwatt " if "ersion" in word or word == "-V" else "usage: "),
         f"python -m underwatt {word}", f"{p.returncode} {p.stdout} {p.stderr}")

WRONG = [  # what is typed, what is in the one line
    (["repot"], ["'repot'", "(see --help): did you mean 'report'?"]),
    (["run", "--gaol", "edp", "--", "true"], ["run: unknown option '--gaol' (see --help): did you mean '--goal'?\n"]),
    (["top", "--dealy", "2"], ["'--dealy'", "did you mean '--delay'?"]),
    (["top", "--verson"], ["'--verson'", "did you mean '--version'?"]),
    (["--verson"], ["unknown option '--verson'", "did you mean '--version'?", "one of --help, --version"]),
    (["run", "--goal", "slowdwn:1.05", "--", "true"], ["'slowdwn:1.05'", "did you mean 'slowdown'?", "energy, edp"]),
    (["run", "--goal", "slowdown:5000000%", "--", "true"], ["slowdown:5000000%", "1..2"]),
    (["run", "--goal", "slowdown:%", "--", "true"], ["'%'", "1..2"]),
    (["run", "--goal", "slowdown:105%", "--", "true"], ["slowdown:105%", "slowdown:5% or slowdown:1.05"]),
    (["policy", "check", "F", "--json", "-"], ["policy: --json is an option of show, not of check"]),
    (["run", "--cap", "-5W", "--", "true"], ["--cap: '-5W': a cap is more than 0 W"]),
    (["run", "--cap", "", "--", "true"], ["--cap: the value is empty"]),
    (["list", "--boards", ""], ["--boards: the value is empty"]),
    (["policy", "chek", "F"], ["policy: 'chek' is none of: check, show", "did you mean 'check'?"]),
    (["policy", "frob"], ["policy: 'frob' is none of: check, show"]),
    (["signal", "lsit"], ["signal: 'lsit' is none of: list, set, unset", "did you mean 'list'?"]),
    (["cap", "clera"], ["cap: 'clera' is none of: set, clear, show", "did you mean 'clear'?"]),
    (["carbon", "nwo"], ["carbon: 'nwo' is none of: now, forecast", "did you mean 'now'?"]),
    (["price", "forcast"], ["price: 'forcast' is none of: now, forecast", "did you mean 'forecast'?"]),
    (["jobs", "lsit"], ["jobs: unexpected argument 'lsit'", "underwatt jobs [OPTIONS]"]),
    (["sweep", "--sim", "v10"], ["--sim: 'v10' is none of: ", "h100", "did you mean 'v100'?"]),
    (["sweep", "--sim", "v100", "--workload", "resent50"], ["--workload: 'resent50' is none of: ", "vgg19", "did you mean 'resnet50'?"]),
    (["top", "-d", "-1"], ["--delay", "'-1' is outside 0.2 s..60 s"]),
    (["explain", "--boards"], ["--boards", "needs a value"]),
    (["cap", "set", "200W", "--for", "366d"], ["cap: --for: '366d' is outside 0.001 s..365 d"]),
    (["cap", "set", "200W", "--for", "1e9"], ["cap: --for: '1e9' is outside 0.001 s..365 d"]),
    (["release", "0", "--for", "40000d"], ["release: --for: '40000d' is outside 0.001 s..365 d"]),
    (["signal", "set", "carbon", "1", "--for", "25h"], ["signal: --for: '25h' is outside 0.001 s..1 d"]),
]
for words, says in WRONG:
    p = ask(uwtest.program("underwatt"), *words)
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and all(s in p.stderr for s in says) and not p.stdout,
         " ".join(words), f"{p.returncode} {p.stderr}")

WRONG_SIM = [
    (["strat"], ["'strat'", "did you mean 'start'?", "one of start, status"]),
    (["start", "--conut", "2"], ["'--conut'", "did you mean '--count'?", "one of --board"]),
    (["start", "--board", "v10"], ["--board: 'v10' is none of: ", "h100", "did you mean 'v100'?"]),
    (["start", "--may-set", "rot"], ["--may-set: 'rot' is none of: root, anyone: did you mean 'root'?"]),
    (["status", "--jsn"], ["'--jsn'", "did you mean '--json'?", "one of --json, --state"]),
    (["train", "--gpu", "0"], ["--gpu: ", "did you mean '--gpus'?", "one of --workload"]),
    (["train", "--tells", "step"], ["--tells: 'step' is none of: steps, phases: did you mean 'steps'?"]),
    (["train", "--phases", "tran"], ["'tran' is none of: startup=TIME, ", "did you mean 'train'?"]),
    (["fault", "0", "lst"], ["fault: 'lst' is none of: lost, found, ", "did you mean 'lost'?"]),
]
for words, says in WRONG_SIM:
    p = ask(uwtest.program("underwatt-sim"), *words)
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and all(s in p.stderr for s in says) and not p.stdout,
         "underwatt-sim " + " ".join(words), f"{p.returncode} {p.stderr}")

with uwtest.Node(board="v100", count=2) as node:
    p = node.run("underwatt-sim", "train", "--workload", "resent50")
    t.ok(p.returncode == 2 and "--workload: 'resent50' is none of: " in p.stderr and "did you mean 'resnet50'?" in p.stderr,
         "train --workload resent50", p.stderr)
    for visible in (None, "1"):
        p = node.run("underwatt-sim", "train", "--gpus", "all", "--steps", "5", env={"CUDA_VISIBLE_DEVICES": visible} if visible else {})
        t.ok(p.returncode == 0, f"train --gpus all, CUDA_VISIBLE_DEVICES {visible}", p.stderr)
    for goal in ("EDP", "Energy", "slowdown:5%", "SLOWDOWN:1.05"):
        p = node.run("underwatt", "run", "-q", "--local", "--gpus", "0", "--goal", goal, "--", "true")
        t.ok(p.returncode == 0, f"run --goal {goal}", p.stderr)
    # Watts and boards as they were typed and, where that says it otherwise, as they were understood.
    def as_typed(cases, where):
        for words, says in cases:
            p = node.run("underwatt", *words.split())
            t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1 and says in p.stderr and not p.stdout,
                 f"{words}: {where}", f"{p.returncode} {p.stderr}")
    anywhere = [
        ("cap set 999W --gpus 0", "GPU 0: '999W' is outside 150..300 W"),
        ("cap set 0.01kW --gpus 0", "GPU 0: '0.01kW' (10 W) is outside 150..300 W"),
        ("cap set 20% --gpus all", "GPU 0: '20%' (60 W) is outside 150..300 W"),
        ("cap set 200W --gpus 0-9", "--gpus: no board '0-9': boards are 0..1"),
        ("cap set 200W --gpus GPU-abc", "--gpus: no board 'GPU-abc': boards are 0..1"),
        ("cap clear --gpus 0,7", "--gpus: no board '7'"),
        ("run --cap 999W --gpus 0 -- true", "'999W' is outside 150..300 W"),
        ("run --cap 0.999kW --gpus 0 -- true", "'0.999kW' (999 W) is outside 150..300 W"),
        ("cap set 80 --gpus 0", "GPU 0: '80' is outside 150..300 W: did you mean '80%'?\n"),
        ("run --cap 20 --gpus 0 -- true", "is outside 150..300 W: did you mean '20%'?\n"),
        ("run --cap 20 -- true", "takes 150..300 W: did you mean '20%'?\n"),
        ("run --cap 20W -- true", "'20W' is outside the range of every board; GPU 1 takes 150..300 W\n"),
        ("run --cap 200W --gpus 0-7 -- true", "--gpus: no board '0-7'"),
        ("run --goal edp --gpus GPU-abc -- true", "--gpus: no board 'GPU-abc'"),
        ("measure --gpus 0-9 -- true", "--gpus: no board '0-9'"),
        ("sweep --gpus 0,GPU-a -- true", "--gpus: no board 'GPU-a'"),
        ("sweep --from 20W --gpus 0 -- true", "--from: '20W' is outside 150 W..300 W"),
        ("sweep --to 0.02kW --gpus 0 -- true", "--to: '0.02kW' (20 W) is outside 150 W..300 W"),
        ("sweep --step 1mW --gpus 0 -- true", "--step: '1mW' (0.001 W) makes more"),
        ("list --gpus 7", "--gpus: no board '7'"),
    ]
    as_typed(anywhere, "without the daemon")
    node.daemon()
    as_typed([*anywhere, ("explain 9", "explain: no board '9'"), ("explain 0-1", "'0-1' does not name a single board"),
              ("release 9", "release: no board '9'"), ("release GPU-abc", "release: no board 'GPU-abc'"), ("release 0 9", "release: no board '9'"),
              ("release --take-back 0 9", "release: no board '9'"), ("release 0 a/b", "release: 'a/b' is not the index")],
             "with the daemon")
    p = node.run("underwatt", "explain", "0")
    t.ok("released" not in p.stdout, "a release of a board and of one that is absent releases neither", p.stdout)
    p = node.run("underwatt", "explain", "0", "--json", "-")
    t.ok(p.returncode == 0 and p.stdout.startswith("{"), "explain 0 --json -", p.stderr + p.stdout)
    why = "the room is too warm today, and the facility asked all users for less power until 18:00"
    node.run("underwatt", "cap", "set", "200", "--gpus", "0", "--detach", "--why", why)
    p = node.run("underwatt", "explain", "0")
    lines = p.stdout.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("    > ")), len(lines) - 1)
    at = lines[first].find("user ")
    more = [line for line in lines[first + 1:] if at > 0 and line.startswith(" " * at)]
    t.ok(len(more) >= 2 and " ".join([lines[first][at:], *map(str.strip, more)]).endswith(f": {why}") and
         all(line[at] != " " for line in more) and not uwtest.too_wide(p.stdout, 80), "explain: a long reason is wrapped below itself", p.stdout)
    node.run("underwatt", "cap", "clear", "--gpus", "0")
    p = node.run("underwatt", "release", "0")
    q = node.run("underwatt", "release", "0", "--take-back")
    t.ok(p.returncode == 0 and q.returncode == 0, "release 0, release 0 --take-back", p.stderr + q.stderr)
    p = node.run("underwatt", "explain", "0", "--jsn", "-")
    t.ok(p.returncode == 2 and "did you mean '--json'?" in p.stderr, "explain 0 --jsn -: an option, too", p.stderr)
    p = node.run("underwatt", "top", "--once", "-d", "2")
    t.ok(p.returncode == 0, "top -d 2", p.stderr)
    p = node.run("underwatt", "release", "1", "--for", "30")
    t.ok(p.returncode == 0, "release 1 --for 30: seconds", p.stderr)
    p = node.run("underwatt", "release", "1", "--take-back")
    p = node.run("underwatt", "run", "-q", "--gpus", "0", "--window", "5", "--", "true")
    t.ok(p.returncode == 0, "run --window 5: seconds", p.stderr)
    p = node.run("underwatt", "carbon", "now", "--for", "4")
    t.ok(p.returncode == 2 and len(p.stderr.splitlines()) == 1, "carbon --for 4: hours are usual, a unit is needed", p.stderr)
    p = node.run("underwatt", "report", "--json", "-")
    t.ok(p.returncode == 0 and isinstance(json.loads(p.stdout), dict), "report --json -", p.stderr + p.stdout[:200])
    for words in (["report", "--json", "-"], ["measure", "--json", "-", "--gpus", "0"]):  # two options, spelt alike
        end = ["--", "true"] if words[0] == "measure" else []
        d = node.run("underwatt", *words, "--carbon", "300", "--price", "0.3 EUR", *end)
        t.ok(d.returncode == 0 and json.loads(d.stdout)["currency"] == "EUR", f"{words[0]} --carbon 300 --price '0.3 EUR'",
             d.stderr + d.stdout[:200])
    q = node.run("underwatt", "report", "--format", "json")
    t.equal(sorted(json.loads(q.stdout)), sorted(json.loads(p.stdout)), "… is --format json")
    p = node.run("underwatt", "report", "--json", "-", "--format", "csv")
    t.ok(p.returncode == 2 and "--format" in p.stderr, "report --json - --format csv", p.stderr)
with uwtest.Node(board="v100", count=1) as node:
    d = node.daemon("caps: {classes: {prod: {floor: 60 %}}}\n")
    t.ok("<6>event=boards" in d.log(), "under journald each line has its priority", d.log())
    p = node.run("underwatt", "run", "-q", "--gpus", "0", "--class", "prdo", "--", "true")
    t.ok(p.returncode == 2 and "class 'prdo' is none of: default, prod: did you mean 'prod'?" in p.stderr, "run --class prdo", p.stderr)
    d.stop()
    d = node.daemon(env={"JOURNAL_STREAM": "1:2"})
    t.ok("event=boards" in d.log() and "<" not in d.log(), "where stderr is another file no line has one", d.log())
t.done()
