#!/usr/bin/python3
"""The line for sudoers: the same everywhere, good for visudo, and what the command runs.

Argument: the root of the sources.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import uwtest

LINE = "%underwatt-admin ALL = (root) NOPASSWD: /usr/bin/underwatt-actuator --local"


def visudo(text):
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "underwatt")
        path.write_text(text + "\n")
        path.chmod(0o440)
        p = subprocess.run(["visudo", "-c", "-s", "-f", str(path)], capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL)
        return p.returncode == 0, p.stdout + p.stderr


def started(t):
    """What the command runs where boards are real is that line's command, word by word."""
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o777)
        sudo = pathlib.Path(tmp, "sudo")
        sudo.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp}/argv\nexit 1\n")
        sudo.chmod(0o755)
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        hold = pathlib.Path(uwtest.BUILD, "tests/system/actuator-hold")
        p = subprocess.Popen([str(hold), "/usr/bin/underwatt-actuator", "", "real"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env={"PATH": tmp + ":/usr/bin:/bin"}, **other)
        said = p.stdout.readline()  # "ready R TEXT", once it has failed
        p.communicate(timeout=60)
        argv = pathlib.Path(tmp, "argv")
        got = argv.read_text().split("\n")[:-1] if argv.exists() else said
        t.equal(got, ["--"] + LINE.split(": ", 1)[1].split(), "the command runs that and nothing else")


def main():
    t = uwtest.Tap()
    root = pathlib.Path(sys.argv[1])
    for name in ("docs/design/actuator.md", "docs/man/underwatt-actuator.8.scd"):
        lines = [line.strip() for line in (root / name).read_text().splitlines() if "NOPASSWD" in line]
        t.equal(lines, [LINE], f"{name} has the line, and no other")
    made = re.search(r'#define DOCTOR_SUDOERS "(.*)"', (root / "src/cli/doctor.h").read_text()).group(1)
    t.equal(made.replace("%%", "%").replace("%s", "/usr/bin/underwatt-actuator"), LINE, "doctor prints it")
    started(t)
    if not shutil.which("visudo"):
        t.skip("what visudo says", "no visudo here")
        t.done()
    good, said = visudo(LINE)
    t.ok(good, "visudo takes it", said)
    good, said = visudo(LINE.replace(" (root)", " root)"))
    t.ok(not good, "it would say so", said)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
