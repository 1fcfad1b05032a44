"""The node's daemon and its actuator: under underwatt-start, or under this tool in a
service manager's place.

Boards: 0 has root's claim, 1 a command's (starter), 2 a found job's user's, 3 claims that
end by themselves.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time

import uwtest
from worlds import BOARDS, SIM, STEP_S, World, child_of, children, send, state_of, words_of

HARD, NAMED, FOUND = 200000, 220000, 210000
GRACE_S = 3
ANSWER_S, SETTLE_S, END_S = 5.0, 20.0, 45.0
ACTUATOR_END_S = 23.0  # 20 s, and a moment
BACK_S = 12.0  # the lease, the grace, a restore; a keeper's patience and its recovery
USER = 61003
CLOCK = str(uwtest.BUILD / "tests" / "chaos-clock.so")
NANOSECONDS = struct.Struct("=q")
ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read())
while part := s.recv(65536): sys.stdout.buffer.write(part)
"""


class Services(World):
    found_user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}

    def set_up(self):
        self.socket = os.path.join(self.node.state, "underwattd", "underwattd.sock")
        self.disk = pathlib.Path(self.node.tmp, "disk")
        self.disk.mkdir(0o700)
        self.mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", self.disk], capture_output=True, check=False).returncode == 0
        if self.mounted:
            self.stack.callback(lambda: subprocess.run(["umount", "-l", self.disk], check=False))
        self.ledger = self.disk / "ledger.sqlite"
        self.denied = False
        self.sure = True  # the ledger knows what was claimed
        self.claims = {}  # id: (board, mW)
        self.begin()
        self.need(uwtest.wait_for(lambda: self.get("/v1/node"), 20), "the daemon answers")
        self.claim(0, HARD, "hard", 86400)
        self.found = self.found_claim = 0
        self.train_2()
        for i, mw in ((0, HARD), (2, FOUND)):
            self.need(uwtest.wait_for(lambda i=i, mw=mw: self.boards.limit(i) == mw, 20, STEP_S),
                      f"board {i}'s claim is in force", f"{self.boards.now()}")
        self.need(uwtest.booked(self.ledger, *self.claims), "the claims are in the ledger")

    def config(self):
        path = pathlib.Path(self.node.tmp, "underwattd.yaml")
        path.write_text("node: {interval: 1 s}\ncaps:\n  other_writers: reassert\n  reassert_after: 1 s\n  classes:\n"
                        f"    default: {{ramp: at once}}\nledger: {{path: {self.ledger}}}\n", encoding="utf-8")
        return path

    # ---- the daemon's answers ----

    def get(self, path, body=None, uid=0):
        """The answer's JSON; {} if there is none."""
        if uid and os.geteuid() == 0:
            return self.get_as(uid, path, body)
        return uwtest.ask_socket(self.socket, path, body)

    def get_as(self, uid, path, body):
        text = json.dumps(body)
        ask = (f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(text)}\r\n\r\n{text}")
        p = subprocess.run([sys.executable, "-c", ASK, self.socket], input=ask.encode(), capture_output=True, user=uid,
                           group=uid, extra_groups=[], timeout=20, check=False)
        try:
            return json.loads(p.stdout.partition(b"\r\n\r\n")[2])
        except ValueError:
            return {}

    def claim(self, board, mw, kind, seconds, uid=0):
        self.used.add(board)
        ask = {"gpu": str(board), "cap": f"{mw // 1000} W", "kind": kind, "for": f"{seconds:g} s", "why": "chaos"}
        made = self.get("/v1/claims", ask, uid)
        if "id" in made:
            self.claims[made["id"]] = (board, mw, time.monotonic() + seconds)
        return made

    def job_2(self):
        """The daemon's number of the found job; 0: it knows none."""
        return next((j["id"] for j in self.get("/v1/jobs").get("jobs", []) if 2 in j.get("gpus", []) and
                     not j.get("ended")), 0)

    def train_2(self):
        self.train = self.node.popen("underwatt-sim", "train", "--workload", "resnet50", "--gpus", "2", "--steps",
                                     "100000000", **self.found_user)
        self.need(uwtest.wait_for(self.job_2, 20), "the job is found", f"{self.get('/v1/jobs')}")
        self.found = self.job_2()
        made = self.claim(2, FOUND, "named", 600, USER)
        self.need("id" in made, "its user may claim", f"{made}")
        self.found_claim = made["id"]

    # ---- events ----

    def do_upgrade(self, role):
        send(self.pid(role), signal.SIGUSR2)

    def do_reload_config(self, role):
        send(self.pid(role), signal.SIGHUP)

    def do_claim(self, board, watts, seconds):
        self.claim(int(board), int(watts) * 1000, "hard", float(seconds))

    def fault(self, board, what, s):
        super().fault(board, what, s)
        self.denied = self.denied or board == "2"

    def do_fill_disk(self):
        if not self.mounted:
            self.unplayed.add("fill-disk: needs the right to mount a tmpfs")
            return
        with contextlib.suppress(OSError), open(self.disk / "ballast", "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)

    def do_free_disk(self):
        with contextlib.suppress(OSError):
            os.unlink(self.disk / "ballast")

    def do_ledger(self, what):
        if what in ("remove", "replace"):
            self.sure = False
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.ledger}{end}")
            if what == "replace":
                pathlib.Path(self.ledger).write_bytes(b"no ledger at all " * 1000)
                owner = self.disk.stat()
                os.chown(self.ledger, owner.st_uid, owner.st_gid)
        else:
            os.chmod(self.disk, 0o500 if what == "read-only" else 0o700)
            if self.ledger.exists():
                os.chmod(self.ledger, 0o440 if what == "read-only" else 0o640)

    # ---- what must hold ----

    def need_answer(self, name):
        self.need(uwtest.wait_for(lambda: self.get("/v1/node"), ANSWER_S + self.backs_off_s("underwattd")),
                  f"{name} the daemon does not answer")

    def settle(self):
        self.heal()
        self.do_free_disk()
        self.do_ledger("writable")
        self.go_on_all()
        self.begin_again()
        self.need(uwtest.wait_for(lambda: self.begin_again() or self.get("/v1/node"),
                                  ANSWER_S + self.backs_off_s("underwattd")), "the daemon does not answer")
        self.end_command()
        names = sorted(self.ours().values())
        self.need(names.count("underwattd") == 1 and names.count("underwatt") == 0, "somebody is there twice, or left over",
                  f"{names}")
        self.need_claims()
        self.need_limits()
        self.need_job()
        self.need_ledger("while it runs")
        self.finish()
        self.need_ledger("at the end")
        self.need(self.back(), "at the end: an original is not back", f"{self.boards.now()}")
        self.need(not self.entries(), "at the end: an entry is left", f"{self.entries()}")
        send(self.train.pid, signal.SIGKILL)
        self.need_nobody("at the end")

    def due(self, board):
        """The claims on a board that must be there."""
        now = time.monotonic()
        return {i: mw for i, (b, mw, until) in self.claims.items() if b == board and until > now + 2 and
                (b != 2 or self.has_found_job())}

    def has_found_job(self):
        return state_of(self.train.pid) == "run" and not self.trouble

    def need_claims(self):
        if not self.sure:
            return
        due = {i for b in range(BOARDS) for i in self.due(b)}
        def there():
            return {c["id"] for c in self.get("/v1/claims").get("claims", [])}
        got = uwtest.wait_until(there, lambda ids: due <= ids, ANSWER_S)
        self.need(due <= got, "a claim is lost", f"of {due}: {due - got}")
        over = {i for i, (_, _, until) in self.claims.items() if until < time.monotonic() - 1}
        self.need(not over & there(), "a claim is there past its end", f"{over & there()}")

    def wanted(self, i):
        """The limits that a board may have now; ours goes before another's (reassert)."""
        due = self.due(i)
        if due and self.sure:  # a user's, once denied, is tried again after 30 s
            low = {mw for mw in self.free(i) if mw <= min(due.values())}  # another's may have become the original
            return {min(due.values())} | low | (self.free(i) if i == 2 and self.denied else set())
        return self.free(i) | {mw for b, mw, _ in self.claims.values() if b == i and i != 3}

    def need_limits(self):
        def good():
            return all(self.boards.limit(i) in self.wanted(i) for i in range(BOARDS))
        self.need(uwtest.wait_for(good, SETTLE_S + self.backs_off_s("underwatt-actuator"), 0.1),
                  "what is claimed is not in force, or elsewhere not the original",
                  f"{self.boards.now()}, wanted {[self.wanted(i) for i in range(BOARDS)]}")

    def need_job(self):
        if self.has_found_job() and self.sure:
            got = uwtest.wait_for(self.job_2, 10)
            self.need(got == self.found, "a process has become a new job", f"{self.found}, now {got}")

    def need_ledger(self, name):
        def rows(sql):
            with contextlib.closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as db:
                db.execute("PRAGMA busy_timeout = 5000")
                return db.execute(sql).fetchall()

        def sound():
            try:
                return rows("PRAGMA integrity_check")[0][0]
            except sqlite3.Error as e:
                return str(e)
        told = uwtest.wait_until(sound, lambda text: text == "ok", 8)
        self.need(told == "ok", f"the ledger is not sound {name}", f"{told}")
        if not self.sure:
            return
        sums = rows("SELECT (SELECT ifnull(sum(energy_uj), 0) FROM energy), (SELECT ifnull(sum(energy_uj), 0) FROM meter)")
        self.need(abs(sums[0][0] - sums[0][1]) <= 0.001 * max(sums[0][1], 1e6), f"the ledger's sums differ {name}", f"{sums}")
        twice = rows("SELECT id, board FROM claim WHERE ended_ms IS NULL GROUP BY id, board HAVING count(*) > 1")
        self.need(not twice, f"a claim is there twice {name}", f"{twice}")

    def need_exit(self, role, seconds, name):
        """It ends in time, and its 0 is true."""
        self.need(uwtest.wait_for(lambda: role in self.exits, seconds), f"{name} does not end in time")
        status, limits = self.exits[role]
        self.need(status != 0 or self.back(limits), f"{name} ends with 0 and leaves a limit",
                  f"limits {limits}")
        return status

    def backs_off_s(self, name):
        """What the starter waits before it starts that one again, by its own words."""
        told = re.findall(rf"{name} .*again in (\d+) ms", self.log())
        return int(told[-1]) / 1000 if told else 0


