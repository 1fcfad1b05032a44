"""Make a failing schedule smaller: fewer events first, then plainer times."""
import dataclasses
import time


def fewer(schedule, fails, until):
    """Delta debugging over the list of events (ddmin, complements only)."""
    events, n = list(schedule.events), 2
    while len(events) > 1 and time.monotonic() < until:
        size = -(-len(events) // n)
        for k in range(0, len(events), size):
            rest = events[:k] + events[k + size:]
            if time.monotonic() < until and fails(schedule.having(rest)):
                events, n = rest, max(n - 1, 2)
                break
        else:
            if size == 1:
                break
            n = min(2 * n, len(events))
    return schedule.having(events)


def sooner(schedule, fails, until):
    """Times: each gap to the event before gone, else a round number."""
    k = 0
    while k < len(schedule.events) and time.monotonic() < until:
        e = schedule.events[k]
        before = 0.0 if e.condition or k == 0 else schedule.events[k - 1].at
        for at in (before, round(e.at), round(e.at, 1)):
            if at >= e.at or at < before:
                continue
            moved = [x if i < k or x.condition else dataclasses.replace(x, at=max(0.0, round(x.at - (e.at - at), 3)))
                     for i, x in enumerate(schedule.events)]
            moved[k] = dataclasses.replace(e, at=float(at))
            if time.monotonic() < until and fails(schedule.having(moved)):
                schedule = schedule.having(moved)
                break
        k += 1
    return schedule


def shrink(schedule, fails, within_s):
    """The smallest schedule found in that time for which fails() is true still."""
    until = time.monotonic() + within_s
    if not fails(schedule.having(())):
        return sooner(fewer(schedule, fails, until), fails, until)
    return schedule.having(())
