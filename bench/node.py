#!/usr/bin/python3
"""What the daemon costs and how fast it is, on a simulated node.

    build/bench/node [--json FILE] [--seconds N] [--claims N] [--scrapes N] [--no-realtime]
                     [--busy N]

Prints one JSON object: processor and memory of underwattd and underwatt-actuator with
8 boards at 10 Hz, four jobs and a scrape every 5 s; driver calls a board and second at
rest and under a search; claim to actuator over N claims; an over-budget claim to eight
written limits with 32 ms a driver call; /metrics with 8 jobs; the load without following
what the jobs do (phases).  Beside it, where they can
be had: Zeus' PowerMonitor and a poller in nvidia-smi's manner over the same boards at the
same rate (zeus, polling), and zeusd with the same request; /metrics with 64 boards (metrics).
Everything is measured from outside the programs; the boards are simulated.  --json FILE has
each part as soon as it ends; a part that fails leaves the reason there, and the exit status is 1.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import platform
import re
import signal
import socket
import subprocess
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve()
BUILD = HERE.parents[1] if (HERE.parents[1] / "build.ninja").exists() else HERE.parents[1] / "build"
os.environ.setdefault("UNDERWATT_BUILD", str(BUILD))
SOURCE = next(p for p in (HERE.parents[1], *HERE.parents, pathlib.Path.cwd())
              if (p / "tests/system/uwtest.py").exists())
sys.path.insert(0, str(SOURCE / "tests/system"))
import uwtest  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
CONFIG = """
sampling:
  rest: 100 ms
  job: 100 ms
  search: 100 ms
api:
  limits:
    requests: 100000
"""
PERIOD_S = 0.1
POWER_MONITOR = """
import time
from zeus.monitor.power import PowerMonitor
if __name__ == "__main__":
    m = PowerMonitor(gpu_indices=list(range(8)), update_period=%s)
    print("ready", flush=True)
    time.sleep(100000)
"""
QUICK = "api:\n  limits:\n    requests: 100000\n"


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine():
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release()}


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def ask(conn, method, path, body=None):
    conn.request(method, path, json.dumps(body) if body is not None else None,
                 {"Content-Type": "application/json"} if body is not None else {})
    r = conn.getresponse()
    text = r.read().decode()
    if r.status >= 300:
        raise RuntimeError(f"{method} {path}: {r.status} {text}")
    return json.loads(text) if "json" in (r.getheader("Content-Type") or "") else text


def cpu_s(pids, children=False):
    """Processor time so far; children: with that of the children it has waited for."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
        if children:
            total += int(fields[13]) + int(fields[14])
    return total / TICK


def thread_cpu_s(pid):
    """Processor time of the live threads by name, with a resolution of one nanosecond."""
    out = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name, ns = (task / "comm").read_text().strip(), int((task / "schedstat").read_text().split()[0])
        out[name] = out.get(name, 0) + ns * 1e-9
    return out


def wakeups(pid):
    """Voluntary context switches of all its threads."""
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (t / "status").read_text(), re.M).group(1))
               for t in pathlib.Path(f"/proc/{pid}/task").iterdir())


def tree(pid):
    """The process and all its descendants."""
    found, new = [], [pid]
    while new:
        found += new
        below = []
        for p in new:
            with contextlib.suppress(OSError):  # it has exited
                below += [int(k) for t in pathlib.Path(f"/proc/{p}/task").iterdir()
                          for k in (t / "children").read_text().split()]
        new = below
    return found


def end(child):
    """Kills the program and all its descendants."""
    for pid in tree(child.pid):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    child.wait()


def pss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))


def calls(conn):
    """Driver calls of all boards so far."""
    text = ask(conn, "GET", "/metrics")
    return sum(float(m) for m in re.findall(r"^underwatt_driver_calls_total\{.*\} (\S+)$", text, re.M))


def programs(d):
    return {"underwattd": d.pid, "underwatt-actuator": d.actuator.pid}


@contextlib.contextmanager
def busy_node():
    """8 boards and four jobs with two boards each, every job in its own session."""
    with uwtest.Node(board="v100", count=8) as node:
        for i in range(4):
            node.train("--gpus", f"{2 * i},{2 * i + 1}", "--epochs", "1000", start_new_session=True)
        yield node