class StarterWorld(Services):
    command = None
    last = {"daemon": 0, "keeper": 0, "actuator": 0}

    def begin(self):
        rules = pathlib.Path(self.node.tmp, "actuator.yaml")
        rules.write_text(f"grace: {GRACE_S} s\n", encoding="ascii")
        if os.geteuid() == 0:
            shutil.chown(self.disk, "nobody")
        self.args = [*(["--user", "nobody"] if os.geteuid() == 0 else []), "--actuator-config", rules, "--", "--config",
                     self.config()]
        self.starter = self.start("starter", "underwatt-start", *self.args)

    def set_up(self):
        super().set_up()
        self.used.add(1)
        self.command = self.node.popen("underwatt", "run", "--cap", f"{NAMED // 1000} W", "--gpus", "1", "--", SIM,
                                       "train", "--workload", "resnet50", "--gpus", "1", "--steps", "1000000")
        uwtest.wait_for(lambda: self.pid("job"), 10)

    def log(self):
        return self.said("starter")

    def pid(self, role):
        return {"starter": lambda: self.starter.pid, "command": lambda: self.command.pid,
                "job": lambda: child_of(self.command.pid, "underwatt-sim"), "found-job": lambda: self.train.pid}.get(role, lambda: self.child(role))()

    def child(self, role):
        """Of the starter, by role; once that is dead, who it was."""
        direct = child_of(self.starter.pid, "underwatt-actuator", "--become")
        inner = child_of(direct, "underwatt-actuator")
        kept = inner or "--keeper" in words_of(direct)
        now = {"daemon": child_of(self.starter.pid, "underwattd", "--become"), "keeper": direct if kept else 0,
               "actuator": inner if kept else direct}
        if state_of(self.starter.pid) != "dead":
            self.last = now
        return now[role] or (self.last[role] if state_of(self.starter.pid) == "dead" else 0)

    def do_start(self, role):
        if role == "starter" and state_of(self.starter.pid) == "dead":
            self.starter = self.start("starter", "underwatt-start", *self.args)

    @staticmethod
    def must_be_back(starter, keeper, actuator, daemon):
        """Whom the starter cannot see to any more, keeper and actuator see to each other."""
        if actuator == "run":
            return starter == "dead" or (starter == "stop" and not keeper == daemon == "run")
        return starter != "run" and keeper == "run"

    def rest(self):
        starter, keeper, actuator = self.state("starter"), self.state("keeper"), self.state("actuator")
        if not any("keeper" in e.words for e in self.schedule.events):
            keeper = "run"  # or should
        if "starter" in self.exits and self.exits["starter"][0] != -signal.SIGKILL:
            self.need_exit("starter", 1, "the starter")
        if ("term", "starter") in [e.words for e in self.schedule.events] and starter == "run":
            self.need_exit("starter", END_S, "the starter")
        elif starter == "run" and {"stop", "refuse"}.isdisjoint(e.words[0] for e in self.schedule.events) and \
                ("term", "daemon") not in [e.words for e in self.schedule.events]:
            self.need_answer("whatever its ledger is like:")
        elif self.must_be_back(starter, keeper, actuator, self.state("daemon")):
            self.need_back(BACK_S, f"starter {starter}, keeper {keeper}, actuator {actuator}, daemon {self.state('daemon')}")
        self.need_named()

    def begin_again(self):
        if self.state("starter") == "dead":  # or ended by itself, as its daemon did
            self.need_exit("starter", 1, "the starter")
            left = [p for p, name in self.ours().items() if name in ("underwattd", "underwatt-actua")]
            uwtest.wait_for(lambda: all(state_of(p) == "dead" for p in left), BACK_S)
            self.do_start("starter")

    def end_command(self):
        """Whose job may have outlived it."""
        for pid in [*children(self.command.pid), self.command.pid]:
            send(pid, signal.SIGKILL)
        self.command.wait()
        for pid, name in self.ours().items():
            if name == "underwatt-sim" and pid != self.train.pid:
                send(pid, signal.SIGKILL)

    def finish(self):
        send(self.starter.pid, signal.SIGTERM)
        self.need(self.need_exit("starter", END_S, "the starter") == 0, "the starter fails at its end")


