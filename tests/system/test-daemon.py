"""underwattd as its administrators see it: starts, says that it is ready, reloads, is
alone, ends."""
import os
import pathlib
import subprocess

import uwtest

t = uwtest.Tap()

# A node without anything: --check, usage.
with uwtest.Node(board="v100", count=2) as node:
    file = pathlib.Path(node.tmp, "c.yaml")
    for text, code, words in (
            ("", 0, "OK"),
            ("node:\n  interval: 5 s\n", 0, "OK"),
            ("node:\n  interval: 5\n", 2, "c.yaml:2: "),
            ("node:\n  intervall: 5 s\n", 2, "c.yaml:2: unknown key 'intervall'")):
        file.write_text(text)
        p = node.run("underwattd", "--check", file)
        t.ok(p.returncode == code and words in p.stdout + p.stderr,
             f"--check says {words!r} to {text!r}", p)
    p = node.run("underwattd", "--chekc", file)
    t.ok(p.returncode == 2 and "--chekc" in p.stderr, "an unknown option is a usage error", p)
    if os.geteuid() == 0:
        p = node.run("underwattd")
        t.ok(p.returncode == 1 and "will not run as root" in p.stderr, "never as root unless told",
             p)

    d = node.daemon("node:\n  log: debug\n")
    t.ok(d.child.poll() is None, "runs and says READY=1", d.log())
    second = node.run("underwattd", "--config", d.config,
                      *(["--user", "root"] if os.geteuid() == 0 else []))
    t.ok(second.returncode == 1 and f"process {d.pid}" in second.stderr,
         "a second daemon is refused with the pid of the first", second)

    t.ok(d.reload("node:\n  interval: 7\n"), "a wrong file is answered", d.log())
    t.ok("event=config-refused" in d.log() and "underwattd.yaml:2:" in d.log(),
         "… refused with file and line", d.log())
    t.ok(d.child.poll() is None, "… and the daemon runs on", d.log())
    t.ok(d.reload("node:\n  interval: 7 s\n  log: info\napi:\n  job_socket: /tmp/other.sock\n"),
         "a good file is read", d.log())
    t.ok("key=node.log in_force=now" in d.log(), "… what is in force is told", d.log())
    t.ok("key=api.job_socket in_force=after-restart" in d.log(),
         "… and what needs a restart", d.log())
    t.equal(d.stop(), 0, "SIGTERM: ends with 0")
    t.ok(d.told("STOPPING=1", 1), "… and told the service manager so")
    try:
        d.start()
        t.ok(True, "starts again over its old lock file")
    except RuntimeError as e:
        t.ok(False, "starts again over its old lock file", e)

# Caps: given back at the end, kept over a kill, taken over by the next one.
def limit(node, i):
    return node.board(i)["limit_mw"]


def becomes(node, i, mw, seconds=10):
    return uwtest.wait_for(lambda: limit(node, i) == mw, seconds)


def claims(d):
    return {c["id"]: c for c in d.ask("GET", "/v1/claims")[1]["claims"]}


with uwtest.Node(board="v100", count=3) as node:
    d = node.daemon("caps:\n  classes:\n    default: {ramp: at once}\n")
    status, about = d.ask("GET", "/v1/node")
    t.ok(status == 200 and about["gpus"] == 3 and about["simulated"], "the API answers", about)
    uwtest.wait_for(lambda: d.ask("GET", "/v1/node")[1]["actuator"]["up"])
    status, made = d.ask("POST", "/v1/claims", {"gpu": "0", "kind": "hard", "cap": "200 W",
                                                "why": "a test"})
    t.ok(status == 201, "a claim is made", made)
    t.ok(becomes(node, 0, 200000), "… and is in force", node.board(0))
    sleeper = subprocess.Popen(["sleep", "100"])
    status, held = d.ask("POST", "/v1/claims", {"gpu": "1", "kind": "hard", "cap": "180 W",
                                                "pid": sleeper.pid, "why": "a process"})
    t.ok(status == 201 and becomes(node, 1, 180000), "a claim for as long as a process lives", held)

    writes = [node.board(i)["limit_writes"] for i in range(3)]
    d.kill(actuator=False)
    t.equal(limit(node, 0), 200000, "the daemon is killed: the cap stays for the actuator's grace")
    d.start()
    t.ok(uwtest.wait_for(lambda: d.ask("GET", "/v1/gpus/0")[1]["cap"]["state"] == "held"),
         "the next one holds the board again", d.log())
    t.equal(sorted(claims(d)), sorted([made["id"], held["id"]]), "… with the claims that were there")
    # longer than the grace
    t.ok(not uwtest.wait_for(lambda: limit(node, 0) != 200000 or limit(node, 1) != 180000, 12),
         "… and no cap moves", [node.board(0), node.board(1), d.log(), d.actuator_log()])
    t.equal([node.board(i)["limit_writes"] for i in range(3)], writes, "… nor is any written")
    sleeper.kill()
    sleeper.wait()
    t.ok(becomes(node, 1, 300000), "its process ends: the claim, too", d.log())
    t.equal(sorted(claims(d)), [made["id"]], "… of those, one is left")

    t.equal(d.stop(), 0, "SIGTERM: ends with 0")
    t.equal(limit(node, 0), 300000, "… when every original is back")
    d.start()
    t.ok(becomes(node, 0, 200000), "started again: what is claimed is in force again", d.log())

    # Without an actuator it reads on, says so, and finds it again.
    d.actuator.terminate()
    d.actuator.wait()
    t.ok(uwtest.wait_for(lambda: not d.ask("GET", "/v1/node")[1]["actuator"]["up"]),
         "the actuator is gone: told", d.log())
    t.ok(uwtest.wait_for(lambda: (d.ask("GET", "/v1/gpus/0")[1]["power_w"] or 0) > 10),
         "… and boards are read on", d.log())
    d.start_actuator()
    t.ok(becomes(node, 0, 200000, 20), "it is back: the cap, too", d.log())
    status, _ = d.ask("DELETE", f"/v1/claims/{made['id']}")
    t.ok(status == 204 and becomes(node, 0, 300000), "withdrawn: the original is back", d.log())
t.done()
