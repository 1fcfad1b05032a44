#!/usr/bin/python3
"""Overhead of the command on the program it runs: its own start, the time until CMD starts, the time after
CMD's end, and the processor's share while CMD runs.

    bench/start.py [--base UNDERWATT] [--runs N]        the build's underwatt, in turn with another build's

Simulated boards (v100), without a daemon and with one.  Medians; JSON on stdout, with the load average.  A CMD of
--long seconds shows the end of a job whose last moments do not count.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests/system"))
import uwtest  # noqa: E402

CLOCK = ["/usr/bin/python3", "-S", "-E", "-c", "import time; print(time.clock_gettime(time.CLOCK_MONOTONIC))"]
MODES = {"measure": ["measure", "-q", "--gpus", "0", "--"], "run": ["run", "-q", "--gpus", "0", "--"]}


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def ms(seconds):
    return round(1e3 * statistics.median(seconds), 1)


def version(program):
    begin = now()
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
    return now() - begin


def once(node, program, words, seconds=0):
    """Seconds before CMD runs and after it; the first includes the start of CMD itself."""
    begin = now()
    clock = [*CLOCK[:-1], f"import time; t = time.clock_gettime(time.CLOCK_MONOTONIC); time.sleep({seconds}); "
                          "print(t, time.clock_gettime(time.CLOCK_MONOTONIC))"] if seconds else CLOCK
    p = subprocess.run(node.command([*([program] if program else []), *words, *clock]), env=node.env(),
                       stdout=subprocess.PIPE, text=True, check=True)
    ran = p.stdout.split()
    return float(ran[0]) - begin, now() - float(ran[-1])


def together(node, programs, words, seconds, runs):
    """Several long runs at once, because they only sleep."""
    jobs = [(name, program) for _ in range(runs) for name, program in programs.items()]
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        times = list(pool.map(lambda job: once(node, job[1], words, seconds), jobs))
    return {name: ms(t[1] for t, job in zip(times, jobs, strict=True) if job[0] == name) for name in programs}


def pairs_of(node, programs, words, runs, bare):
    """One run after the other, the programs in turn."""
    pairs = {name: [] for name in programs}
    for _ in range(runs):
        for name, program in programs.items():
            pairs[name].append(once(node, program, words))
    return {name: {"before CMD, ms": round(ms(p[0] for p in pair) - ms(bare), 1),
                   "after CMD, ms": ms(p[1] for p in pair)} for name, pair in pairs.items()}


def cpu(node, program, words, seconds):
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    before = used()
    subprocess.run(node.command([program, *words, "sleep", str(seconds)]), env=node.env(), check=True)
    return used() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--long", type=float, default=75)
    args = parser.parse_args()
    programs = {"here": uwtest.program("underwatt")} | ({"base": args.base} if args.base else {})
    out = {"load": os.getloadavg(), "runs": args.runs}
    with uwtest.Node(board="v100", count=4) as node:
        bare = [once(node, None, [])[0] for _ in range(args.runs)]
        out["CMD alone, ms"] = ms(bare)
        for program in programs.values():
            version(program)
        times = {name: [] for name in programs}
        for _ in range(args.runs):
            for name, program in programs.items():
                times[name].append(version(program))
        out["--version, ms"] = {name: ms(t) for name, t in times.items()}
        for mode, words in MODES.items():
            out[mode] = pairs_of(node, programs, words, args.runs, bare)
        out[f"measure of {args.long:g} s: after CMD, ms"] = together(node, programs, MODES["measure"], args.long, 5)
        short, long = 5, 25
        share = {}
        for name, program in programs.items():
            a, b = (cpu(node, program, MODES["run"], s) for s in (short, long))
            share[name] = {"% of a core": round(100 * (b - a) / (long - short), 2), "s until then": round(a, 3)}
        out["run, processor"] = share
        node.daemon()
        out["run with a daemon"] = pairs_of(node, programs, MODES["run"], args.runs, bare)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
