#!/usr/bin/python3
"""How often the daemon's threads wake up: one wake-up of the boards' thread for a round of
all boards, and the loop for several rounds."""
import pathlib
import re
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
    before, began = waits(d.pid), time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - began
    rate = {name: (n - before.get(name, 0)) / took for name, n in waits(d.pid).items()}
    t.ok(5 <= rate["shared"] <= 13, "10 rounds a second of the boards' thread", rate)
    t.ok(1 <= rate["underwattd"] <= 9, "less than one wake-up of the loop a round", rate)
t.done()
