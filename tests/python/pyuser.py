"""What tests of the Python package share: the package of this tree on the build's library, and the
tools of requirements.txt in build-python/."""
import fcntl
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import uwtest  # noqa: E402

PACKAGE = uwtest.TOP / "python"
LIBRARY = pathlib.Path(os.environ.get("UNDERWATT_LIBRARY") or uwtest.BUILD / "src" / "lib" / "libunderwatt.so")
HOME = uwtest.TOP / "build-python"
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault("UNDERWATT_LIBRARY", str(LIBRARY))


def env(**more):
    """Of a program that uses the package of this tree."""
    kept = {k: v for k, v in os.environ.items() if k not in ("UNDERWATT_PROGRESS", "LOCAL_RANK")}
    return {**kept, "PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), **more}


def tools():
    """The folder of the tools' programs, installed once for each requirements.txt; or (None, why not)."""
    wanted = HERE / "requirements.txt"
    home = HOME / "tools"
    done = home / "requirements.txt"
    HOME.mkdir(exist_ok=True)
    with open(HOME / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_bytes() == wanted.read_bytes():
            return home / "bin", ""
        for step in (["/usr/bin/python3", "-m", "venv", "--clear", str(home)],
                     [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
                      "--only-binary", ":all:", "--retries", "2", "--timeout", "60", "-r", str(wanted)]):
            try:
                p = subprocess.run(step, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False)
            except (OSError, subprocess.TimeoutExpired) as e:
                return None, f"packages of tests/python/requirements.txt: {e}"
            if p.returncode:
                print("\n".join(f"# {line}" for line in p.stderr.splitlines()[-5:]))
                return None, "packages of tests/python/requirements.txt: no registry, or it refused"
        done.write_bytes(wanted.read_bytes())
    return home / "bin", ""


def in_world(node, code, *args, **more):
    """A Python program on the package of this tree in a simulated node, to its end."""
    return node.run(sys.executable, "-c", code, *args, env={"PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), **more})


def begun_in_world(node, code, *args, stdin=subprocess.DEVNULL, **more):
    """The same, begun; it is killed when the node ends."""
    return node.popen(sys.executable, "-c", code, *args, stdin=stdin,
                      env={"PYTHONPATH": str(PACKAGE), "UNDERWATT_LIBRARY": str(LIBRARY), "PYTHONUNBUFFERED": "1", **more})

