#!/usr/bin/python3
"""Completion asks the program: what it offers is what the program takes."""
import os
import re
import shutil
import subprocess

import uwtest

t = uwtest.Tap()
DIR = uwtest.TOP / "deploy/completions"
ENV = {**os.environ, "PATH": uwtest.programs_path()}


def offered(*words):
    """What bash offers for the last of these words."""
    script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _underwatt; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    p = subprocess.run(["bash", "-c", script, "bash", str(DIR / "underwatt.bash"), "underwatt", *words],
                       capture_output=True, text=True, env=ENV, timeout=60)
    return p.stdout.split()


help_text = subprocess.run([uwtest.program("underwatt"), "--help"], capture_output=True, text=True).stdout
commands = re.findall(r"^  ([a-z-]+)  ", help_text, re.M)
t.ok(set(commands) <= set(offered("")), "every command is offered", offered(""))
t.equal(offered("swe"), ["sweep"], "a beginning finds its command")
for c in commands:
    text = subprocess.run([uwtest.program("underwatt"), c, "--help"], capture_output=True, text=True).stdout
    want = {w for line in text.splitlines() if line.startswith("  ")
            for w in re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)", line)}
    t.ok(want and want <= set(offered(c, "--")), f"every option of {c} is offered", (want, offered(c, "--")))
t.equal(offered("run", "--goal", "e"), ["energy", "edp", "eds:"], "goals")
t.equal(offered("run", "--preset", ""), ["aggressive", "balanced", "minimal"], "presets, where no daemon answers")
t.ok("set" in offered("cap", "s"), "what cap does")


def said(*words):
    p = subprocess.run([uwtest.program("underwatt"), *words], capture_output=True, text=True)
    return " ".join((p.stdout + p.stderr).split())


# Values that the shells' files name are those that the program's own help and messages name, in each of the files.
VALUES = {
    "goals": (["run", "--goal"], [w.split(":")[0] + (":" if ":" in w else "") for w in re.search(
        r"best cap: (energy.*? time) ", said("run", "--help"))[1].split(", ")]),
    "formats": (["report", "--format"], re.findall(r"\w+", re.search(
        r"--format FORMAT (.*?) -o,", said("report", "--help"))[1].replace("(the default)", "").replace(" or ", " "))),
    "keys of reports": (["report", "--by"], re.search(
        r"none of: (.*?)KEY ", said("report", "--by", "none", "--ledger", "/dev/null"))[1].split(", ")),
}
for c, what in (("cap", r" (\w+) (?:W|TIME)|\| (\w+)"), ("signal", r"(?:signal|\|) (\w+)"), ("carbon", r"(?:carbon|\|) (\w+)"),
                ("price", r"(?:price|\|) (\w+)"), ("policy", r"(?:policy|\|) (\w+)")):
    usage = re.search(r"usage: (underwatt .*?)(?:\[OPTIONS\]|Hold)", said(c, "--help"))[1]
    VALUES[f"words of {c}"] = ([c], ["set", *re.findall(r"\| (\w+)", usage)] if c == "cap" else re.findall(what, usage))
for name, (words, want) in VALUES.items():
    got = [w for w in offered(*words, "") if not os.path.exists(w)]    # policy takes a file, too
    t.ok(want and got == want, f"{name} are those that the program names", (want, got))
    for file in ("_underwatt", "underwatt.fish"):
        t.ok(" ".join(want) in (DIR / file).read_text(), f"… and in {file}", want)
t.equal(offered("report", "-b", "us"), ["user"], "a letter is an option, too")
t.equal(offered("run", "--window", ""), [], "nothing is offered for a free value")
t.ok("bash" in offered("run", "--goal", "edp", "--", "bas"), "behind -- programs are offered")
with uwtest.Node(board="v100", count=3) as node:
    script = '. "$1"; COMP_WORDS=(underwatt run --gpus ""); COMP_CWORD=3; _underwatt; echo "${COMPREPLY[@]}"'
    p = node.run("bash", "-c", script, "bash", str(DIR / "underwatt.bash"))
    t.equal(p.stdout.split(), ["all", "0", "1", "2"], "boards of this node")
    node.daemon("caps: {classes: {slow: {floor: 60 %}}}\n")
    p = node.run("bash", "-c", script.replace("--gpus", "--class"), "bash", str(DIR / "underwatt.bash"))
    t.equal(p.stdout.split(), ["default", "slow"], "classes of this node's daemon")
for shell, name in (("bash", "underwatt.bash"), ("zsh", "_underwatt"), ("fish", "underwatt.fish")):
    if not shutil.which(shell):
        t.skip(f"{name} is good {shell}", f"{shell}: not installed")
        continue
    p = subprocess.run([shell, "-n", str(DIR / name)], capture_output=True, text=True)
    t.ok(p.returncode == 0, f"{name} is good {shell}", p.stderr)
if shutil.which("fish"):
    p = subprocess.run(["fish", "--no-config", "-c", f"source {DIR}/underwatt.fish; complete -C 'underwatt '; "
                        "complete -C 'underwatt sweep --st'"], capture_output=True, text=True, env=ENV, timeout=60)
    t.ok("measure\tMeasure" in p.stdout and "--step\t" in p.stdout, "fish offers commands and options", p.stdout + p.stderr)
t.done()
