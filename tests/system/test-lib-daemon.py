#!/usr/bin/python3
"""libunderwatt as a client of the daemon: a C99 program and Python's ctypes beside each other, in a simulated world.
Energies against those of local mode and the truth, whose boards, what a killed daemon and a killed program leave.
"""
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import tempfile
import time

import libuser
import uwtest

MACHINE = "name: exact\nboards: [{model: v100, count: 2, ideal: true}, {model: rtx6000, ideal: true}]\n"
ANNA = 20001
LOCAL, DAEMON = 1, 2


class Client:
    """A lib-client."""

    def __init__(self, node, exe, flags=0, **kw):
        self.child = node.popen(exe, os.path.join(node.state, "lib", "libnvidia-ml.so.1"), flags,
                                stdin=subprocess.PIPE, **kw)
        self.opened = self.line()

    def line(self):
        words = self.child.stdout.readline().rstrip("\n").split(" ", 1)
        return int(words[0] or -999), words[1] if len(words) > 1 else ""

    def tell(self, text):
        self.child.stdin.write(text + "\n")
        self.child.stdin.flush()

    def ask(self, text):
        self.tell(text)
        return self.line()

    def end(self, boards=3):
        self.tell("end")
        return self.ended(boards)

    def ended(self, boards=3):
        """(time, energy, half, method) a board, or (r, text)."""
        out = [self.line()]
        if out[0][0] < 0 and "GPU-" not in out[0][1] and "window any more" not in out[0][1]:
            return out
        out += [self.line() for _ in range(boards - 1)]
        return [(float(w[0]), float(w[1]), float(w[2]), w[3]) if r == 0 else (r, text)
                for r, text in out for w in [text.split(" ")]]

    def done(self):
        self.child.stdin.close()
        return self.child.wait(uwtest.PATIENCE), self.child.stderr.read()


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("nvml", ctypes.c_char_p), ("clock", ctypes.c_char_p),
                ("flags", ctypes.c_uint), ("socket", ctypes.c_char_p)]


class Energy(ctypes.Structure):
    _fields_ = [("time_s", ctypes.c_double), ("energy_j", ctypes.c_double), ("half_j", ctypes.c_double),
                ("power_w", ctypes.c_double), ("method", ctypes.c_char_p), ("why", ctypes.c_char * 96)]


class Python:
    """The library loaded into this process."""

    def __init__(self, socket):
        self.lib = ctypes.CDLL(str(libuser.LIBRARY))
        for name in ("uw_device_at", "uw_device_id"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.uw_device_id.restype = ctypes.c_char_p
        self.lib.uw_device_count.restype = ctypes.c_size_t
        self.err = ctypes.create_string_buffer(200)
        self.ctx, self.win = ctypes.c_void_p(), ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), None, None, DAEMON, os.fsencode(socket))
        self.opened = self.lib.uw_ctx_open(ctypes.byref(options), ctypes.byref(self.ctx), self.err)

    def device(self, i):
        return ctypes.c_void_p(self.lib.uw_device_at(self.ctx, ctypes.c_size_t(i)))

    def begin(self):
        return self.lib.uw_window_begin(self.ctx, ctypes.byref(self.win), self.err)

    def end(self):
        return self.lib.uw_window_end(self.win, self.err)

    def energy(self, i):
        e = Energy()
        r = self.lib.uw_window_energy(self.win, self.device(i), ctypes.byref(e), self.err)
        return r, e


def truth(node):
    return [(b["true_j"], b["at_ns"]) for b in node.status()["boards"]]


