"""Fine-grained power of processors: what the kernel shows to root alone no user gets
through us (CVE-2020-8694), however it is asked.

underwattd runs as nobody with descriptors of a made-up powercap tree that root alone may
read; its power jumps every 20 ms.  bert asks every door as fast as it answers.  What he
gets are whole joules, a new value a boards.rapl_period (2 s) at most: counted, not timed.
"""
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import uwtest

t = uwtest.Tap()
if os.geteuid() != 0:
    uwtest.skip_all("root is needed to be several users")
PYTHON = "/usr/bin/python3"  # every user may run it
BERT, PERIOD_S, LOOK_S = 61002, 2, 7
N_ATTEMPTS = 0
CONFIG = """
node: {interval: 1 s}
boards: {powercap: %s, rapl_period: 2 s}
zeusd: {socket: %s}
"""
# Asks again and again for some seconds; every different answer comes back, with how long it took.
POLL = """
import json, socket, sys, time
path, line, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
began = time.monotonic(); seen = []; n = 0
while not n or time.monotonic() < began + seconds:
    s = socket.socket(socket.AF_UNIX); s.settimeout(8); s.connect(path)
    s.sendall((line + " HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n").encode()); got = b""
    while True:
        part = s.recv(65536)
        if not part: break
        got += part
    body = got.partition(b"\\r\\n\\r\\n")[2].decode()
    if not got.startswith(b"HTTP/1.1 200"): continue  # too many a second are refused
    n += 1
    if not seen or body != seen[-1]: seen.append(body)
print(json.dumps([seen, n, time.monotonic() - began]))
"""
# Listens to a stream.
FOLLOW = """
import json, socket, sys, time
path, line, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
began = time.monotonic(); got = b""
s = socket.socket(socket.AF_UNIX); s.settimeout(0.5); s.connect(path)
s.sendall((line + " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n").encode())
while time.monotonic() < began + seconds:
    try:
        got += s.recv(65536)
    except TimeoutError:
        pass
print(json.dumps([got.decode(), time.monotonic() - began]))
"""
DOOR = {"package-0": ("intel-rapl:0", 65), "dram-0": ("intel-rapl:0:0", 6)}


def as_user(uid, code, *args, timeout=60):
    return subprocess.run([PYTHON, "-c", code, *map(str, args)], capture_output=True, text=True, errors="replace",
                          user=uid, group=uid, extra_groups=[], timeout=timeout)


