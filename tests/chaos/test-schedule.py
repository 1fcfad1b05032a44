#!/usr/bin/python3
"""Schedules as values: text and back, from a seed, cut down."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]
import schedule  # noqa: E402
import shrink  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()


def values():
    for world in schedule.WORLDS:
        made = [schedule.generate(world, seed) for seed in range(300)]
        t.ok(all(schedule.read(s.text()) == s for s in made), f"{world}: 300 schedules are the same from their text")
        t.ok(made == [schedule.generate(world, seed) for seed in range(300)] and len(set(made)) > 200,
             f"{world}: a seed makes one, others make others")
        drawn = {e.words[0] for s in made for e in s.events}
        missing = {k.name for k in schedule.KINDS if k.worlds.get(world)} - drawn
        t.ok(not missing, f"{world}: every event that can be drawn is", missing)
    pairs = {(a.words[0], b.words[0]) for seed in range(1000) for s in [schedule.generate("virtual", seed)]
             for a, b in zip(s.events, s.events[1:])}
    names = {a for a, _ in pairs}
    missing = {(a, b) for a in names for b in names} - pairs
    t.ok(len(missing) < len(names) ** 2 / 10, "1,000 in virtual time have nine of ten pairs of neighbours", sorted(missing))


def refusals():
    for line, says in (("at 1 frobnicate", "3: 'frobnicate' is no event"), ("at x kill job", "3: 'at x kill job'"),
                       ("at 1 reboot", "3: 'reboot' is no event of a local world"), ("at 1", "3: 'at 1'"),
                       ("at 1 kill daemon", "3: 'kill daemon': kill takes one of command, keeper"),
                       ("frob", "3: 'frob'"), ("after gone job kill job", "3: ")):
        try:
            schedule.read(f"world local\nseed 1\n{line}\n", "x")
            t.ok(False, f"'{line}' is refused")
        except schedule.BadSchedule as e:
            t.ok(str(e).startswith(f"x:{says}"), f"'{line}' is refused, with its line", e)
    try:
        schedule.read("seed 1\n", "x")
        t.ok(False, "one without a world is refused")
    except schedule.BadSchedule as e:
        t.ok("no world" in str(e), "one without a world is refused", e)


def cutting():
    """A failure that takes two events, one at least 2 s after the other."""
    def fails(s):
        kills = [e.at for e in s.events if e.words[0] == "kill"]
        reloads = [e.at for e in s.events if e.words[0] == "reload"]
        return any(r >= k + 2 for k in kills for r in reloads)
    found = [s for seed in range(200) for s in [schedule.generate("virtual", seed)] if fails(s)]
    small = [shrink.shrink(s, fails, 30) for s in found[:20]]
    t.ok(len(small) == 20 and all(fails(s) and len(s.events) == 2 for s in small), "20 are cut down to its two events",
         [s.text() for s in small])
    t.ok(all(s.events[0].at == 0 for s in small), "… from the start on", [s.text() for s in small])
    s = schedule.generate("virtual", 1)
    t.ok(shrink.shrink(s, lambda _: True, 30).events == (), "one that always fails needs no event")


values()
refusals()
cutting()
t.done()