def agrees(t, node, d, exe):
    """One stretch of time, measured in four ways."""
    remote, local = Client(node, exe), Client(node, exe, LOCAL)
    py = Python(d.socket)
    t.equal((remote.opened, local.opened), ((0, "1 3"), (0, "0 3")), "the daemon where it runs, local mode where that is asked for")
    t.equal((py.opened, py.lib.uw_device_count(py.ctx)), (0, 3), f"from Python {py.err.value.decode()}")
    t.equal([py.lib.uw_device_id(py.device(i)).decode() for i in range(3)], [b["uuid"] for b in node.status()["boards"]],
            "the same boards in the same order")
    pid = remote.child.pid
    tasks = lambda: len(os.listdir(f"/proc/{pid}/task"))
    files = lambda: sorted(link for _, link in uwtest.fd_links(pid))
    before = files()
    learnt = time.monotonic() + 15  # local mode learns its sensors
    claims(t, node, d, exe)
    time.sleep(max(1, learnt - time.monotonic()))
    for seconds in (4, 25):
        began = time.monotonic()
        for c in (local, remote):
            c.tell("begin")
        t.equal((py.begin(), local.line(), remote.line()), (0, (0, ""), (0, "")), f"{seconds} s: windows begin")
        a = truth(node)
        time.sleep(seconds)
        b = truth(node)
        for c in (local, remote):
            c.tell("end")
        r = py.end()
        mine, yours = remote.ended(), local.ended()
        took = time.monotonic() - began
        t.equal(r, 0, f"{seconds} s: they end {py.err.value.decode()}")
        for i in range(3):
            watts = (b[i][0] - a[i][0]) / (b[i][1] - a[i][1]) * 1e9
            p = py.energy(i)[1]
            for name, (time_s, energy, half, method) in (("daemon", mine[i]), ("local", yours[i]),
                                                         ("Python", (p.time_s, p.energy_j, p.half_j, (p.method or b"").decode()))):
                # The truth is looked up a moment after the beginning and before the end, and the load has pauses.
                t.ok(seconds - 0.1 < time_s < took and abs(energy - watts * time_s) <= half + 300 * (time_s - seconds + 0.1),
                     f"{seconds} s, GPU {i}, {name}: {energy:.1f} J ± {half:.1f} J ({method}) in {time_s:.2f} s, true {watts:.1f} W")
            (t1, e1, h1, _), (t2, e2, h2, _) = mine[i], yours[i]
            t.ok(abs(e1 - e2) <= h1 + h2 + 300 * (abs(t1 - t2) + 0.02),
                 f"{seconds} s, GPU {i}: {e1:.1f} J ± {h1:.1f} J of the daemon and {e2:.1f} J ± {h2:.1f} J of local mode agree")
    t.equal((tasks(), files()), (1, before), "a client has no thread and no descriptor of the library's")
    t.equal(remote.ask("fork"), (0, "0"), "it goes on in a child after fork")
    t.equal(local.ask("fork"), (0, str(errno.ECHILD)), "a local one says that it does not")
    r, text = local.ask("claim 0 250000 60")
    t.ok(r == -errno.ENOTSUP and "systemctl start underwattd" in text and text.endswith("underwatt-sim exec -- underwatt-start"),
         "local mode caps nothing, and says what to start, also on simulated boards", text)
    t.equal(local.ask("job")[0], -errno.ENOTSUP, "nor has it jobs")
    py.lib.uw_window_free(py.win)
    for name, c in (("daemon", remote), ("local", local)):
        t.equal(c.done(), (0, ""), f"{name}: the program ends, with not a word from the library")
    return py


def steps(t, node, exe):
    """A window a step, read when all have ended: what leaving one costs, and that none is lost."""
    for name, flags in (("daemon", 0), ("local", LOCAL)):
        c = Client(node, exe, flags)
        time.sleep(3)
        t.equal(c.ask("begin"), (0, ""), f"{name}: a window around all")
        t.equal(c.ask("samples 0 9")[0], -errno.EINVAL, f"{name}: no samples of one that is open")
        a, began = truth(node), time.monotonic()
        r, text = c.ask("many 300 20")
        took, b = time.monotonic() - began, truth(node)
        t.equal(c.ask("stop"), (0, ""), f"{name}: it stops")
        t.equal(c.ask("wait 30"), (0, ""), f"{name}: it is waited for")
        t.ok(uwtest.wait_for(lambda: c.ask("ready") == (0, "1")), f"{name}: and ready")
        sampled = [(room, c.ask(f"samples 0 {room}")) for room in (4096, 5, 1)]
        t.equal(c.ask("samples 0 0")[0], -errno.EINVAL, f"{name}: no room for samples")
        t.equal(c.ask("samples 9 5")[0], -errno.EINVAL, f"{name}: samples of no board")
        r2, line = c.ask("processors")
        t.ok((r2 == -errno.ENODATA and "boards.rapl" in line) if name == "daemon" else (r2 == -errno.ENOTSUP and "simulated" in line),
             f"{name}: no processors here: said", line)
        c.tell("energy")
        around = c.ended()[0]
        for room, (got, told) in sampled:
            n, total, last = map(float, told.split(" ")) if got == 0 else (0, 0, 0)
            t.ok(got == 0 and 0 < n <= room and abs(last - around[0]) < 1e-3 and abs(total - around[1]) <= around[2],
                 f"{name}: {n:.0f} samples, {room} at most, sum to {total:.1f} J of {around[1]:.1f} J ± {around[2]:.1f} J", told)
        t.ok(float(sampled[0][1][1].split(" ")[0]) > around[0], f"{name}: more than one a second")
        if not t.equal(r, 0, f"{name}: 300 windows of 20 ms {text}"):
            continue
        begin, begin99, stop, stop99, asked, asked99, joules, half, seconds = map(float, text.split(" "))
        # A busy machine delays anything: the median says what the call costs.
        t.ok(stop < 1000 and begin < 20000 and asked < 5000, f"{name}: µs, median and p99: begin {begin} {begin99}, "
             f"stop {stop} {stop99}, ready {asked} {asked99}")
        watts = (b[0][0] - a[0][0]) / (b[0][1] - a[0][1]) * 1e9
        t.ok(6 <= seconds <= took and abs(joules - watts * seconds) <= half + 0.1 * watts * seconds,
             f"{name}: their sum {joules:.1f} J ± {half:.1f} J in {seconds:.2f} s, true {watts:.1f} W")
        t.ok(len(around) == 4 and joules <= around[1] + half + around[2], f"{name}: the one around them", around)
        t.equal(c.ask("begin"), (0, ""), f"{name}: one that is left open")
        t.equal(c.done(), (0, ""), f"{name}: not a word")


