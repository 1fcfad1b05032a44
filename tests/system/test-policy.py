#!/usr/bin/python3
"""`underwatt policy check`: what it prints, where to, and its exit status."""
import os
import pathlib
import subprocess
import sys
import tempfile

import uwtest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs/policies/example.yaml"
BAD = "policy: 1\nrules: [{name: a, cap: 75 %, when: carbn > 4 g/kWh}]\n"
OTHER = {"user": 65534, "group": 65534, "extra_groups": []}


def check(*args, stdin=None, env=None, **how):
    return subprocess.run([uwtest.program("underwatt"), "policy", *map(str, args)], capture_output=True, text=True,
                          input=stdin or "", timeout=60, env={"LC_ALL": "C.UTF-8"} | (env or {}), **how)


def of_root(t, tmp):
    """Root is shown what everybody may read; through sudo, what the caller may read."""
    path, shut = pathlib.Path(tmp, "root.yaml"), pathlib.Path(tmp, "shut")
    shut.mkdir()
    inside = shut / "root.yaml"
    for file in (path, inside):
        file.write_text(BAD)
    reason, hidden = "did you mean 'carbon'?", "not every user may read it"

    def shown(p):
        return p.returncode == 2 and reason in p.stderr and hidden not in p.stderr

    def unshown(p):
        return p.returncode == 2 and "root.yaml:2: column" in p.stderr and "carb" not in p.stderr and hidden in p.stderr

    sudo = {"SUDO_UID": "65534", "SUDO_GID": "65534"}
    p = check("check", path)
    t.ok(shown(p), "root: a file that everybody may read is quoted", p)
    p = check("check", path, env=sudo)
    t.ok(shown(p), "through sudo: a file that the caller may read is quoted", p)
    p = check("check", path, **OTHER)
    t.ok(shown(p), "another user too", p)
    shut.chmod(0o700)
    p = check("check", inside)
    t.ok(unshown(p), "root: one in a folder of root's alone is not", p)
    path.chmod(0o640)
    p = check("check", path)
    t.ok(unshown(p), "root: one that root and a group alone may read is not", p)
    p = check("check", path, extra_groups=[0, 65533])
    t.ok(unshown(p), "… whatever root's groups are", p)
    for how in ({"env": sudo}, OTHER):
        p = check("check", path, **how)
        t.ok(p.returncode == 2 and "Permission denied" in p.stderr and "carb" not in p.stderr,
             "another user and a caller of sudo cannot read it", p)
    path.chmod(0o600)
    os.chown(path, 65533, 65533)
    p = check("check", path)
    t.ok(unshown(p), "root: another user's file is not", p)
    p = check("check", "/dev/stdin", stdin=BAD)
    t.ok(p.returncode == 2 and "carb" not in p.stderr, "root: nor is what comes by a pipe of root's", p)
    p = check("check", pathlib.Path(tmp, "none"))
    t.ok(p.returncode == 2 and "underwatt: policy: check: cannot read " in p.stderr and "No such file" in p.stderr, "root: a file that is not there", p)


def main():
    t = uwtest.Tap()
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as tmp:
        pathlib.Path(tmp).chmod(0o755)
        example, bad = pathlib.Path(tmp, "example.yaml"), pathlib.Path(tmp, "bad.yaml")
        example.write_text(EXAMPLE.read_text())
        p = check("check", example)
        lines = p.stdout.splitlines()
        t.ok(p.returncode == 0 and not p.stderr, "the example is right", p)
        t.ok("rule dirty-grid: soft -25 %" in lines and "rule fuse: hard 250 W" in lines and "class production" in lines,
             "its rules and classes are printed", p)
        t.ok("presets: aggressive 70 %, balanced 85 %, minimal 95 %, overnight 60 %" in lines and
             "rule night: soft overnight (60 %)" in lines, "presets by name", p)
        t.ok("rule nobody-waits: goal edp, priority 10" in lines and lines[-2] == "7 rules, 3 classes, 2 limits",
             "its goals and sums", p)
        t.ok("limit temperature: 83 °C" in lines and "limit rise: 83.3 W/s" in lines and "  no daemon answers: "
             "what the limits would hold now is unknown" in lines, "its limits", p)
        t.ok(any(x.startswith("signals read: carbon, price, ") for x in lines), "the signals that it reads", p)
        for text, code, words in (
                ("policy: 1\n", 0, "0 rules"),
                ("policy: 1\nrulse: []\n", 2, f"{bad}:2: unknown key 'rulse': did you mean 'rules'?"),
                ("policy: 1\nrules:\n- {name: a, cap: 75 %,\n   when: carbon > 400 W}\n", 2,
                 f"{bad}:4: when: column 10: carbon is in g/kWh, 400 W is in W"),
                ("policy: 1\nrules: [{name: a, cap: 9 W, kind: hard, when: carbon > 4 g/kWh}]\n", 2,
                 f"{bad}:2: a: a hard rule needs `hard: true` in the file"),
                ("policy: 1\nclasses: [{name: a, match: {}}, {name: b, match: {}}]\n", 0,
                 f"warning: {bad}:2: b: no job is of this class")):
            bad.write_text(text)
            p = check("check", bad)
            t.ok(p.returncode == code and words in p.stdout + p.stderr, f"{code}: {words}", p)
            t.ok(code == 0 or not p.stdout, "nothing on stdout where it is wrong", p)
        if os.geteuid() == 0:
            of_root(t, tmp)
        else:
            t.skip("what root is shown", "not root")
        for path in sorted(EXAMPLE.parent.glob("*.yaml")):
            example.write_text(path.read_text())
            p = check("check", example)
            t.ok(p.returncode == 0 and (path == EXAMPLE or not p.stderr), f"{path.name} has no error and no warning", p)
        t.equal(check("check", pathlib.Path(tmp, "none")).returncode, 2, "a file that is not there")
        t.equal(check("check").returncode, 2, "no file is named")
        t.equal(check("chekc", example).returncode, 2, "no such word")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
