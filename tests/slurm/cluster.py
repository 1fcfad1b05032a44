#!/usr/bin/python3
"""A Slurm cluster on this machine for the suite slurm: munge, MariaDB, slurmdbd, slurmctld and some slurmd, each node with a
simulated world of boards, its actuator and underwattd.  Everything listens on loopback or in a folder of its own, runs without a
service manager and is stopped by its own pid.

    with cluster.Cluster(nodes=2, plugin="") as c:
        p = c.srun("--gpus=1", "--gpu-power-cap=200", "true")

For a person, as root: tests/slurm/cluster.py [NODES] starts one and a shell in it.  Clients begin in a folder of the cluster: there
jobs without --output write slurm-NUMBER.out.
"""
import contextlib
import errno
import os
import pathlib
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import uwtest  # noqa: E402

USER, OTHER = "games", "news"    # of every Debian: no account is made for the tests
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "srun", "sacctmgr", "munged", "mariadbd", "mariadb-install-db", "setpriv")
READY_S = 60
SBIN = "/usr/sbin:/sbin"
DEBIAN_PLUGINS = next(map(str, pathlib.Path("/usr/lib").glob("*/slurm-wlm")), "/usr/lib/slurm")
PLUGIN = uwtest.BUILD / "src" / "slurm" / "spank_underwatt.so"


def machine(name, seed, boards):
    """A node whose boards' device files are numbered the other way round than NVML counts."""
    rows = "".join(f"  - {{model: v100, ideal: true, minor: {boards - 1 - i}}}\n" for i in range(boards))
    return f"name: {name}\nseed: {seed}\nset_limits: root\nboards:\n{rows}"


def missing():
    """Why no cluster can be had here, in one line; None: it can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    path = os.environ.get("PATH", "") + ":" + SBIN
    lacking = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if lacking:
        return f"a Slurm cluster needs {', '.join(lacking)}: tools/setup slurm installs them"
    with tempfile.TemporaryDirectory(prefix="uw-") as place:
        try:
            os.mknod(pathlib.Path(place, "device"), stat.S_IFCHR | 0o600, os.makedev(195, 0))
        except OSError as e:
            return f"a Slurm cluster needs device files, and mknod says: {e.strerror}"
    return None


def required(plugin=True):
    """Skip the test where there can be no cluster, or the plugin was not built."""
    why = missing()
    if not why and plugin and not PLUGIN.exists():
        why = "the SPANK plugin was not built: meson found no slurm/spank.h (libslurm-dev)"
    if why:
        uwtest.skip_all(why)


def free_ports(n):
    """The first of n ports in a row that nobody listens on."""
    for first in range(21000 + os.getpid() % 500 * 20, 32000, 20):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + n):
                    s = held.enter_context(socket.socket())
                    s.bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
    raise RuntimeError("no free ports")


def process(pid):
    """What tells this process from a later one of the same pid."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def removed(group):
    """A control group's folder; not while a process is there."""
    try:
        group.rmdir()
    except OSError as e:
        return e.errno == errno.ENOENT
    return True


