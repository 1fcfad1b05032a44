#!/usr/bin/python3
"""Against NVIDIA's own libnvidia-ml 535 on a machine without a driver.

The library comes from Debian's non-free component, through an apt configuration of
this test's own in a temporary directory; nothing is installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import uwtest

if os.path.exists("/proc/driver/nvidia"):
    uwtest.skip_all("this machine has an NVIDIA driver")
for tool in ("apt-get", "dpkg-deb"):
    if not shutil.which(tool):
        uwtest.skip_all(f"no {tool}")

t = uwtest.Tap()
tmp = pathlib.Path(tempfile.mkdtemp(prefix="uw-real-"))


def fetch():
    """The library's path, or None and why."""
    for folder in ("state/lists/partial", "cache/archives/partial", "x"):
        (tmp / folder).mkdir(parents=True)
    (tmp / "sources.list").write_text("deb http://deb.debian.org/debian bookworm non-free\n")
    (tmp / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{tmp}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'Dir::State "{tmp}/state";\nDir::State::status "/var/lib/dpkg/status";\n'
        f'Dir::Cache "{tmp}/cache";\nAcquire::Languages "none";\nAcquire::Retries "1";\n'
        f'Acquire::http::Timeout "20";\nAPT::Sandbox::User "root";\n')
    env = {**os.environ, "APT_CONFIG": str(tmp / "apt.conf")}
    for command in (["apt-get", "-q", "update"], ["apt-get", "-q", "download", "libnvidia-ml1"]):
        try:
            p = subprocess.run(command, cwd=tmp, env=env, capture_output=True, text=True,
                               timeout=120, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, f"{command[2]}: no answer within 120 s"
        if p.returncode:
            return None, (p.stderr.strip().splitlines() or [f"{command[2]} failed"])[-1]
    deb = next(tmp.glob("libnvidia-ml1_*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(deb), str(tmp / "x")], check=True)
    return next(tmp.glob("x/usr/lib/*/nvidia/current/libnvidia-ml.so.1")), ""


def nodes():
    return sorted(p.name for p in pathlib.Path("/dev").glob("nvidia*"))


def underwatt(*args, user=None, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "SUDO"))}
    who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**clean, **env}, cwd="/", **who)


try:
    library, why = fetch()
    if library is None:
        shutil.rmtree(tmp)
        uwtest.skip_all(f"libnvidia-ml1 cannot be had: {why}")
    tmp.chmod(0o755)
    # Wherever the build lies, nobody can run this copy.
    program = shutil.copy(uwtest.program("underwatt"), tmp / "underwatt")
    nobody = 65534 if os.geteuid() == 0 else None
    before = nodes()

    p = underwatt("list", user=nobody, UNDERWATT_NVML=str(library))
    t.equal(p.returncode, 1, "list with the real library and no driver: 1")
    t.ok("Driver Not Loaded (NVML 9)" in p.stderr and "nvmlInit" in p.stderr,
         "… says it in the driver's own words", p.stderr)
    t.ok("->" in p.stderr and not p.stdout, "… and what to do", p.stderr)
    p = underwatt("doctor", "--boards", str(library), user=nobody)
    t.ok(p.returncode == 1 and "NVML 12.535" in p.stdout, "doctor: finds library 535", p.stdout)
    t.ok("Driver Not Loaded" in p.stdout, "… and no driver", p.stdout)
    t.ok("function" not in p.stdout, "… which lacks nothing that we use", p.stdout)
    p = underwatt("list", user=nobody, LD_LIBRARY_PATH=str(library.parent))
    t.ok(p.returncode == 1 and "Driver Not Loaded" in p.stderr, "found as the system's, too", p.stderr)
    t.equal(nodes(), before, "no device node was made")
    if nobody is not None:
        p = underwatt("list", "--boards", str(library))
        t.ok(p.returncode == 1 and "driver is not loaded" in p.stderr, "as root: the same", p.stderr)
        t.equal(nodes(), before, "… and it makes no device node either")
finally:
    shutil.rmtree(tmp, ignore_errors=True)
t.done()
