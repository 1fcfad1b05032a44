#!/usr/bin/python3
"""`underwatt policy check` beside a daemon: what a file would do now; each way for a file to be wrong is one line, exit 2,
and the old policy stays in force."""
import json
import os
import pathlib
import sys
import tempfile

import uwtest

sys.path.insert(0, str(uwtest.TOP / "tests"))
try:
    from openapi import Spec
except ImportError as e:
    uwtest.skip_all(f"{e} (Debian: python3-jsonschema, python3-yaml)")

t = uwtest.Tap()
BOARDS = 9  # of 256 rules each: more than 2,048 rows
OTHER = {"user": 65534, "group": 65534, "extra_groups": []}
IN_FORCE = """policy: 1
defaults: {for: 0 s}
rules:
- {name: old, when: job.age > 1 s, cap: 90 %, ramp: at once}
"""
NEW = """policy: 1
hard: true
signals:
- {name: grid.alarm, type: truth, age: 1 h}
rules:
- {name: dirty-grid, when: carbon > 400 g/kWh, until: carbon < 370 g/kWh, for: 10 min, cap: -25 %}
- {name: alarm, when: grid.alarm, kind: hard, cap: 160 W}
- {name: fuse, when: rack.power > 38 kW, until: rack.power < 34 kW, for: 0 s, kind: hard, cap: 200 W, idle_boards: true}
- {name: shown, when: carbon > 300 g/kWh, cap: 60 %, dry_run: true}
"""
# What is wrong, and what the line says.
CLASS = "- {name: a, match: {user: x}}\n"
WHEN = "when: carbon > 400 g/kWh"
BAD = (
    ("a floor above its cap", "rules:\n- {name: a, " + WHEN + ", cap: 60 % of demand, floor: 70 %}\n",
     "3: a: its floor, 70 % of demand, is above its cap, 60 % of demand"),
    ("a condition that is false", "rules:\n- {name: a, when: 2 < 1, cap: 60 %}\n",
     "3: a: never acts: its condition is false whatever the signals are"),
    ("a condition that no value makes true", "rules:\n- {name: a, when: carbon > 400 g/kWh and carbon < 370 g/kWh, cap: 60 %}\n",
     "3: a: never acts: no values of its signals make its condition true"),
    ("an until that holds wherever its condition does", "rules:\n- {name: a, " + WHEN + ", until: carbon > 370 g/kWh, cap: 60 %}\n",
     "3: a: never acts: its `until` is true or unknown wherever its condition is true"),
    ("an until that is true", "rules:\n- {name: a, " + WHEN + ", until: 2 > 1, cap: 60 %}\n",
     "3: a: never acts: its `until` is true whatever the signals are"),
    ("a for as long as its schedule",
     'rules:\n- {name: a, schedule: {from: "10:00", to: "11:00", zone: UTC}, for: 1 h, cap: 60 %}\n',
     "3: a: never acts: `for` is 3600 s, its schedule lasts 3600 s at most"),
    ("a time zone that does not exist", "rules:\n- {name: a, schedule: {zone: Europe/Berln}, cap: 60 %}\n",
     "3: 'Europe/Berln' is no time zone known here"),
    ("a rule's name twice", "rules:\n- {name: a, " + WHEN + ", cap: 60 %}\n- {name: a, " + WHEN + ", cap: 70 %}\n",
     "4: a: an earlier rule has this name"),
    ("a class's name twice", "classes:\n" + CLASS + "- {name: a, match: {user: y}}\n", "4: a: an earlier class has this name"),
    ("a signal's name twice", "signals:\n- {name: s, unit: kW, age: 1 min}\n- {name: s, unit: kW, age: 1 min}\n",
     "4: s is declared twice"),
    ("a preset's name twice", "presets: {a: 30 %, a: 40 %}\n", "2: key 'a' is already set on line 2"),
    ("two goals of one priority", "rules:\n- {name: a, " + WHEN + ", goal: edp}\n- {name: b, " + WHEN + ", goal: time}\n",
     "4: b: its goal has priority 0, as that of a: one has to be higher"),
    ("a hard rule without hard: true", "rules:\n- {name: a, " + WHEN + ", cap: 200 W, kind: hard}\n",
     "3: a: a hard rule needs `hard: true` in the file"),
    ("a rule that reads what caps move", "rules:\n- {name: a, when: board.power > 4 W, cap: 200 W}\n",
     "3: a: reads board.power, which caps change: it needs an `until`"),
    ("a class that is not there", "classes:\n" + CLASS + "rules:\n- {name: r, jobs: {class: aa}, " + WHEN + ", cap: 200 W}\n",
     "5: r: class 'aa' is none of: a, other"),
    ("a signal that is not there", "rules:\n- {name: a, when: carbn > 4 g/kWh, cap: 60 %}\n",
     "3: when: column 1: there is no signal 'carbn': did you mean 'carbon'?"),
    ("units that do not fit", "rules:\n- {name: a, when: carbon > 4 W, cap: 60 %}\n",
     "3: when: column 10: carbon is in g/kWh, 4 W is in W"),
    ("a preset that is not there", "rules:\n- {name: a, " + WHEN + ", preset: overnite}\n",
     "'overnite' is no preset (known: aggressive, balanced, minimal)"),
)
# Warnings: the file may be used.
ODD = (
    ("a class that nothing matches", "classes:\n- {name: all, match: {}}\n" + CLASS,
     "4: a: no job is of this class: all before it matches every job"),
    ("a class behind a wider one", 'classes:\n- {name: xs, match: {user: "x*"}}\n' + CLASS,
     "4: a: no job is of this class: xs before it matches each of its jobs"),
    ("a cap under a class's floor",
     "classes:\n- {name: all, match: {}, floor: 80 %}\nrules:\n- {name: a, " + WHEN + ", cap: 60 % of demand}\n",
     "5: a: has no effect in class all, whose floor is 80 % of demand"),
)


