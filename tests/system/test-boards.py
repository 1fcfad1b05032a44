#!/usr/bin/python3
"""A hung or failing call on one board never delays another.

usage: test-boards.py BOARD-WATCH
"""
import os
import sys
import time

import uwtest

t = uwtest.Tap()
WATCH = sys.argv[1]


def watch(node, seconds, faults):
    """Lines of board-watch, with faults = [(at_s, words…)] on the way."""
    child = node.popen(WATCH, os.path.join(node.state, "lib", "libnvidia-ml.so.1"), seconds)
    t.equal(child.stdout.readline().split(), ["ready", "4"], "four boards are watched")
    begin = time.monotonic()
    for at, *words in faults:
        time.sleep(max(0, begin + at - time.monotonic()))
        node.fault(*words)
    out, err = child.communicate(timeout=30)
    t.equal(child.returncode, 0, f"the watch ends by itself {err}")
    calls = {b: [] for b in range(4)}
    for line in out.splitlines():
        board, asked, took, r = line.split()
        calls[int(board)].append((float(asked), float(took), int(r)))
    for list_ in calls.values():
        if list_ and list_[-1][2] == -125:  # under way when the watch ended (-ECANCELED)
            list_.pop()
    return calls


def others(calls, hurt, until_ms):
    """The boards beside the hurt one: results, the slowest call, the longest pause."""
    results, slowest, pause = set(), 0.0, 0.0
    for board, list_ in calls.items():
        if board == hurt:
            continue
        results |= {r for _, _, r in list_}
        slowest = max(slowest, max(took for _, took, _ in list_))
        ends = [0.0] + [asked + took for asked, took, _ in list_] + [until_ms]
        pause = max(pause, max(b - a for a, b in zip(ends, ends[1:])))
    return results, slowest, pause


# What a busy machine may cost; who waits for a call that hangs waits for 1,900 ms and more.
LATE_MS = 1500

with uwtest.Node(count=4) as node:
    calls = watch(node, 6, [(1, 2, "hang"), (4, 2, "release")])
    results, slowest, pause = others(calls, 2, 5900)
    t.equal(results, {0}, "board 2 hangs: every call on the others works")
    t.ok(slowest < LATE_MS, f"… the slowest takes {slowest:.0f} ms")
    t.ok(pause < LATE_MS, f"… the longest pause is {pause:.0f} ms")
    mine = [r for _, _, r in calls[2]]
    t.ok(-110 in mine, "… its own call runs into the deadline (-ETIMEDOUT)", mine)
    t.ok(-16 in mine, "… then it is busy, at once (-EBUSY)", mine)
    late = [r for asked, _, r in calls[2] if asked > 4800]
    t.ok(late and set(late) == {0}, "… and it works again once the call returned", late)
    timed_out = [took for _, took, r in calls[2] if r == -110]
    t.ok(all(1900 < took < 3000 for took in timed_out), "… the deadline is about 2 s", timed_out)

    calls = watch(node, 2, [(0.5, 1, "lost")])
    results, slowest, pause = others(calls, 1, 1900)
    t.equal(results, {0}, "board 1 is lost: every call on the others works")
    t.ok(max(slowest, pause) < LATE_MS, f"… none waits ({slowest:.0f} ms, {pause:.0f} ms)")
    t.ok(-19 in [r for _, _, r in calls[1]], "… its own fail (-ENODEV)")
    node.fault(1, "found")

    # From the start: the board that hangs while the library is opened.
    node.fault(3, "hang")
    begin = time.monotonic()
    calls = watch(node, 2, [])
    t.ok(time.monotonic() - begin < 8, "a board that hangs at the start costs a bounded wait")
    results, slowest, pause = others(calls, 3, 1900)
    t.equal(results, {0}, "… the others work")
    t.ok(max(slowest, pause) < LATE_MS, f"… and none waits ({slowest:.0f} ms, {pause:.0f} ms)")
    t.ok(0 not in [r for _, _, r in calls[3]], "… it does not")
    node.fault(3, "release")

t.done()
