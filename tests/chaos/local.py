"""A command that holds a board by itself: command, keeper, actuator, job."""
import json
import os
import pathlib
import re
import signal

import uwtest
from worlds import ORIGINAL, STEP_S, SIM, World, child_of, send, state_of

CAP = 200000
BACK_S = 6.0  # the lease's 2.5 s beside the keeper's 2.8 s; a recovery
ENTRY = 512
JUST_NOW = 300  # looks at the boards: some seconds


class Local(World):
    speed = 20

    def set_up(self):
        self.report = os.path.join(self.node.tmp, "report")
        self.kind = self.schedule.setting("command", "cap")
        if self.kind == "run":
            words = ["run", "--cap", f"{CAP // 1000} W", "--window", "2 s", "--gpus", "0", "--report", self.report,
                     "--", SIM, "train", "--workload", "resnet50", "--gpus", "0", "--steps", "1000000"]
        else:
            words = ["cap", "set", str(CAP // 1000), "--gpus", "0", "--local", "--json", self.report]
        self.p = self.start("command", "underwatt", *words)
        self.need(uwtest.wait_for(lambda: self.boards.limit(0) == CAP, 60, STEP_S), "the cap does not come",
                  self.said("command"))
        keeper = child_of(self.p.pid, "underwatt-actuator")
        self.pids = {"command": self.p.pid, "keeper": keeper, "actuator": child_of(keeper, "underwatt-actuator"),
                     "job": child_of(self.p.pid, "underwatt-sim")}
        self.need(self.pids["keeper"] and self.pids["actuator"], "keeper and actuator run", f"{self.pids}")

    def pid(self, role):
        return self.pids[role]

    # ---- events ----

    def do_damage_entry(self, _board):
        for path in pathlib.Path(self.node.state, "actuator").glob("*.cap"):
            path.write_bytes(b"X" * ENTRY)

    def do_recover(self):
        """Its status is true: 0 means that all is back."""
        before = self.entries()
        p = self.node.run("underwatt-actuator", "--recover", "--library",
                          os.path.join(self.node.state, "lib", "libnvidia-ml.so.1"))
        told = f"status {p.returncode}, limits {self.boards.now()}, entries {before}\n{p.stderr}"
        self.need((p.returncode == 0) == (self.back() and not self.entries()),
                  "--recover's status is not true", told)
        if p.returncode:
            self.need(p.returncode in (1, 3) and all(e.removesuffix(".cap") in p.stderr for e in before),
                      "--recover does not name what it could not restore", told)
            kept = os.listdir(os.path.join(self.node.state, "actuator"))
            self.need(all(any(k.startswith(e) for k in kept) for e in before), "--recover drops an entry", told + f"{kept}")

    def do_clear(self):
        """Boards that a living command holds are left to it."""
        held = self.state("command") == self.state("actuator") == "run"
        p = self.node.run("underwatt", "cap", "clear", "--local")
        told = f"status {p.returncode}, limits {self.boards.now()}\n{p.stderr}"
        self.need(p.returncode != 0 or held or self.back(), "cap clear's status is not true", told)
        self.need(p.returncode == 0 or p.stderr, "cap clear fails without a word", told)

    # ---- what must hold ----

    def must_be_back(self):
        s = {role: self.state(role) for role in ("command", "keeper", "actuator")}
        if s["actuator"] == "run":
            return s["command"] != "run" or s["keeper"] != "run"
        return s["keeper"] == "run"

    def rest(self):
        if self.must_be_back():
            self.need_back(BACK_S, ", ".join(f"{r} {self.state(r)}" for r in ("command", "keeper", "actuator")))
        self.need_named()

    def none_was_left(self):
        """All three were killed before one could restore: the next start does."""
        return not any(self.state(r) != "dead" for r in ("command", "keeper", "actuator"))

    def settle(self):
        self.heal()
        self.go_on_all()
        if self.state("command") != "dead":
            send(self.p.pid, signal.SIGTERM)
        self.need(uwtest.wait_for(lambda: "command" in self.exits, 20), "SIGTERM does not end the command",
                  self.said("command"))
        self.need_truth()
        send(self.pids["job"], signal.SIGKILL)
        uwtest.wait_for(lambda: all(state_of(p) == "dead" for p in self.pids.values()), BACK_S)
        if self.none_was_left():
            self.do_clear()
        self.decide()
        self.need_back(BACK_S, "at the end")
        self.need_nobody("at the end")

    def decide(self):
        """An original that a damaged entry has lost is root's to set."""
        for path in pathlib.Path(self.node.state, "actuator").glob("*.damaged"):
            self.node.fault("0", "limit", f"{ORIGINAL // 1000}W")
            path.unlink()

    def need_truth(self):
        """What the command said as it ended, beside the limit at that moment."""
        status, limits = self.exits["command"]
        if status == -signal.SIGKILL:
            return
        try:
            report = pathlib.Path(self.report).read_text(encoding="utf-8")
        except OSError:
            report = ""
        text = report + self.said("command")
        told = f"status {status}, limits {limits}\n{text}"
        back = limits[0] in self.free(0) or limits[0] is None
        for words in ("renewed; the original limit is restored", r"W is in force, the original(?! is)"):
            self.need(not re.search(words, text) or back, f"'{words}' is not true", told)
        self.need(not re.search("NOT RESTORED|NOT all original", text) or limits[0] != ORIGINAL or self.schedule.events,
                  "'NOT RESTORED' is not true", told)
        if self.kind == "cap" and report.startswith("{"):
            board = json.loads(report)["boards"][0]
            self.need(not board["restored"] or back, "'restored' is not true", told)
            self.need(status != 0 or back, "status 0 is not true", told)
        elif self.kind == "run" and report and not re.search("NOT RESTORED|not be verified|is in force", text):
            self.need(back, "the report says nothing of a limit that stays", told)
        for watts in re.findall(r"(\d+) W is in force", text):
            lately = {mw for when, limits in self.boards.history[-JUST_NOW:] for mw in limits[:1]} | {limits[0]}
            self.need(int(watts) * 1000 in lately, "'is in force' is not true", told)
