#!/usr/bin/python3
"""The wheel that is handed out: its name, its size, what is inside; installed for each Python that this machine has
into an environment of its own, outside of the tree, it lists the boards of a simulated node with its own library.
"""
import glob
import os
import pathlib
import re
import subprocess
import tempfile
import zipfile

import pyuser
import uwtest

# The newest symbols of libc in it are libuv's, of 2.34; the build machine's is Debian 12's, 2.36.
GLIBC_2 = 34
USES = """
import underwatt, sys
from underwatt import _native
print(underwatt.__version__, _native.library().version, _native.library().path)
"""


def interpreters():
    """Version -> path of each Python from 3.10 on, of Debian and of pyenv."""
    found = {}
    debian, others = glob.glob("/usr/bin/python3*"), glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
    for path in [*sorted(debian), *sorted(others)]:
        if not re.search(r"python3(\.\d+)?$", path):
            continue
        p = subprocess.run([path, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
                           capture_output=True, text=True, timeout=60)
        version = p.stdout.strip()
        if p.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 10):
            found.setdefault(version, path)
    return found


def looks(t, wheel):
    size = wheel.stat().st_size
    t.ok(re.fullmatch(r"underwatt-[\d.]+-py3-none-manylinux_2_(\d+)_x86_64\.whl", wheel.name)
         and int(re.search(r"2_(\d+)", wheel.name)[1]) <= GLIBC_2, f"{wheel.name}")
    t.ok(size < 1_000_000, f"{size} bytes, less than 1 MB")
    names = zipfile.ZipFile(wheel).namelist()
    have = sorted(str(p.relative_to(pyuser.PACKAGE)) for p in (pyuser.PACKAGE / "underwatt").rglob("*")
                  if p.suffix in (".py", ".typed"))
    t.equal(sorted(n for n in names if n.startswith("underwatt/") and not n.endswith(".so")), have,
            "has each file of the package")
    for library in ("underwatt/libunderwatt.so", "underwatt.libs/libuv", "underwatt.libs/libjansson"):
        t.ok(any(n.startswith(library) for n in names), f"has {library}", names)


def installed(t, wheel, version, interpreter, folder):
    home = pathlib.Path(folder, version)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "UNDERWATT_LIBRARY")}
    python = str(home / "bin" / "python3")
    for step in ([interpreter, "-m", "venv", str(home)],
                 [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]):
        p = subprocess.run(step, capture_output=True, text=True, timeout=300, env=env, cwd=folder)
        if not t.ok(p.returncode == 0, f"Python {version} ({interpreter}): {' '.join(step[1:4])}", p.stderr):
            return None
    p = subprocess.run([python, "-c", USES], capture_output=True, text=True, timeout=60, env=env, cwd=folder)
    words = p.stdout.split()
    t.ok(p.returncode == 0 and words[0] == words[1] and words[2].startswith(str(home.resolve())),
         f"Python {version}: imports, with its own library", p.stdout + p.stderr)
    return python


def main():
    t = uwtest.Tap()
    tools, why = pyuser.tools()
    if not tools:
        uwtest.skip_all(why)
    p = subprocess.run([uwtest.TOP / "tools" / "wheel"], capture_output=True, text=True, timeout=60, check=False)
    t.ok(p.returncode == 2 and p.stderr.startswith("usage: tools/wheel TOOLS OUT"), "without arguments: its usage", p.stderr)
    with tempfile.TemporaryDirectory(prefix="uw-wheel-") as folder:
        p = uwtest.timed("the wheel is made", lambda: subprocess.run(
            [uwtest.TOP / "tools" / "wheel", tools, folder], capture_output=True, text=True, timeout=600,
            stdin=subprocess.DEVNULL))
        wheels = list(pathlib.Path(folder).glob("*.whl"))
        if not t.ok(p.returncode == 0 and len(wheels) == 1, "tools/wheel makes one wheel", p.stdout + p.stderr):
            t.done()
        looks(t, wheels[0])
        for version, interpreter in interpreters().items():
            installed(t, wheels[0], version, interpreter, folder)
    t.done()


if __name__ == "__main__":
    main()
