#!/usr/bin/python3
"""underwatt-start and the actuator's service under it, with a stand-in for the daemon:
whoever is killed or stopped, caps are taken over without a write or originals are back.
"""
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import uwtest
from starter import CAP, ORIGINAL, Start


def sandboxed(t, pid):
    """Every thread of the actuator: one capability at most, no new rights, the filter."""
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    bad = []
    for task in tasks:
        words = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        caps = [int(words[k], 16) & ~(1 << 21) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
        if os.geteuid() == 0:
            caps.append(int(words["CapBnd"], 16) & ~(1 << 21))
        if any(caps) or words["NoNewPrivs"] != "1" or (words["Seccomp"] != "2" and not uwtest.SANITIZED):
            bad.append((task.name, caps, words["NoNewPrivs"], words["Seccomp"]))
    t.ok(len(tasks) > 1 and not bad, f"all {len(tasks)} threads of the actuator are locked down", bad)


def life(t, node, user):
    s = Start(node, *(["--user", user] if user else []), "--", "--config", "x.yaml")
    first = s.hear("start")
    want_uid = os.getuid() if not user else 65534 if user == "nobody" else 0
    t.ok(first[2:3] == [str(want_uid)], f"the daemon runs as uid {want_uid}", f"{first} {s.said()}")
    if user == "nobody":
        t.ok(first[3] != "0" and int(first[4]) <= 1, "with that user's groups alone", first)
    path = os.path.join(node.state, "actuator", "actuator.sock")
    t.ok(first[5:7] == ["--actuator", path] and first[-2:] == ["--config", "x.yaml"],
         "it is told where the actuator is, and what was meant for it", first)
    st = os.stat(path)
    t.ok(stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == want_uid, "the socket is that user's alone")
    t.ok(s.hear("set") and s.capped(), "it holds a cap", s.said())

    other = Start(node, *(["--user", user] if user else []))
    t.equal(other.p.wait(timeout=uwtest.PATIENCE), 1, "another starter does not begin …")
    t.ok("is already running" in other.said() and os.stat(path).st_ino == st.st_ino, "… says why, and leaves the socket",
         other.said())
    sandboxed(t, s.pid_of("actuator"))
    t.ok(uwtest.SANITIZED or s.said().count("locked down") == 1, "and its log says so", s.said())
    writes = node.board(0)["limit_writes"]
    daemon = s.pid_of("daemon")
    os.kill(daemon, signal.SIGKILL)
    held = s.hear("held", 2)
    t.equal(held, ["held", "0", str(CAP), str(ORIGINAL)], "kill -9 of the daemon: the next one takes over")
    t.ok("killed by signal 9" in s.said(), "it is said", s.said())
    b = node.board(0)
    t.ok(b["limit_writes"] == writes and b["limit_mw"] == CAP, "without a write", b)

    daemon = s.pid_of("daemon")
    os.kill(daemon, signal.SIGSTOP)
    t.ok(s.restored(), "SIGSTOP of the daemon: its lease is over", node.board(0))
    os.kill(daemon, signal.SIGKILL)
    t.ok(s.capped(), "killed, the next one begins anew")

    n = len(s.lines("held"))
    actuator = s.pid_of("actuator")
    os.kill(actuator, signal.SIGKILL)
    t.ok(s.hear("held", n + 1)[2:] == [str(ORIGINAL)] * 2 and s.capped(),
         "kill -9 of the actuator: the next one restores, then serves the same daemon", s.lines())

    n = len(s.lines("held"))
    actuator = s.pid_of("actuator", actuator)
    os.kill(actuator, signal.SIGSTOP)
    t.ok(s.hear("held", n + 1)[2:] == [str(ORIGINAL)] * 2 and any(x in s.said() for x in ("silent", "sent no watchdog message")),
         "SIGSTOP of the actuator: noticed, killed, restored", f"{s.lines()} {s.said()}")
    t.ok(s.capped(), "and served again")
    s.p.send_signal(signal.SIGHUP)
    t.ok(s.hear("hup"), "SIGHUP is the daemon's")
    s.end(t, "a life")
    t.ok(s.lines()[-1] == "end" and s.lines()[-2].startswith("released 0"),
         "the daemon ended first, its actuator there", s.lines()[-3:])
    left = [name for name in os.listdir(os.path.dirname(path)) if name.startswith("actuator.sock")]
    t.equal(left, [], "the socket is gone, and what lay beside it")


def killed(t, node, user):
    """Whoever kills the starter ends what it started."""
    s = Start(node, *user)
    t.ok(s.capped(), "a cap", s.said())
    pids = [s.pid_of("actuator"), s.pid_of("daemon")]
    os.kill(s.p.pid, signal.SIGKILL)
    s.p.wait()
    t.ok(s.restored(), "kill -9 of the starter: the original is back")
    t.ok(uwtest.wait_for(lambda: not any(map(uwtest.alive, pids))), "nobody is left behind", pids)


def graces(t, node, user):
    """No grace: restored at once; a short one: after it; both before the default's 10 s."""
    for grace, least, most in (("0 s", 0, 8), ("2 s", 1.8, 8)):
        s = Start(node, *user, config=f"grace: {grace}\n")
        t.ok(s.capped(), f"grace {grace}: a cap", s.said())
        os.kill(s.p.pid, signal.SIGSTOP)  # nobody starts another daemon
        daemon, began = s.pid_of("daemon"), time.monotonic()
        os.kill(daemon, signal.SIGKILL)
        t.ok(s.restored(most), f"grace {grace}: restored", node.board(0))
        took = time.monotonic() - began
        t.ok(least <= took <= most, f"after {took:.1f} s")
        os.kill(s.p.pid, signal.SIGCONT)
        t.ok(s.capped(), "and the next daemon is served")
        s.end(t, f"grace {grace}")


def may_realtime():
    """Whether a process of ours may have the lowest real-time priority."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0


def classes(t, node, user):
    """The actuator's threads go before everybody of the normal class, unless root says no."""
    for config, want in (("realtime: true\n", os.SCHED_RR), ("realtime: false\n", os.SCHED_OTHER)):
        if want == os.SCHED_RR and not may_realtime():
            t.skip("a real-time class", "no right to one here")
            continue
        s = Start(node, *user, config=config)
        t.ok(s.capped(), f"{config.strip()}: a cap", s.said())
        pid = s.pid_of("actuator")
        got = [os.sched_getscheduler(int(tid)) for tid in os.listdir(f"/proc/{pid}/task")]
        t.ok(len(got) > 1 and set(got) == {want}, f"all {len(got)} threads have class {want}", got)
        if want == os.SCHED_RR:
            node.fault("0", "hang")
            t.ok(uwtest.wait_for(lambda: "back to the normal class" in s.said()),
                 "a call hangs in the driver: it is told", s.said())
            got = [os.sched_getscheduler(int(tid)) for tid in os.listdir(f"/proc/{pid}/task")]
            t.ok(set(got) == {os.SCHED_OTHER}, "and all threads have the normal class", got)
            node.fault("0", "release")
        s.end(t, config.strip())


def endings(t, node, user):
    for status, want in (("0", 0), ("2", 2)):
        s = Start(node, *user, status=status)
        t.equal(s.p.wait(timeout=uwtest.PATIENCE), want, f"a daemon that ends with {status} ends all")
    s = Start(node, *user, status="1")
    t.ok(s.hear("start", 4), "one that fails is started again …", s.said())
    said = s.said()
    t.ok("100 ms" in said and "200 ms" in said and "400 ms" in said, "… later each time", said)
    s.p.send_signal(signal.SIGTERM)
    t.equal(s.p.wait(timeout=uwtest.PATIENCE), 0, "and ended while it waits for that")

    for config, line in (("grace: 5\n", 1), ("# two\nclients: nobody-at-all\n", 2), ("powercap: /nowhere\n", 0)):
        s = Start(node, *user, config=config)
        try:
            got = s.p.wait(timeout=uwtest.PATIENCE)
        except subprocess.TimeoutExpired:
            got = "does not end"
            s.p.send_signal(signal.SIGTERM)
            s.p.wait(timeout=uwtest.PATIENCE)
        says = f"actuator.yaml:{line}: " if line else "powercap"
        t.ok(got == 2 and says in s.said(), f"{config.strip()!r}, a wrong configuration, ends all with 2, and is named",
             f"{got}\n{s.said()}")
        again = [line for line in s.said().splitlines() if "underwatt-actuator ended" in line and "restarting in" in line]
        t.equal(again, [], "at once: the actuator was not started again")
    if os.geteuid() == 0:  # elsewhere whoever may write it is believed
        libraries(t, node)


def libraries(t, node):
    """The library that root's configuration names: refused for good, or not there now."""
    conf, library = pathlib.Path(node.tmp, "library.yaml"), pathlib.Path(node.tmp, "library.so")
    conf.write_text(f"library: {library}\n")
    for want, what in ((1, "is not there"), (2, "is others' to write")):
        if want == 2:
            library.touch()
            library.chmod(0o666)
        p = subprocess.run([uwtest.program("underwatt-actuator"), "--serve", "--config", str(conf)], check=False,
                           capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        t.ok(p.returncode == want and str(library) in p.stderr, f"a library that {what}: {want}",
             f"{p.returncode} {p.stderr}")


def words(t, node, user):
    """Its words on standard error must cost nothing but themselves."""
    for name in ("closed", "full"):
        ours, theirs = os.pipe()
        if name == "full":
            os.set_blocking(theirs, False)
            while True:
                try:
                    os.write(theirs, b"x" * 4096)
                except BlockingIOError:
                    break
            os.set_blocking(theirs, True)
        s = Start(node, *user, stderr=theirs)
        os.close(theirs)
        if name == "closed":
            os.close(ours)
        t.ok(s.capped(), f"standard error is {name}: a cap")
        daemon = s.pid_of("daemon")
        os.kill(daemon, signal.SIGKILL)  # that is said
        t.ok(s.pid_of("daemon", daemon), f"standard error is {name}: the starter lives on, and starts the next daemon")
        s.end(t, f"standard error is {name}")
        if name == "full":
            os.close(ours)


def usage(t, node, user):
    for args, says in ((["--frobnicate"], "--frobnicate"), (["--user"], "--user needs a value"),
                       (["--socket", "x.sock"], "x.sock"), (["--socket", "/" + "x" * 200], "absolute path"),
                       (["--daemon", "/nowhere/underwattd"], "/nowhere/underwattd"),
                       (["--actuator", "/nowhere/x"], "/nowhere/x: No such file"),
                       (["--user", "nobody-at-all"], "nobody-at-all" if os.geteuid() == 0 else "needs root")):
        p = node.run("underwatt-start", *user[:0 if "--user" in args else 2], *args)
        t.ok(p.returncode == 2 and says in p.stderr, f"{' '.join(args)[:30]} is refused", p.stderr)
    if os.geteuid() == 0:
        os.chmod(node.tmp, 0o700)  # as a home may be
        p = node.run("underwatt-start", "--user", "nobody")
        t.equal((p.returncode, p.stderr), (2, "underwatt-start: --user nobody: may not enter the simulated world's "
                f"{node.state}: Permission denied\n"), "a user who may not enter the world's folder is refused")
        os.chmod(node.tmp, 0o755)
    if os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0:
        env = {key: value for key, value in os.environ.items() if not key.startswith("UNDERWATT")}  # real boards
        p = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind /dev/null /etc/passwd; exec "$0"',
                            uwtest.program("underwatt-start")], capture_output=True, text=True, timeout=60, env=env)
        t.ok(p.returncode == 2 and "user 'underwatt' does not exist: create it" in p.stderr, "without --user and such a user", p)
    p = node.run("underwatt-start", "--help")
    t.ok(p.returncode == 0 and "--actuator-config" in p.stdout, "--help")


def main():
    t = uwtest.Tap()
    root = os.geteuid() == 0
    with uwtest.Node(machine="boards: [{model: v100, count: 1, limit: 250 W}]") as node:
        user = ["--user", "root"] if root else []
        usage(t, node, user)
        life(t, node, "nobody" if root else "")
        killed(t, node, user)
        graces(t, node, user)
        classes(t, node, user)
        endings(t, node, user)
        words(t, node, user)
        t.ok(not list(pathlib.Path(node.state, "actuator").glob("*.cap")), "no entry is left")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