def hangs(t, node, d, exe):
    """A daemon that does not answer keeps nobody for long."""
    c = Client(node, exe)
    t.equal((c.ask("begin"), c.ask("stop")), ((0, ""), (0, "")), "a window")
    d.child.send_signal(signal.SIGSTOP)
    try:
        t.equal(c.ask("ready"), (0, "0"), "a daemon that hangs: not ready")
        began = time.monotonic()
        r, text = c.ask("wait 0.5")
        t.ok(r == -errno.ETIMEDOUT and time.monotonic() - began < 10, f"nor in half a second: {text}")
    finally:
        d.child.send_signal(signal.SIGCONT)
    t.equal(c.ask("wait 30"), (0, ""), "it goes on: known")
    c.done()


def inherits(t, py):
    """What a program that this process executes finds open."""
    t.equal(py.begin(), 0, "a window is open")
    p = subprocess.run(["/bin/ls", "/proc/self/fd"], capture_output=True, text=True, close_fds=False, check=True, timeout=20)
    own = [f for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}") and os.get_inheritable(int(f))]
    t.ok(len(p.stdout.split()) <= len(set(own) | {"0", "1", "2"}) + 1, "nothing of the library's is open in a program it executes",
         f"{p.stdout} {own}")
    py.lib.uw_window_free(py.win)


def claims(t, node, d, exe):
    limit = lambda i: node.board(i)["limit_mw"]
    original = limit(1)
    c = Client(node, exe)
    r, claim = c.ask("claim 1 200000 600")
    t.equal(r, 0, f"a claim {claim}")
    t.ok(uwtest.wait_for(lambda: limit(1) < original), "it comes into force", limit(1))
    made = [x for x in d.ask("GET", "/v1/claims")[1]["claims"] if x["id"] == int(claim or 0)]
    t.ok(len(made) == 1 and made[0]["why"] == "a test" and made[0]["cap_mw"] == 200000, "with its reason and watts", made)
    os.kill(c.child.pid, signal.SIGKILL)
    t.ok(uwtest.wait_for(lambda: limit(1) == original), "it ends with the process, however that ends", limit(1))
    t.equal([x for x in d.ask("GET", "/v1/claims")[1]["claims"] if x["gpu"] == 1], [], "and is gone")
    c = Client(node, exe)
    r, claim = c.ask("claim 1 210000 0")
    t.equal((r, c.ask(f"withdraw {claim}")), (0, (0, "")), "one that is withdrawn")
    t.equal(c.ask(f"withdraw {claim}")[0], -errno.ENOENT, "is gone")
    r, text = c.ask("claim 1 1 0")
    t.ok(r < 0 or c.ask(f"withdraw {text}")[0] == 0, f"1 mW: {r} {text}")
    c.done()
    if os.geteuid():
        t.skip("another user's board", "needs root to become another")
        return
    who = {"user": ANNA, "group": ANNA, "extra_groups": []}
    anna = Client(node, exe, **who)
    t.equal(anna.opened, (0, "1 3"), "another user's program asks the daemon, too")
    r, text = anna.ask("claim 0 200000 60")
    t.ok(r == -errno.EPERM and "may not claim" in text, "a claim on a board that is not theirs is refused", text)
    job = node.train("--gpus", "1", "--epochs", "100000", **who)
    t.ok(uwtest.wait_for(lambda: anna.ask("claim 1 290000 60")[0] == 0, step=0.5), "on their own job's board it is not")
    t.equal(anna.ask("claim 0 200000 60")[0], -errno.EPERM, "the other board is still not theirs")
    r, text = anna.ask("claim 1 900000 60")
    t.ok(r == -errno.EINVAL and "outside" in text, "nor watts beyond the board's", text)
    t.equal(anna.done(), (0, ""), "not a word from the library")
    job.terminate()
    job.wait()


