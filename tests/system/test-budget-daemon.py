#!/usr/bin/python3
"""A node's budget with the real daemon: shares, what is shown of them, reloads, kill -9 and a
start over what was left, a board that refuses, a range in root's actuator.yaml that is
narrower than the boards', and budgets that are too low."""
import contextlib
import json
import sqlite3

import uwtest

t = uwtest.Tap()


def config(watts):
    return f"budget: {{node: {watts} W}}\n"


def limits(node):
    return [node.board(i)["limit_mw"] for i in range(4)]


def reach(node, *watts, seconds=uwtest.PATIENCE):
    want = [w * 1000 for w in watts]
    uwtest.wait_for(lambda: limits(node) == want, seconds)
    return limits(node) == want


def shown(node, d):
    t.ok(reach(node, 200, 200, 200, 200), "equal shares", limits(node))
    e = uwtest.wait_until(lambda: d.ask("GET", "/v1/gpus/0/explain")[1],
                          lambda e: e["claims"][0]["state"] == "in force")
    c = e["claims"][0]
    t.ok(c["kind"] == "hard" and c["who"] == "budget of this node" and
         c["why"] == "800 W for 4 boards: an equal share" and c["state"] == "in force", "explain: the claim", c)
    p = node.run("underwatt", "explain", "0")
    t.ok("budget of this node: 800 W for 4 boards" in p.stdout, "… for people", p.stdout + p.stderr)
    want = {"budget_w": 800, "counted_w": 800, "least_w": 600, "short": False, "late": False}
    t.equal(uwtest.wait_until(lambda: budget(d), lambda b: b == want), want, "the node's budget")
    p = node.run("underwatt", "cap", "show")
    t.ok(p.stdout.endswith("\nbudget 800 W for the node; limits of 800 W count\n"), "… in cap show", p.stdout + p.stderr)
    p = node.run("underwatt", "doctor")
    t.ok("800 W for the node; limits of 800 W count" in p.stdout, "… in doctor", p.stdout + p.stderr)
    text = d.ask("GET", "/metrics")[1]
    t.ok("} 800\n" in text and "underwatt_budget_counted_watts{" in text, "metrics", text[:200])
    status, answer = d.ask("DELETE", f"/v1/claims/{c['id']}")
    t.ok(status == 403 and "budget.node" in json.dumps(answer), "nobody withdraws it", f"{status} {answer}")
    p = node.run("underwatt", "cap", "clear")
    t.ok(reach(node, 200, 200, 200, 200), "nor by cap clear", p.stderr)


def reloads(node, d):
    t.ok(d.reload(config(1000)) and reach(node, 250, 250, 250, 250), "a higher one", limits(node))
    t.ok(d.reload(config(700)) and reach(node, 175, 175, 175, 175), "a lower one", limits(node))
    d.reload(config(599))
    t.ok("a budget of 599 W is under 600 W" in d.log() and reach(node, 175, 175, 175, 175),
         "one that is too low is refused, the old one stays", d.log()[-300:])
    # What the node refuses the doors have taken over already.
    d.reload(config(599) + "metrics: {enabled: false}\n")
    t.equal(d.ask("GET", "/metrics")[0], 200, "the doors, which come first, are put back")
    t.ok(d.reload(config(700) + "metrics: {enabled: false}\n"), "with a budget that is none too low")
    t.equal(d.ask("GET", "/metrics")[0], 404, "… it is in force")
    t.ok(d.reload(config(800)) and reach(node, 200, 200, 200, 200), "and back", limits(node))


def killed(node, d):
    d.kill(actuator=False)
    d.start()
    t.ok(reach(node, 200, 200, 200, 200), "kill -9 and a start: the limits are what they were", limits(node))
    e = uwtest.wait_until(lambda: d.ask("GET", "/v1/gpus/3/explain")[1],
                          lambda e: len(e["claims"]) == 1 and e["claims"][0]["state"] == "in force")
    t.ok(len(e["claims"]) == 1 and e["claims"][0]["state"] == "in force", "one claim a board, in force", e["claims"])


def refused(node, d):
    node.fault("1", "refuse")
    d.reload(config(700))
    t.ok(reach(node, 166, 200, 166, 166), "a board that refuses: the others make room", limits(node))
    node.fault("1", "accept")
    t.ok(reach(node, 175, 175, 175, 175), "until it is lowered", limits(node))


def budget(d):
    return d.ask("GET", "/v1/node")[1]["budget"]