class Cluster:
    """nodes: n1 … of `boards` simulated boards each.  plugin: arguments of spank_underwatt.so in plugstack.conf ("%n" in a path
    is a node's name; the socket stands there already), None: no plugin.  conf: more lines of slurm.conf.  cgroup: cgroup.conf;
    such nodes have names of their own on this machine, as Slurm names its control groups after them.  gres: the text of gres.conf, with {dev} for the folder of the device files.  counts: Gres of slurm.conf.  daemon: underwattd's
    configuration; None: no simulated nodes at all.  speed: of their clocks.  stepd: what
    a shell runs as slurmstepd, with {dir} for the cluster's folder.  preload: a library that slurmd begins with.  configless: slurmd has
    its files from slurmctld, and keeps them in its spool folder."""

    def __init__(self, nodes=2, boards=8, plugin=None, conf="", cgroup="", gres=None, daemon="", library=PLUGIN, speed=1, stepd=None, preload="", counts=None, configless=False):
        self.names = [f"p{os.getpid()}n{i}" if cgroup else f"n{i}" for i in range(1, nodes + 1)]
        self.boards = boards
        self.plugin, self.library = plugin, library
        self.conf, self.cgroup, self.gres = conf, cgroup, gres
        self.daemon_conf, self.speed, self.stepd, self.preload = daemon, speed, stepd, preload
        self.counts = counts or f"gpu:{boards}"
        self.configless = configless
        self.children = {}
        self.nodes, self.daemons = {}, {}

    def __enter__(self):
        began = time.monotonic()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="uw-slurm-", dir="/tmp"))
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.stack.callback(self.stop)
        try:
            self.dir.chmod(0o755)
            for name in ("etc", "run", "log", "state", "mysql", "mysql-tmp", "munge", "dev", "world", "plugins", "work"):
                (self.dir / name).mkdir()
            (self.dir / "work").chmod(0o1777)    # where clients submit from, and jobs write
            self.ports = free_ports(3 + len(self.names))
            # A job of another cluster on this machine has another number: a daemon looks for "slurmstepd: [NUMBER.STEP]".
            self.first_job = self.ports * 1000
            self.write()
            self.start()
        except BaseException:
            print("\n".join(f"# {line}" for line in self.logs()))
            self.stack.close()
            raise
        print(f"# a cluster of {len(self.names)} nodes was ready in {time.monotonic() - began:.1f} s", flush=True)
        return self

    def __exit__(self, *exc):
        if exc[0]:
            print("\n".join(f"# {line}" for line in self.logs()))
        self.stack.close()

    # ---- files ----

    def path(self, *parts):
        return str(self.dir.joinpath(*parts))

    def write(self):
        munge = self.dir / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        for path in (munge, munge / "key"):
            shutil.chown(path, "munge", "munge")
        for name in ("mysql", "mysql-tmp"):
            shutil.chown(self.dir / name, "mysql", "mysql")
        for i in range(self.boards):
            os.mknod(self.dir / "dev" / f"nvidia{i}", stat.S_IFCHR | 0o666, os.makedev(195, i))
            (self.dir / "dev" / f"nvidia{i}").chmod(0o666)
        host = socket.gethostname().split(".")[0]
        etc = self.dir / "etc"
        auth = f"AuthType=auth/munge\nAuthInfo=socket={munge}/sock\n"
        (etc / "slurmdbd.conf").write_text(
            f"{auth}DbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={self.ports + 1}\nSlurmUser=root\n"
            f"LogFile={self.path('log/slurmdbd.log')}\nPidFile={self.path('run/slurmdbd.pid')}\n"
            "StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=slurm\nStoragePass=slurm\n"
            "StorageLoc=slurm_acct\n")
        (etc / "slurmdbd.conf").chmod(0o600)
        (etc / "slurm.conf").write_text(f"""ClusterName=uwtest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={self.ports}
{auth}CredType=cred/munge
MpiDefault=none
StateSaveLocation={self.path('state')}
SlurmdSpoolDir={self.path('spool-%n')}
SlurmctldPidFile={self.path('run/slurmctld.pid')}
SlurmdPidFile={self.path('run/slurmd-%n.pid')}
SlurmctldLogFile={self.path('log/slurmctld.log')}
SlurmdLogFile={self.path('log/slurmd-%n.log')}
{'SlurmctldParameters=enable_configless' if self.configless else f"PlugStackConfig={self.path('etc/plugstack.conf')}"}
ProctrackType=proctrack/{'cgroup' if self.cgroup else 'linuxproc'}
TaskPlugin=task/{'cgroup' if self.cgroup else 'none'}
ReturnToService=2
SlurmdTimeout=120
MinJobAge=300
FirstJobId={self.first_job}
MaxJobCount=20000
KillWait=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self.ports + 1}
AccountingStoragePass={munge}/sock
AccountingStorageTRES=gres/gpu
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
GresTypes=gpu
{self.conf.format(plugins=self.path("plugins"), debian=DEBIAN_PLUGINS)}
""" + "".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.ports + 2 + i} CPUs=16 RealMemory=1000 "
              f"Gres={self.counts} State=UNKNOWN\n" for i, name in enumerate(self.names))
            + f"PartitionName=main Nodes={','.join(self.names)} Default=YES MaxTime=60 State=UP\n")
        self.write_gres(self.gres or f"Name=gpu File={{dev}}/nvidia[0-{self.boards - 1}]\n")
        if self.cgroup:
            (etc / "cgroup.conf").write_text(self.cgroup)
        self.write_plugstack(self.plugin)

    def write_gres(self, text):
        (self.dir / "etc" / "gres.conf").write_text(text.format(dev=self.dir / "dev"))

    def write_plugstack(self, plugin):
        line = "" if plugin is None else f"optional {self.library} socket={self.socket('%n')} {plugin}\n"
        (self.dir / "etc" / "plugstack.conf").write_text(line)

    def cached(self, name):
        """slurm.conf of a node without files of its own."""
        return self.path(f"spool-{name}", "conf-cache", "slurm.conf")

    def socket(self, name):
        """underwattd's socket on a node; "%n" for the plugin."""
        return self.path("world", name, "underwattd", "underwattd.sock")

    # ---- processes ----

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SALLOC_", "UNDERWATT_"))}
        env["PATH"] += ":" + SBIN
        env["SLURM_CONF"] = self.path("etc/slurm.conf")
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def spawn(self, name, *command, user=None, **env):
        """A service in the background; it is killed where the test's process ends without stopping it."""
        become = ["--reuid", user, "--regid", user, "--clear-groups"] if user else []
        with open(self.path("log", name + ".out"), "ab") as log:
            child = subprocess.Popen(["setpriv", *become, "--pdeathsig", "KILL", "--", *command], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, cwd=self.dir, env=self.env(**env))
        self.children[name] = child
        return child

    def run(self, *command, user=None, timeout=120, env=None, **kw):
        """A client of the cluster, to its end.  A user's does not inherit our groups."""
        become = ["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups", "--"] if user else []
        kw.setdefault("stdin", subprocess.DEVNULL)
        cwd = pathlib.Path(kw.pop("cwd", self.path("work")))
        if not cwd.is_relative_to(self.dir):
            raise ValueError(f"{cwd}: jobs write slurm-NUMBER.out there; it is outside of {self.dir}")
        return subprocess.run([*become, *map(str, command)], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                              env=self.env(**(env or {})), **kw)

    def popen(self, *command, user=USER, env=None, **kw):
        """A client in the background, killed with the cluster."""
        child = subprocess.Popen(["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups", "--",
                                  *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, cwd=self.path("work"), env=self.env(**(env or {})), **kw)
        self.stack.callback(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def wait(self, what, holds, *seen):
        if not uwtest.wait_for(holds, READY_S, step=0.05):
            raise RuntimeError(f"{what}: not within {READY_S} s {' '.join(map(str, seen))}")

    def start(self):
        self.start_nodes()
        mysql, munge = self.dir / "mysql", self.dir / "munge"
        self.spawn("munged", "munged", "--foreground", "--num-threads=10", f"--key-file={munge}/key", f"--socket={munge}/sock",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed", user="munge")
        own = ("--no-defaults", f"--datadir={mysql}", f"--tmpdir={mysql}-tmp")  # a server that starts removes others' tables in /tmp
        p = self.run("mariadb-install-db", *own, "--user=mysql", "--skip-test-db", "--auth-root-authentication-method=socket",
                     env={"TMPDIR": f"{mysql}-tmp"})
        if p.returncode:
            raise RuntimeError(f"mariadb-install-db: {p.stdout}{p.stderr}")
        self.spawn("mariadbd", "mariadbd", *own, "--skip-networking", f"--socket={mysql}/sock",
                   f"--pid-file={mysql}/pid", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0",
                   "--skip-log-bin", "--innodb-lock-wait-timeout=900", "--lc-messages-dir=/usr/share/mysql", user="mysql")
        self.wait("munged", (munge / "sock").exists)
        sql = ("create database if not exists slurm_acct; create user if not exists slurm@localhost identified by 'slurm';"
               " grant all on slurm_acct.* to slurm@localhost")
        self.wait("mariadbd", lambda: self.run("mariadb", "--no-defaults", "--skip-ssl", "-S", f"{mysql}/sock", "-u", "root",
                                               "-e", sql).returncode == 0)
        self.spawn("slurmdbd", "slurmdbd", "-D", MYSQL_UNIX_PORT=f"{mysql}/sock")
        self.wait("slurmdbd", lambda: self.run("timeout", "10", "sacctmgr", "-n", "show", "cluster").returncode == 0)
        for words in (["cluster", "uwtest"], ["account", "teama,teamb", "cluster=uwtest"],
                      ["user", f"{USER},{OTHER},root", "account=teama,teamb"]):
            self.run("sacctmgr", "-i", "-Q", "add", *words)
        self.spawn("slurmctld", "slurmctld", "-D", "-i")
        for name in self.names:
            self.start_slurmd(name)
        self.wait("all nodes idle", lambda: self.states() == ["idle"] * len(self.names), self.states())

    def start_nodes(self):
        if self.daemon_conf is None:
            return
        for i, name in enumerate(self.names, 1):
            node = self.stack.enter_context(uwtest.Node(machine=machine(name, i, self.boards), state=self.path("world", name), speed=self.speed))
            self.nodes[name] = node
            self.daemons[name] = node.daemon(self.daemon_conf)

    def start_slurmd(self, name):
        other = []
        if self.stepd:
            other = ["-d", self.path("slurmstepd")]
            pathlib.Path(other[1]).write_text("#!/bin/sh\n" + self.stepd.format(dir=self.dir) + "\n")
            pathlib.Path(other[1]).chmod(0o755)
        first = {"LD_PRELOAD": self.preload, "ASAN_OPTIONS": f"detect_leaks=0:log_path={self.dir}/sanitizer-slurmd"} if self.preload else {}
        slurmd = ["slurmd", "-D", "-N", name, *other]
        if not self.configless:
            return self.spawn(name, *slurmd, **first)
        # A /run of its own: munge is at its usual place there, and slurmd leaves a link to its files.
        place = f"mount -t tmpfs none /run && mkdir /run/munge && ln -s {self.dir}/munge/sock /run/munge/munge.socket.2 && exec \"$@\""
        return self.spawn(name, "unshare", "-m", "sh", "-c", place, "sh", *slurmd, "--conf-server", f"127.0.0.1:{self.ports}", SLURM_CONF=None, **first)

    def restart_slurmd(self, name):
        """As an upgrade does it: running jobs stay."""
        child = self.children.pop(name)
        child.terminate()
        child.wait(timeout=30)
        time.sleep(0.05)    # its start is known in ticks of 10 ms: a file written just before would count as younger
        self.start_slurmd(name)
        self.wait(f"{name} answers", lambda: name in self.run("timeout", "5", "sinfo", "-h", "-r", "-N", "-o", "%N").stdout.split())

    def stop(self):
        """Every process of the cluster; jobs' first."""
        if "slurmctld" in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.run("scancel", "-f", "-u", f"{USER},{OTHER},root", timeout=10)
                uwtest.wait_for(lambda: not self.stepds(), 5)
        for name in [*self.names, "slurmctld", "slurmdbd", "mariadbd", "munged"]:
            child = self.children.pop(name, None)
            if not child:
                continue
            child.terminate()
            try:
                child.wait(timeout=15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for pid, began in self.stepds().items():
            if process(pid) == began:
                os.kill(pid, 9)
        if self.cgroup:
            self.remove_groups()

    def remove_groups(self):
        """Slurm's control groups of these nodes, with what is left of jobs."""
        for name in self.names:
            for top in pathlib.Path("/sys/fs/cgroup").glob(f"*/slurm_{name}"):
                for group in sorted((p for p in [top, *top.rglob("*")] if p.is_dir()), key=lambda p: -len(p.parts)):
                    with contextlib.suppress(OSError, ValueError):
                        for pid in (group / "cgroup.procs").read_text().split():
                            os.kill(int(pid), 9)
                    uwtest.wait_for(lambda g=group: removed(g), 5)

    def stepds(self, job=""):
        """slurmstepd of this cluster, or of one of its jobs: those whose environment names its slurm.conf."""
        found = {}
        mine = {f"SLURM_CONF={conf}".encode() for conf in (self.path("etc/slurm.conf"), *map(self.cached, self.names))}
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if proc.joinpath("comm").read_text().strip() == "slurmstepd" and \
                        (not job or proc.joinpath("cmdline").read_text().startswith(f"slurmstepd: [{job}.")) and \
                        mine & set(proc.joinpath("environ").read_bytes().split(b"\0")):
                    found[int(proc.name)] = process(proc.name)
        return found

    # ---- what one asks it ----

    def logs(self, *names, lines=15):
        """The last lines of each log."""
        for path in sorted((self.dir / "log").glob("*")):
            if path.is_file() and (not names or path.name in names):
                text = path.read_text(errors="replace").splitlines()
                yield from [f"--- {path.name}", *text[-lines:]]

    def log(self, name):
        """slurmd's log of a node, or that of another service."""
        path = self.dir / "log" / (f"slurmd-{name}.log" if name in self.names else f"{name}.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def states(self):
        """Of each node, whatever partitions it is in."""
        p = self.run("timeout", "10", "sinfo", "-h", "-N", "-o", "%N %t")
        states = [line.split()[1] for line in sorted(set(p.stdout.splitlines()))]
        return ["idle" if s == "plnd" else s for s in states]    # planned for a job that waits

    def rested(self):
        """The nodes' states once no job is on any; one that is drained stays so."""
        return uwtest.wait_until(self.states, lambda s: s and not {"comp", "alloc", "mix"} & set(s))

    def emptied(self, seconds):
        """What squeue shows once no job is left, or after so many seconds."""
        p = uwtest.wait_until(lambda: self.run("squeue", "-h"), lambda p: p.returncode == 0 and not p.stdout.strip(), seconds)
        return p.stdout + p.stderr

    def srun(self, *words, user=USER, **kw):
        return self.run("srun", "--quiet", *words, user=user, **kw)

    def sbatch(self, script, *words, user=USER, **kw):
        """Submit a script given as text: its job's id, or the process where it was refused."""
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        p = self.run("sbatch", "--parsable", "-o", "/dev/null", *words, user=user, input=text, stdin=None, **kw)
        return p if p.returncode else int(p.stdout.split(";")[0])

    def unheard(self, name, job):
        """Lines of slurmd's log: the job's prologs to which the daemon gave no answer within 40 ms, as on a busy machine."""
        return [line for line in self.log(name).splitlines() if f"underwatt: prolog of job {job}: " in line and "in time" in line]

    def heard(self, name, script, *words, **kw):
        """A job that runs, of which the node's daemon has heard in time: another one in its place if it has not."""
        for _ in range(5):
            job = self.sbatch(script, *words, **kw)
            uwtest.must(uwtest.wait_for(lambda n=job: self.stepds(n) and all(uwtest.children_of(pid) for pid in self.stepds(n))), self.job(job))
            late = self.unheard(name, job)
            if not late:
                break
            print(f"# again: {late}", flush=True)
            self.run("scancel", job)
            self.ended(job)
        return job

    def job(self, number):
        """scontrol's words about a job."""
        p = self.run("scontrol", "-o", "show", "job", number)
        return dict(w.split("=", 1) for w in p.stdout.split() if "=" in w)

    def state(self, number):
        return self.job(number).get("JobState", "?")

    def ended(self, *numbers, seconds=uwtest.PATIENCE):
        """Wait until jobs have ended: their states."""
        over = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "?")
        return uwtest.wait_until(lambda: [self.state(n) for n in numbers], lambda s: not set(s) & set(over), seconds)

    def running(self, number):
        return uwtest.wait_until(lambda: self.state(number), lambda s: s == "RUNNING") == "RUNNING"

    def limits(self, name):
        """The boards' power limits on a node, in watts, by the numbers of their device files."""
        return [b["limit_mw"] // 1000 for b in reversed(self.nodes[name].status()["boards"])]

    def have(self, name, limits, seconds=uwtest.PATIENCE):
        """Wait until boards have these limits, {minor: watts}, and all others 300 W: what they have."""
        want = [limits.get(i, 300) for i in range(self.boards)]
        return uwtest.wait_until(lambda: self.limits(name), lambda now: now == want, seconds), want

    def jobs(self, name):
        """The running jobs of a node's daemon that Slurm registered, by number."""
        status, answer = self.daemons[name].ask("GET", "/v1/jobs")
        rows = answer["jobs"] if status == 200 else []
        return {int(j["name"][6:]): j for j in rows if j["running"] and (j["name"] or "").startswith("slurm:")}


def shell(nodes):
    why = missing()
    if why:
        print(why, file=sys.stderr)
        return 1
    with Cluster(nodes, plugin="" if PLUGIN.exists() else None) as c:
        print(f"SLURM_CONF={c.path('etc/slurm.conf')}; underwattd of n1: {c.socket('n1')}", flush=True)
        return subprocess.run([os.environ.get("SHELL", "/bin/sh")], cwd=c.path("work"), env=c.env(PATH=uwtest.programs_path() + ":" + SBIN), check=False).returncode


if __name__ == "__main__":
    sys.exit(shell(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