def jobs(t, node, d, exe):
    c = Client(node, exe)
    r, number = c.ask("job")
    if not t.equal(r, 0, f"a job {number}"):
        return
    look = lambda n: d.ask("GET", f"/v1/jobs/{n}")[1]
    j = look(number)
    t.equal((j["name"], j["labels"], j["gpus"], j["source"]), ("lib-client", {"project": "tests", "run": "7"}, [0], "run"), "as it was described")
    c.done()
    t.ok(uwtest.wait_for(lambda: not look(number).get("running")), "it ends with its process", look(number))
    c = Client(node, exe)
    r, number = c.ask("job energy")
    t.equal(r, 0, f"a job with a goal {number}")
    # Steps of real time: the daemon looks ten times a second.
    stop = time.monotonic() + uwtest.PATIENCE
    while time.monotonic() < stop and look(number)["steps"] < 20:
        c.ask("steps 1")
        time.sleep(0.05)
    t.ok(look(number)["steps"] >= 20, "its steps are seen", look(number))
    t.equal(c.ask("renew"), (0, ""), "a daemon that knows it is told nothing new")
    d.child.kill()
    d.child.wait()
    d.start()
    t.ok(uwtest.wait_for(lambda: c.ask("renew")[0] == 0), "a daemon that was restarted is told of them again")
    seen = look(number).get("steps") or 0
    for _ in range(60):
        c.ask("steps 1")
        time.sleep(0.05)
    t.ok(uwtest.wait_for(lambda: any(x["name"] == "lib-client" and x["running"] and x["steps"] > seen
                                     for x in d.ask("GET", "/v1/jobs")[1]["jobs"])), "and sees new ones", d.ask("GET", "/v1/jobs"))
    t.equal(c.ask("over"), (0, ""), "it ends when it says so")
    t.ok(c.ask("over")[0] in (0, -errno.ENOENT), "and once")
    c.done()


def goals(t, node, d, exe):
    """What a program asks and sets of its own job."""
    c = Client(node, exe)
    r, number = c.ask("job")
    t.equal(r, 0, f"a job without a goal {number}")
    look = lambda: d.ask("GET", f"/v1/jobs/{number}")[1]["search"]
    t.ok(c.ask("search")[0] == -errno.ENODATA and look() is None, "it has no search", c.ask("search"))
    r, text = c.ask("goal best")
    t.ok(r == -errno.EINVAL and "best" in text, "a goal that is none is refused", text)
    t.equal(c.ask("goal"), (0, ""), "none is none")
    t.equal((c.ask("goal energy"), (look() or {}).get("goal")), ((0, ""), "energy"), "a goal: the search begins")
    c.ask("steps 1")
    t.ok(uwtest.wait_for(lambda: c.ask("steps 1")[0] == 0 and (look() or {}).get("page")), "with the job's page", look())
    r, text = c.ask("search")
    words = text.split(";")
    t.ok(r == 0 and len(words) == 6 and words[0] == "energy" and words[2], "its state is told", text)
    t.equal((c.ask("goal slowdown:1.1"), look()["goal"]), ((0, ""), "slowdown:1.1"), "another goal")
    t.equal(c.ask("goal"), (0, ""), "none for now")
    t.ok(uwtest.wait_for(lambda: look()["goal"] is None and look()["status"] is None), "it rests", look())
    t.equal(c.ask("found"), (0, "0"), "a child finds the job that it belongs to")
    r, claim = c.ask("cap 80%")
    made = [x for x in d.ask("GET", f"/v1/claims?job={number}")[1]["claims"] if x["id"] == int(claim or 0)]
    t.ok(r == 0 and made and made[0]["kind"] == "named", f"a cap on its boards {claim}", made)
    t.equal(c.ask(f"withdraw {claim}"), (0, ""), "is withdrawn")
    r, claim = c.ask("cap balanced")
    t.equal((r, c.ask(f"withdraw {claim}")), (0, (0, "")), "one by a preset")
    t.ok(c.ask("cap gold")[0] < 0, "a preset that is none", c.ask("cap gold"))
    t.equal(c.ask("over"), (0, ""), "it ends")
    t.ok(c.ask("goal energy")[0] in (-errno.ENOENT, -errno.EBUSY), "one that has ended takes no goal", c.ask("goal energy"))
    c.done()


