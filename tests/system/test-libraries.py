#!/usr/bin/python3
"""Which shared libraries the commands load, and what they say where one is missing."""
import os
import pathlib
import re
import subprocess
import tempfile

import uwtest

t = uwtest.Tap()
MOST = 12  # with libc and the dynamic linker
SIM = ("sweep", "--sim", "v100", "--workload", "resnet50")
HEAVY = re.compile(r"cairo|curl|gnutls|microhttpd|X11|krb5|ldap|fontconfig")


def loaded(run):
    """The names of the libraries that run(environment) loads in its first process."""
    with tempfile.TemporaryDirectory(prefix="uw-") as tmp:
        p = run({"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{tmp}/ld"})
        found = set()
        for file in pathlib.Path(tmp).iterdir():
            text = file.read_text(errors="replace")
            if re.search(r"initialize program: \S*/underwatt$", text, re.M) and "exec-gate" not in text:
                found |= set(re.findall(r"calling init: (\S+)", text))
        return p, {os.path.basename(x) for x in found}


def resident(pid, name):
    """KiB of a library that the process has in memory."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    return sum(map(int, re.findall(rf"^[0-9a-f]+-.*/{name}[^\n]*\n(?:[A-Z][^\n]*\n)*?Rss: +(\d+) kB", text, re.M)))


def plain(*args, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "SUDO", "CUDA_"))}
    return subprocess.run([uwtest.program("underwatt"), *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**clean, **env})


def light(name, run, ok=0):
    p, libs = loaded(run)
    t.ok(p.returncode == ok and 1 < len(libs) <= MOST and not [x for x in libs if HEAVY.search(x)],
         f"{name}: {len(libs)} libraries", f"{p.returncode} {p.stderr} {sorted(libs)}")


if "asan" in str(uwtest.BUILD) or uwtest.SANITIZED:
    uwtest.skip_all("a sanitizer's libraries are loaded, too")
light("--version", lambda env: plain("--version", **env))
light("run --help", lambda env: plain("run", "--help", **env))
light("sweep --sim without a picture", lambda env: plain(*SIM, **env))
with uwtest.Node(board="v100", count=2) as node:
    for args in (["list"], ["measure", "-q", "--", "true"], ["run", "-q", "--gpus", "0", "--", "true"]):
        light(" ".join(args), lambda env, a=args: node.run("underwatt", *a, env=env))
    d = node.daemon()
    uwtest.wait_for(lambda: "event=ready" in d.log() and resident(d.pid, "libgnutls") < 500)
    kib = resident(d.pid, "libgnutls")
    t.ok(0 < kib < 500, "the daemon lets go of what only its start has used of a library", f"{kib} KiB")
    for args in (["list"], ["jobs"], ["cap", "show"], ["report"], ["run", "-q", "--gpus", "0", "--", "true"]):
        light("with a daemon: " + " ".join(args), lambda env, a=args: node.run("underwatt", *a, env=env))
p, libs = loaded(lambda env: plain(*SIM, "--svg", "-", **env))
t.ok(p.returncode == 0 and "<svg" in p.stdout and "libcairo.so.2" in libs, "a picture loads Cairo", sorted(libs))
with tempfile.TemporaryDirectory(prefix="uw-") as tmp:
    (pathlib.Path(tmp) / "libcairo.so.2").write_text("no library")
    p = plain(*SIM, "--svg", "-", LD_LIBRARY_PATH=tmp)
    t.ok(p.returncode == 1 and len(p.stderr.splitlines()) == 1 and not p.stdout
         and all(s in p.stderr for s in ("--svg", "Cairo", "libcairo.so.2")),
         "a picture without Cairo: one line that names it", f"{p.returncode} {p.stderr}")
    p = plain(*SIM, "--csv", "-", LD_LIBRARY_PATH=tmp)
    t.ok(p.returncode == 0 and p.stdout, "the rest works without it", p.stderr)


def without_server(name, path, says):
    """A command with a node of its own goes on; who asks it reads why it cannot answer."""
    with uwtest.Node(board="v100", count=1) as node:
        runtime = pathlib.Path(node.env()["XDG_RUNTIME_DIR"])
        runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        run = node.popen("underwatt", "run", "-q", "--gpus", "0", "--", "sleep", "60", env={"LD_LIBRARY_PATH": path})
        t.ok(uwtest.wait_for(lambda: list(runtime.glob("underwatt/node-*.sock"))), f"run, {name}: listens", run.poll())
        for args in (["explain", "0"], ["jobs"]):
            p = node.run("underwatt", *args)
            lines = p.stderr.splitlines()
            t.ok(p.returncode == 1 and "connections need libmicrohttpd" in lines[0] and says in lines[0] and not p.stdout,
                 f"{args[0]}, {name}: says what is wrong", f"{p.returncode} {p.stdout} {p.stderr}")
        run.terminate()
        run.communicate(timeout=60)


with tempfile.TemporaryDirectory(prefix="uw-") as tmp:
    server = pathlib.Path(tmp) / "libmicrohttpd.so.12"
    server.write_text("no library")
    without_server("a damaged libmicrohttpd", tmp, "libmicrohttpd.so.12")
    server.unlink()
    server.symlink_to(next(pathlib.Path("/usr/lib").glob("*/libm.so.6")))
    without_server("another library in its place", tmp, "MHD_")
t.done()
