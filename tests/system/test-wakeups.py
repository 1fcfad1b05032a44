#!/usr/bin/python3
"""How often the daemon's threads wake up: one wake-up of the boards' thread for a round of
all boards, and the loop for several rounds; its timers and a client's connection join
these, and the actuator hears little where nothing is held."""
import pathlib
import re
import socket
import statistics
import time

import uwtest

t = uwtest.Tap()
SECONDS, PARTS = 2, 9    # the median: a thread may not run in some parts
CONFIG = """
sampling:
  rest: 100 ms
  job: 100 ms
  search: 100 ms
"""


def waits(pid):
    """Times that the threads of it have waited, by the thread's name."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        n = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M).group(1))
        found[name] = found.get(name, 0) + n
    return found


def rates(d):
    """Waits a second of the daemon's threads by their names, and of the actuator."""
    before, began = (waits(d.pid), sum(waits(d.actuator.pid).values())), time.monotonic()
    time.sleep(SECONDS)
    after, took = (waits(d.pid), sum(waits(d.actuator.pid).values())), time.monotonic() - began
    return {**{name: (n - before[0].get(name, 0)) / took for name, n in after[0].items()}, "actuator": (after[1] - before[1]) / took}


with uwtest.Node(board="v100", count=8) as node:
    d = node.daemon(CONFIG)
    time.sleep(8)  # the meters have proved their counters
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(d.socket)
        client.sendall(b"GET /v1/gpus HTTP/1.1\r\nHost: localhost\r\n\r\n")
        t.ok(client.recv(12) == b"HTTP/1.1 200", "a client is connected")
        for _ in range(3):  # on a busy machine threads wait for each other, too
            seen = [rates(d) for _ in range(PARTS)]
            rate = {name: statistics.median(part.get(name, 0) for part in seen) for name in ("shared", "underwattd", "actuator")}
            rounds, loop, renewals = 5 <= rate["shared"] <= 13, 0.8 <= rate["underwattd"] <= 2.7, rate["actuator"] <= 1
            if rounds and loop and renewals:
                break
    t.ok(rounds, "10 rounds a second of the boards' thread", rate)
    t.ok(loop, "one of the loop for those of a second, and its timers join it", rate)
    t.ok(renewals, "a renewal every 2 s", rate)
t.done()
