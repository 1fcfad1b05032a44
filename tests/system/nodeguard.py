"""Ends what a test has left of its simulated nodes when it was killed: uwtest.Node names each node on the standard input
of this program, which outlives the test by as long as that takes.

A line is "+" or "-" and a JSON list: state folder, runtime folder, temporary folder.
"""
import json
import os
import shutil
import signal
import sys
import time


def _words(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read().split(b"\0")
    except OSError:
        return []


def processes(state, runtime):
    """The world's own process, and what runs in it: their folders are in their arguments or their environment."""
    world, here = os.fsencode(state), os.fsencode(runtime)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        words = _words(pid, "cmdline")
        if any(a == b"--state" and b == world for a, b in zip(words, words[1:])):
            yield int(pid)
        elif any(v == b"UNDERWATT_SIM_STATE=" + world or v.startswith(b"XDG_RUNTIME_DIR=" + here) for v in _words(pid, "environ")):
            yield int(pid)


def end(state, runtime, tmp):
    quiet = 0
    while quiet < 2:    # who was just being started is seen at the second look
        found = list(processes(state, runtime))
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        quiet = 0 if found else quiet + 1
        time.sleep(0.1)
    for folder in (runtime, tmp):
        shutil.rmtree(folder, ignore_errors=True)


def main():
    nodes = set()
    for line in sys.stdin:
        node = tuple(json.loads(line[1:]))
        (nodes.add if line[0] == "+" else nodes.discard)(node)
    for node in nodes:
        end(*node)


if __name__ == "__main__":
    main()
