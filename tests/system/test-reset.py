#!/usr/bin/python3
"""A board is released so that it can be reset, and taken back: who has it open when, and
what the other boards notice of it (nothing)."""
import datetime
import json
import os
import pathlib
import sqlite3
import sys
import time

import uwtest

t = uwtest.Tap()
ORIGINAL = 300000
CONFIG = "node: {interval: 1 s}\ncaps:\n  classes:\n    default: {ramp: at once}\n"


ZONE = {"TZ": "IST-5:30"}


def seconds(utc):
    return datetime.datetime.fromisoformat(utc).timestamp()


def local(utc):
    """As a client in ZONE says it: released a moment ago, so on the same day unless that has just begun."""
    there = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    then, now = (datetime.datetime.fromtimestamp(s, there) for s in (seconds(utc), time.time()))
    return then.strftime("%H:%M" if then.date() == now.date() else "%Y-%m-%d %H:%M")


def gpu(d, i):
    return d.ask("GET", "/v1/gpus")[1]["gpus"][i]


def claim(d, i, watts):
    """The status; once it is made, the ledger has it."""
    status, made = d.ask("POST", "/v1/claims", {"gpu": i, "cap": f"{watts} W", "kind": "named", "for": "10 min"})
    return status if status == 201 and d.booked(made["id"]) else (status, made)


def becomes(node, i, mw, seconds=20):
    return uwtest.wait_for(lambda: node.board(i)["limit_mw"] == mw, seconds)


def release(node, *args):
    return node.run("underwatt", "release", *args)


def booked(d, board):
    """The stretches of this board in the ledger: begin and end in ms."""
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        return db.execute("SELECT DISTINCT begin_ms, begin_ms + span_ms FROM energy JOIN board ON board.id = board "
                          "WHERE board.at = ? AND res = 0 ORDER BY begin_ms", (board,)).fetchall()


def refused(node, i, *pids):
    p = node.sim("reset", i)
    good = p.returncode == 1 and "in use by" in p.stderr and all(f"{pid} (" in p.stderr for pid in pids)
    return t.ok(good, f"a reset of board {i} is refused, {len(pids)} processes named", p.stderr)


def back_and_forth(node, d):
    job = node.train("--gpus", "0", "--epochs", "99")
    t.equal(claim(d, 0, 200), 201, "a cap on board 0, where a job runs")
    t.equal(claim(d, 3, 180), 201, "and one on board 3")
    t.ok(becomes(node, 0, 200000) and becomes(node, 3, 180000), "both in force")
    refused(node, 3, d.pid, d.actuator.pid)
    t.ok(uwtest.wait_for(lambda: gpu(d, 0)["energy_j"] > 0 and gpu(d, 3)["energy_j"] > 0, 20), "energy is booked")
    writes, first = node.board(0)["limit_writes"], gpu(d, 0)
    p = release(node, 3)
    t.ok(p.returncode == 0 and "can be reset" in p.stdout, "released", p.stdout + p.stderr)
    t.equal(node.board(3)["limit_mw"], ORIGINAL, "its original limit is back")
    g = gpu(d, 3)
    t.ok(g["cap"]["state"] == "released" and g["uuid"] == node.board(3)["uuid"] and g["pci_bus_id"] and
         g["power_w"] is None and g["limits"]["enforced_mw"] is None and g["temperature_c"] is None,
         "shown as released, with who it is, and nothing that is not known", g)
    p = node.run("underwatt", "list")
    t.ok("released" in p.stdout, "list says so", p.stdout + p.stderr)
    p = node.run("underwatt", "explain", "3")
    t.ok("released" in p.stdout and "  in force   unknown\n" in p.stdout, "explain says so, and no limit", p.stdout + p.stderr)
    text = d.ask("GET", "/metrics")[1]
    line = [s for s in text.splitlines() if 'state="released"' in s and s.endswith(" 1")]
    t.ok(len(line) == 1 and 'gpu="3"' in line[0], "metrics say so", line)
    t.ok(not any(s.startswith("underwatt_gpu_power_watts{") and 'gpu="3"' in s for s in text.splitlines()),
         "and tell no power of it")
    before = gpu(d, 3)["energy_j"]
    p = node.sim("reset", "3")
    t.equal(p.returncode, 0, f"the reset works {p.stderr}")
    refused(node, 0, d.pid, d.actuator.pid, job.pid)
    t.equal(claim(d, 0, 190), 201, "meanwhile board 0 gets another cap")
    t.ok(becomes(node, 0, 190000), "which comes into force")
    t.equal(claim(d, 3, 170), 201, "and somebody claims on the one that is away")
    after = gpu(d, 3)
    t.ok(after["cap"]["state"] == "released" and after["energy_j"] == before and
         node.board(3)["limit_mw"] == ORIGINAL, "nothing is written there, nothing booked", after)
    p = release(node, "--take-back", 3)
    t.ok(p.returncode == 0 and "taken back" in p.stdout, "taken back", p.stdout + p.stderr)
    t.ok(becomes(node, 3, 170000), "the claim comes into force")
    t.ok(uwtest.wait_for(lambda: gpu(d, 3)["power_w"] is not None), "it is measured again", d.log())
    t.ok(uwtest.wait_for(lambda: "event=taken-back gpu=3" in d.log()) and "reset=true" in d.log(),
         "and its reset was noticed", d.log())
    t.ok(uwtest.wait_for(lambda: gpu(d, 3)["energy_j"] > before), "its energy is booked from now on")
    refused(node, 3, d.pid, d.actuator.pid)
    t.equal(node.board(0)["limit_writes"] - writes, 1, "board 0 was written to once, for its new cap")
    t.ok(uwtest.wait_for(lambda: gpu(d, 0)["energy_j"] > first["energy_j"]), "its energy goes on")
    changes = d.ask("GET", "/v1/gpus/0/explain")[1]["other_writers"]
    t.ok(not any(changes.values()), "nobody else was seen at work there", changes)
    job.kill()
    job.wait()