class Tree:
    """A powercap tree as the kernel's: counters of root, mode 0400; they count until it is stopped."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.counts = {}
        self.ending = threading.Event()
        for name, (zone, _) in DOOR.items():
            folder = self.path / zone
            folder.mkdir(parents=True)
            (folder / "name").write_text("dram\n" if name.startswith("dram") else name + "\n")
            (folder / "max_energy_range_uj").write_text("262143328850\n")
            (folder / "energy_uj").write_text("%020d\n" % 5000000)
            (folder / "energy_uj").chmod(0o400)
            self.counts[name] = 5.0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        files = {name: open(self.path / zone / "energy_uj", "r+b", buffering=0) for name, (zone, _) in DOOR.items()}
        last, high = time.monotonic(), False
        while not self.ending.wait(0.02):  # what is computed changes all the time
            now = time.monotonic()
            high = not high
            for name, f in files.items():
                self.counts[name] += (now - last) * DOOR[name][1] * (1.6 if high else 0.4)
                os.pwrite(f.fileno(), b"%020d\n" % int(self.counts[name] * 1e6), 0)
            last = now
        for f in files.values():
            f.close()

    def stop(self):
        self.ending.set()
        self.thread.join()


class House:
    """underwatt-start with the daemon as nobody, the actuator as root."""

    def __init__(self, node):
        tmp = pathlib.Path(node.tmp)
        self.tree = Tree(tmp / "powercap")
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.zeus = os.path.join(node.state, "underwattd", "zeus.sock")
        self.actuator = os.path.join(node.state, "actuator", "actuator.sock")
        (tmp / "underwattd.yaml").write_text(CONFIG % (self.tree.path, self.zeus))
        (tmp / "actuator.yaml").write_text(f"powercap: {self.tree.path}\n")
        self.log_file = tmp / "house.log"
        with open(self.log_file, "w", encoding="ascii") as log:
            self.p = node.popen("underwatt-start", "--user", "nobody", "--actuator-config", tmp / "actuator.yaml", "--",
                                "--config", tmp / "underwattd.yaml", stdout=log, stderr=log)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def poll(self, uid, line, door=None, seconds=LOOK_S):
        """Different answers, how many answers, seconds."""
        p = as_user(uid, POLL, door or self.socket, line, seconds)
        if p.returncode:
            return [], 0, p.stderr
        return json.loads(p.stdout)

    def get(self, uid, path, door=None):
        seen, n, why = self.poll(uid, "GET " + path, door, 0.01)
        return json.loads(seen[0]) if n else {"why": str(why)}

    def child(self, name):
        return uwtest.services(self.p.pid).get(name, 0)


def most_values(seconds):
    """So many different values can be seen in that time."""
    return seconds / PERIOD_S + 2


def attempt(name, refused, why=""):
    global N_ATTEMPTS
    N_ATTEMPTS += 1
    t.ok(refused, name, str(why)[:3000])


def polled(h, name, line, values, door=None):
    """bert polls; values(answer) are the figures of processors in it, in joules or watts."""
    seen, n, took = h.poll(BERT, line, door)
    try:
        got = [values(text) for text in seen]
    except (ValueError, KeyError, TypeError, IndexError) as e:
        attempt(name, False, f"{e!r} {seen[:2]} {took}")
        return
    changes = [v for i, v in enumerate(got) if i == 0 or v != got[i - 1]]
    whole = all(abs(x - round(x)) < 1e-9 for v in got for x in v["joules"])
    # Values may only be what whole joules make of them; power is whole joules over a period's samples.
    attempt(f"{name}: {n} answers, {len(changes)} values in {took:.1f} s",
            n > len(changes) and len(changes) <= most_values(took) and whole and changes[0],
            f"whole joules: {whole}\n{changes}")


def node_values(text):
    rapl = json.loads(text)["rapl"]
    return {"joules": [d["energy_j"] for d in rapl], "watts": [d["power_w"] for d in rapl]}


def metric_values(text):
    return {"joules": [float(v) for v in re.findall(r"^underwatt_cpu_energy_joules_total\{.*\} (\S+)$", text, re.M)],
            "watts": re.findall(r"^underwatt_cpu_power_watts\{.*\} (\S+)$", text, re.M)}


def zeus_energy(text):
    return {"joules": [v / 1e6 for d in json.loads(text).values() for v in d.values() if v is not None], "watts": []}


def zeus_power(text):
    return {"joules": [], "watts": list(json.loads(text)["power_mw"].values())}


def report_values(text):
    doc = json.loads(text)
    sums = doc["cpu"]
    return {"joules": [sums[k] for k in ("attributed_j", "idle_j", "unattributed_j", "energy_j", "meter_j", "half_j")] +
            [d[k] for d in doc["rows"] for k in ("attributed_j", "idle_j", "unattributed_j", "energy_j", "meter_j")] +
            [d["cpu_j"] for d in doc["days"] if d["cpu_j"] is not None], "watts": []}


def followed(name, door, line, key):
    p = as_user(BERT, FOLLOW, door, line, LOOK_S)
    text, took = json.loads(p.stdout)
    n = len(re.findall(key, text))
    attempt(f"{name}: {n} values in {took:.1f} s", text.startswith("HTTP/1.1 200") and
            (n <= most_values(took) if key == "cpu_mw" and "cpu" in line else n == 0), text[-1500:])


def doors(h):
    uwtest.together(
        lambda: polled(h, "GET /v1/node again and again", "GET /v1/node", node_values),
        lambda: polled(h, "zeusd's power of processors", "GET /cpu/get_power", zeus_power, h.zeus))
    uwtest.together(
        lambda: polled(h, "/metrics", "GET /metrics", metric_values),
        lambda: polled(h, "zeusd's energy of processors", "GET /cpu/get_cumulative_energy?cpu=true&dram=true",
                       zeus_energy, h.zeus))
    uwtest.together(
        lambda: polled(h, "the ledger's report", "GET /v1/report?by=cpu", report_values),
        lambda: followed("zeusd's stream of power", h.zeus, "GET /cpu/stream_power", "cpu_mw"),
        lambda: followed("zeusd's stream of boards", h.zeus, "GET /gpu/stream_power", "cpu_mw"),
        lambda: followed("live events", h.socket, "GET /v1/events?what=samples,cap,claim,job", "rapl"),
        lambda: followed("live events of samples", h.socket, "GET /v1/events?what=samples", "package-0"))
    ended = []
    for i in range(20):  # jobs that come and go end the books' stretches
        p = as_user(BERT, """
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(8); s.connect(sys.argv[1])
body = json.dumps({"name": "x", "gpus": [0], "pid": os.getpid()}).encode()
s.sendall(b"POST /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\nContent-Length: "
          + str(len(body)).encode() + b"\\r\\n\\r\\n" + body); print(s.recv(4096).decode().split()[1])
