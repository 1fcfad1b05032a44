"""A schedule: what happens to a world, and when.  A value: made from a seed by a pure
function, written and read as text, cut down by shrink.py, played by worlds.py (real
processes) and by tests/simulation/chaos-virtual.c (virtual time).

    # what it shows
    world starter
    seed 17
    with command run
    at 0.250 kill actuator
    after gone actuator +0.030 term starter

`at` counts seconds from the moment when all is set up; `after CONDITION +S` waits for the
condition (worlds.py has their table; real processes only), then S seconds.
"""
import dataclasses
import random

WORLDS = ("local", "daemon", "starter", "virtual")
REAL = WORLDS[:3]


class BadSchedule(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Event:
    at: float
    words: tuple  # the name first
    condition: tuple = ()  # at is counted from when it holds

    def text(self):
        when = f"after {' '.join(self.condition)} +{self.at:.3f}" if self.condition else f"at {self.at:.3f}"
        return f"{when} {' '.join(self.words)}"


@dataclasses.dataclass(frozen=True)
class Schedule:
    world: str
    seed: int = 1
    settings: tuple = ()  # (key, value)
    events: tuple = ()
    about: tuple = ()  # lines of comment

    def setting(self, key, default):
        return dict(self.settings).get(key, default)

    def having(self, events):
        return dataclasses.replace(self, events=tuple(events))

    def text(self):
        lines = [f"# {line}" for line in self.about]
        lines += [f"world {self.world}", f"seed {self.seed}"]
        lines += [f"with {k} {v}" for k, v in self.settings]
        return "\n".join(lines + [e.text() for e in self.events]) + "\n"


def read_event(words):
    condition = ()
    if words[0] == "after":
        plus = next(i for i, w in enumerate(words) if w.startswith("+"))
        condition, at, rest = tuple(words[1:plus]), float(words[plus][1:]), words[plus + 1:]
    else:
        at, rest = float(words[1]), words[2:]
    if not rest:
        raise ValueError
    return Event(at, tuple(rest), condition)


def read(text, name="schedule"):
    world, seed, settings, events, about = "", 1, [], [], []
    for n, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if line.startswith("#") and not world:
            about.append(line[1:].strip())
        if not words:
            continue
        try:
            if words[0] == "world" and words[1] in WORLDS:
                world = words[1]
            elif words[0] == "seed":
                seed = int(words[1])
            elif words[0] == "with":
                settings.append((words[1], words[2]))
            elif words[0] in ("at", "after"):
                event = read_event(words)
                check(event, world)
                events.append(event)
            else:
                raise ValueError
        except (ValueError, IndexError, StopIteration):
            raise BadSchedule(f"{name}:{n}: '{line.strip()}' is no line of a schedule") from None
        except BadSchedule as e:
            raise BadSchedule(f"{name}:{n}: {e}") from None
    if not world:
        raise BadSchedule(f"{name}: says no world")
    return Schedule(world, seed, tuple(settings), tuple(events), tuple(about))


# ---- the vocabulary ----

ROLES = {"local": ("command", "keeper", "actuator", "job"),
         "daemon": ("daemon", "actuator", "found-job"),
         "starter": ("starter", "daemon", "keeper", "actuator", "command", "job", "found-job"),
         "virtual": ("daemon", "actuator")}


LONG_S = 11


def role(rng, world):
    return rng.choice(ROLES[world])


def board(rng, world):
    return str(rng.randrange(8 if world == "virtual" else 4))


def seconds(rng, most):
    return f"{rng.uniform(0.2, most):.1f}"


def draw_kill(rng, world):
    who = role(rng, world)
    later = []
    if world in ("daemon", "virtual") and who != "found-job":
        later = [(rng.uniform(0.2, 6 if rng.random() < 0.6 else 25 if world == "virtual" else 6), ("start", who))]
    return [(0, ("kill", who)), *later]


def draw_stop(rng, world):
    who = role(rng, world) if world != "virtual" else "daemon"
    events = [(0, ("stop", who))]
    if world == "virtual":
        events.append((rng.uniform(0.2, 7), ("go-on", who)))
    elif rng.random() < 0.8:  # some stops are longer than lease and watchdogs
        events.append((LONG_S if rng.random() < 0.15 else rng.uniform(0.2, 4), ("go-on", who)))
    return events


def draw_end(rng, world):
    who = {"local": "command", "virtual": "daemon"}.get(world) or rng.choice(("daemon", "actuator"))
    later = [(rng.uniform(0.2, 6), ("start", who))] if world in ("daemon", "virtual") else []
    return [(0, ("term", who)), *later]


def draw_fault(rng, world):
    kinds = ["lose", "refuse"] + (["hang"] if world == "virtual" and rng.random() < 0.15 else [])
    most = 20 if world == "virtual" else 4
    return [(0, (rng.choice(kinds), board(rng, world), str(rng.randint(1, most))))]


def draw_limit(rng, world):
    return [(0, ("limit", board(rng, world), f"{rng.randint(150, 249)}.3"))]  # never one of ours


def draw_disk(rng, world):
    return [(0, ("fill-disk",)), (rng.uniform(1, 16 if world == "virtual" else 4), ("free-disk",))]


def draw_clock(rng, world):
    days = rng.choice((400, -400, 1, -1))
    events = [(0, ("clock", str(days)))]
    if rng.random() < 0.5:
        events.append((rng.uniform(0.5, 20 if world == "virtual" else 3), ("clock", str(-days))))
    return events


def draw_claim(rng, world):
    if world != "virtual":
        return [(0, ("claim", "3", str(rng.randint(151, 290)), seconds(rng, 3)))]
    who = rng.choice(("root", "anna"))
    forever = who == "root" and rng.random() < 0.4
    what = f"{300 + 15 * rng.randrange(80)}MHz" if rng.random() < 0.33 else f"{150 + rng.randrange(100)}W"
    return [(0, ("claim", board(rng, world), rng.choice(("soft", "named", "hard")), what,
                 "0" if forever else str(rng.randint(3, 62)), who))]


def draw_job(rng, world):
    return [(0, ("job", str(rng.randrange(5)), board(rng, world), rng.choice(("found", "search"))))]


def draw_configure(rng, _):
    return [(0, ("configure", rng.choice(("yield", "reassert")), str(int(rng.random() < 0.25)),
                 str(rng.randint(1, 20)), str(rng.randint(1, 4))))]


def draw_ledger(rng, world):
    what = rng.choice(("remove", "replace", "read-only"))
    return [(0, ("ledger", what)), (rng.uniform(0.5, 4), ("ledger", "writable"))][:2 if what == "read-only" else 1]


def plain(*words):
    return lambda rng, world: [(0, words)]


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    worlds: dict  # how often it is drawn in each; 0: in written schedules only
    arguments: str
    draw: object
    holds: str  # afterwards


ALWAYS = "an original is back within its bound once nobody is there who may hold it"
KINDS = (
    Kind("kill", {"local": 6, "daemon": 5, "starter": 6, "virtual": 9}, "ROLE", draw_kill, ALWAYS),
    Kind("stop", {"local": 6, "daemon": 4, "starter": 4, "virtual": 4}, "ROLE", draw_stop, ALWAYS),
    Kind("go-on", {"local": 0, "daemon": 0, "starter": 0, "virtual": 0}, "ROLE", None, ALWAYS),
    Kind("term", {"local": 1, "daemon": 2, "starter": 1, "virtual": 2}, "ROLE", draw_end,
         "it ends within its bound; status 0: what it held has its original at that moment"),
    Kind("start", {"daemon": 0, "starter": 0, "virtual": 0}, "ROLE", None,
         "what the dead one left is restored or taken over; no claim is lost"),
    Kind("upgrade", {"daemon": 1, "starter": 1}, "daemon (SIGUSR2)", plain("upgrade", "daemon"),
         "caps stay, claims and jobs are the same"),
    Kind("reload-config", {"daemon": 1, "starter": 1}, "daemon (SIGHUP)", plain("reload-config", "daemon"),
         "nothing changes"),
    Kind("recover", {"local": 0}, "(underwatt-actuator --recover)", None,
         "0: originals in force, or another's; else the board is named and the entry kept"),
    Kind("clear", {"local": 1}, "(underwatt cap clear --local)", plain("clear"), "0: originals in force; else it says why"),
    Kind("damage-entry", {"local": 0}, "BOARD", None, "no recovery says 0 while our limit is in force"),
    Kind("claim", {"daemon": 1, "starter": 1, "virtual": 24}, "BOARD W S, or BOARD KIND W|MHZ S USER", draw_claim,
         "it ends in time"),
    Kind("withdraw", {"virtual": 12}, "N", lambda r, w: [(0, ("withdraw", str(r.randrange(256))))],
         "a claim that was withdrawn is not in force"),
    Kind("job", {"virtual": 12}, "N BOARD found|search", draw_job, "no job twice; sums are equal"),
    Kind("lose", {"local": 1, "daemon": 1, "starter": 1, "virtual": 5}, "BOARD S", draw_fault, ALWAYS),
    Kind("refuse", {"local": 0, "daemon": 0, "starter": 0, "virtual": 0}, "BOARD S", None, ALWAYS),
    Kind("hang", {"virtual": 0}, "BOARD S", None, ALWAYS),
    Kind("limit", {"local": 1, "daemon": 1, "starter": 1, "virtual": 3}, "BOARD W (another writer)", draw_limit,
         "theirs stays, or ours as configured; never a third"),
    Kind("reload", {"local": 1, "daemon": 1, "starter": 1, "virtual": 3}, "(the driver)", plain("reload"), ALWAYS),
    Kind("reboot", {"virtual": 2}, "", plain("reboot"), "claims of another boot are gone"),
    Kind("release", {"virtual": 3}, "BOARD S", lambda r, w: [(0, ("release", board(r, w), seconds(r, 20)))],
         "the board has its original"),
    Kind("configure", {"virtual": 3}, "yield|reassert HOLD YIELD_S REASSERT_S", draw_configure, "nothing is lost"),
    Kind("fill-disk", {"daemon": 1, "starter": 1, "virtual": 3}, "", draw_disk,
         "the daemon answers; caps hold; sums are equal"),
    Kind("free-disk", {"daemon": 0, "starter": 0, "virtual": 0}, "", None, "rows are written again"),
    Kind("ledger", {"daemon": 1, "starter": 1}, "remove|replace|read-only|writable", draw_ledger,
         "the daemon answers; caps hold"),
    Kind("clock", {"daemon": 1, "virtual": 3}, "DAYS (UTC jumps)", draw_clock, "no claim ends for it; sums are equal"),
)
KIND = {k.name: k for k in KINDS}


def check(event, world):
    kind = KIND.get(event.words[0])
    if not kind or world not in kind.worlds:
        raise BadSchedule(f"'{event.words[0]}' is no event of a {world or '?'} world")
    if kind.arguments == "ROLE" and event.words[1:] not in [(r,) for r in ROLES[world]]:
        raise BadSchedule(f"'{' '.join(event.words)}': {event.words[0]} takes one of {', '.join(ROLES[world])}")


# ---- from a seed ----

def settings_of(rng, world):
    if world == "local":
        return (("command", rng.choice(("run", "cap"))),)
    if world == "virtual":
        return (("boards", str(2 + rng.randrange(3) + (rng.randrange(5) if rng.random() < 0.25 else 0))),
                ("ends", rng.choice(("dead", "alive"))))
    return ()


EVENTS = {"local": (1, 4), "daemon": (2, 5), "starter": (2, 5), "virtual": (24, 24)}


def generate(world, seed):
    """The schedule of that seed.  Pure."""
    rng = random.Random(f"{world} {seed}")
    settings = settings_of(rng, world)
    kinds = [k for k in KINDS if k.worlds.get(world)]
    weights = [k.worlds[world] for k in kinds]
    now, events = 0.0, []
    for _ in range(rng.randint(*EVENTS[world])):
        kind = rng.choices(kinds, weights)[0]
        events += [Event(round(now + later, 3), words) for later, words in kind.draw(rng, world)]
        if world == "virtual":
            now += 0 if rng.random() < 0.33 else rng.uniform(0.1, 3.1)
        else:
            now += rng.choice((0, 0.03, 0.1, rng.uniform(0, 1)))
    events.sort(key=lambda e: e.at)
    if world == "virtual":  # what began before the end is over after it
        events = [e for e in events if e.at <= now + 30]
    return Schedule(world, seed, settings, tuple(events))