def load(seconds, more=""):
    """Processor and memory under this load; more: additional configuration."""
    with busy_node() as node:
        d = node.daemon(CONFIG + more)
        conn = Local(d.socket)
        time.sleep(10)  # until the jobs are found and the meters have verified their counters
        pids = programs(d)
        before, began = {n: thread_cpu_s(p) for n, p in pids.items()}, time.monotonic()
        n_calls, woken = calls(conn), sum(wakeups(p) for p in pids.values())
        for _ in range(max(1, int(seconds / 5))):
            time.sleep(5)
            ask(conn, "GET", "/metrics")
        took = time.monotonic() - began
        woken = sum(wakeups(p) for p in pids.values()) - woken
        used = {n: {t: s - before[n].get(t, 0) for t, s in thread_cpu_s(p).items()} for n, p in pids.items()}
        jobs = len(ask(conn, "GET", "/v1/jobs")["jobs"])
        if jobs != 4:
            raise RuntimeError(f"four jobs were started, {jobs} are known")
        each = {n: round(100 * sum(t.values()) / took, 3) for n, t in used.items()}
        return {"seconds": round(took, 1), "jobs": jobs, "load_average": round(os.getloadavg()[0], 2),
                "core_percent": each,
                "core_percent_all": round(100 * sum(sum(t.values()) for t in used.values()) / took, 3),
                "core_percent_threads": {t: round(100 * s / took, 3) for t, s in used["underwattd"].items()
                                         if s > 1e-5 * took},
                "wakeups_per_s": round(woken / took, 1),
                "pss_mib": {n: round(pss_kib(p) / 1024, 2) for n, p in pids.items()},
                "pss_mib_all": round(sum(pss_kib(p) for p in pids.values()) / 1024, 2),
                "driver_calls_per_gpu_s": round((calls(conn) - n_calls) / took / 8, 2)}


def phases(seconds):
    """The cost of following what jobs do: with and without it, one after the other."""
    return {"on": load(seconds), "off": load(seconds, "jobs:\n  phases: false\n")}


