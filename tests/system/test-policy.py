#!/usr/bin/python3
"""`underwatt policy check`: what it prints, where to, and its exit status."""
import os
import pathlib
import subprocess
import sys
import tempfile

import uwtest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs/policies/example.yaml"
OTHER = {"user": 65534, "group": 65534, "extra_groups": []}


def check(*args):
    """As a user whose own files these are: root would not be shown their text."""
    how = OTHER if os.geteuid() == 0 else {}
    return subprocess.run([uwtest.program("underwatt"), "policy", *map(str, args)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, env={"LC_ALL": "C.UTF-8"}, **how)


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory() as tmp:
        pathlib.Path(tmp).chmod(0o755)
        example, bad = pathlib.Path(tmp, "example.yaml"), pathlib.Path(tmp, "bad.yaml")
        example.write_text(EXAMPLE.read_text())
        p = check("check", example)
        lines = p.stdout.splitlines()
        t.ok(p.returncode == 0 and p.stderr.count("\n") == 1 and "limits are read, but not enforced yet" in p.stderr,
             "the example is right; what is not enforced is said", p)
        t.ok("rule dirty-grid: soft -25 %" in lines and "rule fuse: hard 250 W" in lines and "class production" in lines,
             "its rules and classes are printed", p)
        t.ok("rule nobody-waits: goal edp, priority 10" in lines and lines[-1] == "7 rules, 3 classes, 2 limits",
             "its goals and sums", p)
        t.ok(any(x.startswith("signals read: carbon, price, ") for x in lines), "the signals that it reads", p)
        for text, code, words in (
                ("policy: 1\n", 0, "0 rules"),
                ("policy: 1\nrulse: []\n", 2, f"{bad}:2: unknown key 'rulse': did you mean 'rules'?"),
                ("policy: 1\nrules:\n- {name: a, cap: 75 %,\n   when: carbon > 400 W}\n", 2,
                 f"{bad}:4: when: column 10: carbon is in g/kWh, 400 W is not"),
                ("policy: 1\nrules: [{name: a, cap: 9 W, kind: hard, when: carbon > 4 g/kWh}]\n", 2,
                 f"{bad}:2: a: a hard rule needs `hard: true` in the file"),
                ("policy: 1\nclasses: [{name: a, match: {}}, {name: b, match: {}}]\n", 0,
                 f"warning: {bad}:2: b: no job is of this class")):
            bad.write_text(text)
            p = check("check", bad)
            t.ok(p.returncode == code and words in p.stdout + p.stderr, f"{code}: {words}", p)
            t.ok(code == 0 or not p.stdout, "nothing on stdout where it is wrong", p)
        t.equal(check("check", pathlib.Path(tmp, "none")).returncode, 1, "a file that is not there")
        t.equal(check("check").returncode, 2, "no file is named")
        t.equal(check("chekc", example).returncode, 2, "no such word")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
