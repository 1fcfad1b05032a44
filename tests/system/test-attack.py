#!/usr/bin/python3
"""What local users may not do: at least forty attempts, each refused, and nothing changed.

Two users share a simulated node whose limits only root may set: anna trains on boards 0
and 1 and has capped board 0, bert on board 2; board 3 is idle.  bert attacks.  After
each attempt the boards' limits and their count of writes are what they were and the
daemon answers others.
"""
import json
import os
import pathlib
import resource
import socket
import subprocess
import time

import uwtest

t = uwtest.Tap()
if os.geteuid() != 0:
    uwtest.skip_all("root is needed to be several users")
PYTHON = "/usr/bin/python3"  # every user may run it
ANNA, BERT, CAP = 61001, 61002, 290000
N_ATTEMPTS = 0
CONFIG = """
node: {interval: 1 s}
zeusd: {socket: %s}
"""
# One raw exchange as another user: what is to be sent comes as hex.
RAW = """
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(8)
try:
    s.connect(sys.argv[1]); s.sendall(bytes.fromhex(sys.stdin.read()))
    got = b""
    while True:
        part = s.recv(65536)
        if not part: break
        got += part
except OSError as e:
    got = got if "got" in dir() and got else ("errno %d" % (e.errno or 110)).encode()
sys.stdout.buffer.write(got)
"""
# Jobs of one user and one process, begun one after the other and ended again if
# that is asked for: every answer's status and body.
JOBS = """
import http.client, json, os, socket, sys
def ask(method, path, body=None):
    c = http.client.HTTPConnection("x")
    c.sock = socket.socket(socket.AF_UNIX); c.sock.settimeout(8); c.sock.connect(sys.argv[1])
    c.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    r = c.getresponse()
    return r.status, r.read().decode()
said = []
for _ in range(40):
    said.append(ask("POST", "/v1/jobs", json.dumps({"name": "many", "pid": int(sys.argv[2])})))
    if said[-1][0] == 201 and sys.argv[3] == "end":
        ask("DELETE", "/v1/jobs/%d" % json.loads(said[-1][1])["id"])
print(json.dumps(said))
"""
# The descriptors of a program that a command of ours has started.
DESCRIPTORS = """
import os
for f in os.listdir("/proc/self/fd"):
    try:
        if int(f) > 2 and not os.readlink("/proc/self/fd/" + f).startswith("/proc/"): print(f, os.readlink("/proc/self/fd/" + f))
    except OSError:
        pass
print("end")
"""


def as_user(uid, code, *args, data="", timeout=60):
    return subprocess.run([PYTHON, "-c", code, *map(str, args)], input=data, capture_output=True, text=True,
                          errors="replace", user=uid, group=uid, extra_groups=[], timeout=timeout)


def ours(path, data):
    got = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(8)
        try:
            s.connect(path)
            s.sendall(data)
            while part := s.recv(65536):
                got += part
        except OSError as e:
            got = got or f"errno {e.errno or 110}".encode()
    return got.decode(errors="replace").replace("\r\n", "\n")


class House:
    """underwatt-start with the daemon as nobody, the actuator as root."""

    def __init__(self, node):
        self.node = node
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.job_socket = os.path.join(node.state, "underwattd", "job.sock")
        self.zeus = os.path.join(node.state, "underwattd", "zeus.sock")
        self.actuator = os.path.join(node.state, "actuator", "actuator.sock")
        self.log_file = pathlib.Path(node.tmp, "house.log")
        config = pathlib.Path(node.tmp, "underwattd.yaml")
        config.write_text(CONFIG % self.zeus)
        with open(self.log_file, "w", encoding="ascii") as log:
            self.p = node.popen("underwatt-start", "--user", "nobody", "--", "--config", config, stdout=log, stderr=log)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def raw(self, uid, data, path=None):
        """What comes back for these bytes; root asks from this process."""
        if isinstance(data, str):
            data = data.encode()
        if uid == os.geteuid():
            return ours(path or self.socket, data)
        return as_user(uid, RAW, path or self.socket, data=data.hex()).stdout

    def ask(self, uid, method, path, body=None, door=None):
        """Status (0: none) and answer."""
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(text.encode())}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        got = self.raw(uid, head + "\r\n" + text, door)
        status = int(got.split()[1]) if got.startswith("HTTP/1.") else 0
        return status, got.partition("\n\n")[2] or got  # the pipe is text: line ends are \n

    def get(self, uid, path):
        status, text = self.ask(uid, "GET", path)
        return json.loads(text) if status == 200 else {}

    def child(self, name):
        return uwtest.services(self.p.pid).get(name, 0)


