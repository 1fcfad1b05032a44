"""Random schedules of kills, stops, faults and other writers: see --help, docs/design/reliability.md."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import schedule
import shrink
import virtual

WRITTEN = pathlib.Path(__file__).resolve().parent / "schedules"
ABOUT = """
Play random kills, stops, restarts, full disks, other writers, lost boards, driver reloads and
clock jumps against Underwatt in a simulated world, and look after each round whether what must
hold does: originals back in time, no claim past its end, the ledger sound and its sums equal,
every sentence of a report true, nobody and no lock left over.
"""
MODES = """
modes: local (command, keeper, actuator), daemon (underwattd and its actuator; this tool stands for
the service manager), starter (underwatt-start), all (these three in turn); real processes, seconds a
round.  virtual (or --virtual): a whole node in virtual time, thousands of rounds a minute.

Round i has seed N + i; seed and mode make the schedule.  A failing one is cut down and printed as
text: put that into a file and give it to --play.  Its lines:
  world MODE              seed N              with KEY VALUE
  at SECONDS EVENT        after CONDITION +SECONDS EVENT
CONDITION (real processes): gone ROLE, stopped ROLE, back, limit BOARD W, entry.  EVENT:
"""
STATUS = """
exit status: 0 all passed, 1 some failed, 2 wrong arguments or schedules
"""


def vocabulary():
    """The table of events, as text."""
    lines = [f"  {k.name + ' ' + k.arguments:44} {', '.join(k.worlds)}" for k in schedule.KINDS]
    roles = [f"  {world:8} {', '.join(names)}" for world, names in schedule.ROLES.items()]
    return "\n".join([*lines, "ROLE:", *roles])


def arguments():
    p = argparse.ArgumentParser(prog="chaos", description=ABOUT, epilog=MODES + vocabulary() + STATUS,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1, metavar="N", help="of the first round (default 1)")
    p.add_argument("--rounds", type=int, default=20, metavar="M", help="how many (default 20)")
    p.add_argument("--mode", choices=(*schedule.WORLDS, "all"), default="all", help="default: all")
    p.add_argument("--virtual", action="store_const", const="virtual", dest="mode", help="as --mode virtual")
    p.add_argument("--written", action="store_true",
                   help="begin with the schedules of tests/chaos/schedules; they count as rounds")
    p.add_argument("--play", action="append", default=[], metavar="FILE", help="play this schedule ('-': standard input)")
    p.add_argument("--print", action="store_true", dest="only_print", help="print the schedules, play none")
    p.add_argument("--no-shrink", action="store_true", help="leave a failing schedule as it is")
    p.add_argument("--shrink-s", type=float, metavar="S", help="time for that (default: 60 virtual, 300 real)")
    p.add_argument("--jobs", type=int, metavar="J", help="rounds side by side (default: 3 real ones; virtual: processors)")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return p.parse_args()


def written(mode):
    found = []
    for path in sorted(WRITTEN.glob("*.chaos")):
        s = schedule.read(path.read_text(encoding="utf-8"), path.name)
        if s.world == mode or (mode == "all" and s.world in schedule.REAL):
            found.append((path.stem, s))
    return found


def world_of(mode, seed):
    return schedule.REAL[seed % 3] if mode == "all" else mode


def chosen(a):
    """(name, schedule) of each round."""
    if a.play:
        for path in a.play:
            text = sys.stdin.read() if path == "-" else pathlib.Path(path).read_text(encoding="utf-8")
            yield path, schedule.read(text, path)
        return
    first = written(a.mode)[:a.rounds] if a.written else []
    yield from first
    for seed in range(a.seed, a.seed + a.rounds - len(first)):
        world = world_of(a.mode, seed)
        yield f"{world} seed {seed}", schedule.generate(world, seed)


NOT_PLAYED = set()  # events that this machine cannot play, and why


def play_real(s):
    """What broke, "" if nothing: in a process of its own, which ends with all that it began."""
    with tempfile.NamedTemporaryFile("w", prefix="uw-chaos-", suffix=".chaos") as f:
        f.write(s.text())
        f.flush()
        try:
            p = subprocess.run([sys.executable, sys.argv[0], "--child", "--play", f.name], capture_output=True,
                               text=True, timeout=300, check=False, start_new_session=True)
        except subprocess.TimeoutExpired as e:
            return f"the round took more than {e.timeout:.0f} s"
    if p.returncode == 0:
        NOT_PLAYED.update(filter(None, p.stdout.splitlines()))
        return ""
    return p.stdout.strip() or f"the round's process ended with {p.returncode}: {p.stderr.strip()[-2000:]}"


def child(path):
    """One round with real processes, in this process."""
    import worlds  # pylint: disable=import-outside-toplevel  # asks for the build's programs
    why, not_played = worlds.play(schedule.read(pathlib.Path(path).read_text(encoding="utf-8"), path))
    print(why or "\n".join(sorted(not_played)))
    return 1 if why else 0


class Tool:
    def __init__(self, a, player):
        self.a, self.virtual = a, player
        self.passed = self.failed = 0
        self.began = self.told = time.monotonic()

    def play(self, s):
        return self.virtual.play(s) if s.world == "virtual" else play_real(s)

    def progress(self, of):
        if time.monotonic() > self.told + 15:
            self.told = time.monotonic()
            print(f"# {self.passed + self.failed} of {of} rounds, {self.failed} failed, "
                  f"{self.told - self.began:.0f} s", flush=True)

    def count(self, name, s, why, quiet=False):
        if not why:
            self.passed += 1
            if not quiet:
                print(f"ok {self.passed + self.failed} - {name}", flush=True)
            return
        self.failed += 1
        print(f"not ok {self.passed + self.failed} - {name}: {why.splitlines()[0]}")
        for line in why.splitlines()[1:]:
            print(f"#   {line}")
        if self.failed > 3 or self.a.no_shrink:
            self.show(s, "the schedule")
        else:
            self.cut_down(s, why)
        sys.stdout.flush()

    def cut_down(self, s, why):
        kind = kind_of(why)
        small = shrink.shrink(s, lambda x: kind_of(self.play(x)) == kind,
                              self.a.shrink_s or (60 if s.world == "virtual" else 300))
        self.show(small, f"the smallest schedule found ({len(small.events)} of {len(s.events)} events)")

    @staticmethod
    def show(s, what):
        print(f"# {what}; in a file: chaos --play FILE")
        for line in s.text().splitlines():
            print(f"    {line}")

    def all_virtual(self, rounds, of):
        names, numbers = {}, [0] * virtual.NUMBERS

        def schedules():
            for name, s in rounds:
                names[id(s)] = name
                yield s
        for s, why, told in self.virtual.chunks(schedules(), self.a.jobs or os.cpu_count() or 2):
            self.count(names.pop(id(s)), s, why, quiet=True)
            numbers = [n + t for n, t in zip(numbers, told)]
            self.progress(of)
        looks, calm, users, locked, lives = numbers
        took = time.monotonic() - self.began
        print(f"ok - {self.passed} rounds in virtual time: {looks} looks, {calm} at hard claims in peace, {users} at "
              f"users' claims, {locked} at locked clocks, {lives} deaths of the daemon; {took:.0f} s, {60 * of / took:.0f} rounds a minute")
        if of >= 200 and not self.failed and (calm < of / 8 or users < of / 8 or locked < of):
            self.failed += 1
            print("not ok - hardly anything was looked at: the schedules do not reach what they are for")

    def all_real(self, rounds, of):
        with concurrent.futures.ThreadPoolExecutor(self.a.jobs or 3) as pool:
            waiting = {pool.submit(play_real, s): (name, s) for name, s in rounds}
            for done in concurrent.futures.as_completed(waiting):
                name, s = waiting[done]
                self.count(name, s, done.result())
                self.progress(of)


def kind_of(why):
    """Two failures of the same kind differ in numbers only."""
    return re.sub(r"[0-9.]+", "#", why.partition("\n")[0])


def main(build):
    a = arguments()
    try:
        if a.child:
            return child(a.play[0])
        rounds = list(chosen(a)) if a.mode != "virtual" or a.play else None
    except (schedule.BadSchedule, OSError) as e:
        print(f"chaos: {e}", file=sys.stderr)
        return 2
    if a.only_print:
        for _, s in rounds or chosen(a):
            print(s.text())
        return 0
    tool = Tool(a, virtual.Virtual(os.path.join(build, "tests", "simulation", "chaos-virtual")))
    print(f"# seed {a.seed}, {len(a.play) or a.rounds} rounds", flush=True)
    if rounds is None:
        tool.all_virtual(chosen(a), a.rounds)
    else:
        real = [(name, s) for name, s in rounds if s.world != "virtual"]
        for name, s in rounds:
            if s.world == "virtual":
                tool.count(name, s, tool.play(s))
        tool.all_real(real, len(real))
    for line in sorted(NOT_PLAYED):
        print(f"# not played: {line}")
    print(f"{tool.passed} passed, {tool.failed} failed")
    return 1 if tool.failed else 0