def would(node, d, path):
    """What a file would do now, beside the one in force."""
    new = path.with_name("new.yaml")
    for name, value in (("carbon", "430 g/kWh"), ("rack.power", "40 kW")):
        t.equal(node.run("underwatt", "signal", "set", name, value, "--for", "1h").returncode, 0, f"{name} {value}")
    p = node.run("underwatt", "policy", "check", str(new))
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and not p.stderr and "rule dirty-grid: soft -25 %" in lines, "what the file asks for", p)
    now = lines[lines.index("now, whatever `for` says:") + 1:]
    t.ok("  GPU 0: soft 150 W, rule dirty-grid: carbon 430 g/kWh; hard 200 W, rule fuse: rack.power 40 kW" in now,
         "the board of a job: one soft and one hard claim, a quarter below that", p.stdout)
    t.ok("  GPU 1: hard 200 W, rule fuse: rack.power 40 kW" in now, "a board without one", p.stdout)
    t.ok("  rule alarm, GPU 0, job 1: unknown: grid.alarm is unknown; reads grid.alarm unknown" in now,
         "a signal of the file that nothing gives", p.stdout)
    t.ok("  rule shown, GPU 0, job 1: dry-run: shown, not applied; reads carbon 430 g/kWh" in now, "a dry run", p.stdout)
    t.ok("check does not read" not in p.stdout, "it has no source", p.stdout)
    grid = path.with_name("grid.json")
    new.write_text(NEW.replace("signals:\n", f"signals:\n- {{name: carbon, file: {grid}}}\n- {{name: price, unit: EUR/kWh, file: {grid}}}\n"))
    p = node.run("underwatt", "policy", "check", str(new))
    says = f"  carbon: check does not read {grid}; the value is the daemon's (underwatt signal list)\n"
    t.ok(p.returncode == 0 and not p.stderr and p.stdout.count("check does not read") == 1 and says in p.stdout,
         "a source that a rule reads is not read, which a line says", p)
    new.write_text(NEW)
    t.equal(d.ask("GET", "/v1/claims")[1]["claims"][0]["who"], "rule old", "nothing of it is in force")
    t.equal([node.board(i)["limit_mw"] for i in range(2)], [270000, 300000], "… and the limits are as they were")

    answer = d.ask("POST", "/v1/policy/check", {"policy": NEW})
    why = Spec(uwtest.TOP / "docs" / "openapi.yaml").judge("POST", "/v1/policy/check", answer[0], "application/json",
                                                           json.dumps(answer[1]))
    t.ok(answer[0] == 200 and not why, "as docs/openapi.yaml has it", why)
    status, answer = d.ask("POST", "/v1/policy/check", {"policy": "policy: 1\nrulse: []\n"})
    t.ok(status == 400 and "unknown key 'rulse': did you mean 'rules'?" in answer["error"], "a wrong one is refused", answer)
    if os.geteuid() == 0:
        p = node.run("underwatt", "policy", "check", str(new), **OTHER)
        t.ok(p.returncode == 0 and "now" not in p.stdout and p.stderr.count("\n") == 1 and "administrators only" in p.stderr,
             "to others it is not shown, and said", p)