def boards(node):
    return [(b["limit_mw"], b["limit_writes"]) for b in node.status()["boards"]]


def main():
    with uwtest.Node(machine="set_limits: root\nboards: [{model: v100, count: 4}]") as node:
        h = House(node)
        if not t.ok(uwtest.wait_for(lambda: h.get(0, "/v1/node"), 20), "the daemon answers", h.log()):
            t.done()
        t.ok(os.stat(f"/proc/{h.child('daemon')}").st_uid == 65534, "and is nobody")
        anna = node.train("--gpus", "0,1", "--epochs", "100000", user=ANNA, group=ANNA, extra_groups=[])
        bert = node.train("--gpus", "2", "--epochs", "100000", user=BERT, group=BERT, extra_groups=[])

        def job_of(uid):
            return next((j for j in h.get(0, "/v1/jobs")["jobs"] if j["uid"] == uid and j["running"]), None)
        t.ok(uwtest.wait_for(lambda: (job_of(ANNA) or {}).get("gpus") == [0, 1] and
                             (job_of(BERT) or {}).get("gpus") == [2], 20), "both jobs are found", h.log())
        job = job_of(ANNA)["id"]
        status, text = h.ask(ANNA, "POST", "/v1/claims", {"gpu": 0, "cap": "290 W", "for": "1 h", "why": "mine"})
        if not t.ok(status == 201, "anna may cap her own board", text):
            t.done()
        claim = json.loads(text)["id"]
        t.ok(uwtest.wait_for(lambda: boards(node)[0][0] == CAP, 60), "and it is in force", boards(node))
        before = boards(node)

        def is_free(board):
            """Nothing of ours is there any more, nor on its way."""
            gpu = h.get(0, "/v1/gpus")["gpus"][board]
            return gpu["cap"]["state"] == "free" and gpu["claims"] == 0 and boards(node)[board][0] == 300000

        def attempt(name, refused, why=""):
            """One attack: refused, nothing changed, others are served."""
            global N_ATTEMPTS
            N_ATTEMPTS += 1
            now = boards(node)
            alive = h.get(0, "/v1/node") != {}
            t.ok(refused and now == before and alive, name,
                 f"{why}\nrefused: {refused}\nboards before {before}\n         now {now}\nalive: {alive}")

        def asked(name, want, method, path, body=None, uid=BERT, door=None):
            status, text = h.ask(uid, method, path, body, door)
            attempt(name, status in want, f"{status} {text[:300]}")

        def once(name, uid, method, path, body, reason):
            """The attempt is one line of the log."""
            old = len(h.log())
            status, text = h.ask(uid, method, path, body)
            uwtest.wait_for(lambda: reason in h.log()[old:])
            lines = [l for l in h.log()[old:].splitlines() if "event=refused" in l or "event=http" in l]
            attempt(name, status == 403 and len(lines) == 1 and reason in lines[0], f"{status} {text}\n{lines}")

        def claimed(name, want, **body):
            asked(name, want, "POST", "/v1/claims", {"cap": "200 W", "for": "60 s", **body})

        uuid = h.get(0, "/v1/gpus")["gpus"][0]["uuid"]
        # --- one line a refusal
        once("a cap on another's board: one line", BERT, "POST", "/v1/claims", {"gpu": 0, "cap": "200 W"}, "may not claim")
        once("to withdraw another's claim: one line", BERT, "DELETE", f"/v1/claims/{claim}", None, "may not withdraw")
        once("to end another's job: one line", BERT, "DELETE", f"/v1/jobs/{job}", None, "may not touch")
        once("to have a board released: one line", BERT, "POST", "/v1/gpus/2/release", {}, "may not release")
        once("to have the configuration read: one line", BERT, "POST", "/v1/reload", None, "configuration")
        # --- other people's boards
        claimed("a cap on another's board", [403], gpu=0)
        claimed("… by its UUID", [403], gpu=uuid)
        claimed("… a soft one", [403], gpu=1, kind="soft")
        claimed("… through its job", [403], job=job)
        claimed("a cap on an idle board", [403], gpu=3)
        claimed("a budget on one's own board", [403], gpu=2, kind="hard")
        asked("to withdraw another's claim", [403, 404], "DELETE", f"/v1/claims/{claim}")
        asked("to end another's job", [403], "DELETE", f"/v1/jobs/{job}")
        asked("to have another's board released", [403], "POST", "/v1/gpus/0/release", {})
        asked("… one's own too (a reset is the administrator's)", [403], "POST", "/v1/gpus/2/release", {})
        asked("to take a board back", [403], "POST", "/v1/gpus/0/take-back")
        asked("to have the configuration read", [403], "POST", "/v1/reload")
        # --- values
        for cap, what in (("999 W", "above the board"), ("10 W", "under the board's minimum"), ("0 W", "nothing"),
                          ("-5 W", "a negative one"), ("1e30 W", "a huge one"), ("nan W", "no number"),
                          ("200", "no unit"), ("1000%", "ten times the default"), ("4294967496 mW", "32 bits and 200 mW")):
            claimed(f"a cap of {cap}: {what}", [400], gpu=2, cap=cap)
        claimed("a claim for ever so long", [400, 403], gpu=2, **{"for": "100000 h"})
        claimed("an unknown key", [400], gpu=2, uid=0)
        claimed("a claim bound to another's process", [400, 403], gpu=2, pid=anna.pid)
        claimed("a claim bound to init", [400, 403], gpu=2, pid=1)
        # --- jobs that are none
        sleeper = node.sleeper(user=ANNA, group=ANNA, extra_groups=[])
        mine = node.sleeper(user=BERT, group=BERT, extra_groups=[])
        for name, body in (("a job in another's name", {"gpus": [2], "uid": ANNA, "pid": mine.pid}),
                           ("a scheduler's job", {"gpus": [2], "source": "registered", "pid": mine.pid}),
                           ("a job of another's process", {"gpus": [2], "pid": sleeper.pid}),
                           ("a job of no process", {"gpus": [2], "pid": 2 ** 22 + 5}),
                           ("a board that is not there", {"gpus": [9], "pid": mine.pid}),
                           ("seventeen labels", {"gpus": [2], "pid": mine.pid,
                                                 "labels": {f"k{i}": "v" for i in range(17)}}),
                           ("a name that moves the cursor", {"gpus": [2], "pid": mine.pid, "name": "\x1b[2Jroot"}),
                           ("… with one byte of C1", {"gpus": [2], "pid": mine.pid, "name": "\x9b2Jroot"}),
                           ("a name that turns what follows", {"gpus": [2], "pid": mine.pid, "name": "a\u202etoor"}),
                           ("a label that moves the cursor", {"gpus": [2], "pid": mine.pid, "labels": {"k": "\x1b[2J"}}),
                           ("a label of two lines", {"gpus": [2], "pid": mine.pid, "labels": {"k": "a\nuid=0"}}),
                           ("a label's key that turns", {"gpus": [2], "pid": mine.pid, "labels": {"k\u2066": "v"}}),
                           ("a job in Slurm's name", {"gpus": [2], "pid": mine.pid, "name": "slurm:4711"}),
                           ("… in Kubernetes'", {"gpus": [2], "pid": mine.pid, "name": "k8s:0-1-2"})):
            status, text = h.ask(BERT, "POST", "/v1/jobs", {"name": "x", **body})
            attempt(name, status in (400, 403, 404, 409), f"{status} {text[:300]}")
        # --- all places for jobs
        taken = json.loads(as_user(BERT, JOBS, h.socket, mine.pid, "keep").stdout)
        made = [json.loads(text)["id"] for status, text in taken if status == 201]
        attempt("forty jobs of one user", 0 < len(made) <= 32 and taken[-1][0] == 409, taken[-1])
        status, text = h.ask(ANNA, "POST", "/v1/jobs", {"name": "TOPSECRET", "gpus": [0], "pid": sleeper.pid})
        t.ok(status == 201, "anna finds a place all the same", text)
        hers = json.loads(text).get("id")
        for i in made:
            h.ask(BERT, "DELETE", f"/v1/jobs/{i}")
        lines = len(h.log().splitlines())
        said = json.loads(as_user(BERT, JOBS, h.socket, mine.pid, "end").stdout)
        begun = sum(status == 201 for status, _ in said)    # the slower we are, the more
        lines = len(h.log().splitlines()) - lines
        attempt("to begin and end jobs for ever", said[-1][0] == 503 and lines < 40 + 2 * begun,
                f"{said[-1]} {begun} begun, {lines} lines")
        body = {"name": "x", "gpus": [0], "pid": mine.pid, "cap": "200 W"}
        made = uwtest.wait_for(lambda: (lambda a: a[0] == 201 and a[1])(h.ask(BERT, "POST", "/v1/jobs", body)), 20, 0.5)
        over = json.loads(made or "{}").get("id")
        told = h.get(BERT, f"/v1/jobs/{over}")
        attempt("a job over another's board: it has no board, and is told whose it is",
                told.get("gpus") == [] and f"GPU 0 belongs to job {hers} of" in told["held"], f"{made} {told}")
        claimed("… a cap through that", [403, 404], job=over)
        claimed("… and there by its number", [403], job=over, gpu=0)
        attempt("to be told what another's job is called",
                told.get("held") and "TOPSECRET" not in json.dumps([made, told, h.get(BERT, "/v1/jobs")]), f"{made} {told}")
        h.ask(BERT, "DELETE", f"/v1/jobs/{over}")
        h.ask(ANNA, "DELETE", f"/v1/jobs/{hers}")
        # --- a tiny process on another's board, to own it
        tiny = node.train("--gpus", "1", "--workload", "none", user=BERT, group=BERT, extra_groups=[])
        claimed("a tiny process on another's board", [403], gpu=1)
        t.ok(uwtest.wait_for(lambda: job_of(ANNA)["foreign"], 20, 0.2), "it is noticed", job_of(ANNA))
        claimed("… once it is known there", [403], gpu=1)
        status, text = h.ask(ANNA, "POST", "/v1/claims", {"gpu": 1, "cap": "210 W", "for": "60 s"})
        attempt("… and she, who was only found there, no longer either", status == 403, f"{status} {text}")
        tiny.kill()
        tiny.wait()

        def hers_again():
            status, text = h.ask(ANNA, "POST", "/v1/claims", {"gpu": 1, "cap": "300 W", "for": "1 s"})
            return status == 201
        t.ok(uwtest.wait_for(hers_again, 15, 0.5), "until it has gone", h.log()[-1500:])
        uwtest.wait_for(lambda: len(h.get(0, "/v1/claims").get("claims", [0, 0])) == 1, 10)
        before = boards(node)
        # --- the page's door
        page = """
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(5)
try:
    s.connect(sys.argv[1])
    fds = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(int(sys.argv[3]))]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([eval(sys.argv[2])], rights)
    print(s.recv(1000))
except OSError as e:
    print("errno", e.errno)
"""
        for name, packet, fds in (("a page for another's job", f"b'page {job}'", 1), ("a page without a page", f"b'page {job}'", 0),
                                  ("a hundred descriptors", f"b'page {job}'", 100), ("a page for job -1", "b'page -1'", 1),
                                  ("sixty kilobytes at the page's door", "b'page ' + b'9' * 60000", 1)):
            p = as_user(BERT, page, h.job_socket, packet, fds)
            attempt(name, "done" not in p.stdout and ("refused" in p.stdout or "errno" in p.stdout or p.stdout == "b''\n"),
                    p.stdout + p.stderr)
        early = subprocess.Popen([PYTHON, "-c", """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(5)
s.connect(sys.argv[1]); print("in", flush=True); sys.stdin.readline(); s.send(b"page 1")
print(s.recv(1000))
""", h.job_socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=ANNA, group=ANNA, extra_groups=[])
        early.stdout.readline()
        crowd = as_user(BERT, "import socket,sys,time\nheld=[]\nfor i in range(200):\n s=socket.socket(socket.AF_UNIX,"
                        "socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); held.append(s); time.sleep(0.002)\nprint(len(held))",
                        h.job_socket)
        said = early.communicate("\n", timeout=30)[0]
        attempt("to crowd others out at the page's door", "refused" in said, f"{said} {crowd.stdout} {crowd.stderr}")
        # --- other doors
        ours = {h.p.pid, h.child("daemon"), h.child("actuator"), h.child("keeper")}
        inodes = {link[8:-1] for p in ours for _, link in uwtest.fd_links(p) if link.startswith("socket:")}
        named = {l.split()[6]: l.split()[7] for l in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]
                 if len(l.split()) > 7}
        attempt("no name that anybody may send to", not [n for i, n in named.items() if i in inodes and n.startswith("@")], named)
        got = as_user(BERT, "import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n"
                      "try:\n s.sendto(b'READY=1',sys.argv[1]); print('sent')\nexcept OSError as e: print(e.errno)",
                      h.actuator + ".notify").stdout
        attempt("to fill the queue of the daemon's signs of life", got.strip() == "13", got)
        for uid, who in ((BERT, "bert"), (ANNA, "anna")):
            got = as_user(uid, "import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
                          "try:\n s.connect(sys.argv[1]); print('in')\nexcept OSError as e: print(e.errno)", h.actuator).stdout
            attempt(f"{who} at the actuator's door", got.strip() == "13", got)
        asked("another's board through zeusd's door", [403], "POST",
              "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=150000&block=true", door=h.zeus)
        asked("… two of them", [403], "POST",
              "/gpu/set_power_limit?gpu_ids=0,1&power_limit_mw=150000&block=true", door=h.zeus)
        asked("… persistence mode", [400, 403, 404], "POST", "/gpu/set_persistence_mode?gpu_ids=0&enabled=false", door=h.zeus)
        asked("… clocks", [400, 403, 404, 500], "POST",
              "/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=100&max_clock_mhz=200&block=true", door=h.zeus)
        p = node.run(PYTHON, str(uwtest.TOP / "tests/system/nvmlc.py"), "init", ";", "set", "0", "150000", user=BERT, group=BERT,
                     extra_groups=[])
        attempt("the driver itself", p.stdout.splitlines()[-1].startswith("4 "), p.stdout + p.stderr)
        # --- files
        for path in (os.path.join(node.state, "underwattd", "ledger.sqlite"), h.socket, os.path.join(node.state, "actuator")):
            code = ("import os,sys\ntry:\n p=sys.argv[1]\n"
                    " open(p,'ab') if not os.path.isdir(p) else os.symlink('/etc/passwd', p+'/x')\n print('open')\n"
                    "except OSError as e: print(e.errno)")
            got = as_user(BERT, code, path).stdout.strip()
            attempt(f"to write to {os.path.basename(path)}", got in ("13", "1", "2", "6"), got)
            got = as_user(BERT, "import os,sys\ntry:\n os.rename(sys.argv[1], sys.argv[1]+'x'); print('moved')\n"
                          "except OSError as e: print(e.errno)", path).stdout.strip()
            attempt(f"to move {os.path.basename(path)} away", got in ("13", "1", "2"), got)
        got = as_user(BERT, "import sys\ntry:\n open(sys.argv[1],'rb').read(); print('read')\nexcept OSError as e: print(e.errno)",
                      os.path.join(node.state, "underwattd", "ledger.sqlite")).stdout.strip()
        attempt("to read the ledger", got in ("13", "2"), got)
        got = as_user(BERT, "import os,sys,signal\nfor p in sys.argv[1:]:\n try:\n  os.kill(int(p), signal.SIGSTOP); print('hit')\n"
                      " except OSError as e: print(e.errno)", h.child("daemon"), h.child("actuator"), h.child("keeper")).stdout.split()
        attempt("to stop daemon, actuator and keeper", got == ["1"] * 3, got)
        # --- what one may see
        names = [j for j in h.get(BERT, "/v1/jobs")["jobs"] if j["uid"] == ANNA]
        attempt("to see what another runs", names and all(j["name"] is None and j["labels"] is None and j["pid"] is None
                                                          for j in names), names)
        rows = uwtest.wait_for(lambda: json.loads(h.ask(BERT, "GET", "/v1/report?by=job")[1])["rows"])
        attempt("… in the report", rows and all(row["uid"] == BERT for row in rows), rows)
        asked("to trick the ledger", [200, 400], "GET", "/v1/report?by=label:x');DROP%20TABLE%20jobs;--")
        t.ok(h.get(0, "/v1/report?by=job").get("rows") is not None or h.ask(0, "GET", "/v1/report?by=job")[0] == 200,
             "the ledger is as it was")
        # --- the protocol
        crlf = "\r\n"
        ok_head = f"GET /v1/node HTTP/1.1{crlf}Host: x{crlf}"
        for name, data in (
                ("a path that climbs", f"GET /v1/gpus/../../etc/passwd HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("… encoded", f"GET /v1/gpus/%2e%2e/%2e%2e/etc/passwd HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("a NUL in the path", f"GET /v1/gpus/0%00/explain HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("a slash within a name", f"GET /v1/gpus/0%2fexplain HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("two slashes", f"GET //v1//node HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("another host's URL", f"GET http://evil/v1/node HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("TRACE", f"TRACE /v1/node HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("CONNECT", f"CONNECT x:1 HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf*2}"),
                ("a header of 64 KiB", ok_head + "X: " + "a" * 65536 + crlf * 2),
                ("a thousand headers", ok_head + "".join(f"X{i}: a{crlf}" for i in range(3000)) + crlf),
                ("a request line of 64 KiB", f"GET /{'a' * 65536} HTTP/1.1{crlf*2}"),
                ("a body of a megabyte", f"POST /v1/claims HTTP/1.1{crlf}Host: x{crlf}Content-Length: 1048576{crlf}"
                                         f"Content-Type: application/json{crlf*2}" + "a" * 200000),
                ("two lengths", f"POST /v1/claims HTTP/1.1{crlf}Host: x{crlf}Content-Length: 2{crlf}Content-Length: 60{crlf*2}{{}}"),
                ("a length and chunks", f"POST /v1/claims HTTP/1.1{crlf}Host: x{crlf}Content-Length: 4{crlf}"
                                        f"Transfer-Encoding: chunked{crlf*2}0{crlf*2}"),
                ("a negative length", f"POST /v1/claims HTTP/1.1{crlf}Host: x{crlf}Content-Length: -1{crlf*2}"),
                ("no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + "\x00" * 200)):
            got = h.raw(BERT, data)
            bad = got == "" or got.startswith("errno") or got.split()[1][0] in "45"
            attempt(name, bad and "root:" not in got, got[:300])
        for name, body in (("ten thousand brackets", "[" * 10000), ("a key twice", '{"gpu": 2, "gpu": 0, "cap": "200 W"}'),
                           ("no UTF-8", '{"gpu": 2, "cap": "200 W", "why": "\udcff"}'.encode("utf-8", "surrogateescape")),
                           ("an array", "[1]"), ("half of an object", '{"gpu": 2, "cap": "200 W"'), ("nothing", "")):
            data = body if isinstance(body, bytes) else body.encode()
            got = h.raw(BERT, f"POST /v1/claims HTTP/1.1{crlf}Host: x{crlf}Connection: close{crlf}Content-Type: application/json"
                              f"{crlf}Content-Length: {len(data)}{crlf*2}".encode() + data)
            attempt(f"a body: {name}", got.startswith("HTTP/1.1 4"), got[:300])
        # --- many
        flood = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (12000, 12000))
held = []
for i in range(10000):
    s = socket.socket(socket.AF_UNIX); s.settimeout(0.2)
    try:
        s.connect(sys.argv[1])
        s.sendall(sys.argv[2].encode())
        held.append(s)
    except OSError:
        s.close()
print(len(held), flush=True)
sys.stdin.readline()
"""
        resource.setrlimit(resource.RLIMIT_NOFILE, (12500, max(12500, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        for name, begin in (("ten thousand idle connections", ""), ("ten thousand half requests", "POST /v1/claims HTTP/1.1\r\nHo")):
            p = subprocess.Popen([PYTHON, "-c", flood, h.socket, begin], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, preexec_fn=lambda: (os.setgroups([]), os.setresgid(BERT, BERT, BERT),
                                                                os.setresuid(BERT, BERT, BERT)))
            p.stdout.readline()
            began = time.monotonic()
            served = h.get(ANNA, "/v1/gpus") != {}
            took = time.monotonic() - began
            fds = len(os.listdir(f"/proc/{h.child('daemon')}/fd"))
            attempt(name, served and fds < 1000, f"anna served: {served}, {took:.2f} s; {fds} descriptors")
            p.communicate("\n")
        # --- a pid used again
        last = pathlib.Path("/proc/sys/kernel/ns_last_pid")
        first = node.sleeper(user=ANNA, group=ANNA, extra_groups=[])
        status, text = h.ask(ANNA, "POST", "/v1/claims", {"gpu": 1, "cap": "300 W", "for": "1 h", "pid": first.pid})
        t.ok(status == 201, "a claim bound to one's own process", text)
        bound = json.loads(text).get("id")
        first.kill()
        first.wait()
        again = None
        if os.access(last, os.W_OK):
            for _ in range(50):
                last.write_text(str(first.pid - 1))
                again = node.sleeper(user=BERT, group=BERT, extra_groups=[])
                if again.pid == first.pid:
                    break
                again.kill()
                again.wait()
        gone = uwtest.wait_for(lambda: bound not in [c["id"] for c in h.get(0, "/v1/claims")["claims"]])
        attempt("a pid used again keeps no claim alive", bool(gone), f"{again and again.pid} {first.pid}")
        if again:
            again.kill()
            again.wait()
        # --- a claim does not outlive the right to it
        status, text = h.ask(BERT, "POST", "/v1/claims", {"gpu": 2, "cap": "290 W", "for": "1 h"})
        t.ok(status == 201, "bert may cap his own board", text)
        his = json.loads(text).get("id")
        guest = node.train("--gpus", "2", "--workload", "none", user=ANNA, group=ANNA, extra_groups=[])
        gone = uwtest.wait_for(lambda: his not in [c["id"] for c in h.get(0, "/v1/claims")["claims"]], 20, 0.2)
        t.ok(gone, "and no longer once another's process is there, too", h.get(0, "/v1/claims"))
        guest.kill()
        guest.wait()
        # --- boards named before anybody comes: whoever computes there is not ruled from beside
        squat = node.sleeper(user=BERT, group=BERT, extra_groups=[])
        status, text = h.ask(BERT, "POST", "/v1/jobs", {"name": "squat", "gpus": [3], "pid": squat.pid, "cap": "290 W"})
        t.ok(status == 201, "bert may run a job on an idle board", text)
        status, text = h.ask(BERT, "POST", "/v1/claims", {"gpu": 3, "cap": "285 W", "for": "1 h", "why": "squat"})
        t.ok(status == 201 and uwtest.wait_for(lambda: boards(node)[3][0] == 285000, 60), "and cap it", text)
        guest = node.train("--gpus", "3", "--epochs", "100000", user=ANNA, group=ANNA, extra_groups=[])
        gone = uwtest.wait_for(lambda: boards(node)[3][0] == 300000 and
                               not [c for c in h.get(0, "/v1/claims")["claims"] if c["gpu"] == 3], 30, 0.2)
        uwtest.wait_for(lambda: is_free(2) and is_free(3), 20)
        before = boards(node)
        attempt("to cap whoever comes to a board that one has named", bool(gone), h.get(0, "/v1/claims"))
        claimed("… by another claim", [403], gpu=3, cap="280 W")
        lost = h.get(BERT, "/v1/gpus/3/explain").get("withdrawn") or {}
        t.ok("another user computes there" in lost.get("text", ""), "explain says why", lost)
        t.equal(sum("event=withdrawn" in l and f"uid={BERT}" in l and "GPU 3" in l for l in h.log().splitlines()), 1,
                "and so does the log, once")
        for p in (guest, squat):
            p.kill()
            p.wait()
        # --- what a command's program may lay hands on: the command's connections speak for whoever started it
        for words in (["run", "--gpus", "3", "--goal", "edp"], ["run", "--gpus", "3", "--cap", "290"], ["measure", "--gpus", "3"],
                      ["run", "--local", "--gpus", "3", "--goal", "edp"],
                      ["sweep", "--gpus", "3", "--from", "290", "--to", "300", "--step", "10", "--runs", "1"]):
            p = node.run("underwatt", *words, "--", PYTHON, "-c", DESCRIPTORS, timeout=60)
            uwtest.wait_for(lambda: is_free(3), 20)
            before = boards(node)
            attempt(f"descriptors of underwatt {' '.join(words[:2])}'s program", p.stdout.startswith("end\n"), p.stdout + p.stderr)
        # --- what was written about it
        log = h.log()
        t.ok("\x1b" not in log, "nothing moves the cursor of who reads the log")
        t.ok(log.count("refused") >= 1 and len(log.splitlines()) < 400, "refusals are logged, and are no flood",
             f"{len(log.splitlines())} lines\n{log[-3000:]}")
        inodes = {link[8:-1] for _, link in uwtest.fd_links(h.child("daemon")) if link.startswith("socket:")}
        listening = [l for name in ("tcp", "tcp6") for l in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]
                     if l.split()[9] in inodes]
        t.ok(not listening, "nobody listens on TCP", listening)
        t.ok(N_ATTEMPTS >= 40, f"{N_ATTEMPTS} attempts")
        for p in (sleeper, mine):
            p.kill()
            p.wait()
        status, _ = h.ask(ANNA, "DELETE", f"/v1/claims/{claim}")
        t.ok(status in (200, 204) and uwtest.wait_for(lambda: boards(node)[0][0] == 300000, 10), "anna takes her cap back")
    t.done()


main()
