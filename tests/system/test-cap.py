#!/usr/bin/python3
"""`underwatt cap`: refuse, hold, show, yield, give back, put back what was left."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import uwtest


def limit(node, i):
    return node.board(i)["limit_mw"]


def refusals(t, node):
    for args, text in ((("set", "200"), "--gpus"),
                       (("set", "999", "--gpus", "0"), "'999' is outside 150..300 W"),
                       (("set", "30%", "--gpus", "0"), "'30%' (90 W) is outside 150..300 W"),
                       (("set", "many", "--gpus", "0"), "many"),
                       (("set", "200", "--gpus", "9"), "'9'"),
                       (("set", "--gpus", "0"), "missing argument: usage: underwatt cap set W|N%"),
                       (("show", "200"), "unexpected argument '200': usage: underwatt cap show"),
                       (("show", "0", "1"), "unexpected argument '0': usage: underwatt cap show\n"),
                       (("set", "200", "300", "--gpus", "0"), "set W|300"),
                       (("frobnicate",), "'frobnicate' is none of: set, clear, show")):
        p = node.run("underwatt", "cap", *args)
        said = any(word in p.stderr for word in text.split("|"))
        t.ok(p.returncode == 2 and said and p.stderr.count("\n") == 1,
             f"cap {' '.join(args)}: refused in a line", f"{p.returncode} {p.stderr}")
    t.equal([limit(node, i) for i in range(2)], [300000, 300000], "nothing was changed")


def held(node, *args):
    p = node.popen("underwatt", "cap", "set", *args)
    uwtest.wait_for(lambda: limit(node, 0) != 300000 or p.poll() is not None)
    uwtest.must(p.poll() is None, f"cap set {args} ended with", p.returncode, p.stderr.read)
    return p


def processes(p):
    """Keeper and actuator of a command."""
    keeper = int(open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()[0])
    return keeper, int(open(f"/proc/{keeper}/task/{keeper}/children").read().split()[0])


def stuck(t):
    """Keeper killed, actuator stopped: the cap stays in force, and nobody says otherwise."""
    with uwtest.Node(board="v100", count=2) as node:
        said = os.path.join(node.tmp, "said")
        with open(said, "w") as log:  # the stopped one keeps a pipe open
            p = node.popen("underwatt", "cap", "set", "200", "--gpus", "0", "--local", stderr=log)
        got = uwtest.wait_until(lambda: limit(node, 0), lambda mw: mw == 200000)
        uwtest.must(got == 200000, "the limit is", got)
        keeper, actuator = processes(p)
        os.kill(actuator, signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
        code, text = p.wait(30), open(said).read()
        force = "GPU 0: 200 W is in force, the original is 300 W: not restored yet"
        who = f"underwatt-actuator (pid {actuator}, {uwtest.USER}, stopped)"
        t.ok(code == 1 and f"{force}; {who} has the board's lock" in text,
             "cap set: what is in force is read and said, and who has the lock", text)
        q = node.run("underwatt", "cap", "clear", "--local")
        t.ok(q.returncode == 1 and force in q.stderr and who in q.stderr and limit(node, 0) == 200000,
             "cap clear: nothing was cleared: 1, and why", f"{q.returncode} {q.stderr}")
        q = node.run("underwatt", "cap", "set", "210", "--gpus", "0", "--local", "--for", "1 s")
        t.ok(q.returncode == 1 and who in q.stderr and f"pid {p.pid}" not in q.stderr,
             "cap set: the process that has the lock is named, not one that has gone", q.stderr)
        q = node.run("underwatt", "cap", "show", "--local", "--json", "-")
        t.equal(json.loads(q.stdout)["boards"][0]["holder_pid"], actuator, "cap show: so it is there")
        os.kill(actuator, signal.SIGCONT)
        t.ok(uwtest.wait_for(lambda: limit(node, 0) == 300000 and not uwtest.alive(actuator)), "it goes on: restored")
        q = node.run("underwatt", "cap", "clear", "--local")
        t.ok(q.returncode == 0 and "no limit was left behind" in q.stderr, "cap clear: nothing to do: 0, and said",
             f"{q.returncode} {q.stderr}")


def hangs(t):
    """^C while the driver hangs in the first write: nobody says that the original is in force."""
    with uwtest.Node(machine="set_latency: 3 s\nboards: [{model: v100, count: 1}]") as node:
        said, report = os.path.join(node.tmp, "said"), os.path.join(node.tmp, "json")
        entries = lambda: list(pathlib.Path(node.state, "actuator").glob("*.cap"))
        with open(said, "w") as log:  # its actuator goes on trying, with that open
            p = node.popen("underwatt", "cap", "set", "200", "--gpus", "0", "--local", "--json", report, stderr=log)
        writing = uwtest.wait_for(entries)
        node.fault(0, "hang")
        time.sleep(6)  # the actuator gives the call up, after 10 s, while the command waits for it
        p.send_signal(signal.SIGINT)
        code, text, b = p.wait(uwtest.PATIENCE), open(said).read(), json.load(open(report))["boards"][0]
        t.ok(writing and code == 1 and b["restored"] is False and "could not be verified" in text,
             "^C while the first write hangs: 1, and nothing is said to be restored", f"{code} {text} {b}")
        node.fault(0, "release")
        t.ok(uwtest.wait_for(lambda: not entries() and limit(node, 0) == 300000), "it is restored later", entries())


def half(t):
    """Two boards are left behind, one of them refuses."""
    with uwtest.Node(board="v100", count=2) as node:
        p = node.popen("underwatt", "cap", "set", "200", "--gpus", "0,1", "--local")
        got = uwtest.wait_until(lambda: [limit(node, i) for i in (0, 1)], lambda mw: mw == [200000] * 2)
        uwtest.must(got == [200000] * 2, "the limits are", got)
        keeper, actuator = processes(p)
        os.kill(keeper, signal.SIGSTOP)
        for pid in (actuator, keeper, p.pid):
            os.kill(pid, signal.SIGKILL)
        p.wait()
        uwtest.must(uwtest.wait_for(lambda: not uwtest.alive(keeper) and not uwtest.alive(actuator)),
                    "keeper or actuator outlives SIGKILL")
        node.fault(1, "refuse")
        said = os.path.join(node.tmp, "said")
        with open(said, "w") as log:  # its actuator goes on trying, with that open
            q = node.popen("underwatt", "cap", "clear", "--local", stderr=log)
        code, text = q.wait(30), open(said).read()
        t.ok(code == 3 and "GPU 0: 300 W is in force, the original\n" in text and
             "GPU 1: 200 W is in force, the original is 300 W: not restored yet" in text and "ermission" in text,
             "cap clear: one is back, one is not: 3, each said", f"{code} {text}")
        node.fault(1, "accept")
        t.ok(uwtest.wait_for(lambda: limit(node, 1) == 300000), "it is restored once it can be")


def above(t):
    """A board found under its default limit is raised, and comes back to what was found."""
    with uwtest.Node(board="v100", count=1) as node:
        node.fault(0, "limit", "200W")
        p = node.run("underwatt", "cap", "set", "280", "--gpus", "0", "--local", "--for", "1 s", "--json", "-")
        b = json.loads(p.stdout)["boards"][0]
        t.ok(p.returncode == 0 and b["enforced_mw"] == 280000 and b["original_mw"] == 200000 and b["restored"],
             "200 W found: 280 W set, and read back", p.stdout + p.stderr)
        t.equal(limit(node, 0), 200000, "what was found is in force")


def at_once(t):
    """Two commands on two boards, each with a node of its own."""
    with uwtest.Node(board="v100", count=2) as node:
        p = [node.popen("underwatt", "cap", "set", str(200 + 10 * i), "--gpus", str(i), "--local") for i in range(2)]
        t.ok(uwtest.wait_for(lambda: [limit(node, i) for i in range(2)] == [200000, 210000]), "two commands at once")
        p[0].send_signal(signal.SIGINT)
        t.ok(p[0].wait(uwtest.PATIENCE) == 0 and [limit(node, i) for i in range(2)] == [300000, 210000], "one ends: the other stays")
        p[1].send_signal(signal.SIGTERM)
        t.ok(p[1].wait(uwtest.PATIENCE) == 0 and limit(node, 1) == 300000, "and ends", p[1].stderr.read())


def main():
    t = uwtest.Tap()
    above(t)
    at_once(t)
    stuck(t)
    hangs(t)
    half(t)
    with uwtest.Node(board="v100", count=2) as node:
        refusals(t, node)
        p = node.run("underwatt", "cap", "set", "80%", "--gpus", "all", "--for", "3 s", "--json", "-")
        boards = json.loads(p.stdout)["boards"]
        t.ok(p.returncode == 0 and all(b["enforced_mw"] == 240000 and b["restored"] and
                                       b["held_to_the_end"] for b in boards),
             "held for a time, then given back", p.stdout + p.stderr)
        t.ok(json.loads(p.stdout)["simulated"] and "(simulated)" in p.stderr, "simulated says so")
        t.ok(re.search("held for [1-3] s;", p.stderr), "it says for how long", p.stderr)
        t.equal(limit(node, 0), 300000, "the original is in force")

        p = held(node, "200", "--gpus", "0")
        show = node.run("underwatt", "cap", "show", "--json", "-")
        b = json.loads(show.stdout)["boards"]
        t.ok(b[0]["enforced_mw"] == 200000 and b[0]["original_mw"] == 300000 and
             b[0]["holder_pid"] == p.pid and b[1]["holder_pid"] is None, "show", show.stdout)
        q = node.run("underwatt", "cap", "set", "210", "--gpus", "0,1", "--for", "3 s")
        t.ok(q.returncode == 3 and str(p.pid) in q.stderr,
             "a board that is taken names its holder, the other is capped: 3", q.stderr)
        p.send_signal(signal.SIGINT)
        t.ok(p.wait(uwtest.PATIENCE) == 0 and limit(node, 0) == 300000, "^C gives it back", p.stderr.read())

        p = held(node, "200", "--gpus", "0")
        node.fault(0, "limit", "180W")
        code = p.wait(uwtest.PATIENCE)
        t.ok(code == 1 and limit(node, 0) == 180000, "another's limit: left alone, and the end", code)
        node.fault(0, "limit", "300W")

        p = held(node, "200", "--gpus", "0")
        p.send_signal(signal.SIGSTOP)
        t.ok(uwtest.wait_for(lambda: limit(node, 0) == 300000), "stopped: given back")
        p.send_signal(signal.SIGCONT)
        t.ok(uwtest.wait_for(lambda: limit(node, 0) == 200000), "going on: held again")
        p.kill()
        t.ok(uwtest.wait_for(lambda: limit(node, 0) == 300000), "killed: given back")
        p.wait()

        p = held(node, "200", "--gpus", "0")
        keeper = int(open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()[0])
        actuator = int(open(f"/proc/{keeper}/task/{keeper}/children").read().split()[0])
        os.kill(keeper, signal.SIGSTOP)
        for pid in (actuator, keeper, p.pid):
            os.kill(pid, signal.SIGKILL)
        p.wait()
        time.sleep(0.3)
        t.equal(limit(node, 0), 200000, "command, keeper and actuator killed: a cap is left")
        q = node.run("underwatt", "cap", "clear")
        t.ok(q.returncode == 0 and limit(node, 0) == 300000, "cap clear puts it back", q.stderr)

        job = node.train("--workload", "resnet50", "--gpus", "0", "--steps", "100000")
        p = node.popen("underwatt", "cap", "set", "200", "--gpus", "0", stderr=subprocess.PIPE)
        seen = uwtest.wait_for(lambda: 200000 < limit(node, 0) < 300000)
        t.ok(seen, "a board at work is walked down", limit(node, 0))
        p.send_signal(signal.SIGTERM)
        said = p.communicate(timeout=uwtest.PATIENCE)[1]
        t.ok(p.returncode == 1 and limit(node, 0) == 300000, "and up at once")
        t.ok("GPU 0: ended before it reached 200 W" in said, "and says that it was not there yet", said)
        p = node.run("underwatt", "cap", "set", "200", "--gpus", "0,1", "--for", "1 s", "--local", "--json", "-")
        got = json.loads(p.stdout or '{"boards": [{}]}')["boards"][0]
        t.ok(not got.get("reached", True) and got.get("restored"), "--for ends before the cap is in force: the result says so", p)
        job.kill()
    t.done()


if __name__ == "__main__":
    main()