def later(t, node, d, exe):
    """A group without a goal is given one by a member: the steps of all count."""
    a, b = Client(node, exe), Client(node, exe)
    r, number = a.ask("rank ranks")
    t.equal((r, b.ask("rank ranks")), (0, (0, number)), "two processes are one job, without a goal")
    look = lambda: d.ask("GET", f"/v1/jobs/{number}")[1]
    a.ask("steps 5")
    b.ask("steps 3")
    t.equal((b.ask("renew"), look()["search"]), ((0, ""), None), "whose steps nobody needs")
    t.equal(b.ask("goal energy"), (0, ""), "one gives it a goal")
    t.ok(uwtest.wait_for(lambda: look()["steps"] == 3), "the slower one's steps count", look())
    b.ask("steps 7")
    t.ok(uwtest.wait_for(lambda: look()["steps"] == 5), "then the other's", look())
    t.equal((a.ask("renew"), b.ask("renew")), ((0, ""), (0, "")), "each may renew it")
    t.equal((a.ask("over"), b.ask("over")), ((0, ""), (0, "")), "it ends")
    a.done()
    b.done()


def killed(t, node, d, exe):
    c = Client(node, exe)
    t.equal(c.ask("begin"), (0, ""), "a window begins")
    time.sleep(2)
    d.child.kill()
    d.child.wait()
    r, text = c.end()[0]
    t.ok(r == -errno.ECONNREFUSED and "no daemon answers" in text, "the daemon is gone: said", text)
    t.equal(c.ask("begin")[0], -errno.ECONNREFUSED, "nor can another begin")
    d.start()
    out = c.end()
    t.ok(len(out) == 3 and all(x[0] == -errno.ENODATA and "restarted" in x[1] for x in out),
         "another daemon: its energy is unknown, and never a number", out)
    t.equal(c.ask("begin"), (0, ""), "a new window")
    time.sleep(3)
    out = c.end()
    t.ok(len(out) == 3 and all(len(x) == 4 and x[1] > 0 for x in out), "is measured", out)
    c.done()


def absent(t, node, exe):
    c = Client(node, exe)
    t.equal((c.opened, c.done()), ((0, "0 3"), (0, "")), "no daemon: local mode")
    c = Client(node, exe, DAEMON)
    t.ok(c.opened[0] == -errno.ECONNREFUSED and "no daemon answers at" in c.opened[1], "unless the daemon is asked for", c.opened)
    c = Client(node, exe, env={"UNDERWATT_SOCKET": "/nowhere/x.sock"})
    t.ok(c.opened[0] == -errno.ECONNREFUSED and "/nowhere" in c.opened[1], "or was named", c.opened)
    c = Client(node, exe, 8)
    t.equal(c.opened[0], -errno.EINVAL, f"a flag that is none: {c.opened[1]}")


def main():
    t = uwtest.Tap()
    if not shutil.which(os.environ.get("CC", "cc").split()[0]):
        uwtest.skip_all("no compiler")
    if uwtest.SANITIZED:
        uwtest.skip_all("the library is instrumented, the program would not be")
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        os.chmod(folder, 0o755)
        exe = libuser.build(t, folder, "lib-client")
        with uwtest.Node(machine=MACHINE) as node:
            d = node.daemon()
            train = node.train("--gpus", "0,2", "--epochs", "100000", "--phases", "train")
            uwtest.wait_for(lambda: node.board(0)["power_mw"] > 200000)
            py = agrees(t, node, d, exe)
            steps(t, node, exe)
            hangs(t, node, d, exe)
            inherits(t, py)
            train.terminate()
            jobs(t, node, d, exe)
            goals(t, node, d, exe)
            later(t, node, d, exe)
            killed(t, node, d, exe)
            py.lib.uw_ctx_free(py.ctx)
            d.kill()
            absent(t, node, exe)
    t.done()


if __name__ == "__main__":
    main()
