#!/usr/bin/python3
"""`underwatt cap` and `list` beside underwattd: claims that end with the command, by
whom and on whose boards, a daemon that dies or hangs, never two writers."""
import json
import os
import pathlib
import re
import signal
import tempfile
import time

import uwtest

t = uwtest.Tap()
ORIGINAL = 300000
OTHER = 61003
AT_ONCE = "caps:\n  classes:\n    default: {ramp: at once}\n"


def limit(node, i):
    return node.board(i)["limit_mw"]


def becomes(node, i, mw):
    return uwtest.wait_for(lambda: limit(node, i) == mw)


def claims(d):
    return d.ask("GET", "/v1/claims")[1]["claims"]


class Held:
    """A `cap set` that runs, and what it said so far."""

    def __init__(self, node, *args, **kw):
        file, path = tempfile.mkstemp(prefix="held-", dir=node.tmp)
        self.file = pathlib.Path(path)
        with open(file, "w") as err:
            self.p = node.popen("underwatt", "cap", "set", *args, stderr=err, **kw)

    def said(self):
        return self.file.read_text()

    def says(self, word):
        return uwtest.wait_for(lambda: word in self.said() or self.p.poll() is not None) and \
            word in self.said()

    def end(self, signo=None):
        if signo:
            self.p.send_signal(signo)
        return self.p.wait(uwtest.PATIENCE)


def refusals(node, d):
    form = "set W|N%|--preset NAME|--clock MHZ --gpus LIST"
    for args, code, word in ((("set", "999", "--gpus", "0"), 2, "'999' is outside 150..300 W"),
                             (("set", "30%", "--gpus", "0"), 2, "'30%' (90 W) is outside 150..300 W"),
                             (("set", "200", "--gpus", "9"), 2, "'9'"),
                             (("set", "200"), 2, "--gpus"),
                             (("frob",), 2, "'frob' is none of: set, clear, show"),
                             (("bogus", "a", "b"), 2, "'bogus' is none of: set, clear, show"),
                             (("set", "9", "200W"), 2, f"unexpected argument '200W': usage: underwatt cap {form}"),
                             ((), 2, "missing argument: usage: underwatt cap set"), (("set",), 2, "missing argument"),
                             (("show", "200"), 2, "unexpected argument '200': usage: underwatt cap show"),
                             (("show", "0", "1"), 2, "unexpected argument '0': usage: underwatt cap show\n"),
                             (("set", "200", "--gpus", "0", "--why", "x" * 200), 2, "why")):
        p = node.run("underwatt", "cap", *args)
        t.ok(p.returncode == code and word in p.stderr and p.stderr.count("\n") == 1,
             f"cap {' '.join(args)[:40]}: refused in a line", f"{p.returncode} {p.stderr}")
    t.ok(claims(d) == [] and limit(node, 0) == ORIGINAL, "nothing was changed", claims(d))


