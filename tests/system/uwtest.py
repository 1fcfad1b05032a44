"""What system tests share: TAP, the programs of the build, a simulated node.

    import uwtest
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=4) as node:
        p = node.run("underwatt", "list")
        t.ok(p.returncode == 0, "list", p.stderr)
    t.done()

A Node lives in a temporary directory of its own and is stopped by its own socket,
else by its own pid; nothing else is ever signalled.
"""
import concurrent.futures
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unicodedata

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UNDERWATT_BUILD", TOP / "build")).resolve()
# Meson puts the build's libraries there: nobody is to find the simulated one outside of
# its world.
os.environ.pop("LD_LIBRARY_PATH", None)
# Clients of NVML, as tests and benchmarks have them.
ZEUS = ("nvidia-ml-py==13.615.71", "zeus==0.16.0")
SANITIZED = os.environ.get("UNDERWATT_SANITIZED") == "1"
SOAK = os.environ.get("UNDERWATT_SOAK") == "1"    # `make soak`: all repetitions
USER = f"uid {os.geteuid()}" if os.geteuid() else "root"  # as a holder's text names it
PATIENCE = 60.0  # seconds until a condition that nothing else bounds counts as missed; the machine may be busy


def program(name):
    """Where the build has it: 'underwatt', 'underwatt-actuator', 'underwatt-sim'."""
    for path in sorted(BUILD.glob(f"src/*/{name}")):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError(f"{name}: not in {BUILD}/src")


def programs_path():
    """PATH with the build's programs first."""
    dirs = sorted({str(p.parent) for p in BUILD.glob("src/*/underwatt*")
                   if p.is_file() and os.access(p, os.X_OK)})
    return os.pathsep.join(dirs + [os.environ.get("PATH", "/usr/bin:/bin")])


class Tap:
    """For several threads at once, too."""

    def __init__(self):
        self.n = self.failed = 0
        self.lock = threading.Lock()

    def ok(self, good, name, why=""):
        with self.lock:
            self.n += 1
            print(f"{'' if good else 'not '}ok {self.n} - {name}")
            if not good:
                self.failed += 1
                for line in str(why).rstrip().splitlines()[-40:]:
                    print(f"# {line}")
            sys.stdout.flush()
        return bool(good)

    def equal(self, got, want, name):
        return self.ok(got == want, name, f"     got: {got!r}\nexpected: {want!r}")

    def near(self, got, want, tolerance, name):
        return self.ok(abs(got - want) <= tolerance, name,
                       f"     got: {got}\nexpected: {want} +- {tolerance}")

    def skip(self, name, why):
        with self.lock:
            self.n += 1
            print(f"ok {self.n} - {name} # SKIP {why}", flush=True)

    def done(self):
        print(f"1..{self.n}", flush=True)
        sys.exit(1 if self.failed else 0)


def spec():
    """docs/openapi.yaml as a judge of answers; without its libraries the test is skipped."""
    sys.path.insert(0, str(TOP / "tests"))
    try:
        from openapi import Spec
    except ImportError as e:
        skip_all(f"{e} (Debian: python3-jsonschema, python3-yaml)")
    return Spec(TOP / "docs" / "openapi.yaml")


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def alive(pid):
    """A process of that pid runs (one that has ended but was not waited for does not)."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def words_of(pid):
    """A process' arguments; [] if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def children_of(pid):
    """Pid -> arguments of each child that has not ended."""
    found = {}
    try:
        pids = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        pids = []
    for child in map(int, pids):
        words = words_of(child)
        if any(words[:1]):
            found[child] = words
    return found


def services(starter):
    """Pids of what underwatt-start runs: keeper, actuator, daemon; what does not run is not there."""
    found = {}
    own = words_of(starter)
    for pid, words in children_of(starter).items():
        # Until its exec() a child has the starter's arguments: it may become a helper.
        if words == own or "--become" in words or "--recover" in words:
            continue
        found["keeper" if "--keeper" in words else "actuator" if "--serve" in words else "daemon"] = pid
    for pid, words in children_of(found.get("keeper", 0)).items():
        if "--recover" not in words:
            found["actuator"] = pid
    return found


def fd_links(pid):
    """Each open descriptor of a process and what it is, less those that it closes
    meanwhile."""
    for f in os.listdir(f"/proc/{pid}/fd"):
        try:
            yield f, os.readlink(f"/proc/{pid}/fd/{f}")
        except FileNotFoundError:
            pass


