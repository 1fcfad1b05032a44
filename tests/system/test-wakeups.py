#!/usr/bin/python3
"""How often the daemon's threads wake up: one wake-up of the boards' thread for a round of
all boards, and the loop for several rounds; its timers and a client's connection join
these, and the actuator hears little where nothing is held."""
import pathlib
import re
import socket
import time

import uwtest

t = uwtest.Tap()
SECONDS = 10
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


with uwtest.Node(board="v100", count=8) as node:
    d = node.daemon(CONFIG)
    time.sleep(8)  # the meters have proved their counters
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(d.socket)
        client.sendall(b"GET /v1/gpus HTTP/1.1\r\nHost: localhost\r\n\r\n")
        t.ok(client.recv(12) == b"HTTP/1.1 200", "a client is connected")
        for _ in range(4):  # on a busy machine threads wait for each other, too
            before, actuator, began = waits(d.pid), sum(waits(d.actuator.pid).values()), time.monotonic()
            time.sleep(SECONDS)
            took = time.monotonic() - began
            rate = {name: (n - before.get(name, 0)) / took for name, n in waits(d.pid).items()}
            actuator = (sum(waits(d.actuator.pid).values()) - actuator) / took
            if rate["underwattd"] <= 2.7:
                break
    t.ok(5 <= rate["shared"] <= 13, "10 rounds a second of the boards' thread", rate)
    t.ok(0.8 <= rate["underwattd"] <= 2.7, "one of the loop for those of a second, and its timers join it", rate)
    t.ok(actuator <= 1, "a renewal every 2 s", actuator)
t.done()