""", h.socket)
        ended.append(p.stdout.strip())
    polled(h, "the ledger's report while jobs come and go", "GET /v1/report?by=cpu", report_values)
    t.ok("201" in ended, "jobs did come and go", ended)


def descriptors(h, node):
    daemon, actuator = h.child("daemon"), h.child("actuator")

    def fds(pid):
        return [link for _, link in uwtest.fd_links(pid)]
    t.ok(sum("energy_uj" in f for f in fds(daemon)) == 2 and os.stat(f"/proc/{daemon}").st_uid == 65534,
         "the daemon is nobody and holds two counters", fds(daemon))
    for name, (zone, _) in DOOR.items():
        got = as_user(BERT, "import sys\ntry:\n open(sys.argv[1]).read(); print('read')\nexcept OSError as e: print(e.errno)",
                      h.tree.path / zone / "energy_uj").stdout.strip()
        attempt(f"to read the counter of {name}", got == "13", got)
    for pid, who in ((daemon, "daemon"), (actuator, "actuator")):
        got = as_user(BERT, "import os,sys\ntry:\n print(os.listdir(sys.argv[1]))\nexcept OSError as e: print(e.errno)",
                      f"/proc/{pid}/fd").stdout.strip()
        attempt(f"to list the {who}'s descriptors", got == "13", got)
        numbers = [f for f, link in uwtest.fd_links(pid) if "energy_uj" in link]
        got = as_user(BERT, "import sys\nfor p in sys.argv[1:]:\n try:\n  open(p).read(); print('read')\n except OSError as e: print(e.errno)",
                      *(f"/proc/{pid}/fd/{n}" for n in numbers)).stdout.split()
        attempt(f"to open them there ({len(numbers)})", numbers and set(got) == {"13"}, got)
        got = as_user(BERT, """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
try:
    fd = os.pidfd_open(int(sys.argv[1]))
    for n in sys.argv[2:]:
        got = libc.syscall(438, fd, int(n), 0)
        print("got" if got >= 0 else ctypes.get_errno())
except OSError as e:
    print(e.errno)
""", pid, *numbers).stdout.split()
        attempt(f"to have them given (pidfd_getfd of the {who})", got and set(got) <= {"1", "38"}, got)
        got = as_user(BERT, "import sys\ntry:\n open(sys.argv[1],'rb'); print('open')\nexcept OSError as e: print(e.errno)",
                      f"/proc/{pid}/mem").stdout.strip()
        attempt(f"to read the {who}'s memory", got == "13", got)
    got = as_user(BERT, "import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
                  "try:\n s.connect(sys.argv[1]); print('in')\nexcept OSError as e: print(e.errno)", h.actuator).stdout
    attempt("to ask the actuator for descriptors", got.strip() == "13", got)
    look = "import os; print([os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + f)])"
    for how in (("run", "--cap", "290W", "--gpus", "0"), ("measure", "--gpus", "0")):
        p = node.run("underwatt", *how, "--", PYTHON, "-c", look, user=BERT, group=BERT, extra_groups=[])
        attempt(f"descriptors that a job of underwatt {how[0]} inherits",
                p.stdout.startswith("[") and "energy_uj" not in p.stdout and "powercap" not in p.stdout, p.stdout + p.stderr)


def trees():
    """Trees that another user can have written are believed by nobody."""
    with uwtest.Node(count=1) as node:
        tmp = pathlib.Path(node.tmp)
        library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
        his = tmp / "his"
        his.mkdir()
        Tree(his / "powercap").stop()
        subprocess.run(["chown", "-R", f"{BERT}:{BERT}", str(his)], check=True)
        os.symlink(his / "powercap", tmp / "link")
        (tmp / "open").mkdir()
        Tree(tmp / "open" / "powercap").stop()
        (tmp / "open" / "powercap").chmod(0o777)
        for path, what in ((his / "powercap", "a user's tree"), (tmp / "link", "a link to it"),
                           (tmp / "open" / "powercap", "a tree that everybody may write")):
            conf = tmp / "conf.yaml"
            conf.write_text(f"powercap: {path}\n")
            p = node.run("underwatt-actuator", "--serve", "--config", conf, "--library", library, timeout=60)
            attempt(f"{what}, to the actuator", p.returncode == 2 and "powercap: " in p.stderr, f"{p.returncode} {p.stderr}")
            conf.write_text(f"boards: {{powercap: {path}}}\n")
            p = node.run("underwattd", "--user", "root", "--config", conf, timeout=60)
            attempt(f"{what}, to the daemon", p.returncode == 2 and "boards.powercap: " in p.stderr,
                    f"{p.returncode} {p.stderr}")


def main():
    with uwtest.Node(count=1) as node:
        h = House(node)
        try:
            if not t.ok(uwtest.wait_for(lambda: [d["power_w"] for d in h.get(0, "/v1/node").get("rapl", [])
                                                 if d["power_w"]][1:], 30, 0.2),
                        "the daemon has a package and its memory", h.log() + str(h.get(0, "/v1/node"))):
                t.done()
            exact = [d["energy_j"] for _ in range(3) for d in h.get(0, "/v1/node")["rapl"]]
            t.ok(any(abs(j - round(j)) > 1e-4 for j in exact), "there is something to hide: root sees it", exact)
            doors(h)
            descriptors(h, node)
            t.ok(len(h.log().splitlines()) < 200, "the log is no flood", h.log()[-3000:])
        finally:
            h.tree.stop()
    trees()
    t.ok(N_ATTEMPTS >= 25, f"{N_ATTEMPTS} attempts")
    t.done()


main()