def job_goes_on(node, d):
    """The cap of a job comes back with its board."""
    job = node.popen("underwatt", "run", "--gpus", "1,2", "--cap", "210", "--", "underwatt-sim", "train", "--gpus", "1,2",
                     "--epochs", "99")

    def shown():
        return next((j for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"] and j["gpus"] == [1, 2]), {})
    t.ok(becomes(node, 1, 210000, 60) and becomes(node, 2, 210000), "a job's cap on boards 1 and 2", (shown(), d.log()))
    before = time.time() - 0.01
    t.equal(release(node, 1).returncode, 0, "board 1 is released")
    t.ok(becomes(node, 2, ORIGINAL), "the job lets go of the other")
    t.ok(uwtest.wait_for(lambda: (shown().get("search") or {}).get("status") == "boards-lost"), "it says that", shown())
    search = shown().get("search") or {}
    t.equal(search.get("state"), "not capped: GPU 1: released by an administrator", "and why")
    at = d.ask("GET", "/v1/gpus/1")[1]["cap"]["released_utc"]
    t.ok(at and search.get("released_utc")[:19] == at[:19] and before <= seconds(at) <= time.time(), "and since when", (at, search))
    said = f"released by an administrator at {local(at)}"
    for command in (["jobs"], ["explain", "1"], ["list"], ["cap", "show"]):
        t.ok(said in " ".join(node.run("underwatt", *command, env=ZONE).stdout.split()), f"{command[0]} says when, in local time", said)
    t.equal(release(node, "--take-back", 1).returncode, 0, "taken back")
    t.ok(becomes(node, 1, 210000, 60) and becomes(node, 2, 210000), "the job's cap is in force again", (shown(), d.log()))
    job.terminate()
    job.wait()


def books(node, d):
    """Board 0: no stretch is lost, none counted twice."""
    d.stop()
    rows = booked(d, 0)
    gaps = [b[0] - a[1] for a, b in zip(rows, rows[1:]) if b[0] != a[0]]
    t.ok(rows and all(g == 0 for g in gaps), "board 0's stretches follow each other without a gap", gaps)
    three = booked(d, 3)
    gaps = [b[0] - a[1] for a, b in zip(three, three[1:]) if b[0] != a[0]]
    t.ok(sum(g > 0 for g in gaps) == 1 and all(g >= 0 for g in gaps), "board 3's but for the time it was away", gaps)


def killed(node):
    """kill -9 of daemon and of actuator while a board is released: it stays alone."""
    clock = pathlib.Path(node.tmp, "clock")
    clock.write_bytes(bytes(8))
    d = node.daemon(CONFIG, env={"LD_PRELOAD": str(uwtest.BUILD / "tests" / "chaos-clock.so"), "CHAOS_CLOCK": clock})
    t.equal(claim(d, 0, 200), 201, "a cap on board 0")
    t.equal(claim(d, 3, 180), 201, "and one on board 3")
    t.ok(becomes(node, 0, 200000) and becomes(node, 3, 180000), "in force")
    t.equal(release(node, 3).returncode, 0, "board 3 is released")
    at = seconds(gpu(d, 3)["cap"]["released_utc"])
    writes = node.board(0)["limit_writes"]
    d.child.kill()
    d.child.wait()
    d.start()
    t.ok(uwtest.wait_for(lambda: gpu(d, 0)["cap"]["state"] == "held"), "killed and begun again, it takes board 0 over")
    g = gpu(d, 3)
    t.ok(g["cap"]["state"] == "released" and g["uuid"] == node.board(3)["uuid"], "board 3 is still released", g)
    t.ok(abs(seconds(g["cap"]["released_utc"]) - at) < 0.5, "since the same time", (g["cap"], at))
    p = node.sim("reset", "3")
    t.equal(p.returncode, 0, f"and nobody has it open {p.stderr}")
    t.equal(node.board(0)["limit_writes"], writes, "board 0's cap was not written again")
    d.actuator.kill()
    d.actuator.wait()
    d.start_actuator()
    t.ok(becomes(node, 0, 200000, 30), "the actuator killed, too: board 0's cap comes back")
    t.ok(uwtest.wait_for(lambda: node.sim("reset", "3").returncode == 0, 20), "it lets go of board 3 again",
         d.actuator_log())
    t.equal(release(node, "--take-back", 3).returncode, 0, "taken back")
    t.equal(gpu(d, 3)["cap"]["released_utc"], None, "no longer released")
    t.ok(becomes(node, 3, 180000, 20), "its claim of before comes into force", d.log())
    t.ok(becomes(node, 0, 200000), "board 0's stays")
    t.equal(node.sim("reset", "3").returncode, 1, "and it cannot be reset any more")
    p = release(node, "--for", "1 s", 2)
    t.equal(p.returncode, 0, f"another one, for a second {p.stderr}")
    t.ok(uwtest.wait_for(lambda: gpu(d, 2)["power_w"] is not None and node.sim("reset", "2").returncode == 1, 20),
         "it is back by itself")
    utc_set(node, d, clock)
    return d


def utc_set(node, d, clock):
    """UTC is 400 days ahead when a daemon begins: a board that is released for a time stays so."""
    p = release(node, "--for", "1 h", 2)
    t.equal(p.returncode, 0, f"released for an hour {p.stderr}")
    with open(clock, "r+b") as f:
        f.write(int(400 * 86400e9).to_bytes(8, sys.byteorder))
    d.child.kill()
    d.child.wait()
    d.start()
    t.ok(uwtest.wait_for(lambda: gpu(d, 0)["cap"]["state"] == "held"), "UTC is set, the daemon killed: the next one takes over")
    t.equal(gpu(d, 2)["cap"]["state"], "released", "the board is released still")
    t.equal(release(node, "--take-back", 2).returncode, 0, "taken back")
    t.ok(uwtest.wait_for(lambda: gpu(d, 2)["power_w"] is not None, 20), "and there again")


def hanging(node, d):
    """Nothing is let go of under a call that hangs."""
    t.equal(claim(d, 1, 200), 201, "a cap on board 1")
    t.ok(becomes(node, 1, 200000), "in force")
    node.fault(2, "hang")
    t.ok(uwtest.wait_for(lambda: gpu(d, 2)["power_w"] is None, 30), "a call hangs on board 2")
    status, answer = d.ask("POST", "/v1/gpus/1/release")
    t.ok(status == 409 and node.board(2)["uuid"] in json.dumps(answer) and "hangs" in json.dumps(answer),
         "a release of board 1 is refused, and names board 2", (status, answer))
    t.equal(gpu(d, 1)["cap"]["state"], "held", "it stays held")
    t.equal(node.board(1)["limit_mw"], 200000, "its cap in force")
    node.fault(2, "release")
    t.ok(uwtest.wait_for(lambda: release(node, 1).returncode == 0, 20), "once it answers, board 1 is released",
         d.log())
    t.equal(node.sim("reset", "1").returncode, 0, "and can be reset")
    t.equal(release(node, "--take-back", 1).returncode, 0, "taken back")
    t.ok(becomes(node, 1, 200000), "its cap is in force again")


def held_locally(node, d):
    """A command without the daemon has a cap on the board: its release is refused, and changes nothing."""
    args = ("--local", "--cap", "240 W", "--gpus", "3")
    local = node.popen("underwatt", "run", *args, "--", "underwatt-sim", "train", "--gpus", "3", "--epochs", "99")
    t.ok(becomes(node, 3, 240000, 60), "a local run holds its cap on board 3")
    says = f"held by underwatt (pid {local.pid}, {uwtest.USER}), original 300 W"
    t.ok(uwtest.wait_for(lambda: gpu(d, 3)["cap"]["holder"] == says), "the daemon knows", gpu(d, 3)["cap"])
    for args in ({}, {"user": 61003, "group": 61003, "extra_groups": []} if os.geteuid() == 0 else {}):
        p = node.run("underwatt", "explain", "3", **args)
        t.ok(f" W: {says}" in p.stdout and "original   300 W" in p.stdout and "found at the start" not in p.stdout,
             "explain names the command that holds the board, and its original", p.stdout + p.stderr)
    p = node.run("underwatt", "cap", "show", "--gpus", "3", "--json", "-")
    board = json.loads(p.stdout)["boards"][0]
    t.ok(board["holder_pid"] == local.pid and board["original_mw"] == ORIGINAL and board["why"].endswith(f" W: {says}"),
         "and so does cap show", p.stdout + p.stderr)
    p = release(node, 3)
    t.ok(p.returncode == 1 and f"release: GPU 3: held by underwatt (pid {local.pid}, {uwtest.USER}), original 300 W: end that" in p.stderr and
         p.stderr.count("\n") == 1 and not p.stdout, "a release is refused in one line, which names the command", p.stdout + p.stderr)
    t.equal(node.board(3)["limit_mw"], 240000, "the cap stays")
    g = gpu(d, 3)
    t.ok(g["cap"]["state"] != "released", "the board is not released", g["cap"])
    local.terminate()
    local.wait(uwtest.PATIENCE)
    t.ok(becomes(node, 3, ORIGINAL), "the run ends, its cap with it")
    p = release(node, 3)
    t.equal(p.returncode, 0, f"then it is released {p.stderr}")
    p = node.run("underwatt", "run", "--cap", "240 W", "--gpus", "3", "--", "sh", "-c", "echo CMD starts >&2")
    t.ok(p.stderr.startswith("underwatt: not capped: GPU 3: released by an administrator at ") and
         p.stderr.splitlines()[1] == "CMD starts", "a run says so before CMD starts", p.stderr)
    t.equal(node.sim("reset", "3").returncode, 0, "and can be reset")
    t.equal(release(node, "--take-back", 3).returncode, 0, "taken back")
    t.ok(uwtest.wait_for(lambda: gpu(d, 3)["power_w"] is not None, 20), "and there again")


def others(node, d):
    """Who is no administrator has no business with it."""
    for args in ((3,), ("--take-back", 3)):
        p = node.run("underwatt", "release", *map(str, args), user=61003, group=61003, extra_groups=[])
        t.ok(p.returncode != 0 and "administrators" in p.stderr, "another user may not", p.stderr)
    t.equal(node.sim("reset", "3").returncode, 1, "nothing was let go of")


def main():
    def whole():
        with uwtest.Node(count=4) as node:
            d = node.daemon(CONFIG)
            back_and_forth(node, d)
            job_goes_on(node, d)
            books(node, d)

    def troubled():
        with uwtest.Node(count=4) as node:
            d = node.daemon(CONFIG)
            held_locally(node, d)
        with uwtest.Node(count=4) as node:
            d = killed(node)
            hanging(node, d)
            if os.geteuid() == 0:
                others(node, d)
            else:
                t.skip("rights of others", "only root can become somebody else")
    uwtest.together(whole, troubled)
    t.done()


main()