class DaemonWorld(Services):
    begun = False  # started again by the schedule, and left alone since

    def begin(self):
        self.d = uwtest.Daemon(self.node, self.config().read_text(encoding="utf-8"), rules=f"grace: {GRACE_S} s\n",
                               env=self.clock_env())
        self.node.daemons.append(self.d)
        self.d.start()

    def clock_env(self):
        """UTC of the daemon is ahead by what that file says."""
        self.clock_file = pathlib.Path(self.node.tmp, "clock")
        self.clock_file.write_bytes(bytes(8))
        return {"LD_PRELOAD": CLOCK, "CHAOS_CLOCK": self.clock_file}

    def log(self):
        return self.d.log() + self.d.actuator_log()

    def pid(self, role):
        return {"daemon": self.d.child, "actuator": self.d.actuator, "found-job": self.train}[role].pid

    def do_start(self, role):
        p = self.d.child if role == "daemon" else self.d.actuator
        if state_of(p.pid) != "dead":
            return
        p.wait()
        if role == "actuator":
            self.d.start_actuator()
        elif self.d.actuator.poll() is None:
            self.d.start(wait=False)
            self.begun = True

    def event(self, words):
        if words[1:] == ("daemon",):
            self.begun = False  # do_start() knows better
        super().event(words)

    def do_upgrade(self, role):
        super().do_upgrade(role)
        if state_of(self.d.child.pid) == "run":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.d.child.wait(20)
            self.do_start("daemon")

    def do_clock(self, days):
        with open(self.clock_file, "r+b") as f:
            ahead_ns, = NANOSECONDS.unpack(f.read())
            f.seek(0)
            f.write(NANOSECONDS.pack(ahead_ns + int(days) * 86400 * 10**9))

    def do_term(self, role):
        p = self.d.child if role == "daemon" else self.d.actuator
        send(p.pid, signal.SIGTERM)

    def rest(self):
        daemon, actuator = self.state("daemon"), self.state("actuator")
        if actuator == "run" and daemon != "run":
            self.need_back(BACK_S, f"daemon {daemon}, actuator runs")
        if self.begun and actuator == "run":
            self.need_answer("whatever its ledger is like:")
        terms = [e.words[1] for e in self.schedule.events if e.words[0] == "term"]
        if "actuator" in terms and "stop" not in (actuator, daemon):
            self.need(uwtest.wait_for(lambda: self.state("actuator") == "dead", ACTUATOR_END_S) or
                      ("start", "actuator") in [e.words for e in self.schedule.events],
                      "the actuator does not end in time")
        self.need_named()

    def begin_again(self):
        for role in ("actuator", "daemon"):
            self.do_start(role)

    def end_command(self):
        pass

    def finish(self):
        self.need(self.d.stop(30) == 0, "the daemon fails at its end")
        self.d.actuator.terminate()
        status = self.d.actuator.wait(30)
        self.need(status == 0, "the actuator fails at its end", f"status {status}")