def by_hand(node, d):
    p = node.run("underwatt", "cap", "set", "80%", "--gpus", "0,1", "--for", "3 s", "--json", "-")
    got = json.loads(p.stdout)["boards"] if p.stdout else []
    t.ok(p.returncode == 0 and len(got) == 2 and
         all(b["enforced_mw"] in (240000, ORIGINAL) and b["reached"] and b["restored"] and b["claim"]
             and b["original_mw"] == ORIGINAL for b in got), "held for a time, then given back", p.stdout + p.stderr)
    t.ok(re.search("held for [1-3] s;", p.stderr) and "(simulated)" in p.stderr, "it says so", p.stderr)
    t.ok(limit(node, 0) == ORIGINAL and claims(d) == [], "the original is in force, no claim is left")

    h = Held(node, "200", "--gpus", "0", "--why", "too loud")
    t.ok(h.says("GPU 0 at 200 W, was 300 W") and limit(node, 0) == 200000, "held", h.said())
    mine = claims(d)
    t.ok(len(mine) == 1 and mine[0]["why"] == "too loud" and f"process {h.p.pid}." in mine[0]["who"],
         "a claim that names the process", mine)
    p = node.run("underwatt", "cap", "show", "--json", "-")
    b = json.loads(p.stdout)["boards"]
    t.ok(b[0]["cap_mw"] == 200000 and b[0]["claims"][0]["why"] == "too loud" and b[0]["claims"][0]["wins"] and
         b[1]["cap_mw"] is None and b[1]["claims"] == [], "show: who claims, and why", p.stdout + p.stderr)
    p = node.run("underwatt", "cap", "show")
    t.ok("GPU 0  200 W" in p.stdout and "200 W: " not in p.stdout and "too loud" in p.stdout, "… for people, the watts once", p.stdout)

    low = Held(node, "180", "--gpus", "0")
    t.ok(low.says("GPU 0 at 180 W"), "a second one, lower", low.said())
    high = Held(node, "250", "--gpus", "0")
    t.ok(high.says("lower than asked") and high.says("180 W"), "a third one, above: says what holds", high.said())
    t.equal(limit(node, 0), 180000, "… the lowest is in force")
    t.equal(low.end(signal.SIGINT), 0, "^C gives back")
    t.ok(becomes(node, 0, 200000), "… what the others claim", low.said())
    high.p.kill()
    high.p.wait()
    t.ok(uwtest.wait_for(lambda: len(claims(d)) == 1), "kill -9: the claim ends with its process", claims(d))

    q = node.run("underwatt", "cap", "set", "210", "--gpus", "0", "--local")
    t.ok(q.returncode == 1 and re.match(rf"underwatt: cap: GPU 0: held by underwattd \(pid \d+, {uwtest.USER}\)\n", q.stderr) and "node's daemon" in q.stderr,
         "--local: never two writers, and whose the board is", q.stderr)
    hint = re.findall(r"underwatt: cap: (process \d+ is the node's daemon: .*)\n", q.stderr)
    q = node.run("underwatt", "run", "--local", "--cap", "210 W", "--gpus", "0", "--", "true")
    t.ok(q.returncode == 125 and len(hint) == 1 and q.stderr.endswith(f"underwatt: run: {hint[0]}\n"), "… run --local gives the same hint", q.stderr)
    t.equal(limit(node, 0), 200000, "… nothing was written")
    h.p.kill()
    h.p.wait()
    t.ok(becomes(node, 0, ORIGINAL) and claims(d) == [], "kill -9 of the last: the original is back")

    q = Held(node, "210", "--gpus", "1", "--local")
    t.ok(q.says("GPU 1 at 210 W"), "--local on a board that is free: held without the daemon", q.said())
    h = Held(node, "200", "--gpus", "1", "--for", "600 s")
    t.ok(h.says(f"held by underwatt (pid {q.p.pid}, "), "the daemon's cap waits for it, and says for whom", h.said())
    t.equal(limit(node, 1), 210000, "… and is not written")
    uwtest.wait_for(lambda: d.ask("GET", "/v1/gpus/1")[1]["limits"]["enforced_mw"] == 210000)
    shown = " ".join(node.run("underwatt", "cap", "show", "--gpus", "1").stdout.split())
    t.ok(f"GPU 1 210 W claimed 200 W: named claim of " in shown and
         f"; in force 210 W: held by underwatt (pid {q.p.pid}, {uwtest.USER}), original 300 W >" in shown,
         "show: which limit is claimed, and which is in force", shown)
    p = node.run("underwatt", "cap", "set", "220", "--gpus", "1", "--for", "1 s", "--json", "-")
    t.ok(p.returncode == 1 and "held for" not in p.stderr and "ended before it reached 220 W" in p.stderr and
         not json.loads(p.stdout)["boards"][0]["held_to_the_end"], "a claim that waited all its time has not been held", p)
    p = node.run("underwatt", "cap", "set", "205", "--gpus", "1", "--for", "1 h", "--detach")
    t.ok(p.returncode == 0 and re.search(rf"cap: GPU 1: claim \d+ is not in force yet: held by underwatt \(pid {q.p.pid}, ", p.stderr),
         "--detach says that its claim waits, and for whom", p.stderr)
    d.ask("DELETE", "/v1/claims/" + re.search(r"claim (\d+)", p.stderr)[1])
    uwtest.wait_for(lambda: d.ask("GET", "/v1/gpus/1")[1]["limits"]["enforced_mw"] == 210000)
    p = node.run("underwatt", "cap", "set", "220", "--gpus", "1", "--for", "1 h", "--detach")
    t.ok(p.returncode == 0 and "not in force yet" not in p.stderr, "… and not of a claim above the limit in force", p.stderr)
    d.ask("DELETE", "/v1/claims/" + re.search(r"claim (\d+)", p.stderr)[1])
    q.end(signal.SIGINT)
    t.ok(h.says("GPU 1 at 200 W"), "… until it is given back", h.said() + d.log()[-600:])
    t.ok(h.says("held for ") and int(re.search(r"held for (\d+) s;", h.said())[1]) < 600, "it is held for the rest of its time", h.said())
    t.equal(h.end(signal.SIGTERM), 0, "SIGTERM gives back")