def watched(node, seconds, *argv, children=False, ready=None):
    """Processor and memory of a program and all its descendants over the same boards."""
    child = node.popen(*argv, stdout=subprocess.PIPE if ready else subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if ready and child.stdout.readline().strip() != ready:
        raise RuntimeError(f"{argv[0]} did not start")
    time.sleep(5)
    pids = tree(child.pid)
    before, began = cpu_s(pids[:1] if children else pids, children), time.monotonic()
    pss = []
    for _ in range(10):
        time.sleep(seconds / 10)
        try:
            pss.append(sum(pss_kib(p) for p in tree(child.pid)))
        except (OSError, AttributeError):
            pass  # one of them has exited
    took = time.monotonic() - began
    used = cpu_s(pids[:1] if children else pids, children) - before
    end(child)
    return {"core_percent": round(100 * used / took, 3), "processes": len(pids),
            "pss_mib": round(sorted(pss)[len(pss) // 2] / 1024, 2) if pss else None,
            "load_average": round(os.getloadavg()[0], 2)}


def zeus(seconds):
    """Zeus' PowerMonitor at the same rate: only power, no jobs, no energy by job."""
    python = uwtest.venv(*uwtest.ZEUS)
    if not python:
        return {"skipped": "no zeus: the package registry is out of reach"}
    with busy_node() as node:
        script = os.path.join(node.tmp, "monitor.py")
        pathlib.Path(script).write_text(POWER_MONITOR % PERIOD_S)
        return watched(node, seconds, python, script, ready="ready")


def polling(seconds):
    """Pollers like nvidia-smi at the same rate: one long-running process, and one process for each query."""
    tool = pathlib.Path(os.environ["UNDERWATT_BUILD"]) / "bench" / "polling"
    if not tool.exists():
        return {"skipped": f"{tool} is not built"}
    with busy_node() as node:
        loop = f"while :; do {tool} 0 1; sleep {PERIOD_S}; done"
        return {"long_lived": watched(node, seconds, tool, round(1000 * PERIOD_S)),
                "one_a_query": watched(node, seconds, "sh", "-c", loop, children=True)}


def need(seconds):
    """Driver calls a board and second at rest and under a search, default rates."""
    with uwtest.Node(board="v100", count=2) as node:
        d = node.daemon(QUICK)
        conn = Local(d.socket)
        time.sleep(20)
        n, began = calls(conn), time.monotonic()
        time.sleep(seconds)
        rest = (calls(conn) - n) / (time.monotonic() - began) / 2
        run = node.popen("underwatt", "run", "--goal", "edp", "--quiet", "--", "underwatt-sim", "train",
                         "--gpus", "0,1", "--epochs", "1000")
        time.sleep(20)
        n, began = calls(conn), time.monotonic()
        time.sleep(seconds)
        search = (calls(conn) - n) / (time.monotonic() - began) / 2
        states = [j["search"]["state"] for j in ask(conn, "GET", "/v1/jobs")["jobs"] if j["search"]]
        run.kill()
        return {"rest_calls_per_gpu_s": round(rest, 2), "search_calls_per_gpu_s": round(search, 2),
                "search_state": states}


def steal_s():
    """Time in which the machine itself got no processor, summed over both cores."""
    return int(pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / TICK


def latency(claims, scrapes, realtime=True):
    """Latency of a claim to the actuator's socket; /metrics with 8 boards and 8 jobs."""
    quick = QUICK + ("" if realtime else "node: {realtime: false}\n")
    tool = pathlib.Path(os.environ["UNDERWATT_BUILD"]) / "bench" / "node-latency"
    with uwtest.Node(board="v100", count=8) as node:
        door = os.path.join(node.tmp, "door.sock")
        first = node.daemon(QUICK)
        uuids = [g["uuid"] for g in ask(Local(first.socket), "GET", "/v1/gpus")["gpus"]]
        first.stop_daemon() if hasattr(first, "stop_daemon") else first.stop()
        d = node.daemon(quick + f"actuator:\n  socket: {door}\ncaps:\n  always_hold: true\n", wait=False)
        t = subprocess.Popen([str(tool), d.actuator_socket, door, d.socket, str(claims), str(scrapes), *uuids],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert t.stdout.readline().strip() == "ready"
        uwtest.wait_for(lambda: os.path.exists(d.socket), 20)
        conn = Local(d.socket)
        uwtest.wait_for(lambda: all(g["cap"]["state"] == "held" for g in ask(conn, "GET", "/v1/gpus")["gpus"]), 20)
        sleepers = [subprocess.Popen(["sleep", "10000"]) for _ in range(8)]
        try:
            for i, s in enumerate(sleepers):
                ask(conn, "POST", "/v1/jobs", {"name": f"bench-{i}", "gpus": [i], "pid": s.pid})
            stolen, began = steal_s(), time.monotonic()
            out, _ = t.communicate("go\n", timeout=60 + claims * 0.05 + scrapes * 0.05)
        finally:
            for s in [*sleepers, t]:
                s.kill()
                s.wait()
        took = time.monotonic() - began
        return {**json.loads(out.splitlines()[-1]),
                "daemon_class": re.search(r"event=ready .*class=(\w+)", d.log()).group(1),
                "load_average": round(os.getloadavg()[0], 2),
                "steal_percent": round(100 * (steal_s() - stolen) / took / os.cpu_count(), 2)}


def ahead(pid):
    """Gives all its threads a priority above the normal class; False: not permitted."""
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(tid), os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        return False
    return True


@contextlib.contextmanager
def busy_processors(n):
    """Starts so many programs that compute."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for child in loops:
            child.kill()
            child.wait()


def over_budget(rounds, realtime=True, busy=0):
    """Makes hard claims on eight boards at once and waits until all eight limits were written and read back.

    The simulator, which stands in for the driver, and this client run at a higher priority if permitted, because their
    waits are not the daemon's.
    """
    text = "boards:\n" + "  - {model: v100, count: 8}\n" + "set_latency: 32 ms\n"
    with contextlib.ExitStack() as stack, uwtest.Node(machine=text) as node:
        quick = QUICK + ("" if realtime else "node: {realtime: false}\n")
        d = node.daemon(quick + "caps:\n  always_hold: true\n", rules=f"realtime: {str(realtime).lower()}\n")
        conn = Local(d.socket)
        uwtest.wait_for(lambda: all(g["cap"]["state"] == "held" for g in ask(conn, "GET", "/v1/gpus")["gpus"]), 30)
        times, alone = [], ahead(node.pid) and ahead(os.getpid())
        stack.callback(lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)))
        stack.enter_context(busy_processors(busy))
        for k in range(rounds):
            want = 150000 + 1000 * (k % 20)
            time.sleep(0.3)
            began = time.monotonic()
            ids = [ask(conn, "POST", "/v1/claims", {"gpu": i, "kind": "hard", "cap": f"{want} mW", "for": "60 s",
                                                    "why": "budget"})["id"] for i in range(8)]
            while {g["limits"]["enforced_mw"] for g in ask(conn, "GET", "/v1/gpus")["gpus"]} != {want} and \
                    time.monotonic() < began + 5:
                time.sleep(0.0002)  # the daemon reports the value that was read back
            times.append(1000 * (time.monotonic() - began))
            for i in ids:
                ask(conn, "DELETE", f"/v1/claims/{i}")
        times.sort()
        return {"rounds": rounds, "p50_ms": round(times[rounds // 2], 2), "max_ms": round(times[-1], 2),
                "over_50_ms": sum(ms > 50 for ms in times), "realtime": realtime, "busy": busy,
                "simulator_and_client_ahead": alone, "load_average": round(os.getloadavg()[0], 2)}


def stats(ms):
    ms.sort()
    return {"n": len(ms), "p50_ms": round(ms[len(ms) // 2], 3), "p99_ms": round(ms[len(ms) * 99 // 100], 3)}


def timed(path, request, n):
    conn, ms = Local(path), []
    for _ in range(n):
        began = time.monotonic()
        ask(conn, "GET", request)
        ms.append(1000 * (time.monotonic() - began))
    return stats(ms)


def zeusd(n):
    """The same request in the same world, to zeusd and to our socket in zeusd's protocol."""
    program = uwtest.zeusd()
    if not program:
        return {"skipped": uwtest.zeusd_missing()}
    with uwtest.Node(board="v100", count=8) as node:
        ours = os.path.join(node.tmp, "zeus.sock")
        theirs = os.path.join(node.tmp, "zeusd.sock")
        d = node.daemon(QUICK + f"zeusd:\n  socket: {ours}\n")
        # It logs each request and would block on a full pipe.
        child = node.popen(program, "serve", "--mode", "uds", "--socket-path", theirs, "--enable", "gpu-read",
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        uwtest.wait_for(lambda: os.path.exists(theirs) and os.path.exists(ours), 20)
        request = "/gpu/get_power"
        out = {}
        for name, path, pids in (("zeusd", theirs, [child.pid]), ("underwattd", ours, [d.pid])):
            before = cpu_s(pids)
            out[name] = timed(path, request, n)
            out[name]["cpu_ms_per_request"] = round(1000 * (cpu_s(pids) - before) / n, 4)
            out[name]["pss_mib"] = round(sum(pss_kib(p) for p in pids) / 1024, 2)
        return {"request": f"GET {request}", **out, "load_average": round(os.getloadavg()[0], 2)}


def metrics(n):
    """Time and size of /metrics with 64 boards."""
    with uwtest.Node(board="v100", count=64) as node:
        d = node.daemon(QUICK)
        # unknown values have no series
        text = uwtest.wait_until(lambda: ask(Local(d.socket), "GET", "/metrics"),
                                 lambda m: len(re.findall(r"^underwatt_gpu_power_watts\{", m, re.M)) == 64)
        before = cpu_s([d.pid])
        out = timed(d.socket, "/metrics", n)
        boards = len(re.findall(r"^underwatt_gpu_info\{", text, re.M))
        return {**out, "boards": boards, "bytes": len(text.encode()), "bytes_per_board": round(len(text.encode()) / max(boards, 1)),
                "cpu_ms_per_request": round(1000 * (cpu_s([d.pid]) - before) / n, 4), "load_average": round(os.getloadavg()[0], 2)}


def keep(path, result):
    """Writes the results so far, atomically."""
    new = pathlib.Path(path + ".new")
    new.write_text(json.dumps(result, indent=2) + "\n")
    new.replace(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", default="-")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--claims", type=int, default=10000)
    p.add_argument("--scrapes", type=int, default=1000)
    p.add_argument("--no-realtime", action="store_true", help="latency, over_budget: ours in the normal class")
    p.add_argument("--busy", type=int, default=0, help="over_budget: so many programs compute meanwhile")
    p.add_argument("--only", default="", help="one of load, phases, zeus, polling, need, latency, over_budget, zeusd, metrics")
    a = p.parse_args()
    parts = {"load": lambda: load(a.seconds), "phases": lambda: phases(a.seconds / 2), "zeus": lambda: zeus(a.seconds / 2),
             "polling": lambda: polling(a.seconds / 2), "need": lambda: need(a.seconds / 2),
             "latency": lambda: latency(a.claims, a.scrapes, not a.no_realtime),
             "over_budget": lambda: over_budget(50, not a.no_realtime, a.busy),
             "zeusd": lambda: zeusd(a.scrapes), "metrics": lambda: metrics(a.scrapes)}
    if a.only and a.only not in parts:
        p.error(f"--only {a.only}: one of {', '.join(parts)} is wanted")
    result = {"machine": machine(), "simulated": True, "command": " ".join(sys.argv)}
    failed = False
    for name, part in parts.items():
        if a.only and name != a.only:
            continue
        say(f"{name} …")
        try:
            result[name] = part()
        except Exception as e:  # keep the other parts and go on
            traceback.print_exc()
            result[name] = {"failed": f"{type(e).__name__}: {e}"}
            failed = True
        say(json.dumps(result[name]))
        if a.json != "-":
            keep(a.json, result)
    if a.json == "-":
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    sys.exit(1 if failed else 0)


main()
