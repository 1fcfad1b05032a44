#!/usr/bin/python3
"""The units: nothing that systemd does not know, little that they could do.

Arguments: the folder of the configured units, the folder of the sources.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import uwtest

# What the actuator calls before its first client; without one of them it cannot start, or
# is locked down less.
LOCKS = ("capset", "close_range", "prctl", "sched_setscheduler", "seccomp", "landlock_create_ruleset",
         "landlock_add_rule", "landlock_restrict_self")
PROGRAMS = ("underwatt-actuator", "underwattd", "underwatt-signals", "underwatt-slurm-collector")
MOST = 2.0  # systemd-analyze security: 0 is nothing, 10 is everything


def run(*args):
    p = subprocess.run(args, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


def call_sets():
    """systemd's sets of system calls: name -> calls."""
    sets, name = {}, None
    for line in run("systemd-analyze", "syscall-filter", "--no-pager")[1].splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = set()
        elif name and re.match(r"    [a-z@]", line):
            sets[name].add(line.strip())

    def whole(name):
        got = set()
        for call in sets.get(name, ()):
            got |= whole(call) if call[0] == "@" else {call}
        return got
    return {name: whole(name) for name in sets}


def allowed_calls(unit):
    """What the lines of SystemCallFilter= leave, one after the other."""
    sets = call_sets()
    calls = set(sets["@default"])
    for line in re.findall(r"^SystemCallFilter=(.*)", unit, re.M):
        words = {call for word in line.lstrip("~").split() for call in sets.get(word, {word})}
        calls = calls - words if line.startswith("~") else calls | words
    return calls


def seconds(text):
    m = re.fullmatch(r"([0-9.]+)(ms|s)", text)
    return float(m.group(1)) / (1000 if m.group(2) == "ms" else 1)


def passes(t, units):
    """A client that waits makes each restart of the service count as one that the socket has
    caused: what passes (a driver that is away) must not use the limit up, or nothing starts
    the service any more.  What does not (status 2) ends the socket."""
    service, sock = units["underwatt-actuator.service"], units["underwatt-actuator.socket"]
    pause = seconds(re.search(r"^RestartSec=(\S+)", service, re.M).group(1))
    interval = re.search(r"^TriggerLimitIntervalSec=(\S+)", sock, re.M)
    burst = re.search(r"^TriggerLimitBurst=(\d+)", sock, re.M)
    starts = (seconds(interval.group(1)) if interval else 2) / pause  # systemd's own: 20 in 2 s
    t.ok((int(burst.group(1)) if burst else 20) >= 2 * starts, "a driver that is away does not end the socket",
         f"{starts:.0f} starts in {interval and interval.group(1)}, {burst and burst.group(1)} may be")
    stop = re.findall(r"^ExecStopPost=-\+/bin/sh -c '(.*)'$", service, re.M)
    with tempfile.TemporaryDirectory() as tmp:
        said = pathlib.Path(tmp, "said")
        fake = pathlib.Path(tmp, "systemctl")
        fake.write_text(f'#!/bin/sh\necho "$@" >>{said}\n')
        fake.chmod(0o755)
        for status in ("TERM", "0", "1", "2", "3"):
            for line in stop:
                subprocess.run(["/bin/sh", "-c", line], check=True, timeout=60, stdin=subprocess.DEVNULL,
                               env={"PATH": f"{tmp}:/usr/bin:/bin", "EXIT_STATUS": status})
        t.equal(said.read_text() if said.exists() else "", "--no-block stop underwatt-actuator.socket\n",
                "a wrong configuration, and nothing else, does")


