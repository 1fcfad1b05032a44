"""underwattd as its administrators see it: starts, says that it is ready, reloads, is
alone, ends."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import uwtest

t = uwtest.Tap()

def starts():
    """A node without anything: --check, usage."""
    with uwtest.Node(board="v100", count=2) as node:
        file = pathlib.Path(node.tmp, "c.yaml")
        for text, code, words in (
                ("", 0, "OK"),
                ("node:\n  interval: 5 s\n", 0, "OK"),
                ("metrics:\n  hpc_job_mapping_dir: /nowhere\n", 2,
                 "c.yaml: metrics.hpc_job_mapping_dir: /nowhere: No such file"),
                ("metrics:\n  hpc_job_mapping_dir: FOLDER\n", 0, "OK"),
                ("node: {admin_group: nosuchgroup}", 0, "c.yaml: warning: node.admin_group: there is no group "
                 "'nosuchgroup': only root has its rights\n"),
                ("accounting: {market: /nope}", 0, "c.yaml: warning: accounting.market: /nope: No such file or "
                 "directory: reports have no contracts\n"),
                ("accounting: {market: FOLDER}", 0, ": not a regular file: reports have no contracts\n"),
                ("policy: {file: /nope}", 0, "c.yaml: warning: policy.file: /nope: No such file or directory: no rule"),
                ("actuator: {socket: /nope}", 0, "c.yaml: warning: actuator.socket: /nope: No such file or directory: "),
                ("boards: {library: /nope}", 2, "c.yaml: boards.library: /nope: No such file or directory\n"),
                ("boards: {powercap: /dev/null}", 2, "c.yaml: boards.powercap: /dev/null: not a directory\n"),
                ("api: {tcp: {key: /nope}}", 0, "OK"),
                ("api: {tcp: {listen: 'a:1', certificate: /nope, key: /nope, tokens: /nope}}", 2,
                 "c.yaml: api.tcp.certificate: /nope: No such file"),
                ("node:\n  interval: 5\n", 2, "c.yaml:2: "),
                ("node:\n  intervall: 5 s\n", 2, "c.yaml:2: unknown key 'node.intervall': did you mean 'interval'?")):
            file.write_text(text.replace("FOLDER", node.tmp))
            p = node.run("underwattd", "--check", file)
            t.ok(p.returncode == code and words in p.stdout + p.stderr and ("OK\n" in p.stdout) == (code == 0) and
                 ("warning" in p.stderr) == ("warning" in words or ": not a regular" in words),
                 f"--check says {words!r} to {text!r}", p)
        file.write_text("budget: {node: 100 W}\n")
        p = node.run("underwattd", "--check", file)
        t.ok(p.returncode == 0 and p.stdout == f"{file}: OK (budget.node is not compared with the limits of boards)\n",
             "--check does not read the boards, and says so of a budget", p)
        if os.geteuid() == 0:    # not every user may read it: keys without their values
            file.write_text("node: {admin_group: nosuchgroup}\nboards: {library: /nope}\n")
            file.chmod(0o600)
            p = node.run("underwattd", "--check", file)
            t.ok(p.returncode == 2 and "nosuchgroup" not in p.stderr and "/nope" not in p.stderr, "--check of a file for root alone hides values", p)
            t.ok(all(w in p.stderr for w in ("node.admin_group: no such group: only root", "boards.library: No such file")),
                 "and has the keys", p)
        p = node.run("underwattd", "--chekc", file)
        t.ok(p.returncode == 2 and "--chekc" in p.stderr, "an unknown option is a usage error", p)
        if os.geteuid() == 0:
            p = node.run("underwattd")
            t.ok(p.returncode == 2 and "will not run as root" in p.stderr, "never as root unless told",
                 p)

        d = node.daemon("node:\n  log: debug\n  admin_group: nosuchgroup\naccounting: {market: /nope}\n")
        t.ok(d.child.poll() is None, "runs and says READY=1", d.log())
        t.ok("event=config-warning reason=\"node.admin_group: there is no group 'nosuchgroup': only root has" in d.log(),
             "a group that does not exist is told at the start", d.log())
        t.ok(d.log().count("accounting.market") == 1, "contracts that are missing are told once", d.log())
        second = node.run("underwattd", "--config", d.config,
                          *(["--user", "root"] if os.geteuid() == 0 else []))
        t.ok(second.returncode == 1 and f"process {d.pid}" in second.stderr,
             "a second daemon is refused with the pid of the first", second)

        t.ok(d.reload("node:\n  interval: 7\n"), "a wrong file is answered", d.log())
        t.ok("event=config-refused" in d.log() and "underwattd.yaml:2:" in d.log(),
             "… refused with file and line", d.log())
        t.ok(d.child.poll() is None, "… and the daemon runs on", d.log())
        t.ok(d.reload("node:\n  interval: 7 s\n  log: info\napi:\n  job_socket: " + node.tmp + "/other.sock\n"),
             "a good file is read", d.log())
        t.ok("key=node.log in_force=now" in d.log(), "… what is in force is told", d.log())
        t.ok("key=api.job_socket in_force=after-restart" in d.log(),
             "… and what needs a restart", d.log())
        t.equal(d.stop(), 0, "SIGTERM: ends with 0")
        t.ok(d.told("STOPPING=1", 1), "… and told the service manager so")
        d.configure("metrics:\n  hpc_job_mapping_dir: /nowhere/at/all\n")
        try:
            d.start()
            t.ok(uwtest.wait_for(lambda: "event=hpc-mapping-failed" in d.log()) and d.child.poll() is None,
                 "without dcgm-exporter's folder it says so and runs", d.log())
            t.ok(True, "starts again over its old lock file")
        except RuntimeError as e:
            t.ok(False, "starts again over its old lock file", e)


# Every key, changed: the log says what is in force and what waits for a restart, and the
# doors do as they are told.  (What a reload does inside the node: test-node-reload.c.)
KEYS = """node/interval 7 s|node/hostname other|boards/only [0]|boards/library /lib/x.so|boards/rapl false
sampling/rest 2 s|sampling/job 300 ms|sampling/search 150 ms|node/dry_run true
caps/users/from 60 %|caps/users/to 90 %|caps/users/longest 2 h|caps/other_writers reassert|caps/reassert_after 20 s
caps/yield_for 5 min|caps/clocks true|caps/always_hold true|caps/classes {a: {floor: 60 %}}|jobs/discover false|jobs/look 5 s
search/found_jobs edp|policy/file FOLDER/p.yaml|ledger/path FOLDER/l.sqlite|ledger/keep/fine 3 d|ledger/keep/minute 20 d|ledger/keep/hour 500 d
api/socket FOLDER/u.sock|api/job_socket FOLDER/j.sock|api/tcp/listen localhost:1|api/tcp/certificate /c|api/tcp/key /k
api/tcp/tokens /t|api/limits/connections 100|api/limits/per_client 5|api/limits/requests 3
api/limits/followers 1|api/limits/idle 1 s|metrics/per_job false|metrics/max_jobs 1|metrics/listen 127.0.0.1:1|metrics/enabled false
metrics/hpc_job_mapping_dir FOLDER|zeusd/socket FOLDER/z.sock|actuator/socket FOLDER/a.sock|node/log debug
node/admin_group nogroup"""
PAGE = (uwtest.TOP / "docs/man/underwattd.yaml.5.scd").read_text()


def nested(key, value):
    for part in reversed(key.split(".")):
        value = f"{{{part}: {value}}}"
    return value[1:-1] + "\n"


def connect(d, text=b""):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(d.socket)
    s.sendall(text)
    return s


def is_idle_shut(d):
    """A connection that asks no more is closed long before the 30 s that are the default."""
    with connect(d, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as s:
        try:
            while s.recv(4096):
                pass
            return True
        except TimeoutError:
            return False


def follow(d):
    s = connect(d, b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s, s.recv(12)[-3:]


def second_follower(d):
    a, b = follow(d), follow(d)
    a[0].close()
    b[0].close()
    return a[1] == b"200" and b[1] != b"200"


# Whom limits are for: root is spared.
NOBODY = """import json, socket, sys
def ask(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(sys.argv[1])
    s.sendall(b"GET " + path + b" HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
    text = b""
    while part := s.recv(65536):
        text += part
    return text.decode()
def doors():
    shut, all = 0, []
    for i in range(10):
        all.append(socket.socket(socket.AF_UNIX))
        all[-1].settimeout(20)
        try:
            all[-1].connect(sys.argv[1])
            all[-1].sendall(b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
            shut += b" 200 " not in all[-1].recv(64)
        except OSError:
            shut += 1
    return shut > 0
print(%s)"""


def nobody(d, what):
    p = subprocess.run([sys.executable, "-c", NOBODY % what, d.socket], user=65534, group=65534, extra_groups=[],
                       capture_output=True, text=True, timeout=60)
    return p.stdout.strip() == "True"


def metrics(d):
    return d.ask("GET", "/metrics")[1]


def debug_line(d):
    before = d.log().count("<7>")
    d.ask("POST", "/v1/claims", {"gpu": "1", "kind": "hard", "cap": "190 W", "for": "1 s"})
    return uwtest.wait_for(lambda: d.log().count("<7>") > before)


DOORS = {
    "metrics.enabled": lambda d: d.ask("GET", "/metrics")[0] == 404,
    "metrics.per_job": lambda d: 'user="' not in metrics(d),
    "metrics.max_jobs": lambda d: 'job_id="other"' in metrics(d),
    "api.limits.followers": second_follower,
    "api.limits.idle": is_idle_shut,
    "node.log": debug_line,
}
if os.geteuid() == 0:
    DOORS["node.admin_group"] = lambda d: nobody(d, "'\"admin\": true' in ask(b'/v1/node')")
    DOORS["api.limits.requests"] = lambda d: nobody(d, "any(' 429 ' in ask(b'/v1/node') for _ in range(30))")
    DOORS["api.limits.per_client"] = lambda d: nobody(d, "doors()")


def keys():
    with uwtest.Node(board="v100", count=2) as node:
        d = node.daemon("")
        folder = tempfile.mkdtemp(prefix="keys-", dir=node.tmp)
        jobs = [node.train("--gpus", str(i), "--epochs", "1000", start_new_session=True) for i in range(2)]
        t.ok(uwtest.wait_for(lambda: len(d.ask("GET", "/v1/jobs")[1]["jobs"]) == 2), "two jobs are found", d.log())
        for key, value in (k.split(" ", 1) for line in KEYS.split("\n") for k in line.split("|")):
            key = key.replace("/", ".")
            line = next(l for l in PAGE.split("\n") if l.startswith(f"*{key}*"))
            when = "after-restart" if line.rstrip("+").endswith("restart)") else "now"
            text = nested(key, value.replace("FOLDER", folder))
            if key == "api.tcp.listen":
                text = "api: {tcp: {listen: 'localhost:1', certificate: /c, key: /k, tokens: /t}}\n"
            before = len(d.log())
            works = DOORS.get(key)
            was = works(d) if works and key not in ("node.log", "api.limits.idle", "api.limits.followers") else False
            d.reload(text)
            t.ok(f"key={key} in_force={when}" in d.log()[before:], f"{key}: in force {when}", d.log()[before:])
            if works:
                t.ok(not was and works(d), f"… and it is: {value}", d.log()[before:])
        t.equal(sorted(k for k in DOORS if f"*{k}*" not in PAGE), [], "the page knows them all")
        for job in jobs:
            job.kill()
            job.wait()


# Caps: given back at the end, kept over a kill, taken over by the next one.
def limit(node, i):
    return node.board(i)["limit_mw"]


def becomes(node, i, mw):
    return uwtest.wait_for(lambda: limit(node, i) == mw)


def claims(d):
    return {c["id"]: c for c in d.ask("GET", "/v1/claims")[1]["claims"]}


def caps():
    with uwtest.Node(board="v100", count=3) as node:
        d = node.daemon("caps:\n  classes:\n    default: {ramp: at once}\n")
        status, about = d.ask("GET", "/v1/node")
        t.ok(status == 200 and about["gpus"] == 3 and about["simulated"], "the API answers", about)
        uwtest.wait_for(lambda: d.ask("GET", "/v1/node")[1]["actuator"]["up"])
        status, made = d.ask("POST", "/v1/claims", {"gpu": "0", "kind": "hard", "cap": "200 W",
                                                    "why": "a test"})
        t.ok(status == 201, "a claim is made", made)
        t.ok(becomes(node, 0, 200000), "… and is in force", node.board(0))
        sleeper = node.sleeper()
        status, held = d.ask("POST", "/v1/claims", {"gpu": "1", "kind": "hard", "cap": "180 W",
                                                    "pid": sleeper.pid, "why": "a process"})
        t.ok(status == 201 and becomes(node, 1, 180000), "a claim for as long as a process lives", held)

        t.ok(d.booked(made["id"], held["id"]), "both are in the ledger")
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
        t.ok(becomes(node, 0, 200000), "it is back: the cap, too", d.log())
        status, _ = d.ask("DELETE", f"/v1/claims/{made['id']}")
        t.ok(status == 204 and becomes(node, 0, 300000), "withdrawn: the original is back", d.log())


uwtest.together(starts, keys, caps)
t.done()
