#!/usr/bin/python3
"""Kill -9 and SIGSTOP of the daemon, the actuator, its keeper and clients, and driver reloads, in
random order from a printed seed, with real processes under underwatt-start: after each
round what is claimed is in force, what is not has its original, the ledger is sound, the
daemon answers within 5 s (and what the starter waits for one that dies again and again),
and nobody is left over.

Usage: test-chaos.py [SEED [ROUNDS]]
"""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import sqlite3
import sys
import time

import uwtest

ORIGINAL, HARD, NAMED = 300000, 200000, 220000  # a V100's default: a reload brings it, too
MINIMUM = 150000
CLAIMED, RUN, FREE = 0, 1, 2  # boards: a budget's, a client's, nobody's
ANSWER_S, SETTLE_S = 5, 15  # settle: lease, grace, and the actuator's next start
BATCH = 4  # rounds, then all ends in order and begins anew
LONG_S = 11  # a stop that is longer than the watchdog
SIM = uwtest.program("underwatt-sim")
USER = "nobody" if os.geteuid() == 0 else ""


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def send(pid, signo):
    try:
        if pid:
            os.kill(pid, signo)
    except ProcessLookupError:
        pass


def of_world(node):
    """Our programs that live in this node's world: {pid: name}."""
    found = {}
    for p in pathlib.Path("/proc").iterdir():
        if not p.name.isdigit():
            continue
        try:
            name = (p / "comm").read_text().strip()
            if name.startswith("underwatt") and node.tmp.encode() in (p / "environ").read_bytes() and \
                    state_of(p.name) not in ("", "Z"):
                found[int(p.name)] = name
        except OSError:
            pass
    return found


class House:
    def __init__(self, node):
        self.node = node
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.ledger = os.path.join(node.state, "underwattd", "ledger.sqlite")
        self.log = pathlib.Path(node.tmp, "house.log")
        self.config = pathlib.Path(node.tmp, "underwattd.yaml")
        self.config.write_text("node: {interval: 1 s}\ncaps: {other_writers: reassert, reassert_after: 1 s}\n")
        self.start()

    def start(self):
        with open(self.log, "w", encoding="ascii") as log:
            self.p = self.node.popen("underwatt-start", *(["--user", USER] if USER else []), "--", "--config",
                                     self.config, stdout=log, stderr=log)

    def end(self, t, name):
        self.p.send_signal(signal.SIGTERM)
        t.equal(self.p.wait(timeout=30), 0, f"{name}: SIGTERM ends all")
        t.ok(self.limits() == [ORIGINAL] * 3 and not list(pathlib.Path(self.node.state, "actuator").glob("*.cap")),
             f"{name}: originals back, no entry left", self.limits())
        left = {p: n for p, n in of_world(self.node).items() if p != self.node.pid and n != "underwatt-sim"}
        t.ok(not left, f"{name}: no process is left", left)

    def backs_off_s(self, name):
        """What the starter waits before it starts that one again, by its own words."""
        told = re.findall(rf"{name} .*again in (\d+) ms", self.log.read_text())
        return int(told[-1]) / 1000 if told else 0

    def ask(self, path, body=None, seconds=2):
        """The answer's JSON; {} if there is none."""
        link = http.client.HTTPConnection("node", timeout=seconds)
        try:
            link.sock = socket.socket(socket.AF_UNIX)
            link.sock.settimeout(seconds)
            link.sock.connect(self.socket)
            link.request("POST" if body else "GET", path, json.dumps(body) if body else None,
                         {"Content-Type": "application/json"} if body else {})
            return json.loads(link.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return {}
        finally:
            link.close()

    def pid(self, name):
        """Of the daemon, the actuator or its keeper; 0: it does not run."""
        return uwtest.services(self.p.pid).get(name, 0)

    def limits(self):
        return [b["limit_mw"] for b in self.node.status()["boards"]]

    def integrity(self):
        try:
            with sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True) as db:
                db.execute("PRAGMA busy_timeout = 5000")
                return db.execute("PRAGMA integrity_check").fetchone()[0]
        except sqlite3.Error as e:
            return str(e)


