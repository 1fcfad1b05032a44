#!/usr/bin/python3
"""What the package declares of libunderwatt (underwatt/_native.py) against the header, by a C program that is
generated and compiled, and against the names that the library shows.  Versions of both, and a library that does not fit.
"""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyuser
import uwtest

from underwatt import IncompatibleLibrary, _native, __version__

CC = os.environ.get("CC", "cc").split()


def expected():
    """Lines 'what value' as Python has them."""
    for name, struct in _native.STRUCTURES.items():
        yield f"sizeof({name})", ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            yield f"offsetof({name}, {field})", getattr(struct, field).offset
            yield f"sizeof((({name} *)0)->{field})", getattr(struct, field).size
    for name, value in _native.CONSTANTS.items():
        yield name, value


def compiled(folder, lines, what="main"):
    """A C program of these lines is compiled: (status, what the compiler said, program)."""
    source, exe = Path(folder, f"{what}.c"), Path(folder, what)
    source.write_text("\n".join(lines))
    p = subprocess.run([*CC, "-std=c99", "-Wall", "-Werror", f"-I{uwtest.TOP}/include", str(source), "-o", str(exe)],
                       capture_output=True, text=True, timeout=120)
    return p.returncode, p.stderr, exe


def header(t, folder):
    want = [(what, int(value)) for what, value in expected()]
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "underwatt/underwatt.h"', "int main(void) {"]
    lines += [f'printf("%lld\\n", (long long)({what}));' for what, _ in want] + ["return 0; }"]
    status, said, exe = compiled(folder, lines)
    if not t.ok(status == 0, f"{len(want)} sizes, offsets and numbers of the header are asked for", said):
        return
    got = subprocess.run([exe], capture_output=True, text=True, timeout=20).stdout.split()
    wrong = [f"{what}: C has {g}, Python {v}" for (what, v), g in zip(want, got) if int(g) != v]
    t.ok(len(got) == len(want) and not wrong, "and are Python's", "\n".join(wrong))


def declared(text):
    """Name -> number of arguments of each function that a header declares."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return {name: 0 if args.strip() == "void" else args.count(",") + 1
            for name, args in re.findall(r"UW_API[^;(]*?\b(uw_\w+)\(([^;]*)\);", text)}


def names(t):
    nm = subprocess.run(["nm", "-D", "--defined-only", str(pyuser.LIBRARY)], capture_output=True, text=True, timeout=60)
    shown = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines() if " T " in line}
    t.equal(sorted(shown), sorted(_native.FUNCTIONS), "Python declares each function that the library shows, and no other")
    have = declared(Path(uwtest.TOP, "include", "underwatt", "underwatt.h").read_text())
    t.equal({n: len(a) for n, (_, a) in sorted(_native.FUNCTIONS.items())}, dict(sorted(have.items())),
            "with as many arguments as the header has")
    enums = re.findall(r"\b(UW_[A-Z_0-9]+) = ", Path(uwtest.TOP, "include", "underwatt", "underwatt.h").read_text())
    t.ok(enums and set(enums) <= set(_native.CONSTANTS), "and each number of its enumerations",
         set(enums) - set(_native.CONSTANTS))


def versions(t, folder):
    project = re.search(r"^  version: '([^']+)'", Path(uwtest.TOP, "meson.build").read_text(), re.M).group(1)
    t.equal((__version__, _native.Library(str(pyuser.LIBRARY)).version), (project, project), "versions of package, library and project")
    for version in ("1.0.0", "0.0.9", "x"):
        path = Path(folder, f"lib{version}.so")
        source = Path(folder, "v.c")
        source.write_text(f'const char *uw_version(void);\nconst char *uw_version(void) {{ return "{version}"; }}\n')
        subprocess.run([*CC, "-shared", "-fPIC", str(source), "-o", str(path)], check=True, timeout=60)
        t.ok(refused(path, version, __version__), f"library {version}: refused, with both versions")
    path = Path(folder, "lacks.so")
    source.write_text('const char *uw_version(void);\nconst char *uw_version(void) { return "0.99.0"; }\n')
    subprocess.run([*CC, "-shared", "-fPIC", str(source), "-o", str(path)], check=True, timeout=60)
    t.ok(refused(path, "0.99.0", __version__, "lacks uw_"), "a library that lacks a function: named")
    t.ok(refused(Path(folder, "v.c"), "v.c"), "no library at all: the file is named")
    t.ok(refused(Path("/nowhere/lib.so"), "/nowhere/lib.so"), "no file: named")


def refused(path, *words):
    try:
        _native.Library(str(path))
    except IncompatibleLibrary as e:
        return all(w in str(e) for w in words) and "\n" not in str(e)
    return False


def main():
    t = uwtest.Tap()
    if not shutil.which(CC[0]):
        uwtest.skip_all("no compiler")
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        header(t, folder)
        names(t)
        versions(t, folder)
    t.done()


if __name__ == "__main__":
    main()