def large(node, path):
    """A file far above 64 KiB, and rules with more rows than one answer has."""
    rules = "".join(f"- {{name: r{i}, doc: '{'x' * 3600}', when: 'carbon > {300 + i} g/kWh', cap: 80 %, idle_boards: true}}\n" for i in range(256))
    text = "policy: 1\nrules:\n" + rules
    text += "# filled\n" * ((2**20 - len(text)) // 9)
    big = path.with_name("big.yaml")
    big.write_text(text)
    p = node.run("underwatt", "policy", "check", str(big))
    t.ok(p.returncode == 0 and not p.stderr and len(text) > 2**20 - 9, "a file of 1 MiB is tried", (p.returncode, p.stderr))
    lines = p.stdout[p.stdout.find("now, whatever"):].splitlines()
    t.equal(len([l for l in lines if l.startswith("  rule r")]), 256 * BOARDS, "… and every row of its rules is told")
    t.equal(len([l for l in lines if l.startswith("  GPU ")]), BOARDS, "… and each board once")
    t.ok(f"  rule r255, GPU {BOARDS - 1}: false: its condition is false; reads carbon 430 g/kWh" in lines, "… up to the last", lines[-1])
    big.write_text(text + "# one more\n")
    p = node.run("underwatt", "policy", "check", str(big))
    t.ok(p.returncode == 2 and "larger than 1048576 bytes" in p.stderr, "a larger file is refused, as policy.file is", p.stderr)


def wrong(node, d, path):
    """Each way to be wrong: by the command, and by a reload."""
    check = OTHER if os.geteuid() == 0 else {}
    bad = path.with_name("bad.yaml")
    for what, text, words in BAD:
        bad.write_text("policy: 1\n" + text)
        p = node.run("underwatt", "policy", "check", str(bad), **check)
        t.ok(p.returncode == 2 and not p.stdout and p.stderr.count("\n") == 1 and words in p.stderr, f"{what}: exit 2 and a line", p)
        path.write_text(bad.read_text())
        status, answer = d.ask("POST", "/v1/reload")
        policy = d.ask("GET", "/v1/policy")[1]
        t.ok(status == 400 and words in answer["error"] and words in policy["error"] and policy["in_force"] and
             [r["name"] for r in policy["rules"]] == ["old"], "… the reload is refused, and the old one stays", (answer, policy))
    for what, text, words in ODD:
        bad.write_text("policy: 1\n" + text)
        p = node.run("underwatt", "policy", "check", str(bad), **check)
        t.ok(p.returncode == 0 and f"warning: {bad}:{words}" in p.stderr, f"{what}: a warning", p)
    t.equal(node.board(0)["limit_mw"], 270000, "its cap has stayed")


def main():
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=BOARDS) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        new = path.with_name("new.yaml")
        new.write_text(NEW)
        p = node.run("underwatt", "policy", "check", str(new))
        t.ok(p.returncode == 0 and not p.stderr and "now" not in p.stdout, "without a daemon: what the file asks for alone", p)
        t.ok(p.stdout.endswith(f"\n{new}: OK\n"), "the last line: the policy is valid", p)
        d = node.daemon(f"policy: {{file: {path}}}\n")
        p = node.run("underwatt", "policy", "check", str(new))
        t.ok(p.stdout.endswith(f"\n{new}: OK\n"), "beside a daemon, too", p)
        t.ok(p.returncode == 0 and "  GPU 0: no cap by a rule\n" in p.stdout and "rule fuse, GPU 0: unknown: rack.power is unknown" in p.stdout,
             "beside a daemon without a policy", p)
        new.write_text("policy: 1\nlimits:\n- {node: true, rise: 6 kW/min}\n")
        says = [f"  GPU {i}: {cap}\n" for i in range(BOARDS) for cap in ("150 W, hard, by limit rise: no job", "no cap by a rule")]
        t.ok(uwtest.wait_for(lambda: all(s in node.run("underwatt", "policy", "check", str(new)).stdout for s in says)),
             "a limit on the rise: its cap on each board", node.run("underwatt", "policy", "check", str(new)))
        new.write_text(NEW)
        path.write_text(IN_FORCE)
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "a policy comes into force")
        job = node.train("--workload", "resnet50", "--gpus", "0", "--epochs", "1000")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 270000), "a policy is in force", node.board(0))
        would(node, d, path)
        large(node, path)
        wrong(node, d, path)
        path.unlink()
        os.mkfifo(path)
        status, answer = d.ask("POST", "/v1/reload")
        t.ok(status == 400 and "not a regular file" in answer["error"], "a pipe as policy.file is refused, not waited for", answer)
        job.terminate()
        job.wait(60)
    t.done()


if __name__ == "__main__":
    main()
