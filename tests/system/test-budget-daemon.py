#!/usr/bin/python3
"""A node's budget with the real daemon: shares, what is shown of them, reloads, kill -9 and a
start over what was left, a board that refuses, and budgets that are too low."""
import json

import uwtest

t = uwtest.Tap()


def config(watts):
    return f"budget: {{node: {watts} W}}\n"


def limits(node):
    return [node.board(i)["limit_mw"] for i in range(4)]


def reach(node, *watts, seconds=20):
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
    b = d.ask("GET", "/v1/node")[1]["budget"]
    t.equal(b, {"budget_w": 800, "counted_w": 800, "least_w": 600, "short": False, "late": False}, "the node's budget")
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
    t.ok(d.reload(config(800)) and reach(node, 200, 200, 200, 200), "and back", limits(node))


def killed(node, d):
    d.kill(actuator=False)
    d.start()
    t.ok(reach(node, 200, 200, 200, 200), "kill -9 and a start: the limits are what they were", limits(node))
    e = uwtest.wait_until(lambda: d.ask("GET", "/v1/gpus/3/explain")[1],
                          lambda e: len(e["claims"]) == 1 and e["claims"][0]["state"] == "in force")
    t.ok(len(e["claims"]) == 1 and e["claims"][0]["state"] == "in force", "one claim a board, in force", e["claims"])


def refused(node, d):
    node.fault("1", "refuse", "for", "15s")
    d.reload(config(700))
    t.ok(reach(node, 166, 200, 166, 166), "a board that refuses: the others make room", limits(node))
    t.ok(reach(node, 175, 175, 175, 175, seconds=60), "until it is lowered", limits(node))


def main():
    with uwtest.Node() as node:
        d = node.daemon(config(800))
        shown(node, d)
        reloads(node, d)
        killed(node, d)
        refused(node, d)
        t.ok(d.reload("{}\n") and reach(node, 300, 300, 300, 300), "none: the originals", limits(node))
        d.kill()
    with uwtest.Node() as node:
        d = node.daemon(config(500), wait=False)
        t.ok(uwtest.wait_for(lambda: d.child.poll() is not None) and d.child.poll() != 0 and
             "budget.node: a budget of 500 W is under 600 W" in d.log(), "too low a one: no start", d.log()[-300:])
        d.kill()
    t.done()


if __name__ == "__main__":
    main()