def left_to_it(node, d):
    p = node.run("underwatt", "cap", "set", "220", "--gpus", "0,1", "--for", "2 h", "--detach")
    t.ok(p.returncode == 0 and "left to the daemon" in p.stderr, "--detach returns", p.stderr)
    t.ok(becomes(node, 0, 220000) and becomes(node, 1, 220000), "… and the cap stays")
    t.ok(all(7000 < c["left_s"] <= 7200 for c in claims(d)), "… for its time", claims(d))
    p = node.run("underwatt", "cap", "clear", "--gpus", "1")
    t.ok(p.returncode == 0 and becomes(node, 1, ORIGINAL) and limit(node, 0) == 220000,
         "clear --gpus 1: that board alone", p.stderr)
    h = Held(node, "200", "--gpus", "1")
    t.ok(h.says("GPU 1 at 200 W"), "one in the foreground", h.said())
    p = node.run("underwatt", "cap", "clear")
    t.ok(p.returncode == 0 and claims(d) == [] and becomes(node, 0, ORIGINAL), "clear: all", p.stderr)
    t.ok(h.end() == 1 and "withdrawn" in h.said(), "… whose command sees it and ends", h.said())
    p = node.run("underwatt", "cap", "clear")
    t.ok(p.returncode == 0 and "no claims" in p.stderr, "nothing to clear: says so", p.stderr)


def listed(node, _):
    h = Held(node, "200", "--gpus", "0", "--why", "too loud")
    h.says("GPU 0 at 200 W")
    p = node.run("underwatt", "list", "--json", "-")
    b = json.loads(p.stdout)["boards"]
    t.ok("too loud" in b[0]["limit"]["why"] and b[0]["claims"] == 1 and b[1]["claims"] == 0,
         "list: the cap's reason from the daemon", p.stdout[:600])
    h.end(signal.SIGINT)


def goes_away(node, d):
    h = Held(node, "200", "--gpus", "0")
    h.says("GPU 0 at 200 W")
    os.kill(d.pid, signal.SIGSTOP)
    p = node.run("underwatt", "list")
    t.ok(p.returncode == 0 and "V100" in p.stdout and "daemon" in p.stderr,
         "a daemon that hangs: list does without it, and says so", p.stderr)
    p = node.run("underwatt", "cap", "show")
    t.ok(p.returncode == 0 and "without it" in p.stderr and "GPU 0" in p.stdout, "… show, too", p.stderr)
    p = node.run("underwatt", "cap", "set", "210", "--gpus", "1")
    t.ok(p.returncode == 1 and "--local" in p.stderr, "… set does not, and names --local", p.stderr)
    os.kill(d.pid, signal.SIGCONT)
    t.ok(uwtest.wait_for(lambda: limit(node, 0) == 200000 and len(claims(d)) == 1), "it goes on: held again")

    d.kill(actuator=False)
    t.ok(h.says("does not answer"), "the daemon is killed: the command says so", h.said())
    d.start()
    t.ok(h.says("answers again") and becomes(node, 0, 200000) and uwtest.wait_for(lambda: len(claims(d)) == 1),
         "… the next one has the claim", h.said())
    d.kill(actuator=False)
    for suffix in ("", "-wal", "-shm"):
        pathlib.Path(d.ledger + suffix).unlink(missing_ok=True)
    uwtest.wait_for(lambda: h.said().count("does not answer") == 2)
    d.start()
    t.ok(uwtest.wait_for(lambda: h.said().count("answers again") == 2 and len(claims(d)) == 1) and
         becomes(node, 0, 200000), "one without its ledger is given the claim anew", h.said())
    d.kill(actuator=False)
    code = h.end(signal.SIGINT)
    t.ok(code == 1 and "end with this process" in h.said(), "^C while there is none: said", h.said())
    t.ok(becomes(node, 0, ORIGINAL), "… the actuator puts the original back")
    for _ in range(20):  # the actuator lets go of the board a moment after its limit is back
        p = node.run("underwatt", "cap", "set", "210", "--gpus", "0", "--for", "3 s")
        if p.returncode == 0:
            break
        time.sleep(0.2)
    t.ok(p.returncode == 0 and "GPU 0 at 210 W" in p.stderr, "no daemon: as before", p.stderr)
    p = node.run("underwatt", "cap", "set", "210", "--gpus", "0", "--detach")
    t.ok(p.returncode == 2 and "does not run" in p.stderr, "--detach wants one", p.stderr)
    d.start()
    t.ok(uwtest.wait_for(lambda: claims(d) == []) and limit(node, 0) == ORIGINAL,
         "… and the next daemon knows that its process has gone", claims(d))


