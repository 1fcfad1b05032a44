#!/usr/bin/python3
"""Locked SM clocks with the real daemon: claims, the clock seen under load, a board that does
not obey, kill -9 and SIGSTOP of daemon and actuator with clocks locked, off until configured.
"""
import json
import os
import signal

import uwtest

t = uwtest.Tap()
CONFIG = "caps:\n  clocks: true\n  classes:\n    default: {ramp: at once, first: 100 %}\n"
RULES = "clocks: {from: 600 MHz}\ngrace: 10 s\n"    # in which a daemon starts on a busy machine
MACHINE = """
boards:
  - {model: a100, count: 2}
  - {model: a100, clock_locks: false}
"""
TOP = 1410


def locked(node, i, mhz):
    return uwtest.wait_for(lambda: node.board(i)["locked_max_mhz"] == mhz)


def explain(d, i):
    return d.ask("GET", f"/v1/gpus/{i}/explain")[1]


def claim(d, **kw):
    return d.ask("POST", "/v1/claims", {"kind": "hard", "why": "a test", **kw})


def by_claim(node, d):
    status, made = claim(d, gpu="0", clock="1005 MHz")
    t.ok(status == 201, "a claim on the clock", made)
    t.ok(locked(node, 0, 1005), "is locked", node.board(0))
    t.ok(uwtest.wait_for(lambda: node.board(0)["sm_mhz"] == 1005), "the board runs at it", node.board(0))
    t.ok(node.board(1)["sm_mhz"] > 1300 and node.board(1)["locked_max_mhz"] == 0, "the other runs as before",
         node.board(1))
    # The board has its lock before the daemon has the actuator's answer.
    e = uwtest.wait_until(lambda: explain(d, 0), lambda e: e["clock"]["locked_mhz"] == 1005 and
                          e["claims"][0]["state"] == "in force")
    t.ok(e["clock"]["locked_mhz"] == 1005 and e["clock"]["by"] == "claim" and e["clock"]["claim"] == made["id"] and
         e["cap"]["by"] == "original" and e["claims"][0]["clock_mhz"] == 1005 and
         e["claims"][0]["cap_mw"] is None and e["claims"][0]["wins"] and e["claims"][0]["state"] == "in force",
         "explain: the lock, its claim, and no cap", e)
    status, other = claim(d, gpu="0", cap="250 W")
    t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 250000) and node.board(0)["locked_max_mhz"] == 1005,
         "a cap beside it", node.board(0))
    p = node.run("underwatt", "explain", "0")
    t.ok("locked to at most 1005 MHz" in p.stdout and "1005 MHz: hard claim of" in p.stdout and
         "250 W: hard claim of" in p.stdout, "explain shows both", p.stdout + p.stderr)
    text = d.ask("GET", "/metrics")[1]
    text = text if isinstance(text, str) else ""
    t.ok('kind="locked"} 1005000000' in text, "metrics: the lock", text[:200])
    d.ask("DELETE", f"/v1/claims/{other['id']}")
    d.ask("DELETE", f"/v1/claims/{made['id']}")
    t.ok(locked(node, 0, 0) and uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 400000),
         "withdrawn: the lock is reset, the limit back", node.board(0))
    t.equal(node.board(1)["clock_resets"], 0, "the other board was never reset")


def refused(node, d):
    for body, word in (({"gpu": "0", "clock": "1005"}, "'clock'"), ({"gpu": "0", "clock": "9 GHz"}, "outside 210..1410"),
                       ({"gpu": "0", "clock": "1005 MHz", "cap": "200 W"}, "two claims"), ({"gpu": "0"}, "'cap'"),
                       ({"gpu": "2", "clock": "1005 MHz"}, "cannot be locked")):
        status, answer = claim(d, **body)
        t.ok(status in (400, 409, 422) and word in json.dumps(answer), f"{body}: refused", f"{status} {answer}")
    status, made = claim(d, gpu="0", clock="300 MHz")
    t.ok(uwtest.wait_for(lambda: "600..1410 MHz, the range of the actuator" in explain(d, 0)["claims"][0]["state"]),
         "under root's range: refused by the actuator, and the claim says so", explain(d, 0))
    p = node.run("underwatt", "explain", "0")
    t.ok("the range of the actuator" in " ".join(p.stdout.split()) and max(map(len, p.stdout.splitlines())) <= 80,
         "explain wraps the reason", p.stdout)
    t.equal(node.board(0)["locked_max_mhz"], 0, "nothing is locked")
    d.ask("DELETE", f"/v1/claims/{made['id']}")