def stepd(node, program):
    """A path by which a program runs with the name of Slurm's step daemon, as /proc shows it."""
    path = pathlib.Path(node.tmp, "as", program, "slurmstepd")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(shutil.which(program))
    return str(path)


def wait_for(what, seconds=PATIENCE, step=0.02):
    """The first true value of what(), or its last one after so many seconds.  A pause counts as `step`, however long it took:
    this process, or the whole machine, may have stood still."""
    while True:
        began = time.monotonic()
        value = what()
        if value or seconds <= 0:
            return value
        seconds -= time.monotonic() - began + step
        time.sleep(step)


def must(good, *seen):
    """What the next step of a test needs; seen: what there was instead."""
    if not good:
        raise AssertionError(" ".join(str(word() if callable(word) else word) for word in seen))


def wait_until(look, holds, seconds=PATIENCE):
    """What look() says once holds(it), or what it says last."""
    last = []

    def now():
        last[:] = [look()]
        return holds(last[0])
    wait_for(now, seconds)
    return last[0]


def timed(name, call, *args):
    """Its result; how long it took is a line of the test's output."""
    began = time.monotonic()
    result = call(*args)
    print(f"# {name}: {time.monotonic() - began:.0f} s", flush=True)
    return result


def together(*calls):
    """All of them at the same time, each to its end; what one raises is raised here."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def booked(ledger, *claims):
    """Wait until these claims are in the ledger: a daemon that is killed leaves them to the
    next one."""
    def rows():
        try:
            with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as db:
                db.execute("PRAGMA busy_timeout = 5000")
                return {row[0] for row in db.execute("SELECT id FROM claim WHERE ended_ms IS NULL")}
        except sqlite3.OperationalError:
            return set()
    return wait_for(lambda: set(claims) <= rows())


def ask_socket(path, url, body=None, seconds=5):
    """What a daemon that may be away answers at its socket in time, as JSON; {} if nothing."""
    link = http.client.HTTPConnection("node", timeout=seconds)
    try:
        link.sock = socket.socket(socket.AF_UNIX)
        link.sock.settimeout(seconds)
        link.sock.connect(path)
        link.request("POST" if body else "GET", url, json.dumps(body) if body else None,
                     {"Content-Type": "application/json"} if body else {})
        return json.loads(link.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        return {}
    finally:
        link.close()


def becomes_other(kw):
    """Whether subprocess is told to become another user."""
    return "user" in kw or "preexec_fn" in kw


class Guard:
    """nodeguard.py, told of the nodes of this process; it sees the end of its input when this process is killed."""

    def __init__(self):
        self.child, self.lock = None, threading.Lock()

    def tell(self, sign, node):
        with self.lock:
            if self.child is None:
                # A session of its own: what ends a test's group is to leave it.
                self.child = subprocess.Popen([sys.executable, "-S", "-E", str(TOP / "tests" / "system" / "nodeguard.py")], text=True,
                                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                              start_new_session=True)
            self.child.stdin.write(sign + json.dumps([node.state, node.runtime, node.tmp]) + "\n")
            self.child.stdin.flush()


guard = Guard()


class Node:
    """A simulated node.  machine: the text of a machine file.  Killed, a test leaves nothing of it."""

    def __init__(self, board="v100", count=4, machine=None, speed=1, may_set=None, state=None):
        self.args = ["--speed", str(speed)]
        self.machine = machine
        if machine is None:
            self.args += ["--board", board, "--count", str(count)]
        if may_set:
            self.args += ["--may-set", may_set]
        self.tmp = None
        self.state = state
        self.children = []
        self.daemons = []

    def __enter__(self):
        self.tmp = tempfile.mkdtemp(prefix="uw-")
        # Pages of progress lie in memory alone.
        self.runtime = tempfile.mkdtemp(prefix="uw-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        for path in (self.tmp, self.runtime):
            os.chmod(path, 0o755)  # other users of the node look in, too
        for name, mode in (("run", 0o700), ("run-other", 0o777)):
            os.mkdir(os.path.join(self.runtime, name))
            os.chmod(os.path.join(self.runtime, name), mode)
        self.state = self.state or os.path.join(self.tmp, "world")
        guard.tell("+", self)
        if self.machine is not None:
            path = os.path.join(self.tmp, "machine.yaml")
            pathlib.Path(path).write_text(self.machine)
            self.args += ["--machine", path]
        p = self.sim("start", *self.args)
        if p.returncode:
            self.remove()
            raise RuntimeError(f"underwatt-sim start: {p.returncode}: {p.stderr}")
        self.pid = self.status()["pid"]
        return self

    def __exit__(self, *exc):
        for daemon in self.daemons:
            daemon.kill()
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        self.stop()
        self.remove()

    def remove(self):
        for path in (self.tmp, self.runtime):
            shutil.rmtree(path, ignore_errors=True)
        guard.tell("-", self)

    def sim(self, *args, **kw):
        """underwatt-sim itself, about this node."""
        kw.setdefault("timeout", 60)
        return subprocess.run([program("underwatt-sim"), "--state", self.state, *map(str, args)],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)

    def env(self, other=False, **more):
        """other: for another user than the node's own."""
        env = {k: v for k, v in os.environ.items()
               if k not in ("CUDA_VISIBLE_DEVICES", "UNDERWATT_PROGRESS", "UNDERWATT_BOARDS", "UNDERWATT_NVML")}
        env["PATH"] = programs_path()
        # What a killed program leaves there goes with the node.
        env["XDG_RUNTIME_DIR"] = os.path.join(self.runtime, "run-other" if other else "run")
        env.update({k: str(v) for k, v in more.items()})
        return env

    def command(self, args):
        args = [str(a) for a in args]
        if args[0].startswith("underwatt") and "/" not in args[0]:
            args[0] = program(args[0])
        return [program("underwatt-sim"), "--state", self.state, "exec", "--", *args]

    def run(self, *args, env=None, timeout=120, **kw):
        """Run a program in this world to its end."""
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.command(args), capture_output=True, text=True, timeout=timeout,
                              env=self.env(becomes_other(kw), **(env or {})), **kw)

    def popen(self, *args, env=None, **kw):
        """Start a program in this world; it is killed when the node ends."""
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen(self.command(args), text=True,
                                 env=self.env(becomes_other(kw), **(env or {})), **kw)
        self.children.append(child)
        return child

    def sleeper(self, **kw):
        """A process that does nothing; it is killed when the node ends."""
        child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, **kw)
        self.children.append(child)
        return child

    def daemon(self, config="", actuator=True, args=(), wait=True, **kw):
        """underwattd with its actuator service in this world, ready (wait); config: the
        text of its file.  Stopped with the node, or by its own stop()."""
        d = Daemon(self, config, actuator, args, **kw)
        self.daemons.append(d)
        d.start(wait=wait)
        return d

    def train(self, *args, **kw):
        """A training job in the background, once it holds its boards."""
        before = self.status()["jobs"]
        child = self.popen("underwatt-sim", "train", *args, **kw)
        wait_for(lambda: self.status()["jobs"] > before or child.poll() is not None)
        return child

    def status(self):
        # The host may keep the writer from running in mid-write.
        p = wait_until(lambda: self.sim("status", "--json"), lambda p: "changes all the time" not in p.stderr)
        if p.returncode:
            raise RuntimeError(f"underwatt-sim status: {p.returncode}: {p.stderr}")
        return json.loads(p.stdout)

    def board(self, i):
        return self.status()["boards"][i]

    def fault(self, *words):
        p = self.sim("fault", *words)
        if p.returncode:
            raise RuntimeError(f"underwatt-sim fault: {p.returncode}: {p.stderr}")

    def kill(self):
        """kill -9 of the world's own process."""
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not alive(self.pid))

    def stop(self):
        if not os.path.isdir(self.state):
            return
        p = self.sim("stop")
        if p.returncode and alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)


