"""Programs of others that use libunderwatt: built against the installed headers alone."""
import os
import pathlib
import shutil
import subprocess

import uwtest

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = uwtest.BUILD / "src" / "lib" / "libunderwatt.so"
HEADERS = ("underwatt.h", "error.h", "progress.h")


def build(t, folder, name):
    """tests/system/NAME.c with every warning as an error, and no header but the installed ones."""
    cc = os.environ.get("CC", "cc").split()
    inside = pathlib.Path(folder) / "include" / "underwatt"
    inside.mkdir(parents=True, exist_ok=True)
    for header in HEADERS:
        shutil.copy(uwtest.TOP / "include" / "underwatt" / header, inside)
    exe = pathlib.Path(folder) / name
    p = subprocess.run([*cc, "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{folder}/include",
                        str(HERE / f"{name}.c"), "-o", str(exe), f"-L{LIBRARY.parent}", "-lunderwatt",
                        f"-Wl,-rpath,{LIBRARY.parent}"], capture_output=True, text=True, timeout=120)
    t.ok(p.returncode == 0, "a C99 program compiles against the installed headers alone", p.stderr)
    return exe


def names(t):
    """What the library shows to others."""
    nm = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True,
                        timeout=60).stdout.split("\n")
    found = [line.split()[2] for line in nm if len(line.split()) == 3 and line.split()[1] != "A"]
    t.ok(len(found) >= 23 and all(n.startswith("uw_") for n in found), f"{len(found)} names are visible, all uw_…", found)
