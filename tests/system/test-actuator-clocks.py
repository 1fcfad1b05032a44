#!/usr/bin/python3
"""Locked SM clocks: off until root's configuration allows them; whoever dies or is stopped
at whatever step, the lock is reset within 5 s; a board that was never locked is never reset.

The world, its clients and the steps of the limit's test (test-actuator-kill.py) serve here,
with an actuator that is told of a configuration.
"""
import concurrent.futures
import importlib
import os
import pathlib
import signal
import time

import uwtest

kill = importlib.import_module("test-actuator-kill")
MHZ, MIN_MHZ = 1005, 135
CONFIG = f"clocks: {{from: 900 MHz, to: 1.2 GHz}}\n"


class World(kill.World):
    def locked(self, i):
        return self.node.board(i)["locked_max_mhz"]

    def locked_at(self, i, mhz):
        got = self.locked(i)
        uwtest.must(got == mhz, f"locked at {got} MHz, not {mhz}, after it was locked")

    def resets(self, i):
        return self.node.board(i)["clock_resets"]

    def back(self, i, mw=kill.ORIGINAL, seconds=kill.WITHIN_S):
        return kill.within(lambda: not self.entry(i) and self.nvml.limit(i) == mw and self.locked(i) == 0, seconds)

    def locked_by(self, i, **kw):
        c = self.client(**kw)
        held = c.ask("hold", self.uuid[i])
        done = c.ask("clocks", self.uuid[i], MIN_MHZ, MHZ)
        if " done " not in held or " done " not in done or self.locked(i) != MHZ:
            raise RuntimeError(f"{held!r} {done!r} {self.locked(i)}")
        return c


def step_lock_under_way(w, c, i):
    """lock in the journal, its write under way"""
    kill.step_held(w, c, i)
    c.tell("clocks", w.uuid[i], MIN_MHZ, MHZ)
    w.noted(i, "clocks 1\n")


def step_locked(w, c, i):
    """clocks locked"""
    kill.step_held(w, c, i)
    c.done("clocks", w.uuid[i], MIN_MHZ, MHZ)
    w.locked_at(i, MHZ)


def step_both(w, c, i):
    """clocks locked and limit set"""
    kill.step_capped(w, c, i)
    c.done("clocks", w.uuid[i], MIN_MHZ, MHZ)
    w.locked_at(i, MHZ)
    w.capped_at(i, kill.CAP)


def step_resetting(w, c, i):
    """a reset under way"""
    step_locked(w, c, i)
    c.tell("clocks", w.uuid[i], 0, 0)
    time.sleep(kill.LATENCY_S / 2)


def step_releasing(w, c, i):
    """release under way"""
    step_both(w, c, i)
    c.tell("release", w.uuid[i])
    time.sleep(kill.LATENCY_S / 2)


STEPS = [step_lock_under_way, step_locked, step_both, step_resetting, step_releasing]


def case(w, free, step, victim, signo):
    good, name, why = kill.kill_case(w, free, step, victim, signo)
    return good, name, why


def kill_steps(t, w, free):
    cases = [(step, victim, signo) for step in STEPS
             for victim in ("command", "keeper", "actuator")
             for signo in (signal.SIGKILL, signal.SIGSTOP)]
    with concurrent.futures.ThreadPoolExecutor(kill.BOARDS) as pool:
        for good, name, why in pool.map(lambda a: case(w, free, *a), cases):
            t.ok(good, name, why)


def all_killed(t, w):
    """Nobody is left: the next start, which may be the boot unit's, resets."""
    before = w.resets(1)
    c = w.locked_by(0)
    other = w.capped(1)
    c.kill_all()
    time.sleep(0.5)
    t.equal(w.locked(0), MHZ, "all three killed together: the lock is still there")
    p = w.recover()
    t.ok(p.returncode == 0 and w.locked(0) == 0 and not w.entry(0) and "clock" in p.stderr,
         "--recover resets it, and says so", f"{p.returncode} {p.stderr}")
    resets = w.resets(0)
    p = w.recover()
    t.ok(p.returncode == 0 and w.resets(0) == resets, "once more does nothing", p.stderr)
    other.kill_all()
    p = w.recover()
    t.ok(w.nvml.limit(1) == kill.ORIGINAL and w.resets(1) == before,
         "a board whose limit alone was ours is restored without a reset", p.stderr)
    c.close()
    other.close()