def on_terminal(node, *args, columns=0, stream="stdout", **env):
    """Its output on a pseudo-terminal, or its standard error; columns 0: of unknown size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = node.popen("underwatt", *args, env={"LC_ALL": "C.UTF-8"} | env, **{"stdout": subprocess.DEVNULL, stream: slave})
    os.close(slave)
    said = b""
    try:
        while part := os.read(master, 4096):
            said += part
    except OSError:
        pass
    os.close(master)
    p.wait(timeout=PATIENCE)
    return said.decode()


def columns_of(line):
    """Columns that it takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def too_wide(said, columns):
    """Lines that exceed the terminal; a single word may, such as a path."""
    return [line for line in said.splitlines() if columns_of(line) > columns and len(line.split()) > 1]


class Daemon:
    """underwattd in a Node's world, and the actuator service that it uses.  Logs go to
    files (log(), actuator_log()); readiness comes by the service manager's protocol."""

    def __init__(self, node, config="", actuator=True, args=(), env=None, rules=None):
        self.node = node
        self.rules = rules  # text of the actuator's own configuration
        self.dir = tempfile.mkdtemp(prefix="daemon-", dir=node.tmp)
        self.config = os.path.join(self.dir, "underwattd.yaml")
        self.args = list(args)
        self.extra_env = dict(env or {})
        self.wants_actuator = actuator
        self.child = self.actuator = None
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.job_socket = os.path.join(node.state, "underwattd", "job.sock")
        self.actuator_socket = os.path.join(node.state, "actuator", "actuator.sock")
        self.ledger = os.path.join(node.state, "underwattd", "ledger.sqlite")
        self.notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notes.bind(os.path.join(self.dir, "notify"))
        self.notes.setblocking(False)
        self.configure(config)

    def configure(self, text):
        pathlib.Path(self.config).write_text(text)

    def _spawn(self, name, *args, env=None):
        with open(os.path.join(self.dir, name + ".log"), "ab") as log:
            st = os.fstat(log.fileno())  # as under journald: each line has its priority
            return self.node.popen(name, *args, stdout=log, stderr=log, env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}", **(env or {})})

    def start_actuator(self):
        rules = []
        if self.rules is not None:
            rules = ["--config", os.path.join(self.dir, "actuator.yaml")]
            pathlib.Path(rules[1]).write_text(self.rules)
        self.actuator = self._spawn("underwatt-actuator", "--serve", *rules, "--library",
                                    os.path.join(self.node.state, "lib", "libnvidia-ml.so.1"))
        if not wait_for(lambda: self._listens(self.actuator_socket) or
                        self.actuator.poll() is not None) or self.actuator.poll() is not None:
            raise RuntimeError(f"underwatt-actuator: {self.actuator_log()}")

    @staticmethod
    def _listens(path):
        """Somebody listens there; no connection is made."""
        try:
            with open("/proc/net/unix") as f:
                return any(line.split()[-1] == path and line.split()[3] == "00010000"
                           for line in f)
        except OSError:
            return False

    def start(self, wait=True):
        if self.wants_actuator and not (self.actuator and self.actuator.poll() is None):
            self.start_actuator()
        self._hears(None)    # what the daemon before this one has sent
        user = ["--user", "root"] if os.geteuid() == 0 else []
        self.child = self._spawn("underwattd", *user, "--config", self.config, *self.args,
                                 env={"NOTIFY_SOCKET": os.path.join(self.dir, "notify"),
                                      **self.extra_env})
        if wait and not self.told("READY=1", PATIENCE):
            raise RuntimeError(f"underwattd is not ready: {self.log()}")

    def _hears(self, word):
        """Whether one of the notifications that are here has this line; those before it are dropped, None: all."""
        with contextlib.suppress(BlockingIOError):
            while word not in self.notes.recv(4096).decode().split("\n"):
                pass
            return True
        return False

    def told(self, word, seconds=PATIENCE):
        """Wait for a line of its notifications; those before it are dropped."""
        seen = wait_for(lambda: "told" if self._hears(word) else self.child.poll() is not None and "ended", seconds)
        return seen == "told" or self._hears(word)    # its last words may have come just before its end

    @property
    def pid(self):
        return self.child.pid

    def log(self):
        return pathlib.Path(self.dir, "underwattd.log").read_text(errors="replace")

    def actuator_log(self):
        return pathlib.Path(self.dir, "underwatt-actuator.log").read_text(errors="replace")

    def ask(self, method, path, body=None, seconds=20):
        """One request to the daemon's API: status and answer (JSON where it is that)."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(seconds)
            s.connect(self.socket)
            s.sendall(head.encode() + b"\r\n" + data)
            answer = http.client.HTTPResponse(s, method=method)
            answer.begin()
            text = answer.read().decode()
            status, kind = answer.status, answer.getheader("Content-Type", "")
        return status, json.loads(text) if kind.startswith("application/json") else text

    def booked(self, *claims):
        return booked(self.ledger, *claims)

    def reload(self, text=None):
        """SIGHUP, once it has been dealt with."""
        if text is not None:
            self.configure(text)
        os.kill(self.pid, signal.SIGHUP)
        return self.told("RELOADING=1") and self.told("READY=1")

    def stop(self, seconds=PATIENCE):
        """SIGTERM; its exit status.  The actuator goes on."""
        self.child.terminate()
        return self.child.wait(timeout=seconds)

    def kill(self, actuator=True):
        """kill -9 of the daemon, and SIGTERM (then -9) for its actuator."""
        if self.child and self.child.poll() is None:
            self.child.kill()
        if self.child:
            self.child.wait()
        if actuator and self.actuator and self.actuator.poll() is None:
            self.actuator.terminate()
            try:
                self.actuator.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.actuator.kill()
                self.actuator.wait()
        if actuator:
            self.notes.close()


def venv(*packages):
    """Python with these packages from the registry, made once below .venv/; None
    where the registry is out of reach (why() says it)."""
    home = TOP / ".venv" / "clients"
    python = home / "bin" / "python3"
    done = home / ("with-" + "-".join(sorted(packages)))
    if done.exists():
        return str(python)
    home.parent.mkdir(exist_ok=True)
    steps = [["/usr/bin/python3", "-m", "venv", str(home)],
             [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
              "--retries", "1", "--timeout", "20", *packages]]
    for step in steps:
        try:
            p = subprocess.run(step, capture_output=True, text=True, timeout=400,
                               stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if p.returncode:
            return None
    done.touch()
    return str(python)


def debian_program(package, name):
    """A program of Debian's contrib, found or unpacked below .venv/ without being
    installed; None where it cannot be had."""
    found = shutil.which(name)
    if found:
        return found
    root = debian_unpacked("contrib", package)
    path = root and root / "usr" / "bin" / name
    return str(path) if path and path.exists() else None


def debian_unpacked(component, *packages):
    """The folder below .venv/ in which packages of contrib or non-free lie unpacked,
    without being installed; None where they cannot be had."""
    home = TOP / ".venv" / packages[0]
    done = home / ("with-" + "-".join(sorted(packages)))
    if done.exists():
        return home / "root"
    archive = _debian_archive()
    if not archive or not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None
    for part in ("lists/partial", "cache/archives/partial", "root"):
        (home / part).mkdir(parents=True, exist_ok=True)
    (home / "sources.list").write_text(f"deb {archive[0]} {archive[1]} {component}\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={home}/sources.list",
           "-o", "Dir::Etc::SourceParts=-", "-o", f"Dir::State::Lists={home}/lists",
           "-o", f"Dir::Cache={home}/cache", "-o", "Acquire::Retries=1"]
    try:
        for args in (["update"], ["download", *packages]):
            p = subprocess.run(apt + args, cwd=home, capture_output=True, text=True, timeout=120,
                               stdin=subprocess.DEVNULL)
            if p.returncode:
                return None
        for deb in home.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(home / "root")], check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    done.touch()
    return home / "root"


def _debian_archive():
    """(URI, suite) of the archive that this machine takes 'main' from."""
    files = [pathlib.Path("/etc/apt/sources.list")]
    files += sorted(pathlib.Path("/etc/apt").glob("sources.list.d/*"))
    for file in files:
        if not file.is_file():
            continue
        text = file.read_text(errors="replace")
        for block in text.split("\n\n"):
            keys = dict(line.split(":", 1) for line in block.splitlines()
                        if ":" in line and not line.startswith(("#", "deb ")))
            if "main" in keys.get("Components", "").split() and keys.get("Suites"):
                suite = keys["Suites"].split()[0]
                if "/" not in suite and "security" not in suite:
                    return keys["URIs"].split()[0], suite
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["deb"] and "main" in words[3:] and "security" not in words[2]:
                return words[1], words[2]
    return None


def zeusd_missing():
    """Why zeusd() found none."""
    if os.environ.get("UNDERWATT_ZEUSD") == "0":
        return "no zeusd here, and UNDERWATT_ZEUSD=0 forbids building it"
    if not shutil.which("cargo"):
        return "no zeusd here, and no cargo that could build it"
    return "no zeusd here, and cargo could not build it"


def zeusd():
    """Zeus' daemon: one that was built before, or built now where cargo is at hand (two
    minutes; UNDERWATT_ZEUSD=0 spares them); None else: zeusd_missing()."""
    home = TOP / ".venv" / "zeusd"
    path = home / "bin" / "zeusd"
    if shutil.which("zeusd"):
        return shutil.which("zeusd")
    if not path.exists() and os.environ.get("UNDERWATT_ZEUSD") != "0" and shutil.which("cargo"):
        home.mkdir(parents=True, exist_ok=True)
        with open(home / ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)    # another may be at it: one build is enough
            if not path.exists():
                with contextlib.suppress(subprocess.TimeoutExpired):    # zeusd_missing() says so
                    subprocess.run(["cargo", "install", "--quiet", "zeusd", "--version", "0.5.0", "--locked",
                                    "--root", str(home)], stdin=subprocess.DEVNULL, timeout=900, check=False)
    return str(path) if path.exists() else None


if __name__ == "__main__" and sys.argv[1:] == ["zeusd"]:
    print(zeusd() or "no zeusd")
