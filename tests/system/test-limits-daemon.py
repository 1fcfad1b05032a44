#!/usr/bin/python3
"""Limits of a policy in the daemon, with real processes: a hot board and boards without a job, in `policy show`, `policy
check`, `explain`, `top`, GET /v1/policy, the log, the ledger, metrics, live events; a reload with a wrong file, and one without limits."""
import http.client
import json
import pathlib
import socket
import sqlite3
import sys
import tempfile
import threading

import uwtest

sys.path.insert(0, str(uwtest.TOP / "tests"))
try:
    from openapi import Spec
except ImportError as e:
    uwtest.skip_all(f"{e} (Debian: python3-jsonschema, python3-yaml)")

# Board 0 would go to 97 °C within seconds, board 1 idles at 66 °C.
MACHINE = """boards:
- {model: v100, count: 2, ambient: 60, thermal_tau: 5 s, leakage: 0}
"""
HEAT = "limits:\n- {boards: all, temperature: 88 °C}\n"
RISE = "- {node: true, rise: 5 kW/min}\n"


def limit(d, name):
    limits = {x["name"]: x for x in d.ask("GET", "/v1/policy")[1]["limits"]}
    return limits.get(name)


def state(d, name, gpu):
    found = limit(d, name)
    return found and found["boards"][gpu]["state"]


class Events(threading.Thread):
    """What a follower of all events is told of limits."""

    def __init__(self, d):
        super().__init__(daemon=True)
        self.got = []
        conn = http.client.HTTPConnection("localhost", timeout=300)
        conn.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        conn.sock.connect(d.socket)
        conn.request("GET", "/v1/events")
        self.answer = conn.getresponse()
        self.start()

    def run(self):
        kind = b""
        try:
            for line in self.answer:
                if line.startswith(b"event: "):
                    kind = line.strip()
                elif line.startswith(b"data: ") and kind == b"event: limit":
                    self.got.append(json.loads(line[6:]))
        except (OSError, ValueError, http.client.HTTPException):
            pass


def seen(t, node, d):
    """What people and programs are shown of a limit that acts."""
    status, policy = d.ask("GET", "/v1/policy")
    why = Spec(uwtest.TOP / "docs" / "openapi.yaml").judge("GET", "/v1/policy", status, "application/json",
                                                           json.dumps(policy))
    t.ok(not why, "as docs/openapi.yaml has it", why)
    hot = limit(d, "temperature")["boards"][0]
    t.ok(hot["cap_mw"] and "the limit is 88 °C" in hot["why"], "its cap and its reason", hot)
    t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/gpus/0")[1]["cap"]["claim_who"] == "limit temperature"),
         "its claim decides", d.ask("GET", "/v1/gpus/0"))
    p = node.run("underwatt", "explain", "0")
    t.ok("hard claim of limit temperature: " in p.stdout, "explain", p)
    p = node.run("underwatt", "top", "--once")
    t.ok("limit temperatur" in p.stdout, "top", p)
    p = node.run("underwatt", "policy", "show")
    t.ok("limit temperature: 88 °C\n  GPU 0: acts since " in p.stdout and "  GPU 1: free since " in p.stdout, "policy show", p)
    lines = d.ask("GET", "/metrics")[1].splitlines()

    def value(name, *words):
        found = [x for x in lines if x.startswith(name + "{") and all(w in x for w in words)]
        return float(found[0].rsplit(" ", 1)[1]) if found else None

    t.ok(value("underwatt_limit_acting", 'gpu="0"', 'limit="temperature"') == 1 and
         value("underwatt_limit_acting", 'gpu="1"', 'limit="temperature"') == 0, "underwatt_limit_acting", lines)
    t.ok(value("underwatt_limit_margin_celsius", 'gpu="1"') > 10, "underwatt_limit_margin_celsius", lines)
    t.ok(uwtest.wait_for(lambda: "event=limit " in d.log() and "takes effect" in d.log()), "the log", d.log()[-2000:])


def books(node):
    """The ledger's events and claims of limits."""
    file = pathlib.Path(node.state, "underwattd", "ledger.sqlite")
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as db:
        events = db.execute("SELECT text FROM event WHERE kind = 'limit'").fetchall()
        claims = db.execute("SELECT who, why FROM claim WHERE source = 'limit'").fetchall()
    return events, claims


def rise(t, node, d, path):
    path.write_text("policy: 1\n" + HEAT + RISE)
    p = node.run("underwatt", "policy", "check", path)
    t.ok(p.returncode == 0 and "limit rise: 83.3 W/s\n  GPU 0: it has a job: held low while that draws little\n"
         "  GPU 1: 150 W, hard, by limit rise: no job\n"
         "  boards without a job, to be held at their minimum: 1, 150 W together; the step up when they begin: " in p.stdout, "policy check: what would hold now", p)
    t.ok("limit temperature: 88 °C\n  GPU 0: " in p.stdout and "  GPU 1: 6" in p.stdout, "… of each board", p)
    t.equal(d.ask("POST", "/v1/reload")[0], 200, "both limits")
    t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] == 150000 and state(d, "rise", 1) == "no-job"),
         "a board without a job is at its minimum", (node.board(1), d.ask("GET", "/v1/policy")))
    t.ok(uwtest.wait_for(lambda: 80 < limit(d, "rise")["first_step_w"] < 150), "the first step", limit(d, "rise"))
    p = node.run("underwatt", "policy", "show")
    t.ok("limit rise: 83.3 W/s\n  the step up when boards that are held low begin: 1" in p.stdout, "policy show", p)
    p = node.run("underwatt", "cap", "clear", "--gpus", "1")
    t.ok(node.board(1)["limit_mw"] == 150000, "nobody clears it", p)


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(machine=MACHINE) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        path.write_text("policy: 1\n" + HEAT)
        d = node.daemon(f"policy: {{file: {path}}}\n")
        events = Events(d)
        job = node.train("--workload", "resnet50", "--gpus", "0", "--epochs", "1000")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] < 290000 and state(d, "temperature", 0) == "acts"),
             "a hot board is capped", (node.board(0), d.ask("GET", "/v1/policy")))
        t.ok(uwtest.wait_for(lambda: events.got), "followers are told")
        why = Spec(uwtest.TOP / "docs" / "openapi.yaml").wrong("LimitEvent", events.got[0])
        t.ok(not why and events.got[0]["event"] == "acts" and events.got[0]["gpu"] == 0, "… as docs/openapi.yaml has it",
             (why, events.got[0]))
        seen(t, node, d)
        rise(t, node, d, path)
        path.write_text("policy: 1\nlimits:\n- {boards: all, temperature: 88 °C}\n- {boards: all, temperature: 90 °C}\n")
        t.equal(d.ask("POST", "/v1/reload")[0], 400, "a wrong file refuses the reload")
        t.ok(f"{path}:4: " in d.ask("GET", "/v1/policy")[1]["error"] and limit(d, "rise"), "the old one stays")
        path.write_text("policy: 1\n")
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "no limits")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 300000 and node.board(1)["limit_mw"] == 300000),
             "the originals are back", (node.board(0), node.board(1)))
        t.ok(uwtest.wait_for(lambda: any("takes effect" in e[0] for e in books(node)[0]) and
                             {"limit temperature", "limit rise"} <= {c[0] for c in books(node)[1]}),
             "events and claims in the ledger", books(node))
        job.terminate()
        job.wait()
    t.done()


if __name__ == "__main__":
    sys.exit(main())