def main():
    t = uwtest.Tap()
    units = sorted(pathlib.Path(sys.argv[1]).glob("underwatt*.*"))
    units = [u for u in units if u.suffix in (".service", ".socket")]
    t.equal([u.name for u in units], ["underwatt-actuator.service", "underwatt-actuator.socket",
                                      "underwatt-recover.service", "underwatt-signals.service", "underwatt-slurm-collector.service",
                                      "underwattd.service"],
            "the units")
    for u in units:
        text = u.read_text()
        t.ok("@" not in re.sub(r"@[a-z-]+(?=\s|$)|^#.*", "", text, flags=re.M), f"{u.name}: every path is filled in")
        for path in re.findall(r"^Exec(?:Start|StopPost)=-?(/\S+)", text, re.M):
            t.ok(pathlib.Path(path).name in PROGRAMS and
                 uwtest.program(pathlib.Path(path).name), f"{u.name}: starts {path}, which is built")
    for u in units:  # sockets come before basic.target, services after it: a circle else
        before = " ".join(re.findall(r"^Before=(.*)", u.read_text(), re.M))
        t.ok(u.suffix == ".socket" or ".socket" not in before, f"{u.name}: before no socket", before)
    for u in units:
        if u.name in ("underwatt-actuator.service", "underwatt-recover.service"):
            hidden = " ".join(re.findall(r"^InaccessiblePaths=(.*)", u.read_text(), re.M)).split()
            t.ok({"-/run/dbus", "-/run/systemd/private"} <= set(hidden),
                 f"{u.name}: the bus and systemd's own socket are out of reach", hidden)
    passes(t, {u.name: u.read_text() for u in units})
    if not shutil.which("systemd-analyze"):
        t.skip("what the services could do", "no systemd-analyze here")
        t.done()

    actuator = next(u.read_text() for u in units if u.name == "underwatt-actuator.service")
    missing = sorted(set(LOCKS) - allowed_calls(actuator))
    t.equal(missing, [], "the unit lets the actuator lock itself down")
    for u in units:
        if u.suffix != ".service":
            continue
        code, said = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(u))
        m = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
        t.ok(m and float(m.group(1)) <= MOST, f"{u.name}: exposure {m and m.group(1)} of at most {MOST}",
             f"{code} {said}")
    with tempfile.TemporaryDirectory() as tmp:  # a unit that is open is told from ours
        loose = pathlib.Path(tmp, "loose.service")
        loose.write_text("[Service]\nExecStart=/bin/true\n")
        _, said = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(loose))
        m = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
        t.ok(m and float(m.group(1)) > MOST, "one that is open is told from them", said)
        copies = []  # with programs that are there
        for u in units:
            copy = pathlib.Path(tmp, u.name)
            copy.write_text(re.sub(r"=(-?)\S*/(underwatt\S*)", lambda m: f"={m.group(1)}{uwtest.program(m.group(2))}"
                                   if m.group(2) in PROGRAMS else m.group(0),
                                   u.read_text()))
            copies.append(str(copy))
        code, said = run("systemd-analyze", "verify", "--man=no", *copies)
        ours = [line for line in said.splitlines() if "underwatt" in line]
        t.ok(code == 0 and not ours, "systemd finds nothing to say about them", said)
        broken = pathlib.Path(tmp, "broken.service")
        broken.write_text("[Service]\nExecStart=/bin/true\nProtectSistem=strict\n")
        _, said = run("systemd-analyze", "verify", "--man=no", str(broken))
        t.ok("ProtectSistem" in said, "it would say so", said)
    source = pathlib.Path(sys.argv[2])
    if shutil.which("systemd-sysusers"):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "etc").mkdir()
            code, said = run("systemd-sysusers", f"--root={root}", str(source / "sysusers.conf"))
            passwd = pathlib.Path(root, "etc", "passwd")
            t.ok(code == 0 and "underwatt:" in (passwd.read_text() if passwd.exists() else ""),
                 "the user is made", said)
            group = pathlib.Path(root, "etc", "group").read_text() if code == 0 else ""
            t.ok("underwatt-admin:" in group, "and the administrators' group", said)
    else:
        t.skip("the user is made", "no systemd-sysusers here")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