def others(node, d):
    if os.geteuid() != 0:
        t.skip("another user", "root is needed to become one")
        return
    user = {"user": OTHER, "group": OTHER, "extra_groups": []}
    p = node.run("underwatt", "cap", "set", "200", "--gpus", "0", **user)
    t.ok(p.returncode == 1 and "may not claim on GPU 0" in p.stderr, "another user, an idle board: refused", p.stderr)
    job = node.train("--gpus", "1", "--epochs", "100000", **user)
    if not t.ok(uwtest.wait_for(lambda: any(j["uid"] == OTHER for j in d.ask("GET", "/v1/jobs")[1]["jobs"])),
                "that user's job is found", d.log()):
        return
    p = node.run("underwatt", "cap", "set", "200", "--gpus", "1,0", **user)
    t.ok(p.returncode == 1 and claims(d) == [], "its own board and another's: none of both", p.stderr)
    h = Held(node, "200", "--gpus", "1", **user)
    t.ok(h.says("GPU 1 at 200 W"), "its own board: held", h.said())
    root = Held(node, "190", "--gpus", "1")
    t.ok(root.says("GPU 1 at 190 W"), "root caps it, too", root.said())
    node.run("underwatt", "cap", "clear", **user)
    t.ok(h.end() == 1 and len(claims(d)) == 1, "the user's clear leaves root's", h.said())
    root.end(signal.SIGINT)
    p = node.run("underwatt", "list")
    t.ok("job " in p.stdout, "list: the board's job", p.stdout)
    job.kill()


def swept(node, d):
    """A sweep is refused where the daemon caps a board, and has it once it is released."""
    sweep = ("underwatt", "sweep", "-q", "--gpus", "0", "--from", "250", "--to", "260", "--step", "10", "-n", "1",
             "--settle", "10 ms", "--json", "-", "--", "sleep", "0.3")
    node.run("underwatt", "cap", "set", "200", "--gpus", "0", "--why", "too loud", "--detach")
    t.ok(becomes(node, 0, 200000), "a board that the daemon caps")
    writes = node.board(0)["limit_writes"]
    p = node.run(*sweep)
    t.ok(p.returncode == 125 and "too loud" in p.stderr and "underwatt release 0" in p.stderr and
         p.stderr.count("\n") == 1, "sweep: refused with the reason and the way", f"{p.returncode} {p.stderr}")
    t.equal([limit(node, 0), node.board(0)["limit_writes"]], [200000, writes], "… nothing was written")
    p = node.run("underwatt", "release", "0")
    t.ok(p.returncode == 0 and becomes(node, 0, ORIGINAL), "released", p.stderr)
    p = node.run(*sweep)
    points = {x["cap_mw"] for x in json.loads(p.stdout)["points"]} if p.returncode == 0 else set()
    t.ok(points >= {250000, 260000}, "sweep: has it now", f"{p.returncode} {p.stderr}")
    t.equal(limit(node, 0), ORIGINAL, "… and gives it back")
    node.run("underwatt", "release", "--take-back", "0")
    t.ok(becomes(node, 0, 200000), "taken back: the claim is in force again", d.log()[-800:])
    node.run("underwatt", "cap", "clear")


def ramp(node):
    d = node.daemon("")
    node.train("--gpus", "0", "--epochs", "100000")
    h = Held(node, "200", "--gpus", "0")
    seen = uwtest.wait_for(lambda: 200000 < limit(node, 0) < ORIGINAL)
    t.ok(seen and h.says("on the way down to 200 W") and "GPU 0 at" not in h.said(), "a board at work is walked down", f"{limit(node, 0)} {h.said()} {d.log()}")
    code = h.end(signal.SIGINT)
    t.ok(code == 1 and limit(node, 0) == ORIGINAL, "and up at once; never reached: 1",
         f"{code} {limit(node, 0)} {h.said()} {d.log()[-800:]}")


def main():
    def play(*parts, rules=None):
        with uwtest.Node(board="v100", count=2) as node:
            d = node.daemon(AT_ONCE, rules=rules)
            uwtest.wait_for(lambda: d.ask("GET", "/v1/node")[1]["actuator"]["up"])
            for part in parts:
                part(node, d)

    def walked():
        with uwtest.Node(board="v100", count=1) as node:
            ramp(node)
    uwtest.together(lambda: play(refusals, by_hand, left_to_it, listed),
                    lambda: play(swept, others, goes_away, rules="grace: 3 s\n"), walked)
    t.done()


if __name__ == "__main__":
    main()
