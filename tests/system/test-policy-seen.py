#!/usr/bin/python3
"""What people see of rules: policy show, explain, top, live events, metrics, the ledger's audit trail; a dry run by rule."""
import datetime
import http.client
import json
import os
import pathlib
import pty
import pwd
import re
import select
import socket
import sqlite3
import tempfile
import threading
import time

import uwtest

t = uwtest.Tap()
POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
rules:
- {name: dirty-grid, when: carbon > 400 g/kWh, until: carbon < 370 g/kWh, cap: -25 %, ramp: at once}
- {name: only-shown, when: carbon > 300 g/kWh, until: carbon < 290 g/kWh, cap: 55 %, dry_run: true}
- {name: warm, when: board.temperature > 2 °C, until: board.temperature < 1 °C, cap: 290 W}
"""


class Events(threading.Thread):
    """Events of rules, as they come."""

    def __init__(self, d):
        super().__init__(daemon=True)
        self.got = []
        self.conn = http.client.HTTPConnection("localhost", timeout=300)
        self.conn.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.conn.sock.connect(d.socket)
        self.conn.request("GET", "/v1/events?what=rule")
        self.answer = self.conn.getresponse()
        self.start()

    def run(self):
        try:
            for line in self.answer:
                if line.startswith(b"data: "):
                    self.got.append(json.loads(line[6:]))
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def has(self, **what):
        return uwtest.wait_for(lambda: any(all(e[k] == v for k, v in what.items()) for e in self.got))


def top_shows(node, words):
    """`underwatt top` in a terminal, until it shows these words."""
    command, env = node.command(["underwatt", "top"]), node.env(TERM="xterm-256color", COLUMNS="140", LINES="40")
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    out, end = b"", time.monotonic() + uwtest.PATIENCE
    while time.monotonic() < end and words not in re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])", b" ", out):
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:  # it has ended
                break
    os.write(fd, b"q")
    os.close(fd)  # hangs up, should it not have ended by then
    os.waitpid(pid, 0)
    return words in re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])", b" ", out), out[-3000:]


def metric(d, name, *labels):
    for line in d.ask("GET", "/metrics")[1].splitlines():
        if line.startswith(name) and (line[len(name)] in "{ ") and all(x in line for x in labels):
            return float(line.rsplit(" ", 1)[1])
    return None


def main():
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=2) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        path.write_text(POLICY)
        d = node.daemon(f"policy: {{file: {path}}}\n")
        events = Events(d)
        job = node.train("--workload", "resnet50", "--gpus", "0", "--epochs", "1000")

        def limit(mw):
            return uwtest.wait_for(lambda: node.board(0)["limit_mw"] == mw)

        def shown(*words):
            return uwtest.wait_for(lambda: all(w in node.run("underwatt", "policy", "show").stdout for w in words))

        t.ok(limit(290000) and shown("rule warm: soft 290 W", "dirty-grid", "unknown since", "carbon is unknown; reads carbon unknown"),
             "a rule that acts, and one that does not: why not, and what it reads", node.run("underwatt", "policy", "show").stdout)
        node.run("underwatt", "signal", "set", "carbon", "350 g/kWh", "--for", "1h")
        t.ok(shown("only-shown: soft 55 %, dry run", "dry-run since", "shown, not applied"), "a dry run is shown")
        t.ok(node.board(0)["limit_mw"] == 290000, "… and does not act",
             (node.board(0), events.got))
        t.equal(metric(d, "underwatt_rule_firing", 'rule="only-shown"', 'gpu="0"'), 0, "… nor is it firing")
        t.ok("rule only-shown takes effect for job 1 (dry run)" in d.log(), "… the log alone has it", d.log())
        node.run("underwatt", "signal", "set", "carbon", "450 g/kWh", "--for", "1h")
        t.ok(limit(217500), "a quarter less than 290 W", node.board(0))
        t.ok(shown("acts since", "(carbon 450 g/kWh); reads carbon 450 g/kWh"), "since when, and what it read when it began")
        p = node.run("underwatt", "explain", "0")
        t.ok("rule dirty-grid: carbon 450 g/kWh" in " ".join(p.stdout.split()), "explain names it", p.stdout)
        good, screen = top_shows(node, b"rule dirty-grid")
        t.ok(good, "top has its name as the cap's reason", screen)
        t.ok(events.has(rule="dirty-grid", event="begin", gpu=0, how=None), "an event", events.got)
        t.equal(metric(d, "underwatt_rule_firing", 'rule="dirty-grid"', 'gpu="0"'), 1, "underwatt_rule_firing")
        t.ok(metric(d, "underwatt_policy_evaluations_total") > 2 and metric(d, "underwatt_policy_failures_total") == 0,
             "evaluations and errors are counted")
        t.ok(metric(d, "underwatt_signal_value", 'signal="carbon"') == 450 and metric(d, "underwatt_signal_known", 'signal="carbon"') == 1
             and metric(d, "underwatt_signal_age_seconds", 'signal="carbon"') < 300, "signals, with their age")
        path.write_text(POLICY.replace("carbon >", "carbn >"))
        t.equal(d.ask("POST", "/v1/reload")[0], 400, "a wrong policy")
        t.equal(metric(d, "underwatt_policy_failures_total"), 1, "… is counted")
        node.run("underwatt", "signal", "set", "carbon", "200 g/kWh", "--for", "1h")
        t.ok(limit(290000) and events.has(rule="dirty-grid", event="end", how="until"), "its end, and why", events.got)
        node.run("underwatt", "signal", "unset", "carbon")
        t.ok(uwtest.wait_for(lambda: metric(d, "underwatt_signal_known", 'signal="carbon"') == 0), "carbon is unknown")
        over = time.time()
        job.terminate()
        job.wait(60)
        t.ok(events.has(rule="warm", event="end"), "the job has gone", events.got)
        t.ok(shown("no-job since", "applies to jobs, and the board has no job"), "a board without a job says so",
             node.run("underwatt", "policy", "show").stdout)
        rows = [b for rule in d.ask("GET", "/v1/policy")[1]["rules"] for b in rule["boards"]]
        began = {b["gpu"]: datetime.datetime.fromisoformat(b["since"].replace("Z", "+00:00")).timestamp() for b in rows}
        t.ok(began[0] >= over - 1 > began[1] and {b["state"] for b in rows} == {"no-job"},
             "since its job ended; the other board since the policy was read", rows)
        by = "user " + pwd.getpwuid(os.getuid()).pw_name
        d.stop()
        db = sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)
        rows = db.execute("SELECT kind, text FROM event ORDER BY rowid").fetchall()
        db.close()
        rows = [r for r in rows if r[0] in ("policy", "config", "rule") or r[0].startswith("signal")]
        want = [("policy", "loaded"), ("rule", "rule warm takes effect for job 1"),
                ("signal-set", "carbon: 350 g/kWh, set by user root for 3600 s"),
                ("signal-set", "carbon: 450 g/kWh, set by user root for 3600 s"),
                ("rule", "rule dirty-grid takes effect for job 1"),
                ("signal-set", "carbon: 200 g/kWh, set by user root for 3600 s"),
                ("rule", "rule dirty-grid is no longer in effect for job 1: until"),
                ("signal-unknown", "carbon: unknown, no source has given a value yet"),
                ("signal-end", "carbon: unknown, unset by user root"), ("rule", "rule warm is no longer in effect for job 1: job gone")]
        want = [(kind, text.replace("user root", by)) for kind, text in want]
        t.equal([r for r in rows if r[0] != "config"], want, "the audit trail: changes of signals and rules, and nothing else")
        t.ok([r for r in rows if r[0] == "config" and "no signal 'carbn'" in r[1]], "… and the policy that was refused", rows)
    t.done()


if __name__ == "__main__":
    main()