class Round:
    def __init__(self, house, rng):
        self.h, self.rng, self.node = house, rng, house.node
        self.done, self.stopped = [], {}
        self.client = self.node.popen("underwatt", "run", "--cap", f"{NAMED // 1000} W", "--gpus", str(RUN),
                                      "--", SIM, "train", "--workload", "resnet50", "--gpus", str(RUN),
                                      "--steps", "1000000")

    def train(self):
        try:
            at = self.client.pid
            for p in pathlib.Path(f"/proc/{at}/task/{at}/children").read_text().split():
                if "train" in pathlib.Path(f"/proc/{p}/cmdline").read_text():
                    return int(p)
        except OSError:
            pass
        return 0

    def victim(self, who):
        return {"daemon": lambda: self.h.pid("daemon"), "actuator": lambda: self.h.pid("actuator"),
                "keeper": lambda: self.h.pid("keeper"),
                "client": lambda: self.client.pid if self.client.poll() is None else 0,
                "train": self.train}[who]()

    def event(self):
        what = self.rng.choice(["kill", "kill", "stop", "stop", "reload", "wait"])
        if what == "reload":
            self.done.append("reload")
            self.node.fault("reload")
        elif what == "wait":
            self.done.append("wait")
            time.sleep(self.rng.uniform(0.5, 2))
        else:
            who = self.rng.choice(["daemon", "daemon", "actuator", "actuator", "keeper", "client", "train"])
            pid = self.victim(who)
            self.done.append(f"{what} {who}")
            send(pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            if what == "stop" and pid:
                self.stopped[pid] = who
        time.sleep(self.rng.choice([0, 0.1, self.rng.uniform(0, 1)]))

    def play(self):
        uwtest.wait_for(self.train, 5)
        for _ in range(self.rng.randint(2, 5)):
            self.event()
        if self.stopped:
            long = self.rng.random() < 0.15
            self.done.append("long stop" if long else "stop over")
            time.sleep(LONG_S if long else self.rng.uniform(0.2, 4))
        for pid in self.stopped:  # children of ours, the starter's, or a pid that none has taken again so soon
            if state_of(pid) == "T":
                send(pid, signal.SIGCONT)

    def end_client(self):
        train = self.train()
        send(train, signal.SIGKILL)
        if self.client.poll() is None:
            self.client.kill()
        self.client.wait()
        for stream in (self.client.stdout, self.client.stderr):
            stream.close()
        for pid in [int(j) for j in self.orphans()]:
            send(pid, signal.SIGKILL)

    def orphans(self):
        """Training that outlived its client."""
        found = []
        for pid, name in of_world(self.node).items():
            try:
                if name == "underwatt-sim" and b"train" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
            except OSError:
                pass
        return found


def look(t, h, claim, name):
    node = h.node
    if not t.ok(uwtest.wait_for(lambda: h.ask("/v1/node"), ANSWER_S + h.backs_off_s("underwattd")),
                f"{name}: the daemon answers", h.log.read_text()):
        return
    t.ok(uwtest.wait_for(lambda: claim in [c["id"] for c in h.ask("/v1/claims").get("claims", [])], ANSWER_S),
         f"{name}: the claim is there", h.log.read_text())  # later where boards are being opened anew
    settle_s = SETTLE_S + h.backs_off_s("underwatt-actuator")
    t.ok(uwtest.wait_for(lambda: h.limits() == [HARD, ORIGINAL, ORIGINAL], settle_s),
         f"{name}: what is claimed is in force, elsewhere the original", f"{h.limits()}\n{h.log.read_text()}")
    t.equal(h.integrity(), "ok", f"{name}: the ledger is sound")
    names = sorted(of_world(node).values())
    t.ok(names.count("underwattd") == 1 and names.count("underwatt") == 0 and names.count("underwatt-start") == 1,
         f"{name}: nobody is left over", names)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    rng = random.Random(seed)
    t = uwtest.Tap()
    print(f"# seed {seed}, {rounds} rounds")
    with uwtest.Node(machine="boards: [{model: v100, count: 3}]") as node:
        h = House(node)
        if not t.ok(uwtest.wait_for(lambda: h.ask("/v1/node"), 20), "the daemon answers", h.log.read_text()):
            t.done()
        made = h.ask("/v1/claims", {"gpu": str(CLAIMED), "cap": f"{HARD // 1000} W", "kind": "hard",
                                    "for": "86400 s", "why": "chaos"}).get("id")
        t.ok(made and uwtest.wait_for(lambda: h.limits()[CLAIMED] == HARD) and uwtest.booked(h.ledger, made),
             "a claim is in force, and in the ledger", h.log.read_text())
        for i in range(rounds):
            r = Round(h, rng)
            r.play()
            seen = h.limits()
            name = f"seed {seed}, round {i}: {', '.join(r.done)}"
            t.ok(all(MINIMUM <= mw <= ORIGINAL for mw in seen) and seen[FREE] == ORIGINAL,
                 f"{name}: no limit out of bounds", seen)
            r.end_client()
            look(t, h, made, name)
            if t.failed:
                break
            if i % BATCH == BATCH - 1 and i < rounds - 1:
                h.end(t, name)
                h.start()
                look(t, h, made, f"after round {i}")
        h.end(t, "at last")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