def by_hand(node, d):
    p = node.run("underwatt", "cap", "set", "--clock", "900MHz", "--gpus", "0,1", "--for", "3 s", "--json", "-")
    got = json.loads(p.stdout)["boards"] if p.stdout else []
    t.ok(p.returncode == 0 and len(got) == 2 and all(b["reached"] and b["restored"] and b["clock_mhz"] == 900
                                                     for b in got), "cap set --clock", p.stdout + p.stderr)
    t.ok(node.board(0)["locked_max_mhz"] == 0 and node.board(1)["locked_max_mhz"] == 0, "given back")
    p = node.run("underwatt", "cap", "set", "--clock", "900MHz", "--gpus", "1", "--detach")
    t.ok(p.returncode == 0 and "900 MHz" in p.stderr and locked(node, 1, 900), "--detach", p.stderr)
    p = node.run("underwatt", "cap", "show")
    t.ok("at most 900 MHz" in p.stdout, "show", p.stdout)
    p = node.run("underwatt", "cap", "clear")
    t.ok("(900 MHz) withdrawn" in p.stderr and locked(node, 1, 0), "clear", p.stderr)
    for args, word in ((("set", "200", "--clock", "900MHz", "--gpus", "0"), "two claims"),
                       (("set", "--clock", "900", "--gpus", "0"), "'900'"), (("show", "--clock", "900MHz"), "option of set"),
                       (("set", "--clock", "900MHz", "--gpus", "0", "--local"), "not with --local")):
        p = node.run("underwatt", "cap", *args)
        t.ok(p.returncode == 2 and word in p.stderr, f"cap {' '.join(args)}: refused", f"{p.returncode} {p.stderr}")


def disobeyed(node, d):
    node.fault(1, "ignore")
    claim(d, gpu="1", clock="900 MHz")
    t.ok(locked(node, 1, 900), "a board that takes the lock and ignores it")
    t.ok(uwtest.wait_for(lambda: explain(d, 1)["clock"]["disobeyed"] == 1) and locked(node, 1, 0),
         "seen under load, counted and given back", explain(d, 1)["clock"])
    t.ok("900 MHz, but runs at" in explain(d, 1)["claims"][0]["state"], "and the claim says so",
         explain(d, 1)["claims"])
    node.fault(1, "heed")
    node.run("underwatt", "cap", "clear")


def killed(node, d):
    """Whoever dies: the lock goes, or is taken over; none stays behind."""
    made = claim(d, gpu="0", clock="1005 MHz")[1]
    t.ok(locked(node, 0, 1005) and d.booked(made["id"]), "locked")
    resets = node.board(0)["clock_resets"]
    os.kill(d.child.pid, signal.SIGKILL)
    d.child.wait()
    d.start()
    t.ok(uwtest.wait_for(lambda: explain(d, 0)["clock"]["locked_mhz"] == 1005) and
         node.board(0)["clock_resets"] == resets,
         "a daemon killed and started again takes lock and claim over: nothing is written",
         f"{explain(d, 0)} {node.board(0)}")
    os.kill(d.child.pid, signal.SIGSTOP)
    t.ok(locked(node, 0, 0), "a daemon that hangs loses its lease: the lock is reset", node.board(0))
    os.kill(d.child.pid, signal.SIGCONT)
    t.ok(locked(node, 0, 1005), "and made again when it goes on", node.board(0))
    os.kill(d.actuator.pid, signal.SIGKILL)
    d.actuator.wait()
    uwtest.wait_for(lambda: False, 0.5)
    t.equal(node.board(0)["locked_max_mhz"], 1005, "an actuator that is killed leaves the lock for the next one")
    d.start_actuator()
    t.ok(uwtest.wait_for(lambda: node.board(0)["clock_resets"] > resets) and locked(node, 0, 1005),
         "which resets it first, and is asked again", node.board(0))
    os.kill(d.child.pid, signal.SIGKILL)
    d.child.wait()
    t.ok(locked(node, 0, 0), "a daemon that stays away: reset after the grace", node.board(0))
    d.start()
    t.ok(locked(node, 0, 1005), "its claim is in the ledger", explain(d, 0))
    d.stop()
    t.ok(locked(node, 0, 0), "a daemon that ends gives the lock back")


def off(node):
    d = node.daemon("caps: {clocks: true}\n")
    claim(d, gpu="0", clock="1005 MHz")
    t.ok(uwtest.wait_for(lambda: "does not allow locked clocks" in explain(d, 0)["claims"][0]["state"]) and
         node.board(0)["locked_max_mhz"] == 0, "off where root's configuration says nothing", explain(d, 0))
    d.stop()


def main():
    with uwtest.Node(machine=MACHINE) as node:
        node.train("--workload", "resnet50", "--gpus", "0", "--phases", "train", "--epochs", 1000)
        node.train("--workload", "resnet50", "--gpus", "1", "--phases", "train", "--epochs", 1000)
        d = node.daemon(CONFIG, rules=RULES)
        by_claim(node, d)
        refused(node, d)
        by_hand(node, d)
        disobeyed(node, d)
        killed(node, d)
        d.kill()
    with uwtest.Node(machine=MACHINE) as node:
        d = node.daemon("")
        status, answer = claim(d, gpu="0", clock="1005 MHz")
        t.ok(status == 422 and "caps.clocks" in json.dumps(answer), "off until configured", f"{status} {answer}")
        d.kill()
        off(node)
    t.done()


if __name__ == "__main__":
    main()