def configured(t, w, config):
    c = w.client()
    t.ok(" gone " in c.ask("clocks", w.uuid[0], MIN_MHZ, MHZ), "a board that is not held is not locked")
    c.ask("hold", w.uuid[0])
    for mhz, says in ((885, "885 MHz is outside 900..1200"), (1215, "1215 MHz is outside 900..1200"),
                      (1545, "outside 1..1530 MHz")):
        line = c.ask("clocks", w.uuid[0], MIN_MHZ, mhz)
        t.ok(" refused " in line and says in line, f"{mhz} MHz is refused: the range is named", line)
    line = c.ask("clocks", w.uuid[0], 1000, 900)
    t.ok(" refused " in line, "a range that is upside down", line)
    t.equal(w.locked(0), 0, "and nothing is written")
    c.close()

    config.write_text("grace: 0 s\n")
    c = w.client()
    c.ask("hold", w.uuid[0])
    line = c.ask("clocks", w.uuid[0], MIN_MHZ, MHZ)
    t.ok(" refused " in line and "does not allow locked clocks" in line and w.locked(0) == 0,
         "off until configured", line)
    t.ok(" done " in c.ask("clocks", w.uuid[0], 0, 0), "a reset is no lock")
    c.close()
    config.write_text(CONFIG)


def troubles(t, w):
    c = w.locked_by(0)
    resets = w.resets(0)
    w.nvml.set(0, 180000)
    heard = c.hear("event yielded")
    t.ok("180000" in heard and w.locked(0) == 0 and w.resets(0) == resets + 1,
         "another's limit: theirs stays, our lock goes", heard)
    c.close()
    w.nvml.set(0, kill.ORIGINAL)

    c = w.locked_by(0)
    w.node.fault(0, "refuse")
    c.tell("release", w.uuid[0])
    line = c.hear(f"release {w.uuid[0]}")
    t.ok(" unknown " in line and w.locked(0) == MHZ, "a reset that is refused is not called done", line)
    w.node.fault(0, "accept")
    t.ok(w.back(0, seconds=20) is not None, "it goes on trying until the lock is gone")
    c.close()

    c = w.client()
    c.ask("hold", w.uuid[0])
    w.node.fault(0, "refuse")
    line = c.ask("clocks", w.uuid[0], MIN_MHZ, MHZ)
    t.ok(" denied " in line and "clocks 0\n" in w.entry(0), "a lock that is denied leaves nothing", line)
    w.node.fault(0, "accept")
    resets = w.resets(0)
    c.close()
    t.ok(w.back(0) is not None and w.resets(0) == resets, "nor is there a reset for it")

    c = w.locked_by(0)
    c.kill_all()
    resets = w.resets(0)
    w.node.fault("all", "reload")
    p = w.recover()
    t.ok(not w.entry(0) and w.resets(0) == resets and "driver was reloaded" in p.stderr,
         "a driver that was loaded anew has forgotten the lock: nothing to reset", p.stderr)
    c.close()
    for i in range(kill.BOARDS):
        w.nvml.set(i, kill.ORIGINAL)


def main():
    t = uwtest.Tap()
    with uwtest.Node(machine=kill.MACHINE) as node:
        config = pathlib.Path(node.tmp) / "actuator.yaml"
        config.write_text(CONFIG)
        wrapper = pathlib.Path(node.tmp) / "underwatt-actuator"
        wrapper.write_text(f'#!/bin/sh\nexec {kill.ACTUATOR} --config {config} "$@"\n')
        wrapper.chmod(0o755)
        plain, kill.ACTUATOR = kill.ACTUATOR, str(wrapper)
        w = World(node)
        free = kill.Free(kill.BOARDS - 1)  # the last one is never locked
        kill_steps(t, w, free)
        all_killed(t, w)
        configured(t, w, config)
        troubles(t, w)
        kill.ACTUATOR = plain
        c = w.client()
        c.ask("hold", w.uuid[0])
        line = c.ask("clocks", w.uuid[0], MIN_MHZ, MHZ)
        t.ok(" refused " in line, "without a configuration no clock is locked", line)
        c.close()
        last = w.capped(kill.BOARDS - 1)
        os.kill(last.actuator, signal.SIGKILL)
        t.ok(w.back(kill.BOARDS - 1) is not None and w.resets(kill.BOARDS - 1) == 0,
             "a board that was never locked was never reset")
        last.close()
    t.done()


if __name__ == "__main__":
    main()