def explained(d):
    return [d.ask("GET", f"/v1/gpus/{i}/explain")[1] for i in range(4)]


def ranges(node):
    """Boards take 150..300 W, root's range is 180..210 W."""
    d = node.daemon(config(700), rules="range: {from: 60 %, to: 210 W}\n")
    t.ok(reach(node, 180, 180, 180, 180), "root's range: nobody goes under it", limits(node))
    want = {"budget_w": 700, "counted_w": 720, "least_w": 720, "short": True, "late": False}
    b = uwtest.wait_until(lambda: budget(d), lambda b: b == want)
    t.equal(b, want, "too little, and said so")
    t.ok(uwtest.wait_for(lambda: "state=short budget_mw=700000 counted_mw=720000 least_mw=720000" in d.log()),
         "… in the log", d.log()[-500:])
    e = uwtest.wait_until(lambda: explained(d)[0], lambda e: "too small: the board's minimum" in e["cap"]["why"])
    t.equal({k: v // 1000 for k, v in e["bounds"].items()},
            {"min_mw": 150, "max_mw": 300, "default_mw": 300, "original_mw": 300, "lowest_mw": 180, "highest_mw": 210},
            "explain: the board's range, and root's")
    t.ok(e["cap"]["why"].startswith("180 W: ") and "too small: the board's minimum" in e["cap"]["why"], "… and that it decides",
         e["cap"]["why"])
    p = node.run("underwatt", "explain", "0")
    t.ok("root's range 180 W to 210 W" in p.stdout, "… for people", p.stdout + p.stderr)
    t.ok(d.reload(config(800)) and reach(node, 200, 200, 200, 200), "shares inside it", limits(node))
    d.reload(config(700))
    t.ok("a budget of 700 W is under 720 W, the least that this node's 4 boards come to in the range of actuator.yaml"
         in d.log() and reach(node, 200, 200, 200, 200), "too low a one is refused now", d.log()[-500:])
    t.ok(d.reload(config(900)) and reach(node, 210, 210, 210, 210), "shares above its end: there", limits(node))
    b = uwtest.wait_until(lambda: budget(d), lambda b: b["counted_w"] == 840 and not b["late"])
    t.equal((b["counted_w"], b["short"], b["late"]), (840, False, False), "and nobody is above the budget")
    status, answer = d.ask("POST", "/v1/claims", {"gpu": 0, "kind": "named", "cap": "160 W", "for": "60 s"})
    t.ok(status in (400, 422) and "'160 W' is outside 180..210 W, the range of the actuator's configuration" in
         json.dumps(answer), "a claim outside is refused with both", f"{status} {answer}")
    t.equal([x["failures"] for x in explained(d)], [0] * 4, "nothing that root refuses was ever asked for")
    d.actuator.terminate()    # what is asked of it at that moment fails, too
    d.actuator.wait(timeout=10)
    d.rules = "range: {from: 170 W}\n"
    d.start_actuator()
    t.ok(reach(node, 225, 225, 225, 225), "another range, another actuator: its word counts", limits(node))
    e = uwtest.wait_until(lambda: explained(d), lambda e: all(x["bounds"]["lowest_mw"] == 170000 for x in e))
    t.equal([x["bounds"]["lowest_mw"] for x in e], [170000] * 4, "… and is shown")
    t.ok(d.reload(config(690)) and reach(node, 172, 172, 172, 172), "lower than before", limits(node))
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        failed = db.execute("SELECT text FROM event WHERE kind = 'cap-failed'").fetchall()
    t.equal(failed, [], "… of neither actuator")
    d.kill()


def shares():
    with uwtest.Node() as node:
        d = node.daemon(config(800))
        shown(node, d)
        reloads(node, d)
        killed(node, d)
        refused(node, d)
        t.ok(d.reload("{}\n") and reach(node, 300, 300, 300, 300), "none: the originals", limits(node))
        d.kill()


def ranged():
    with uwtest.Node() as node:
        ranges(node)


def too_low():
    with uwtest.Node() as node:
        d = node.daemon(config(500), wait=False)
        t.ok(uwtest.wait_for(lambda: d.child.poll() is not None) and d.child.poll() != 0 and
             "budget.node: a budget of 500 W is under 600 W" in d.log(), "too low a one: no start", d.log()[-300:])
        d.kill()


def main():
    uwtest.together(shares, ranged, too_low)
    t.done()


if __name__ == "__main__":
    main()
