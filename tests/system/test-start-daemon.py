#!/usr/bin/python3
"""The whole house on a node without systemd: underwatt-start, the real daemon as a user of
its own, the real actuator.  A claim outlives whoever is killed, and its cap does not move.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

import uwtest

ORIGINAL, CAP = 250000, 200000
USER, UID = ("nobody", 65534) if os.geteuid() == 0 else ("", os.geteuid())


class House:
    def __init__(self, node):
        self.node = node
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.log = pathlib.Path(node.tmp, "house.log")
        config = pathlib.Path(node.tmp, "underwattd.yaml")
        config.write_text("node: {interval: 1 s}\n")
        with open(self.log, "w", encoding="ascii") as log:
            self.p = node.popen("underwatt-start", *(["--user", USER] if USER else []), "--", "--config", config,
                                stdout=log, stderr=log)

    def ask(self, path, body=None):
        """The answer's JSON; {} if there is none."""
        return uwtest.ask_socket(self.socket, path, body)

    def pid(self, name):
        """Of the daemon, the actuator or its keeper; 0: it does not run."""
        return uwtest.services(self.p.pid).get(name, 0)

    def claims(self):
        return self.ask("/v1/claims").get("claims", [])

    def next_has(self, claim, before):
        """Another daemon than that one runs and has the claim, and no other."""
        return uwtest.wait_for(lambda: self.pid("daemon") not in (0, before) and
                               [c["id"] for c in self.claims()] == [claim])

    def limit(self, mw):
        return uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == mw)


def moves(node, seconds):
    """Limits and writes of the board in this time, each once."""
    seen = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        b = node.board(0)
        if (b["limit_mw"], b["limit_writes"]) not in seen:
            seen.append((b["limit_mw"], b["limit_writes"]))
        time.sleep(0.05)
    return seen


def wrong(t, node):
    """A wrong configuration of the daemon ends the starter with 2."""
    config = pathlib.Path(node.tmp, "wrong.yaml")
    for text, says in (("nonsense: 1\n", f"{config}:1: "), ("boards: {powercap: /nowhere}\n", "boards.powercap")):
        config.write_text(text)
        try:
            p = node.run("underwatt-start", *(["--user", USER] if USER else []), "--", "--config", config, timeout=uwtest.PATIENCE)
            got, said = p.returncode, p.stderr
        except subprocess.TimeoutExpired as e:
            got, said = "does not end", (e.stderr or b"").decode()
        t.ok(got == 2 and says in said, f"{text.strip()!r}, a wrong configuration, ends all with 2", f"{got}\n{said}")


def without_user(t, node):
    """As root with no user named: the daemon of simulated boards is root's, and not the user's underwatt, who may not reach them."""
    users = pathlib.Path(node.tmp, "passwd")
    users.write_text(pathlib.Path("/etc/passwd").read_text() + "underwatt:x:64123:64123::/nonexistent:/usr/sbin/nologin\n")
    start = ["underwatt-start"]
    if subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
        start = ["unshare", "--mount", "sh", "-c", f"mount --bind {users} /etc/passwd && exec {uwtest.program('underwatt-start')}"]
    socket = pathlib.Path(node.state, "underwattd", "underwattd.sock")
    p = node.popen(*start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    up = uwtest.wait_for(lambda: p.poll() is not None or uwtest.ask_socket(str(socket), "/v1/node"))
    t.ok(up and p.poll() is None and socket.stat().st_uid == os.geteuid(), "simulated boards: root needs no user underwatt", f"{up} {p.poll()}")
    p.terminate()
    t.equal(p.wait(timeout=uwtest.PATIENCE), 0, "... and ends with 0")


def main():
    t = uwtest.Tap()
    with uwtest.Node(machine="boards: [{model: v100, count: 2, limit: 250 W}]") as node:
        h = House(node)
        if not t.ok(uwtest.wait_for(lambda: h.ask("/v1/node")), "the daemon answers",
                    h.log.read_text()):
            t.done()
        uid = os.stat(f"/proc/{h.pid('daemon')}").st_uid
        t.ok(uid == UID, f"as uid {UID}", uid)
        t.ok(os.stat(f"/proc/{h.pid('actuator')}").st_uid == os.geteuid(), "its actuator as ours")
        made = h.ask("/v1/claims", {"gpu": "0", "cap": "200 W", "kind": "hard", "for": "600 s", "why": "a test"})
        t.ok(made.get("id"), "a claim is made", f"{made} {h.log.read_text()}")
        t.ok(h.limit(CAP), "and is in force", f"{node.board(0)} {h.log.read_text()}")
        ledger = os.path.join(node.state, "underwattd", "ledger.sqlite")
        t.ok(uwtest.booked(ledger, made.get("id")), "and in the ledger", h.log.read_text())

        writes = node.board(0)["limit_writes"]
        daemon = h.pid("daemon")
        os.kill(daemon, signal.SIGKILL)
        seen = moves(node, 4)
        t.equal(seen, [(CAP, writes)], "kill -9 of the daemon: the cap does not move, nothing is written")
        t.ok(h.next_has(made.get("id"), daemon), "the next one has the claim", f"{h.claims()} {h.log.read_text()}")
        t.equal(moves(node, 8), [(CAP, writes)], "nor when the grace would be over: it has taken the board over")

        daemon = h.pid("daemon")
        os.kill(daemon, signal.SIGUSR2)
        t.equal(moves(node, 8), [(CAP, writes)], "an orderly restart (SIGUSR2): nothing moves either")
        t.ok(h.next_has(made.get("id"), daemon), "and the next one has the claim", f"{h.claims()} {h.log.read_text()}")

        os.kill(h.pid("daemon"), signal.SIGSTOP)
        t.ok(h.limit(ORIGINAL), "SIGSTOP: its lease is over", node.board(0))
        os.kill(h.pid("daemon"), signal.SIGCONT)
        t.ok(h.limit(CAP), "SIGCONT: it holds the board again", h.log.read_text())
        os.kill(h.pid("actuator"), signal.SIGKILL)
        t.ok(uwtest.wait_for(lambda: "put back" in h.log.read_text()) and h.limit(CAP),
             "kill -9 of the actuator: originals back, then the claim again", h.log.read_text())
        daemon = h.pid("daemon")
        os.kill(daemon, signal.SIGSTOP)
        t.ok(uwtest.wait_for(lambda: h.pid("daemon") not in (0, daemon)) and h.limit(CAP),
             "a daemon that hangs is killed in time, and the next one has the claim", h.log.read_text())

        h.p.send_signal(signal.SIGTERM)
        t.equal(h.p.wait(timeout=uwtest.PATIENCE), 0, "SIGTERM ends all")
        t.ok(node.board(0)["limit_mw"] == ORIGINAL and not list(pathlib.Path(node.state, "actuator").glob("*.cap")),
             "originals back, no entry left", node.board(0))
        wrong(t, node)
        if os.geteuid() == 0:
            without_user(t, node)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
